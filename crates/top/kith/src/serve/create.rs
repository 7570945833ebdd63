//! `kith cluster create`: writes the first document of a cluster into its metadata store, once.

use super::{
    PlacementFlag,
    config::ConfigFile,
    metadata::{MetadataFlags, missing},
    start_failure,
};
use crate::{
    failure::{Exit, Failure},
    output::{self, Format},
    table,
};
use clap::Args;
use kith_files::objects::{Location, LocationError};
use kith_router::admin::cluster::{Shape, create_cluster};
use serde::Serialize;
use std::path::PathBuf;

/// The flags of a new cluster. Each flag is also a key of the `--config` file.
#[derive(Args, Clone, Debug)]
pub struct CreateFlags {
    /// Configuration file of the cluster's machines (TOML); docs/operating/machines.md lists its keys
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// How replicas are placed: in groups that each hold everything, or around one ring [default: groups]
    #[arg(long, value_enum)]
    placement: Option<PlacementFlag>,
    /// Number of replica groups, each with a full copy of the data; on a ring, replicas of each partition
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    groups: Option<u32>,
    /// Nodes per group, or on the whole ring; ids are given from 0, group by group
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    nodes: Option<u32>,
    /// Number of partitions, fixed for the life of the cluster: a few tens per node of a group
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    partitions: Option<u32>,
    /// Zones over which the nodes of each group are spread, in turn; `zone` of a `[[node]]` in the file overrides them
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    zones: Vec<String>,
    /// Create the cluster even if the loss of one zone or rack would take all replicas of a partition
    #[arg(long)]
    allow_shared_zones: bool,
    /// Where built versions are stored: a folder, at the same path on every machine, or s3://BUCKET/PREFIX, gs://…,
    /// az://…
    #[arg(long, value_name = "DIR|URL")]
    object_store: Option<PathBuf>,
    /// How to reach the metadata store.
    #[command(flatten)]
    metadata: MetadataFlags,
}

/// A cluster that was created, or existed already.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CreateReply {
    pub cluster_id: String,
    /// `false` if a cluster of this shape existed already.
    pub created: bool,
    pub placement: PlacementFlag,
    /// Replica groups; on a ring, the number of replicas of each partition.
    pub groups: u32,
    /// Nodes per group; on a ring, all nodes.
    pub nodes: u32,
    pub partitions: u32,
    pub object_store: String,
}

impl CreateFlags {
    /// Creates the cluster, unless it exists already.
    ///
    /// # Errors
    /// If a cluster of another shape exists, the shape is invalid, or the metadata cannot be written.
    pub async fn run(self, format: Format) -> anyhow::Result<Exit> {
        let file = ConfigFile::read(self.config.as_deref())?;
        let needed = |flag: Option<u32>, key: Option<u32>, name: &str| {
            flag.or(key).ok_or_else(|| missing(&format!("--{name}"), name))
        };
        let placement = self.placement.or(file.placement).unwrap_or_default();
        let groups = needed(self.groups, file.groups, "groups")?;
        let nodes = needed(self.nodes, file.nodes, "nodes")?;
        let partitions = needed(self.partitions, file.partitions, "partitions")?;
        check_count("groups", groups)?;
        check_count("nodes", nodes)?;
        let location = location(self.object_store.or(file.object_store.clone()))?;
        let target = self.metadata.or(file.metadata_flags()).target()?;
        let store = target.connect().map_err(|error| start_failure(error.into()))?;
        let zones = if self.zones.is_empty() { file.zones.clone() } else { self.zones };
        let shape = Shape {
            placement: Some(placement.strategy()),
            groups: Some(groups),
            nodes: Some(nodes),
            partitions: Some(partitions),
            zones,
            labels: file.labels(),
            allow_shared_zones: self.allow_shared_zones || file.allow_shared_zones,
        };
        let made = create_cluster(&*store, &shape, &location.to_string()).await.map_err(start_failure)?;
        let reply = CreateReply {
            cluster_id: made.cluster.cluster_id,
            created: made.is_new,
            placement,
            groups,
            nodes,
            partitions: made.cluster.partitions,
            object_store: made.cluster.object_store,
        };
        output::print(format, &reply, table::cluster::created)?;
        Ok(Exit::Done)
    }
}

/// Returns the location of the object store that the flags or the file name.
fn location(object_store: Option<PathBuf>) -> Result<Location, Failure> {
    let object_store = object_store.ok_or_else(|| missing("--object-store", "object-store"))?;
    let object_store = object_store.display().to_string();
    // Parse the text, so that equal places have equal spellings and can be compared.
    let location: Location = object_store.parse().map_err(|error: LocationError| {
        Failure::usage(error.to_string(), "name a folder, or s3://BUCKET/PREFIX, gs://…, az://…")
    })?;
    if location.folder().is_some_and(|folder| !folder.is_absolute()) {
        let message = format!("the object store {object_store} is not an absolute path");
        let help = "give a path that begins with / and is the same on every machine";
        return Err(Failure::usage(message, help));
    }
    Ok(location)
}

/// Checks a count. The command line checks its own, but the file's counts have not been checked yet.
fn check_count(name: &str, count: u32) -> Result<(), Failure> {
    if (1..=1024).contains(&count) {
        return Ok(());
    }
    Err(Failure::usage(format!("{name} = {count}: must be from 1 to 1024"), "see docs/operating/machines.md"))
}
