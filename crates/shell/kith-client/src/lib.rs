//! Kith's client. It asks a cluster directly ([`Session`], the fast client) or through routers ([`RouterClient`],
//! [`Failover`]); each is a [`Service`]. A router is a session too, with caches in front. The shell here sends,
//! receives and reports; which node is asked, and what is repeated, `kith-routing` decides.
//!
//! ```text
//! Session ─► Run: one query at one pinned topology ─► Operation (kith-ops) ─► Executor ─► Fleet ─► nodes
//! RouterClient ─► router
//! ```
//!
//! - `session`: queries (`run`), writes (`write`), and the trait [`NetworkSource`] for caches.
//! - `executor`: every fan-out, with `plan`, `round` for sending and merging, and `failure` for errors.
//! - `fleet`: nodes with their connections, health and load.
//! - `gremlin`: traversals over loaded and live graphs; the deadline is observed in `mod.rs`, and while compiling in
//!   `traversal.rs`.
//! - `compute`, `stream`: read compute, and records as they arrive.
//! - `settings`, `steering`: the bounds of queries, and the numbers of controllers.
//! - `explain`, `profile`: plans and timings.
//! - `router_client`, `failover`: one router, and the next one.
//! - [`topology`], `schemas`, [`inspect`]: what a client learns about the cluster.
//!
//! A query pins one version from start to end. A write is sent again only if it has an id or certainly did not happen.
//!
//! To add a cache in front of the nodes, implement [`NetworkSource`] or [`ListStore`].

mod alarm;
mod at_hand;
mod caller;
mod compute;
mod executor;
mod explain;
mod failover;
mod fleet;
mod gremlin;
pub mod inspect;
mod profile;
mod router_client;
mod schemas;
mod service;
mod session;
mod settings;
mod steering;
mod stream;
pub mod topology;

pub use at_hand::ListStore;
pub use caller::carried_out;
pub use compute::{AggregateBuilder, ComputeBuilder};
pub use executor::Executor;
pub use failover::Failover;
pub use fleet::Fleet;
pub use kith_api::{
    ANSWER_BYTES_MAX, AggregateAnswer, AggregateQuery, Answered, BATCH_KEYS_MAX, BatchAnswer, BatchKeys,
    BatchPiece, BatchStream, CacheMode, ComputeAnswer, ComputeAt, ComputeQuery, Page, Proofs, QueryError,
    QueryOptions, Question, Reply, Request, Service, StoreShape, StreamFailure, StreamFooter, StreamItem,
    StreamStatus, Written, parse_hedging,
};
pub use kith_net::security;
pub use kith_net::transport::{EvaluateParts, FramedTransport, GrpcTransport, Transport, TransportKind};
pub use kith_routing::{
    FanOutController, FanOutLimit, FanOutLimits, LoadSnapshot, QueryShape, Selector,
    fan_out::{ControllerState, LimitError, SelectorError},
    load::Hedging,
};
pub use kith_wire::millis;
pub use router_client::RouterClient;
pub use session::{Caches, NetworkSource, Run, Session, Uncached};
pub use settings::{OwnControllers, SessionSettings, SettingsError, TraversalSettings};
pub use steering::Steering;
