//! Requests to a cluster, and their replies. Every door decodes its input to a [`Request`], and encodes a [`Reply`] or a
//! stream.

use crate::{
    AggregateAnswer, AggregateQuery, BatchAnswer, BatchKeys, ComputeAnswer, ComputeQuery, GraphQuery,
    GremlinAnswer, GremlinQuery, QueryAnswer, QueryError, QueryOptions, StoreShape,
};
use kith_schema::live::{CompletedWrite, Ticket, Write};
use kith_schema::{Schema, SchemaId};
use kith_types::OperationName;
use kith_wire::v1;
use strum::IntoStaticStr;

/// One request: a question and its options.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The question.
    pub question: Question,
    /// The deadline, the fan-out, partial answers and other options.
    pub options: QueryOptions,
}

/// A question. `IntoStaticStr` returns the name of a variant as messages show it.
#[derive(Clone, Debug, PartialEq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum Question {
    /// A query of a graph. The reply is [`Reply::Graph`].
    Graph { graph: String, query: GraphQuery },
    /// The plan of a query. The first fan-out is run if the second depends on its answer; all other fan-outs are only
    /// planned. The reply is [`Reply::Plan`].
    Explain { graph: String, query: GraphQuery },
    /// A traversal of a graph in Gremlin. The reply is [`Reply::Gremlin`].
    Gremlin { graph: String, query: GremlinQuery },
    /// A write to a live graph. The reply is [`Reply::Written`]. Every error but [`QueryError::OutcomeUnknown`] means
    /// that nothing was written.
    Write { graph: String, write: Write },
    /// The values of keys, all of one version. The reply is [`Reply::Values`], or a stream.
    Values { store: String, keys: BatchKeys },
    /// The results of a plan on the records of keys, all of one version. A plan that does not fit the records is
    /// refused before any node is asked. The reply is [`Reply::Computed`], or a stream if there is no `top_k`.
    Compute { store: String, keys: BatchKeys, query: ComputeQuery },
    /// Counts of a field's values over the records of keys, all of one version. The reply is [`Reply::Aggregated`].
    Aggregate { store: String, keys: BatchKeys, query: AggregateQuery },
    /// The types of a store's keys and values. The reply is [`Reply::Shape`].
    Shape { store: String },
    /// The schema of a version's records, by the id that an answer of that version names. The reply is
    /// [`Reply::Schema`].
    Schema { store: String, version: u64, id: SchemaId },
}

/// The answer to a [`Question`] of the same kind.
#[derive(Clone, Debug, PartialEq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[allow(missing_docs, reason = "each variant is the answer to the question that names it")]
pub enum Reply {
    Graph(QueryAnswer),
    Plan(v1::ExplainReply),
    Gremlin(GremlinAnswer),
    Written(WriteOutcome),
    Values(BatchAnswer),
    Computed(ComputeAnswer),
    Aggregated(AggregateAnswer),
    Shape(StoreShape),
    Schema(Schema),
}

/// The outcome of a write.
#[derive(Clone, Debug, PartialEq)]
pub struct WriteOutcome {
    /// The effect of the write.
    pub done: CompletedWrite,
    /// A ticket whose reads show the write.
    pub ticket: Ticket,
    /// The timings, if requested.
    pub profile: Option<v1::Profile>,
}

impl Request {
    /// Turns a query of a graph into the request for its plan. Any other request is returned unchanged.
    pub fn explained(self) -> Self {
        let question = match self.question {
            Question::Graph { graph, query } => Question::Explain { graph, query },
            other => other,
        };
        Self { question, ..self }
    }
}

impl Question {
    /// The graph or store that the question is about.
    pub fn of(&self) -> &str {
        match self {
            Question::Graph { graph, .. }
            | Question::Explain { graph, .. }
            | Question::Gremlin { graph, .. }
            | Question::Write { graph, .. } => graph,
            Question::Values { store, .. }
            | Question::Compute { store, .. }
            | Question::Aggregate { store, .. }
            | Question::Shape { store }
            | Question::Schema { store, .. } => store,
        }
    }

    /// The names of all operations that a question can have.
    pub fn operations() -> Vec<OperationName> {
        let others =
            [OperationName::MGET, OperationName::COMPUTE, OperationName::AGGREGATE, OperationName::GREMLIN];
        crate::Operation::NAMES.iter().copied().chain(others).collect()
    }

