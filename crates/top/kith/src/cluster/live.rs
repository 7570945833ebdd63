//! The status of live graphs and databases, as part of the status of the cluster.

use kith_wire::v1;
use serde::Serialize;

/// The leaders of a live graph, and the positions that its replicas have applied.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LiveGraphReply {
    pub graph: String,
    /// The place where the rows of the graph are stored.
    pub storage: String,
    /// The number of partitions that accept no writes because no running node leads them.
    pub leaderless: u32,
    /// The sum of the positions that the partitions' logs have reached.
    pub position: u64,
    pub nodes: Vec<LiveNodeReply>,
}

impl From<v1::LiveGraphStatus> for LiveGraphReply {
    fn from(wire: v1::LiveGraphStatus) -> Self {
        let v1::LiveGraphStatus { graph, storage, leaderless, position, nodes } = wire;
        let nodes = nodes.into_iter().map(LiveNodeReply::from).collect();
        Self { graph, storage, leaderless, position, nodes }
    }
}

/// The role of one node in a live graph.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LiveNodeReply {
    pub node: u32,
    /// The number of partitions that the node leads.
    pub leads: u32,
    /// The number of partitions that the node follows; 0 if it is down or has not opened the graph.
    pub follows: u32,
    /// The number of positions that the node is behind, in all partitions together. `behind_max` is the number in the
    /// partition that is furthest behind.
    pub behind: u64,
    pub behind_max: u64,
    /// The reason why the node has not opened the graph, or why its database does not work; absent if it works.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl From<v1::LiveNodeStatus> for LiveNodeReply {
    fn from(wire: v1::LiveNodeStatus) -> Self {
        let v1::LiveNodeStatus { node, leads, follows, behind, behind_max, error } = wire;
        let error = (!error.is_empty()).then_some(error);
        Self { node, leads, follows, behind, behind_max, error }
    }
}

/// A process that holds databases.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DatabaseReply {
    pub database: u32,
    pub addr: String,
    pub http: String,
    pub pid: u32,
    /// `up`, `down` or `unknown`.
    pub state: String,
}

impl From<v1::DatabaseStatus> for DatabaseReply {
    fn from(wire: v1::DatabaseStatus) -> Self {
        let v1::DatabaseStatus { database, addr, http, pid, state } = wire;
        Self { database, addr, http, pid, state }
    }
}
