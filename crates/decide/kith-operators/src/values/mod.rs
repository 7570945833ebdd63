//! Reads values by their keys, and computes over them: over records that a source holds, or that were fetched.

mod aggregate;
mod compute;
mod lookup;
mod ranking;
mod watch;

pub use aggregate::{aggregate, aggregate_fetched};
pub use compute::{best, compute, compute_fetched};
pub use lookup::{BatchRead, Room, lookup};
#[cfg(feature = "nodes")]
pub(crate) use watch::Watch;
