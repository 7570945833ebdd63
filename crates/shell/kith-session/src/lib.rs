//! Asks the nodes of a cluster. A [`Session`] is a [`kith_query::Service`]: the fast client of a program, and the middle of
//! every router, which has caches in front of it. The shell here sends, receives and reports; which node is asked, and
//! what is repeated, `kith-routing` decides.
//!
//! ```text
//! Session ─► Run: one query at one pinned topology ─► Operation (kith-query) ─► Executor ─► Fleet ─► nodes
//! ```
//!
//! - `session`: queries (`run`) and writes (`write`).
//! - `cache`: the trait [`ResultCache`], the one seam for caches in front of the nodes.
//! - `executor`: every fan-out, with `plan`, `round` for sending and merging, and `failure` for errors.
//! - `fleet`: nodes with their connections, health and load.
//! - `gremlin`: traversals over loaded and live graphs; the deadline is observed in `mod.rs`, and while compiling in
//!   `traversal.rs`.
//! - `values`, `stream`: reads by key and read compute, and records as they arrive.
//! - `settings`, `steering`: the bounds of queries, and the numbers of controllers.
//! - `explain`, `profile`: plans and timings.
//! - `topology`: follows the cluster through its routers and nodes.
//!
//! A query pins one version from start to end. A write is sent again only if it has an id or certainly did not happen.
//!
//! To add a cache in front of the nodes, implement [`ResultCache`] and give it to [`Session::new`].

mod alarm;
mod cache;
mod caller;
mod executor;
mod explain;
mod fetch_ahead;
mod fleet;
mod gremlin;
mod profile;
mod service;
mod session;
mod settings;
mod steering;
mod stream;
mod topology;
mod values;

pub use cache::{CacheLookup, CacheUse, Keeper, ResultCache};
pub use caller::carried_out;
pub use executor::Executor;
pub use fetch_ahead::fetch_lists_ahead;
pub use fleet::Fleet;
pub use session::Session;
pub use settings::{OwnControllers, SessionSettings, SettingsError, TraversalSettings};
pub use steering::Steering;
