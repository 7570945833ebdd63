//! Live graphs and databases in the status of the cluster.

use kith_wire::v1;
use serde::Serialize;

/// Who leads a live graph, and how far its replicas are.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LiveGraphReply {
    pub graph: String,
    /// Where its rows are.
    pub storage: String,
    /// Partitions that take no writes, because nobody leads them who is up.
    pub leaderless: u32,
    /// The positions that its logs have reached, added up.
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

/// What one node has of a live graph.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LiveNodeReply {
    pub node: u32,
    /// How many partitions it leads.
    pub leads: u32,
    /// How many it follows; 0: it is down, or has not opened the graph.
    pub follows: u32,
    /// How many positions it is behind, in all partitions, and in the worst one.
    pub behind: u64,
    pub behind_max: u64,
}

impl From<v1::LiveNodeStatus> for LiveNodeReply {
    fn from(wire: v1::LiveNodeStatus) -> Self {
        let v1::LiveNodeStatus { node, leads, follows, behind, behind_max } = wire;
        Self { node, leads, follows, behind, behind_max }
    }
}

/// A process with databases.
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
