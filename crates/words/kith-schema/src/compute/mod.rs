//! Read compute: computes values from records where they are stored (`docs/design/0009-read-compute.md`).
//!
//! A [`ComputePlan`] names fields, operators over them, and how many records are wanted. [`Computation::new`] checks it
//! against a schema before any node is asked, and [`Computation::over`] resolves it for the records of one version. Nodes,
//! and clients whose nodes cannot compute, run the same code, so they agree bit for bit. An [`AggregatePlan`] counts
//! records instead; [`Aggregation`] is its checked form.

mod aggregate;
mod computation;
mod error;
mod evaluate;
mod kernel;
mod plan;
mod predicate;
mod score;

pub use aggregate::{Aggregate, AggregatePlan, Aggregation, BUCKETS_MAX, GroupBy, TOP_MAX, code, order};
pub use computation::Computation;
pub use error::{ComputeError, ComputeFault};
pub use evaluate::{NoResult, RecordPlan};
pub use kernel::{Elements, LANES, Query};
pub use plan::{ComputeFunction, ComputeOperator, ComputePlan, OPERATORS_MAX, TOP_K_MAX, TopK};
pub use predicate::{Bucket, Comparison, Operand, Predicate};
pub use score::Score;
