//! Live graphs: the leaders of their partitions, the rate of writes, and the lag of their replicas.

use super::{Sample, per_second};
use kith_wire::v1;
use serde::Serialize;

/// One live graph.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LiveGraphView {
    pub graph: String,
    /// The positions of its logs, added up.
    pub position: u64,
    /// `None` if the graph is new in this sample.
    pub changes_per_second: Option<f64>,
    /// Partitions that accept no writes, because they have no leader that is up.
    pub leaderless: u32,
    pub nodes: Vec<LiveNodeView>,
}

/// The part of a live graph on one node.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LiveNodeView {
    pub node: u32,
    /// The number of partitions that the node leads, and the number that it follows.
    pub leads: u32,
    pub follows: u32,
    /// The number of positions by which its replicas lag behind, in all partitions together, and in the worst one.
    pub behind: u64,
    pub behind_max: u64,
}

/// A process that holds databases.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DatabaseView {
    pub database: u32,
    /// `up`, `down` or `unknown`.
    pub state: String,
    pub addr: String,
}

/// Computes what happened to live graphs between two samples.
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

/// Returns the databases in the later sample.
pub(super) fn databases(after: &Sample) -> Vec<DatabaseView> {
    let database = |it: &v1::DatabaseStatus| DatabaseView {
        database: it.database,
        state: it.state.clone(),
        addr: it.addr.clone(),
    };
    after.status.databases.iter().map(database).collect()
}
