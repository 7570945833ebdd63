//! A simulated cluster that serves a live graph with the production code of leaders, caches and the assignment of leaders
//! (`docs/design/0019-live-graph.md`, "Simulated").
//!
//! Everything happens in virtual time, in an order that depends on the seed alone. Clients write and read through routers;
//! nodes lead and follow; a database and a metadata store hold what a real cluster would hold there. Messages are lost, delayed,
//! reordered and repeated. Nodes crash, freeze and have clocks that run too fast or too slow. The answers to commits are lost,
//! the database is down for a while, or is replaced by an older copy of itself. [`Truth`](truth::Truth) sees every transaction
//! and every answer, and notes whatever breaks a promise.
//!
//! The logic of `kith-node/src/live` that waits for databases and messages is repeated here ([`node`]), because that code is
//! bound to tokio. What it decides is not: it calls [`kith_live::Leader`], [`kith_live::Duties`], [`kith_routing::Leaders`] and
//! [`kith_cache::live`], as nodes do.
//!
//! ```
//! use kith_sim::live::{Rules, simulate};
//!
//! let report = simulate(7, &Rules::default());
//! assert_eq!(report.violations, Vec::<String>::new());
//! assert_eq!(report, simulate(7, &Rules::default()), "equal seeds, equal runs");
//! ```

mod client;
mod config;
mod database;
mod executor;
mod faults;
mod metadata;
mod network;
mod node;
mod promise;
mod report;
mod router;
mod truth;
mod world;
mod writes;

pub use report::Report;

use config::LiveConfig;
use kith_cache::live::Guard;
use kith_live::Guards;

/// Which rules are kept: by default all of them. Simulations with a rule switched off show what it prevents.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rules {
    /// The rules of leaders.
    pub leaders: Guards,
    /// A rule of caches that does not hold.
    pub caches_without: Option<Guard>,
    /// Clients take the error of a repeated write for its outcome, as they must not.
    pub clients_trust_errors: bool,
}

/// Runs a cluster for about half a minute of virtual time. Takes some milliseconds.
pub fn simulate(seed: u64, rules: &Rules) -> Report {
    world::World::run(LiveConfig::of_seed(seed), rules)
}
