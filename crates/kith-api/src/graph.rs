//! One way to ask, whoever answers: a router, or this process itself.

use crate::{QueryError, QueryOptions};
use futures::future::BoxFuture;
use kith_ops::{GraphAnswer, GraphQuery};
use kith_wire::v1;

/// Answers queries about graphs, through a router or directly from the nodes.
pub trait GraphService: Send + Sync + 'static {
    /// Answers one query.
    fn query<'a>(
        &'a self,
        graph: &'a str,
        query: &'a GraphQuery,
        options: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<Answered, QueryError>>;

    /// The plan of a query: the first fan-out is run where the second depends on it, the rest is only planned.
    fn explain<'a>(
        &'a self,
        graph: &'a str,
        query: &'a GraphQuery,
        options: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<v1::ExplainReply, QueryError>>;
}

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
