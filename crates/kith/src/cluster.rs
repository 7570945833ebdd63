//! `kith cluster …`: what each node and router says of itself; making a cluster.

use crate::{
    connect::{self, TargetFlags},
    failure::Exit,
    output::{self, Format},
    serve::CreateFlags,
    table,
};
use anyhow::Context;
use clap::Subcommand;
use kith_wire::v1;
use serde::Serialize;

#[derive(Debug, Subcommand)]
pub enum ClusterCommand {
    /// Show the nodes and routers
    Status,
    /// Make a cluster in its metadata, before its nodes and routers start
    ///
    /// A cluster that is there already, of this shape, is left as it is.
    Create(Box<CreateFlags>),
}

/// The cluster.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StatusReply {
    pub epoch: u64,
    pub partitions: u32,
    pub nodes: Vec<NodeReply>,
    pub routers: Vec<RouterReply>,
}

/// One node.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NodeReply {
    pub group: u32,
    pub node: u32,
    pub state: String,
    pub addr: String,
    pub pid: u32,
    pub partitions: u32,
    pub requests_per_second: f64,
    pub clients: u32,
    pub in_flight: u32,
    pub graphs: Vec<ServedReply>,
    /// Files found damaged that are not repaired yet.
    pub files_damaged: u64,
    /// Files repaired since the node started.
    pub files_repaired: u64,
}

/// A graph version that a node serves.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServedReply {
    pub graph: String,
    pub version: u64,
}

/// One router.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RouterReply {
    pub addr: String,
    pub http: String,
    pub pid: u32,
}

impl From<v1::ClusterStatus> for StatusReply {
    fn from(wire: v1::ClusterStatus) -> Self {
        let mut nodes: Vec<NodeReply> = wire.nodes.into_iter().map(NodeReply::from).collect();
        nodes.sort_by_key(|node| (node.group, node.node));
        let routers = wire.routers.into_iter();
        let routers =
            routers.map(|router| RouterReply { addr: router.addr, http: router.http, pid: router.pid });
        Self { epoch: wire.epoch, partitions: wire.partitions, nodes, routers: routers.collect() }
    }
}

impl From<v1::NodeStatus> for NodeReply {
    fn from(wire: v1::NodeStatus) -> Self {
        let load = wire.load.unwrap_or_default();
        let served = wire.served.into_iter();
        Self {
            group: wire.group,
            node: wire.node,
            state: wire.state,
            addr: wire.addr,
            pid: wire.pid,
            partitions: wire.partitions,
            requests_per_second: (load.requests_per_second * 10.0).round() / 10.0,
            clients: load.clients,
            in_flight: load.in_flight,
            files_damaged: wire.files_damaged,
            files_repaired: wire.files_repaired,
            graphs: served
                .map(|served| ServedReply { graph: served.name, version: served.version })
                .collect(),
        }
    }
}

/// Runs a command.
///
/// # Errors
/// If no router answers.
pub async fn run(target: &TargetFlags, format: Format, command: ClusterCommand) -> anyhow::Result<Exit> {
    match command {
        ClusterCommand::Status => {
            let router = connect::router(target).await?;
            let status = StatusReply::from(router.status().await.context("read the cluster's status")?);
            output::print(format, &status, table::cluster::status)?;
            Ok(Exit::Done)
        }
        ClusterCommand::Create(flags) => flags.run(format).await,
    }
}
