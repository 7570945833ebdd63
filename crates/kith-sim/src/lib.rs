//! Simulated clusters that run Kith's production decisions, and the figures of Moolle.
//!
//! [`cluster::simulate`] runs clients and nodes as discrete events: who is asked, how many
//! groups take part, when a request is repeated, which node is taken for dead all come from
//! `kith-routing`, whose code `kith-client` runs too. What the paper measured on 200 machines
//! is a model here: queues, a heavy-tailed network, costs per request and key. Every number
//! of the model stands in [`cluster::ClusterConfig`] with its reason.
//!
//! [`live`] does the same for live graphs: it looks for histories that break a promise.
//!
//! [`figures`] draws what the paper draws. `docs/figures.md` compares.
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
