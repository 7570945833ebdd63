//! `kith node` and `kith router`: one role, one process.

use super::{settings, start_failure, start_log, stop_signal};
use crate::failure::Exit;
use clap::Args;
use kith_server::{
    metadata::RemoteMetadata,
    node::{Node, NodeOptions},
    router::{Router, RouterOptions},
};
use std::{net::SocketAddr, path::PathBuf, sync::Arc};

/// What every serving process needs.
#[derive(Args, Debug)]
struct ProcessArgs {
    /// Address of the metadata store
    #[arg(long, value_name = "HOST:PORT")]
    metadata: String,
    /// Address of the gRPC service; port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Address of /healthz, /readyz and /metrics; port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:0")]
    http: SocketAddr,
    /// Data directory of this process
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// End when standard input ends: how a supervisor's children end with it
    #[arg(long)]
    end_with_stdin: bool,
}

/// Serve the partitions of one node
#[derive(Args, Debug)]
pub struct NodeArgs {
    /// Id of the node in the cluster's shape
    #[arg(long, value_name = "N")]
    node: u32,
    #[command(flatten)]
    process: ProcessArgs,
}

/// Answer queries for clients, with a network cache
#[derive(Args, Debug)]
pub struct RouterArgs {
    /// Id of the router: members are owned by routers
    #[arg(long, value_name = "N", default_value_t = 0)]
    id: u32,
    #[command(flatten)]
    process: ProcessArgs,
    /// Settings file (TOML); docs/operating.md lists its keys
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Append every query to a file that `kith run` and `kith bench graph` can replay
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

impl NodeArgs {
    /// Serves until told to end.
    ///
    /// # Errors
    /// If it cannot start.
    pub async fn run(self) -> anyhow::Result<Exit> {
        start_log("info");
        let stop = stop_signal(self.process.end_with_stdin);
        let metadata =
            RemoteMetadata::connect(&self.process.metadata).map_err(|error| start_failure(error.into()))?;
        let options = NodeOptions {
            node: self.node,
            listen: self.process.listen,
            http: self.process.http,
            data: self.process.data,
        };
        let _node = Node::start(options, Arc::new(metadata), stop.clone()).await.map_err(start_failure)?;
        stop.cancelled().await;
        Ok(Exit::Done)
    }
}

impl RouterArgs {
    /// Serves until told to end.
    ///
    /// # Errors
    /// If it cannot start.
    pub async fn run(self) -> anyhow::Result<Exit> {
        start_log("info");
        let stop = stop_signal(self.process.end_with_stdin);
        let metadata =
            RemoteMetadata::connect(&self.process.metadata).map_err(|error| start_failure(error.into()))?;
        let mut settings = settings(self.config.as_deref())?;
        settings.record = self.record.or(settings.record);
        let options = RouterOptions {
            router: self.id,
            listen: self.process.listen,
            http: self.process.http,
            data: self.process.data,
            settings,
        };
        let _router =
            Router::start(options, Arc::new(metadata), stop.clone()).await.map_err(start_failure)?;
        stop.cancelled().await;
        Ok(Exit::Done)
    }
}
