//! The network layer of every process of Kith: connections, TLS, tokens, rights, and limits on what peers may use.
//! Clients, nodes, routers, databases and doors use it. It interprets no request; it only knows which right each of
//! them needs.
//!
//! ```text
//! caller ─ transport (frames, gRPC) ─ security::Dialer ═══ port ─ server: accept, limits, gate ─ handler
//! ```
//!
//! - [`transport`]: the trait for requests to nodes, with one implementation over [`frames`] and one over gRPC.
//! - [`frames`]: the client side of the framed protocol; shared memory between processes of one machine.
//! - [`security`]: the certificate and token of this process, and whom it trusts.
//! - `server`, a feature: the listening side. `connections` limits connections and their memory; `security` authenticates
//!   callers, and its `rights` says what each method needs; `framed`, `http` and `hosts` serve the ports.
//! - `budget`: the bytes of messages that may be in memory at a time.
//! - `unwritten`: whether a write that failed may have been carried out.
//! - `aside`: long computations away from the threads that serve connections. `turns`: those that give way, and slots for what is bounded.
//!
//! A method without a row in `server/security/rights.rs` is open to the cluster's own processes only. Bytes are charged
//! before they are kept.
//!
//! To add a transport, implement [`transport::Transport`]. To add a method, add its row to `rights.rs`.

mod aside;
mod budget;
mod endpoint;
pub mod frames;
mod in_flight;
pub mod security;
#[cfg(feature = "server")]
pub mod server;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod transport;
mod turns;
mod unwritten;

#[cfg(feature = "testing")]
pub use aside::occupied;
pub use aside::{INLINE_BYTES_MAX, aside};
pub use budget::{Budget, Charge};
pub use endpoint::endpoint;
pub use in_flight::InFlight;
pub use turns::{Share, Slot, WorkKind, give_way, in_turns, in_turns_once_long, slot, waited_for_turns};
pub use unwritten::SendFailure;
