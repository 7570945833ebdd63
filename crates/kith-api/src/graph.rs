//! Answers to queries of graphs.

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
    /// Name and version of what answered: the graph at the version that the query pinned.
    pub served: Vec<(String, u64)>,
    /// The plan and its timings, if asked for.
    pub profile: Option<v1::Profile>,
}
