//! Kith's client. It asks a cluster directly ([`Session`], the fast client) or through a router ([`RouterClient`]);
//! [`Failover`] goes on to the next router if one is gone. Each of them is a [`Service`].

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
