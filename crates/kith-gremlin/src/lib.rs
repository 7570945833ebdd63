//! Gremlin, the query language of Apache TinkerPop, apart from any transport (`docs/design/0020-gremlin.md`): its values,
//! their codings, the reader of Gremlin text, and the evaluation of traversals.
//!
//! Names and behaviour follow TinkerPop 3.8. A traversal arrives as [`bytecode::Bytecode`], whichever way it was written.

mod assemble;
pub mod bytecode;
pub mod error;
pub mod evaluate;
pub mod functions;
pub mod graph;
pub mod graphbinary;
pub mod graphson;
pub mod message;
pub mod plain;
pub mod plan;
pub mod predicate;
pub mod semantics;
#[cfg(feature = "testing")]
pub mod testing;
pub mod text;
pub mod value;

pub use error::{GremlinError, Result};
