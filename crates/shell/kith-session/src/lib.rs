//! Asks the nodes of a cluster. A [`Session`] is a [`kith_query::Service`]: the fast client of a program, and the middle of
//! every router, which has caches in front of it. The shell here sends, receives and reports; which node is asked, and
//! what is repeated, `kith-routing` decides.
//!
//! ```text
//! Session ─► Run: one query at one pinned topology ─► Operation (kith-query) ─► Executor ─► Fleet ─► nodes
//! ```
//!
//! - `session`: queries (`run`), writes (`write`), and the trait [`NetworkSource`] for caches.
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
//! To add a cache in front of the nodes, implement [`NetworkSource`] or [`ListStore`].

mod alarm;
mod at_hand;
mod caller;
mod executor;
mod explain;
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

pub use at_hand::ListStore;
pub use caller::carried_out;
pub use executor::Executor;
pub use fleet::Fleet;
pub use session::{Caches, NetworkSource, Run, Session, Uncached};
pub use settings::{OwnControllers, SessionSettings, SettingsError, TraversalSettings};
pub use steering::Steering;
