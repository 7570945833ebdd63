//! Answers to queries of graphs.

use crate::GraphAnswer;
use kith_schema::live::Ticket;
use kith_wire::v1;

/// An answer, with what is known about it.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryAnswer {
    /// The answer.
    pub answer: GraphAnswer,
    /// Whether all partitions answered. Can be false only if partial answers were allowed.
    pub complete: bool,
    /// The partitions that did not answer, ascending.
    pub missing_partitions: Vec<u32>,
    /// The graph that answered, in the state that the query pinned.
    pub served: Vec<ServedGraph>,
    /// The plan and its timings, if requested.
    pub profile: Option<v1::Profile>,
}

/// A graph and its state that an answer shows.
#[derive(Clone, Debug, PartialEq)]
pub struct ServedGraph {
    /// The name of the graph.
    pub name: String,
    /// Its state.
    pub state: ServedState,
}

impl ServedGraph {
    /// A ticket whose reads show nothing older than the answer. `None` for a loaded graph.
    pub fn ticket(&self) -> Option<&Ticket> {
        match &self.state {
            ServedState::Live(ticket) => Some(ticket),
            ServedState::Version(_) => None,
        }
    }
}

/// The state of a graph that an answer shows.
#[derive(Clone, Debug, PartialEq)]
pub enum ServedState {
    /// A version.
    Version(u64),
    /// The places in the log at which each partition of a live graph was read. A read with this ticket shows nothing older.
    Live(Ticket),
}
