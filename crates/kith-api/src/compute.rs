//! Read compute and aggregation over a store's records: what is asked, and what comes back
//! (`docs/design/0009-read-compute.md`).

use crate::{BatchAnswer, QueryError};
use kith_ops::{Groups, Records};
use kith_schema::{
    Scalar, Schema,
    compute::{AggregatePlan, Aggregation, ComputePlan},
};
use kith_types::ByteKeys;

/// Where records are processed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ComputeAt {
    /// On the nodes that hold them; in the client if the cluster's release cannot.
    #[default]
    Nodes,
    /// In the client, which reads whole records. The answer is the same, bit for bit.
    Client,
}

/// A computation to run over keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ComputeQuery {
    /// What is wanted of each record.
    pub plan: ComputePlan,
    /// Where the records are processed.
    pub at: ComputeAt,
}

/// An aggregation to run over keys.
#[derive(Clone, Debug, PartialEq)]
pub struct AggregateQuery {
    /// What is counted.
    pub plan: AggregatePlan,
    /// Where the records are processed.
    pub at: ComputeAt,
}

/// What a computation made of the records of keys.
#[derive(Clone, Debug, PartialEq)]
pub struct ComputeAnswer {
    /// One per key, in the order of the keys; values are records of `result`. Of a plan with `top_k` only the best have values, the
    /// other keys that are found are [`kith_ops::Record::Unsent`].
    pub answer: BatchAnswer,
    /// Of a plan with `top_k`: the places of the best among the keys, best first.
    pub best: Option<Vec<u32>>,
    /// The schema of what came out.
    pub result: Schema,
}

/// What an aggregation counted.
#[derive(Clone, Debug, PartialEq)]
pub struct AggregateAnswer {
    /// What became of each key; no values.
    pub answer: BatchAnswer,
    /// The distinct values, coded, ascending by bytes; none where buckets were counted.
    pub values: ByteKeys,
    /// Of each value, or else of each bucket of the plan.
    pub counts: Vec<u64>,
    /// Whether there were more distinct values than are kept: counts are exact, but values are missing.
    pub truncated: bool,
    /// The schema of the records that were counted.
    pub schema: Schema,
}

impl AggregateAnswer {
    /// Calls `each` with the values of the highest counts, as many as the plan wants, and their counts; of equal counts the least values first.
    ///
    /// # Errors
    /// [`QueryError`] if the plan is another one than was answered.
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
    /// Refuses what has no stream: which records are the best is known when all are.
    ///
    /// # Errors
    /// [`QueryError::BadRequest`] of a plan with `top_k`.
    pub fn check_stream(&self) -> Result<(), QueryError> {
        match self.plan.top_k {
            None => Ok(()),
            Some(_) => {
                let detail = "a computation with top_k has no stream: which records are the best is known when all are there; ask for it as a whole";
                Err(QueryError::BadRequest { detail: detail.to_owned() })
            }
        }
    }
}
