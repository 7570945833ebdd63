//! The client of routers, for programs that ask a cluster. It links no executor, no traversals, no state machines of
//! operations and no files; programs that ask nodes themselves use `kith-session`.
//!
//! ```text
//! program ─► Failover ─► RouterClient ─► frames or gRPC (kith-net) ─► router
//!                one call of the trait Service: Request in, Reply or QueryError out
//! ```
//!
//! - [`RouterClient`]: one router. Questions are methods of [`Service`]; calls that look at the cluster or change it are
//!   methods of the client itself.
//! - [`Failover`]: several routers. A request goes to the next one only if it may be repeated.
//! - [`query`], [`schema`], [`types`]: the operations of graphs, and everything else that requests and answers are made of.
//! - [`ComputeBuilder`], [`AggregateBuilder`]: computations over records, step by step.
//! - [`compute`]: computations that this process does over records that it has read.
//! - [`Inspector`]: what one node holds, for administration.
//! - [`Schemas`], [`KnownTypes`]: schemas of records and types of live graphs, each fetched once.
//!
//! A write is sent again only if it has an id or certainly did not happen. The deadline of a request is the router's own
//! and half a second.
//!
//! A program needs no other crate of Kith. These are its dependencies, and its first query:
//!
//! ```text
//! kith-client = { git = "https://github.com/kith-db/kith" }
//! tokio = { version = "1", features = ["macros", "rt"] }
//!
//! use kith_client::query::{ConnectionsQuery, GraphQuery, QueryOptions, Service};
//! let router = kith_client::RouterClient::connect(&["127.0.0.1:7000".to_owned()]).await?;
//! let query = GraphQuery::new(ConnectionsQuery { id: 1005 });
//! let answered = router.query("village", &query, &QueryOptions::default()).await?;
//! ```

pub mod compute;
mod failover;
mod inspect;
mod router_client;
mod schemas;

pub use compute::{AggregateBuilder, ComputeBuilder};
pub use failover::Failover;
pub use inspect::Inspector;
pub use kith_net::{security, transport::TransportKind};
pub use kith_query as query;
pub use kith_query::{
    ANSWER_BYTES_MAX, AggregateAnswer, AggregateQuery, BATCH_KEYS_MAX, BatchAnswer, BatchKeys, BatchPiece,
    BatchStream, CacheMode, ComputeAnswer, ComputeAt, ComputeQuery, Page, Proofs, QueryAnswer, QueryError,
    QueryOptions, Question, Reply, Request, Service, StoreShape, StreamFailure, StreamFooter, StreamItem,
    StreamStatus, WriteOutcome, parse_hedging,
};
pub use kith_schema as schema;
pub use kith_types as types;
pub use router_client::{ANSWER_GRACE, KnownTypes, RouterClient, topology_of};
pub use schemas::Schemas;

/// Counts values that do not match their proof.
pub fn note_mismatches(values: u64) {
    metrics::counter!("kith_client_mismatched_values_total").increment(values);
}
