//! Evaluates traversals in Gremlin over any graph (`docs/design/0020-gremlin.md`). `kith-session` calls it and
//! implements [`graph::Graph`] for loaded and live graphs. It sends nothing, reads no clock, and observes no deadline:
//! the caller drops the evaluation, which yields often enough.
//!
//! ```text
//! Bytecode ─► plan::compile ─► Plan (rules make it cheaper) ─► Evaluation, batch by batch ─► values
//!                                                                 │ one question for each batch
//!                                                                 ▼
//!                                                               Graph
//! ```
//!
//! - [`plan`]: from bytecode to checked steps; `rules` and `repeats` replace steps by cheaper ones.
//! - [`evaluate`]: one file for each family of steps. `chain` pulls batches from step to step, `nested` evaluates
//!   nested traversals for a whole batch, `meter` charges memory, and `context` has the limits.
//! - [`graph`]: what a traversal asks of a graph.
//! - [`functions`]: functions of text, dates and truth. What values mean by themselves is in `kith_gremlin::semantics`.
//! - [`explain`]: what a plan will do.
//!
//! A batch asks the graph once, however many traversers it has. Memory is charged before it is taken. A rule never
//! changes results.
//!
//! To add a step, follow "How to add a step" in the design document: its variant of [`plan::Kind`], then its arm in
//! `evaluate/step.rs`. To add a question to graphs, add a method to [`graph::Graph`] with a default.

pub mod evaluate;
pub mod explain;
pub mod functions;
pub mod graph;
pub mod plan;
#[cfg(feature = "testing")]
pub mod testing;

use kith_gremlin::{GremlinError, Result, bytecode, error, predicate, semantics, text, value};
