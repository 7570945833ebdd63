//! Read compute and aggregation over a store's records: queries and answers (`docs/design/0009-read-compute.md`).

use crate::{BatchAnswer, QueryError};
use kith_operators::{Groups, Records};
use kith_schema::{
    Scalar, Schema,
    compute::{AggregatePlan, Aggregation, ComputePlan},
};
use kith_types::ByteKeys;

/// The place where records are processed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ComputeAt {
    /// On the nodes that hold them. In the client if the nodes' release cannot.
    #[default]
    Nodes,
    /// In the client, which reads whole records. The answer is the same, bit for bit.
    Client,
}

/// A computation to run over keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ComputeQuery {
    /// The results wanted of each record.
    pub plan: ComputePlan,
    /// The place where the records are processed.
    pub at: ComputeAt,
}

/// An aggregation to run over keys.
#[derive(Clone, Debug, PartialEq)]
pub struct AggregateQuery {
    /// The values or buckets to count.
    pub plan: AggregatePlan,
    /// The place where the records are processed.
    pub at: ComputeAt,
}

/// The answer of a computation.
#[derive(Clone, Debug, PartialEq)]
pub struct ComputeAnswer {
    /// One record per key, in the order of the keys; values are records of the schema `result`. With `top_k` only the best
    /// have values, and the other keys that are found are [`kith_operators::Record::Unsent`].
    pub answer: BatchAnswer,
    /// With `top_k`: the places of the best among the keys, best first.
    pub best: Option<Vec<u32>>,
    /// The schema of the results.
    pub result: Schema,
}

/// The answer of an aggregation.
#[derive(Clone, Debug, PartialEq)]
pub struct AggregateAnswer {
    /// The outcome of each key, without values.
    pub answer: BatchAnswer,
    /// The distinct values, encoded, ascending by bytes; empty if buckets were counted.
    pub values: ByteKeys,
    /// The count of each value, or else of each bucket of the plan.
    pub counts: Vec<u64>,
    /// Whether there were more distinct values than are kept. Counts are exact, but values are missing.
    pub truncated: bool,
    /// The schema of the records that were counted.
    pub schema: Schema,
}

impl AggregateAnswer {
    /// Calls `each` with the values of the highest counts and their counts, as many as the plan wants. Of equal counts, the
    /// least values come first.
    ///
    /// # Errors
    /// [`QueryError`] if the plan is not the one that was answered.
    pub fn top(&self, plan: &AggregatePlan, mut each: impl FnMut(Scalar<'_>, u64)) -> Result<(), QueryError> {
        let aggregation = Aggregation::new(plan, &self.schema)?;
        let groups = Groups {
            records: Records::default(),
            values: self.values.clone(),
            counts: self.counts.clone(),
            truncated: self.truncated,
        };
        let top = groups
            .top(&aggregation)
            .map_err(|why| QueryError::Internal { detail: format!("a counted value: {why}") })?;
        top.into_iter().for_each(|(value, count)| each(value, count));
        Ok(())
    }
}

impl ComputeQuery {
    /// Refuses a plan that cannot be streamed: with `top_k`, the best records are known only after all were read.
    ///
    /// # Errors
    /// [`QueryError::BadRequest`] for a plan with `top_k`.
    pub fn check_stream(&self) -> Result<(), QueryError> {
        match self.plan.top_k {
            None => Ok(()),
            Some(_) => {
                let detail = "a computation with top_k cannot be streamed, because the best records are known only after all were read: ask for it as a whole";
                Err(QueryError::BadRequest { detail: detail.to_owned() })
            }
        }
    }
}
