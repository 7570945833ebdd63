//! Requests, options, replies and errors of every door and client, and the trait of what answers them.

mod compute;
mod early;
mod error;
mod graph;
mod gremlin;
mod limits;
mod options;
mod request;
mod service;
mod store;
mod stream;

pub use compute::{AggregateAnswer, AggregateQuery, ComputeAnswer, ComputeAt, ComputeQuery};
pub use early::EarlyResults;
pub use error::QueryError;
pub use graph::{QueryAnswer, ServedGraph, ServedState};
pub use gremlin::{DecodedTraversal, GremlinAnswer, GremlinQuery, GremlinTraversal, LinkedTraversal};
pub use limits::ANSWER_BYTES_MAX;
pub use options::{CacheMode, Page, Proofs, QueryOptions, merged_tickets, parse_hedging};
pub use request::{Question, Reply, Request, WriteOutcome};
pub use service::Service;
pub use store::{BatchAnswer, BatchKeys, StoreShape};
pub use stream::{
    BatchPiece, BatchStream, Outlet, StreamFailure, StreamFooter, StreamItem, StreamStatus, driven,
};
