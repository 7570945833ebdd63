//! `kith cluster …`: shows the state of nodes and routers, creates a cluster, and changes its shape.

mod fetch_rate;
mod follow;
mod live;
mod reshape;

use crate::{
    connect::{self, TargetFlags},
    failure::Exit,
    output::{self, Format},
    serve::{CreateFlags, RecoverFlags},
    table,
};
use anyhow::Context;
use clap::Subcommand;
use kith_wire::v1;
use serde::Serialize;

use fetch_rate::FetchRateFlags;
pub use fetch_rate::FetchRatesReply;
pub use live::{DatabaseReply, LiveGraphReply};
use reshape::{AddFlags, GroupFlags, NodesFlags, RebalanceFlags};

#[derive(Debug, Subcommand)]
pub enum ClusterCommand {
    /// Show the nodes, routers, groups, stores, live graphs and databases
    Status,
    /// Create a cluster in its metadata store, before its nodes and routers start
    ///
    /// A cluster of this shape that exists already is left as it is.
    Create(Box<CreateFlags>),
    /// Write the metadata of a cluster whose etcd is lost, from copies that its nodes and routers keep
    Recover(Box<RecoverFlags>),
    /// Add running, empty nodes to the cluster, or use drained nodes again
    AddNode(AddFlags),
    /// Move all partitions off nodes, which stay in the cluster unused
    Drain(NodesFlags),
    /// Move all partitions off nodes, and remove the nodes from the cluster
    RemoveNode(NodesFlags),
    /// Add a group of running, empty nodes; it serves once the other groups have filled it
    AddGroup {
        /// The group's id [default: one more than the highest]
        #[arg(long, value_name = "N")]
        group: Option<u32>,
        #[command(flatten)]
        of: NodesFlags,
    },
    /// Take a group out of service, for example to upgrade it; the other groups answer
    DrainGroup(GroupFlags),
    /// Put a group back into service, once its nodes have fetched what was pushed meanwhile
    RestoreGroup(GroupFlags),
    /// Remove a group that was taken out of service, with its nodes, which become spares
    ///
    /// Other groups first receive the stores that only some groups hold. Removing a group that is gone does nothing.
    RemoveGroup(GroupFlags),
    /// Show, abort or continue a rebalance, or spread the partitions evenly over the nodes
    Rebalance(RebalanceFlags),
    /// Show or change the rate at which nodes fetch versions, copies and repairs
    ///
    /// A change lasts until the node restarts: it then uses its own `--fetch-rate` again.
    FetchRate(FetchRateFlags),
}

/// The state of the cluster.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StatusReply {
    pub epoch: u64,
    pub partitions: u32,
    pub groups: Vec<GroupReply>,
    pub nodes: Vec<NodeReply>,
    pub routers: Vec<RouterReply>,
    /// The stores; empty if the metadata store does not answer.
    pub stores: Vec<StoreStatusReply>,
    pub live_graphs: Vec<LiveGraphReply>,
    pub databases: Vec<DatabaseReply>,
}

/// The state of one replica group.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupReply {
    pub group: u32,
    /// `serving`, `out` (taken out by `drain-group`) or `joining`.
    pub state: String,
    pub nodes: u32,
    pub nodes_down: u32,
}

impl From<v1::GroupStatus> for GroupReply {
    fn from(wire: v1::GroupStatus) -> Self {
        let v1::GroupStatus { group, state, nodes, nodes_down } = wire;
        Self { group, state, nodes, nodes_down }
    }
}

/// The version that a store serves, and the end of its last push.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StoreStatusReply {
    pub store: String,
    pub version: Option<u64>,
    /// The time since that version was pushed.
    pub version_age_ms: Option<u64>,
    /// `done`, `failed` or `cancelled`; `None` if nothing was pushed.
    pub last_push: Option<String>,
    /// The push that is running, if any.
    pub running: Option<String>,
    pub frozen: bool,
    /// The number of answers of the router that was asked, since it started.
    pub answers: u64,
    pub p50_us: u64,
    pub p99_us: u64,
}

impl From<v1::StoreStatus> for StoreStatusReply {
    fn from(wire: v1::StoreStatus) -> Self {
        let is_served = wire.version != 0;
        Self {
            store: wire.store,
            version: is_served.then_some(wire.version),
            version_age_ms: is_served.then_some(wire.version_age_ms),
            last_push: Some(wire.last_push).filter(|outcome| !outcome.is_empty()),
            running: Some(wire.running).filter(|push| !push.is_empty()),
            frozen: wire.frozen,
            answers: wire.answers,
            p50_us: wire.p50_us,
            p99_us: wire.p99_us,
        }
    }
}

