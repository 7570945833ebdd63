//! `kith cluster recover`: writes the metadata of a cluster whose metadata store is lost.

use super::{config::ConfigFile, metadata::MetadataFlags, start_failure};
use crate::{
    failure::{Exit, Failure},
    output::{self, Format},
};
use clap::Args;
use kith_cluster::types::add_types_beside;
use kith_types::ErrorCode;
use kith_wire::documents::{Document, TopologyDocument};
use serde::Serialize;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The flags for the copies and the metadata store.
#[derive(Args, Clone, Debug)]
pub struct RecoverFlags {
    /// Copies of the topology: topology.json in the data directories of nodes and routers; the newest is used
    #[arg(required = true, value_name = "COPY")]
    copies: Vec<PathBuf>,
    /// Configuration file of the cluster's machines (TOML); docs/operating/machines.md lists its keys
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// How to reach the new, empty metadata store.
    #[command(flatten)]
    metadata: MetadataFlags,
}

/// A summary of what was recovered.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct RecoverReply {
    cluster_id: String,
    copy: PathBuf,
    revision: u64,
    stores: usize,
    live_graphs: usize,
}

impl RecoverFlags {
    /// Recovers the cluster.
    ///
    /// # Errors
    /// If a copy cannot be read, the copies are of several clusters, or the metadata store cannot be written or holds a
    /// cluster.
    pub async fn run(self, format: Format) -> anyhow::Result<Exit> {
        let file = ConfigFile::read(self.config.as_deref())?;
        let copies = self.copies.iter().map(|path| Ok((read(path)?, path)));
        let copies = copies.collect::<Result<Vec<_>, Failure>>()?;
        let first = copies.first().map(|(copy, _)| copy.cluster.cluster_id.clone());
        if copies.iter().any(|(copy, _)| Some(&copy.cluster.cluster_id) != first.as_ref()) {
            let help = "name copies of one cluster only";
            return Err(Failure::usage("the copies are of several clusters", help).into());
        }
        let newest = copies.iter().max_by_key(|(copy, _)| copy.revision);
        let (copy, path) = newest.expect("the command line takes at least one copy");
        let mut copy = copy.clone();
        add_types_beside(path, &mut copy);
        let target = self.metadata.or(file.metadata_flags()).target()?;
        let store = target.connect().map_err(|error| start_failure(error.into()))?;
        let cluster = kith_router::admin::recover::recover(&*store, &copy).await.map_err(start_failure)?;
        let reply = RecoverReply {
            cluster_id: cluster.cluster_id,
            copy: (*path).clone(),
            revision: copy.revision,
            stores: copy.stores.len(),
            live_graphs: copy.live.len(),
        };
        output::print(format, &reply, RecoverReply::text)?;
        Ok(Exit::Done)
    }
}

impl RecoverReply {
    fn text(&self) -> String {
        let Self { cluster_id, copy, revision, stores, live_graphs } = self;
        format!(
            "cluster {cluster_id} was recovered from {} (revision {revision}): stores: {stores}, live graphs: {live_graphs}; \
             now restart all its processes\n",
            copy.display()
        )
    }
}

fn read(path: &Path) -> Result<TopologyDocument, Failure> {
    let failed = |error: String| {
        let help = "name the file topology.json in the data directory of a node or router";
        Failure::new(ErrorCode::BadInput, format!("copy {}: {error}", path.display()), help)
    };
    let text =
        fs::read(path).and_then(kith_types::without_mark).map_err(|error| failed(error.to_string()))?;
    TopologyDocument::decode(text.as_bytes()).map_err(|error| failed(error.to_string()))
}
