//! Simulated clusters that run Kith's production decisions, and the figures of Moolle.
//!
//! [`cluster::simulate`] runs clients and nodes as discrete events. Every decision is made by `kith-routing`, which
//! `kith-client` uses too: which node receives a request, how many groups take part, when a request is repeated, and which
//! node is considered down. The paper's 200 machines are replaced by a model: queues, a heavy-tailed network, and
//! costs per request and key. [`cluster::ClusterConfig`] documents every number of the model with its reason.
//!
//! [`live`] simulates live graphs in the same way and searches for histories that break a promise.
//!
//! [`figures`] draws the paper's figures. `docs/figures.md` compares them with the paper.
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

mod agenda;
pub mod cluster;
pub mod figures;
pub mod live;
mod station;
mod strategy;
pub mod tail_latency;
pub mod workload;

pub use agenda::Agenda;
pub use station::Station;
