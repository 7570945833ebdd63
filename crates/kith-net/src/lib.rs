//! How processes of Kith reach each other: frames, TLS and tokens, gRPC channels, and the memory that replies take. [`server`] is
//! the end that listens. Nothing here knows what is asked, but for which right it needs.

mod budget;
mod endpoint;
pub mod frames;
mod in_flight;
pub mod security;
pub mod server;
pub mod transport;

pub use budget::{Budget, Charge};
pub use endpoint::endpoint;
pub use in_flight::InFlight;
