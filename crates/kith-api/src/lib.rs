//! What every door and client of Kith speaks: requests, options, answers and errors, and how they travel ([`convert`]).
//!
//! [`GraphService`] answers queries of graphs, [`StoreService`] reads values; a session, a client of a router and a test's
//! fake implement both. [`topology`] is the cluster that they ask. Nothing here connects to anything.

mod compute;
pub mod convert;
mod error;
mod graph;
mod options;
mod store;
mod stream;
pub mod topology;

pub use compute::{AggregateAnswer, AggregateQuery, ComputeAnswer, ComputeAt, ComputeQuery};
pub use error::QueryError;
pub use graph::{Answered, GraphService};
pub use kith_wire::{BATCH_KEYS_MAX, too_slow};
pub use options::{CacheMode, Page, Proofs, QueryOptions, parse_hedging};
pub use store::{ANSWER_BYTES_MAX, BatchAnswer, BatchKeys, StoreService, StoreShape};
pub use stream::{
    BatchPiece, BatchStream, Outlet, StreamFailure, StreamFooter, StreamItem, StreamStatus, driven,
};
