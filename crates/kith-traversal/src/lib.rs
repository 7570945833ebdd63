//! Evaluates traversals in Gremlin over any graph (`docs/design/0020-gremlin.md`): the meaning of values, plans, and their
//! evaluation batch by batch.
//!
//! [`plan::compile`] turns bytecode into a [`plan::Plan`], and [`evaluate::Evaluation`] evaluates it over a [`graph::Graph`].
//! [`explain::explain`] says what a plan will do.
//! Values, bytecode and text are those of [`kith_gremlin`].

pub mod evaluate;
pub mod explain;
pub mod functions;
pub mod graph;
pub mod plan;
pub mod semantics;
#[cfg(feature = "testing")]
pub mod testing;

use kith_gremlin::{GremlinError, Result, bytecode, error, predicate, text, value};
