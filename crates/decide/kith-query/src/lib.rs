//! The questions that Kith answers: the operations of graphs as state machines, requests and replies with
//! their options and errors, their wire form, and their form as JSON lines and flags. Nothing here opens connections, reads
//! a clock or decides which node to ask.
//!
//! ```text
//! gRPC, frames, RESP, Gremlin, kith run          router · session · client of a router · a test's fake
//!         └── Request { Question, QueryOptions } ──► Service::call ──► Reply or QueryError
//!                                                └─► Service::stream ──► records, then a footer
//!
//! kith-session                                         nodes
//! QueryMachine::step ──► FanOut { keys, Operator } ──► kith_operators::evaluate
//!         ▲                                                     │
//!         └───────────── merged Value ◄─────────────────────────┘
//! ```
//!
//! - `operations`: a folder for each operation of graphs, with its fields, its state machine, its answer and its twin.
//!   [`Operation`] and [`GraphAnswer`] are made from one line for each. A [`QueryMachine`] sends nothing; its driver does. A
//!   program that only asks routers goes without machines, and without what routers and nodes say to each other (feature
//!   `nodes`).
//! - `api`: the questions, the replies, their options and errors ([`QueryError`] with its stable code), and [`Service`].
//! - [`convert`]: these types to wire messages and back.
//! - `gremlin`, a feature: traversals as values within one process.
//! - `line`, a feature (`flags`): requests as JSON lines and as flags of commands.
//! - `testing`, a feature: a cluster within one thread, and examples of operations.
//!
//! A query pins one topology (`kith-topology`) from start to end, so that no answer mixes two versions. Every key of a
//! batch is answered by a value, by the proof that there is none, or by an error.
//!
//! To add an operation, follow `CONTRIBUTING.md`. To add a kind of question, begin with a variant of [`Question`] and of
//! [`Reply`]: say whether it may be repeated ([`Question::is_idempotent`]), and add its conversion in `convert/`. To add an
//! option, begin with [`QueryOptions`].

mod api;
mod attempts;
pub mod convert;
#[cfg(feature = "gremlin")]
pub mod gremlin;
#[cfg(feature = "flags")]
pub mod line;
mod names;
mod operations;
#[cfg(feature = "testing")]
pub mod testing;

pub use api::*;
pub use attempts::{AfterAttempt, FailedAttempt, WriteAttempts};
pub use kith_wire::{BATCH_KEYS_MAX, too_slow};
pub use operations::*;
