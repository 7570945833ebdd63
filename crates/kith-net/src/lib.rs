//! The network layer of Kith's processes: frames, TLS and tokens, gRPC channels, and budgets for the memory of messages.
//! [`server`] is the listening side. Nothing in this crate interprets requests; it only knows which right each of them
//! needs.

mod aside;
mod budget;
mod endpoint;
pub mod frames;
mod in_flight;
pub mod security;
pub mod server;
#[cfg(feature = "testing")]
pub mod testing;
pub mod transport;
mod unwritten;

#[cfg(feature = "testing")]
pub use aside::occupied;
pub use aside::{INLINE_BYTES_MAX, aside};
pub use budget::{Budget, Charge};
pub use endpoint::endpoint;
pub use in_flight::InFlight;
pub use unwritten::Unwritten;
