//! The interface of every door and client of Kith: requests, options, replies and errors, and their wire form. Doors
//! decode their input to a [`Request`]; whatever answers it is a [`Service`]. Nothing here opens connections, reads a
//! clock or decides which node to ask.
//!
//! ```text
//! gRPC, frames, RESP, Gremlin, kith run          router · session · client of a router · a test's fake
//!         └── Request { Question, QueryOptions } ──► Service::call ──► Reply or QueryError
//!                                                └─► Service::stream ──► records, then a footer
//! ```
//!
//! - `request`, `service`: the questions, the replies, and the trait.
//! - `options`: deadline, fan-out, tickets, cache mode, partial answers.
//! - `graph`, `gremlin`, `store`, `stream`, `compute`: questions and answers of each kind.
//! - `early`: results that are handed over while later ones are still computed.
//! - `error`: [`QueryError`] with its stable code; `error/help.rs` says what to do about each.
//! - [`convert`]: these types to wire messages and back.
//!
//! A query pins one [`kith_topology::Topology`] from start to end, so that no answer mixes two versions. Every key of a
//! batch is answered by a value, by the proof that there is none, or by an error.
//!
//! To add a kind of question, begin with a variant of [`Question`] and of [`Reply`]: say whether it may be repeated
//! ([`Question::is_idempotent`]), and add its conversion in `convert/`. To add an option, begin with [`QueryOptions`].

mod compute;
pub mod convert;
mod early;
mod error;
mod graph;
mod gremlin;
mod options;
mod request;
mod service;
mod store;
mod stream;

pub use compute::{AggregateAnswer, AggregateQuery, ComputeAnswer, ComputeAt, ComputeQuery};
pub use early::EarlyResults;
pub use error::QueryError;
pub use graph::{Answered, Served, ServedState};
pub use gremlin::{GremlinAnswer, GremlinQuery, GremlinTraversal};
pub use kith_wire::{BATCH_KEYS_MAX, too_slow};
pub use options::{CacheMode, Page, Proofs, QueryOptions, merged_tickets, parse_hedging};
pub use request::{Question, Reply, Request, Written};
pub use service::Service;
pub use store::{ANSWER_BYTES_MAX, BatchAnswer, BatchKeys, StoreShape};
pub use stream::{
    BatchPiece, BatchStream, Outlet, StreamFailure, StreamFooter, StreamItem, StreamStatus, driven,
};
