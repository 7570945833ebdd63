//! Gremlin, the query language of Apache TinkerPop, apart from any transport (`docs/design/0020-gremlin.md`): its values, their
//! codings, the messages of its WebSocket protocol, and the reader of Gremlin text. `kith-traversal` evaluates traversals.
//!
//! Names and behaviour follow TinkerPop 3.8. A traversal arrives as [`bytecode::Bytecode`], whichever way it was written.

mod assemble;
pub mod error;
pub mod graphbinary;
pub mod graphson;
pub mod message;
pub mod plain;
pub mod property;
pub mod room;
pub mod text;
pub mod value;

pub use error::{GremlinError, Result};
pub use room::Room;
pub use value::{bytecode, predicate};
