//! Redis clients: RESP on a port of its own, in front of a router's session or of what a node holds
//! (`docs/design/0011-resp.md`, `docs/redis.md`).

mod answer;
mod clients;
mod commands;
mod connection;
mod describe;
mod dialogue;
mod endpoint;
mod round;
#[cfg(test)]
mod tests;
mod visitor;

pub use answer::{Answer, Values};
pub use endpoint::spawn;
pub use round::Group;

use futures::future::BoxFuture;
use kith_api::QueryError;
use kith_schema::KeyType;
use std::sync::Arc;

/// Where values come from.
///
/// Contract: a key's answer is a value, the proof that there is none, or an error; never "none" for want of knowing. The future of
/// [`Backend::read`] is polled on the connection's own task: work that takes longer than handing it over belongs on another thread.
pub trait Backend: Send + Sync + 'static {
    /// `router` or `node`.
    fn role(&self) -> &'static str;

    /// The stores of values that are served, and their versions.
    fn stores(&self) -> Vec<(String, u64)>;

    /// What keys a store has.
    ///
    /// # Errors
    /// If there is none of that name, it holds no values, or nothing yet.
    fn keys_of(&self, store: &str) -> Result<KeyType, QueryError>;

    /// Reads keys of one store, all of one version.
    fn read(self: Arc<Self>, group: Group) -> BoxFuture<'static, Result<Answer, QueryError>>;
}