    /// The operation, for metrics, records and controllers. `None` for plans, writes, shapes and schemas, which are not
    /// queries.
    pub fn operation(&self) -> Option<OperationName> {
        match self {
            Question::Graph { query, .. } => Some(query.operation.name()),
            Question::Gremlin { .. } => Some(OperationName::GREMLIN),
            Question::Values { .. } => Some(OperationName::MGET),
            Question::Compute { .. } => Some(OperationName::COMPUTE),
            Question::Aggregate { .. } => Some(OperationName::AGGREGATE),
            Question::Explain { .. }
            | Question::Write { .. }
            | Question::Shape { .. }
            | Question::Schema { .. } => None,
        }
    }

    /// The name of the operation or of the write. Any other question has the name of its variant.
    pub fn name(&self) -> &'static str {
        if let Question::Write { write, .. } = self {
            return write.mutation.name();
        }
        self.operation().map_or_else(|| self.into(), OperationName::name)
    }

    /// The keys that are charged to the store's quota; `None` if the question is about a graph, or reads no keys.
    pub fn keys(&self) -> Option<&BatchKeys> {
        match self {
            Question::Values { keys, .. }
            | Question::Compute { keys, .. }
            | Question::Aggregate { keys, .. } => Some(keys),
            Question::Graph { .. }
            | Question::Explain { .. }
            | Question::Gremlin { .. }
            | Question::Write { .. }
            | Question::Shape { .. }
            | Question::Schema { .. } => None,
        }
    }

    /// Whether asking twice has the same effect as asking once. If the outcome of a request was lost, only an idempotent
    /// request, or a write with a name, is sent to another router. Requests to nodes are always repeated, because operators
    /// only read.
    pub fn is_idempotent(&self) -> bool {
        match self {
            Question::Graph { .. }
            | Question::Explain { .. }
            | Question::Values { .. }
            | Question::Compute { .. }
            | Question::Aggregate { .. }
            | Question::Shape { .. }
            | Question::Schema { .. } => true,
            Question::Gremlin { query, .. } => !query.writes,
            // Whether a write is sent again is decided by [`crate::WriteAttempts`].
            Question::Write { .. } => false,
        }
    }

    /// Refuses a question that cannot be streamed.
    ///
    /// # Errors
    /// [`QueryError::BadRequest`] if the question cannot be streamed.
    pub fn check_stream(&self) -> Result<(), QueryError> {
        match self {
            Question::Values { .. } => Ok(()),
            Question::Compute { query, .. } => query.check_stream(),
            Question::Graph { .. }
            | Question::Explain { .. }
            | Question::Gremlin { .. }
            | Question::Write { .. }
            | Question::Aggregate { .. }
            | Question::Shape { .. }
            | Question::Schema { .. } => {
                let name: &str = self.into();
                Err(QueryError::BadRequest {
                    detail: format!("a request of kind {name:?} cannot be streamed"),
                })
            }
        }
    }
}

impl Reply {
    /// The profile, if the answer has one.
    pub fn profile_mut(&mut self) -> Option<&mut Option<v1::Profile>> {
        match self {
            Reply::Graph(answered) => Some(&mut answered.profile),
            Reply::Plan(plan) => Some(&mut plan.plan),
            Reply::Gremlin(answer) => Some(&mut answer.profile),
            Reply::Written(written) => Some(&mut written.profile),
            Reply::Values(answer) => Some(&mut answer.profile),
            Reply::Computed(computed) => Some(&mut computed.answer.profile),
            Reply::Aggregated(aggregated) => Some(&mut aggregated.answer.profile),
            Reply::Shape(_) | Reply::Schema(_) => None,
        }
    }

    /// Whether no key or partition is missing from the answer.
    pub fn is_complete(&self) -> bool {
        match self {
            Reply::Graph(answered) => answered.complete,
            Reply::Plan(_) | Reply::Gremlin(_) | Reply::Written(_) | Reply::Shape(_) | Reply::Schema(_) => {
                true
            }
            Reply::Values(_) | Reply::Computed(_) | Reply::Aggregated(_) => {
                self.batch().is_none_or(BatchAnswer::is_complete)
            }
        }
    }

    /// The outcome of each key; `None` if the answer is not about keys.
    pub fn batch(&self) -> Option<&BatchAnswer> {
        match self {
            Reply::Values(answer) => Some(answer),
            Reply::Computed(computed) => Some(&computed.answer),
            Reply::Aggregated(aggregated) => Some(&aggregated.answer),
            Reply::Graph(_)
            | Reply::Plan(_)
            | Reply::Gremlin(_)
            | Reply::Written(_)
            | Reply::Shape(_)
            | Reply::Schema(_) => None,
        }
    }
}