/// The state of one node.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NodeReply {
    /// `None` if the node is a spare, which is in no group yet.
    pub group: Option<u32>,
    pub node: u32,
    pub state: String,
    pub addr: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub zone: String,
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
    /// The rate in bytes per second that the node's fetches are slowed down to because reads got slower, if they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fetch_held_back: Option<u64>,
    /// Free bytes on the disk of its versions; `None` if the node is down or the system does not report them.
    pub disk_free: Option<u64>,
}

/// A graph version that a node serves.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServedReply {
    pub graph: String,
    pub version: u64,
}

/// The state of one router.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RouterReply {
    pub addr: String,
    pub http: String,
    pub pid: u32,
    pub router: u32,
    /// `up` or `down`.
    pub state: String,
    /// The time since the router last reached the metadata store, and the revision that it serves by. Both are `None`
    /// if it is down.
    pub metadata_age_ms: Option<u64>,
    pub metadata_revision: Option<u64>,
}

impl From<v1::RouterStatus> for RouterReply {
    fn from(wire: v1::RouterStatus) -> Self {
        let is_up = wire.state == "up";
        Self {
            addr: wire.addr,
            http: wire.http,
            pid: wire.pid,
            router: wire.router,
            state: wire.state,
            metadata_age_ms: is_up.then_some(wire.metadata_age_ms),
            metadata_revision: is_up.then_some(wire.revision),
        }
    }
}

impl From<v1::ClusterStatus> for StatusReply {
    fn from(wire: v1::ClusterStatus) -> Self {
        let mut nodes: Vec<NodeReply> = wire.nodes.into_iter().map(NodeReply::from).collect();
        nodes.sort_by_key(|node| (node.group.is_none(), node.group, node.node));
        let routers = wire.routers.into_iter().map(RouterReply::from).collect();
        let stores = wire.stores.into_iter().map(StoreStatusReply::from).collect();
        let groups = wire.groups.into_iter().map(GroupReply::from).collect();
        Self {
            epoch: wire.epoch,
            partitions: wire.partitions,
            groups,
            nodes,
            routers,
            stores,
            live_graphs: wire.live_graphs.into_iter().map(LiveGraphReply::from).collect(),
            databases: wire.databases.into_iter().map(DatabaseReply::from).collect(),
        }
    }
}

impl From<v1::NodeStatus> for NodeReply {
    fn from(wire: v1::NodeStatus) -> Self {
        let load = wire.load.unwrap_or_default();
        let served = wire.served.into_iter();
        Self {
            group: (!wire.spare).then_some(wire.group),
            node: wire.node,
            state: wire.state,
            addr: wire.addr,
            zone: wire.zone,
            pid: wire.pid,
            partitions: wire.partitions,
            requests_per_second: (load.requests_per_second * 10.0).round() / 10.0,
            clients: load.clients,
            in_flight: load.in_flight,
            files_damaged: wire.files_damaged,
            files_repaired: wire.files_repaired,
            fetch_held_back: Some(wire.fetch_held_back).filter(|rate| 0 < *rate),
            disk_free: wire.disk_free,
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
    let (shape, apply) = match command {
        ClusterCommand::Status => {
            let router = connect::router(target).await?;
            let status = StatusReply::from(router.status().await.context("read the cluster's status")?);
            output::print(format, &status, table::cluster::status)?;
            return Ok(Exit::Done);
        }
        ClusterCommand::Create(flags) => return flags.run(format).await,
        ClusterCommand::Recover(flags) => return flags.run(format).await,
        ClusterCommand::FetchRate(flags) => return fetch_rate::run(target, format, &flags).await,
        ClusterCommand::Rebalance(flags) => return reshape::rebalance(target, format, &flags).await,
        ClusterCommand::AddNode(flags) => flags.shape(),
        ClusterCommand::Drain(flags) => flags.shape("drain"),
        ClusterCommand::RemoveNode(flags) => flags.shape("remove-node"),
        ClusterCommand::AddGroup { group, of } => {
            let (shape, apply) = of.shape("add-group");
            (v1::ShapeRequest { group, ..shape }, apply)
        }
        ClusterCommand::DrainGroup(flags) => flags.shape("drain-group"),
        ClusterCommand::RemoveGroup(flags) => flags.shape("remove-group"),
        ClusterCommand::RestoreGroup(flags) => flags.shape("restore-group"),
    };
    reshape::run(target, format, shape, &apply).await
}
