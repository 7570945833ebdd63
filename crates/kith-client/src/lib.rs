//! Kith's client: runs operations against a cluster, directly or through a router.

mod api;
pub mod convert;
mod error;
mod options;
mod router_client;
mod transport;

pub use api::{Answered, GraphService};
pub use error::QueryError;
pub use options::{CacheMode, FanOutLimit, QueryOptions};
pub use router_client::RouterClient;
pub use transport::{GrpcTransport, Transport, endpoint};
