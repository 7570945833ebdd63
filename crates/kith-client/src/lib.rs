//! Kith's client: runs operations against a cluster, directly ([`Session`], the fast
//! client) or through a router ([`RouterClient`]; [`Failover`] goes to the next router if one is gone). All answer a [`GraphService`]'s queries and a [`StoreService`]'s reads.

mod alarm;
mod api;
mod at_hand;
mod budget;
mod compute;
pub mod convert;
mod error;
mod executor;
mod explain;
mod failover;
mod fleet;
mod framed;
mod in_flight;
pub mod inspect;
mod options;
mod profile;
mod router_client;
mod schemas;
pub mod security;
mod session;
mod settings;
mod steering;
mod store;
mod stream;
pub mod topology;
mod transport;

pub use api::{Answered, GraphService};
pub use at_hand::ListStore;
pub use budget::{Budget, Charge};
pub use compute::{
    AggregateAnswer, AggregateBuilder, AggregateQuery, ComputeAnswer, ComputeAt, ComputeBuilder, ComputeQuery,
};
pub use error::QueryError;
pub use executor::Executor;
pub use failover::Failover;
pub use fleet::Fleet;
pub use framed::{REPLY_SLOT_BYTES, ReplyMemory, listen_locally, prepare_local};
pub use in_flight::InFlight;
pub use kith_routing::{
    FanOutController, FanOutLimit, FanOutLimits, LoadSnapshot, QueryShape, Selector,
    fan_out::{ControllerState, LimitError, SelectorError},
    load::Hedging,
};
pub use options::{CacheMode, Page, Proofs, QueryOptions, parse_hedging};
pub use router_client::RouterClient;
pub use session::{Caches, NetworkSource, Run, Session, Uncached};
pub use settings::{OwnControllers, SessionSettings, SettingsError, millis};
pub use steering::Steering;
pub use store::{ANSWER_BYTES_MAX, BATCH_KEYS_MAX, BatchAnswer, BatchKeys, StoreService, StoreShape};
pub use stream::{
    BatchPiece, BatchStream, Outlet, StreamFailure, StreamFooter, StreamItem, StreamStatus, driven, too_slow,
};
pub use transport::{EvaluateParts, FramedTransport, GrpcTransport, Transport, TransportKind, endpoint};
