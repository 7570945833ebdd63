//! Live graphs: who leads them, how fast they are written, and how far their replicas are behind.

use super::{Sample, per_second};
use kith_wire::v1;
use serde::Serialize;

/// One live graph.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LiveGraphView {
    pub graph: String,
    /// The positions that its logs have reached, added up.
    pub position: u64,
    /// `None` if the graph is new.
    pub changes_per_second: Option<f64>,
    /// Partitions that take no writes, because nobody leads them who is up.
    pub leaderless: u32,
    pub nodes: Vec<LiveNodeView>,
}

/// What one node has of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LiveNodeView {
    pub node: u32,
    /// How many partitions it leads, and how many it follows.
    pub leads: u32,
    pub follows: u32,
    /// How many positions it is behind, in all partitions, and in the worst one.
    pub behind: u64,
    pub behind_max: u64,
}

/// A process with databases.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DatabaseView {
    pub database: u32,
    /// `up`, `down` or `unknown`.
    pub state: String,
    pub addr: String,
}

/// What happened to live graphs between two samples.
pub(super) fn graphs(before: &Sample, after: &Sample, seconds: f64) -> Vec<LiveGraphView> {
    let graph = |graph: &v1::LiveGraphStatus| {
        let earlier = before.status.live_graphs.iter().find(|earlier| earlier.graph == graph.graph);
        let changes = earlier.map(|earlier| graph.position.saturating_sub(earlier.position));
        let nodes = graph.nodes.iter().map(|node| LiveNodeView {
            node: node.node,
            leads: node.leads,
            follows: node.follows,
            behind: node.behind,
            behind_max: node.behind_max,
        });
        LiveGraphView {
            graph: graph.graph.clone(),
            position: graph.position,
            changes_per_second: changes.map(|changes| per_second(changes, seconds)),
            leaderless: graph.leaderless,
            nodes: nodes.collect(),
        }
    };
    after.status.live_graphs.iter().map(graph).collect()
}

/// The databases at the end.
pub(super) fn databases(after: &Sample) -> Vec<DatabaseView> {
    let database = |it: &v1::DatabaseStatus| DatabaseView {
        database: it.database,
        state: it.state.clone(),
        addr: it.addr.clone(),
    };
    after.status.databases.iter().map(database).collect()
}
