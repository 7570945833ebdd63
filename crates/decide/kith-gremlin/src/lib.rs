//! Gremlin, the query language of Apache TinkerPop 3.8, apart from any transport and any graph
//! (`docs/design/0020-gremlin.md`). Doors and clients encode and decode with this crate, and `kith-traversal` evaluates
//! what it decodes. It has no clock and no sockets.
//!
//! ```text
//! Gremlin text ──────────────► text ──────┐
//! GraphBinary, GraphSON ─► message ───────┴─► value::bytecode ─► kith-traversal ─► value ─► graphbinary, graphson, plain
//! ```
//!
//! - [`value`]: the values of Gremlin, with [`bytecode`] and [`predicate`].
//! - [`text`]: the parser; `text/words.rs` lists every name that a text can use.
//! - [`graphbinary`], [`graphson`], [`plain`]: codings of values. `assemble`: what decoders have in common.
//! - [`message`]: requests and answers of the WebSocket protocol and of HTTP.
//! - [`property`]: properties of open graphs as JSON.
//! - [`semantics`]: equality, order, arithmetic and predicates of values, for traversals and for the nodes that test elements.
//! - [`room`]: how much decoding may take. A decoder asks for room before it allocates.
//! - [`error`]: why a traversal cannot be evaluated.
//!
//! A traversal arrives as [`bytecode::Bytecode`], whichever way it was written. Names and behaviour follow TinkerPop.
//!
//! To add a step, begin with its name in `text/words.rs`; the rest is in `kith-traversal`.

mod assemble;
pub mod error;
pub mod graphbinary;
pub mod graphson;
pub mod message;
pub mod plain;
pub mod property;
pub mod room;
pub mod semantics;
pub mod text;
pub mod value;

pub use error::{GremlinError, Result};
pub use room::Room;
pub use value::{bytecode, predicate};
