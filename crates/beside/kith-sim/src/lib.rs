//! Simulated clusters that run Kith's production decisions, the figures of Moolle, and scripts of decisions. `kith sim`
//! draws the figures, and tests search for histories that break a promise. Nothing here touches a real cluster.
//!
//! - [`cluster`]: clients and nodes as discrete events. `kith-routing` decides, as in `kith-session`; the paper's 200
//!   machines are queues, a heavy-tailed network, and costs for each request and key, which [`cluster::ClusterConfig`]
//!   explains.
//! - [`live`]: live graphs with the production leaders, caches and assignment of leaders, under faults. `truth`
//!   compares every answer with a model.
//! - [`workload`], `strategy`, [`tail_latency`]: queries, the strategies that the paper compares, and slow requests.
//! - `agenda`, `station`: future events in order, and a queue with workers.
//! - [`figures`]: the paper's figures (`docs/figures.md`).
//! - [`scenario`]: pages of commands with their expected output, which tests of deciding crates play
//!   (`kith-routing/tests/scenarios` has commands). [`golden`]: golden bytes of formats, for the crates that own them.
//!
//! ```
//! use kith_sim::cluster::{ClusterConfig, Strategy, simulate};
//! use kith_sim::workload::Workload;
//! use std::time::Duration;
//!
//! let config = ClusterConfig {
//!     groups: 2,
//!     nodes_per_group: 3,
//!     clients: 1,
//!     until: Duration::from_secs(4),
//!     ..ClusterConfig::of_the_paper(Strategy::moolle(), Workload::mixed(20.0), 7)
//! };
//! let trace = simulate(&config);
//! assert_eq!(trace, simulate(&config), "equal seeds, equal traces");
//! ```
//!
//! Time and randomness come from the seed alone, so that a failure can be repeated.
//!
//! To add a fault, begin with `cluster/faults.rs` or `live/faults.rs`. To add a figure, write a file in `figures`.

mod agenda;
pub mod cluster;
pub mod figures;
pub mod golden;
pub mod live;
pub mod scenario;
mod station;
mod strategy;
pub mod tail_latency;
pub mod workload;

pub use agenda::Agenda;
pub use station::Station;
