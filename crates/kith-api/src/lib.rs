//! The interface of every door and client of Kith: requests, options, answers and errors, and their wire form
//! ([`convert`]).
//!
//! A [`Service`] answers a [`Request`] with a [`Reply`]; a session, a client of a router and a test's fake are services.
//! [`topology`] describes the cluster that they ask. Nothing here opens connections.

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
pub mod topology;

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
