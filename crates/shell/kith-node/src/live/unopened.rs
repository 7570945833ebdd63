//! The live graphs of the topology whose databases this node has not opened, with the reasons.

use super::errors::LiveError;
use kith_database::DatabaseError;
use kith_types::ErrorCode;
use kith_wire::v1;
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

/// This node counts as unable to open a graph if opening it has failed for this long. This is longer than the processes of a
/// cluster take that start at the same time, nodes and databases among them.
const STUCK_AFTER: Duration = Duration::from_secs(5);

/// A live graph that is not open.
#[derive(Clone, Debug)]
struct UnopenedGraph {
    since: Instant,
    code: ErrorCode,
    reason: String,
    /// Whether opening it has failed for longer than [`STUCK_AFTER`], or can only fail.
    is_stuck: bool,
}

/// The live graphs that are not open, by name.
#[derive(Debug, Default)]
pub(super) struct UnopenedGraphs {
    graphs: Mutex<BTreeMap<String, UnopenedGraph>>,
}

impl UnopenedGraphs {
    /// Replaces the set of graphs. `unreadable` are those whose documents this release cannot read, with the reasons.
    pub fn set<'a>(&self, names: impl Iterator<Item = &'a str>, unreadable: &BTreeMap<String, String>) {
        let mut graphs = self.graphs.lock();
        let mut before = std::mem::take(&mut *graphs);
        let code = ErrorCode::Unavailable;
        for name in names {
            let opening = || {
                let reason = "its database is being opened".to_owned();
                UnopenedGraph { since: Instant::now(), code, reason, is_stuck: false }
            };
            graphs.insert(name.to_owned(), before.remove(name).unwrap_or_else(opening));
        }
        for (name, reason) in unreadable {
            let reason = format!("this node cannot read its types or its storage: {reason}");
            graphs
                .insert(name.clone(), UnopenedGraph { since: Instant::now(), code, reason, is_stuck: true });
        }
    }

    /// Records why an attempt to open a graph failed.
    pub fn failed(&self, name: &str, error: &DatabaseError) {
        if let Some(graph) = self.graphs.lock().get_mut(name) {
            graph.code = error.code();
            graph.reason = error.to_string();
            graph.is_stuck = STUCK_AFTER <= graph.since.elapsed();
        }
    }

    /// Removes a graph that is open now.
    pub fn opened(&self, name: &str) {
        self.graphs.lock().remove(name);
    }

    /// Returns the graphs that this node cannot open although other nodes may. A graph that its database does not have is not
    /// among them: no node can open it.
    pub fn unable(&self) -> BTreeSet<String> {
        let graphs = self.graphs.lock();
        let unable =
            graphs.iter().filter(|(_, graph)| graph.is_stuck && graph.code != ErrorCode::DatabaseEmpty);
        unable.map(|(name, _)| name.clone()).collect()
    }

    /// Returns the error for a request about a graph, and whether this node cannot open it at all; `None` if the graph is open
    /// or unknown.
    pub fn error(&self, name: &str) -> Option<(LiveError, bool)> {
        let graphs = self.graphs.lock();
        let UnopenedGraph { code, reason, is_stuck, .. } = graphs.get(name)?;
        let error = LiveError::NotOpen { graph: name.to_owned(), code: *code, reason: reason.clone() };
        Some((error, *is_stuck))
    }

    /// Returns one entry per graph for the status of the node.
    pub fn statuses(&self) -> Vec<v1::AppliedLogs> {
        let graphs = self.graphs.lock();
        let status = |(name, graph): (&String, &UnopenedGraph)| v1::AppliedLogs {
            graph: name.clone(),
            error: graph.reason.clone(),
            ..Default::default()
        };
        graphs.iter().map(status).collect()
    }
}
