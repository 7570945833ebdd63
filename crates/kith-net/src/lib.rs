//! How processes of Kith reach each other: the framed protocol's client side, TLS and tokens, gRPC channels, and the memory
//! that replies take. Nothing here knows what is asked.

mod budget;
mod endpoint;
pub mod frames;
mod in_flight;
pub mod security;

pub use budget::{Budget, Charge};
pub use endpoint::endpoint;
pub use in_flight::InFlight;
