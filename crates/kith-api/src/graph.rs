//! Answers to queries of graphs.

use kith_live::Ticket;
use kith_ops::GraphAnswer;
use kith_wire::v1;

/// An answer and how it came about.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    /// The answer.
    pub answer: GraphAnswer,
    /// False only if partial answers were allowed and partitions are missing.
    pub complete: bool,
    /// The partitions that nobody answered for, ascending.
    pub missing_partitions: Vec<u32>,
    /// What answered: the graph, in the state that the query pinned.
    pub served: Vec<Served>,
    /// The plan and its timings, if asked for.
    pub profile: Option<v1::Profile>,
}

/// Which graph answered, and in which state.
#[derive(Clone, Debug, PartialEq)]
pub struct Served {
    /// The name of the graph.
    pub name: String,
    /// Its state.
    pub state: ServedState,
}

/// The state of a graph that an answer shows.
#[derive(Clone, Debug, PartialEq)]
pub enum ServedState {
    /// A version.
    Version(u64),
    /// Of a live graph, the place in the log at which each partition was read. A read with it as its ticket
    /// returns nothing older.
    Live(Ticket),
}
