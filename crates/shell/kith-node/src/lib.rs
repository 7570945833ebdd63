//! A node: it holds its partitions of every store, evaluates operators over them, and leads partitions of live graphs.
//! Sessions ask it; routers tell it what to hold, by the topology and by calls. It never asks other nodes to answer a
//! query, and it answers "absent" only for a key of a partition that it holds in the pinned version.
//!
//! ```text
//! request ──► serve ──► versions   files: prepared, open, moved, retired
//!               │          ▲
//!               │        repair    scrubs, verifies and heals the same files
//!               └─────► live       logs and a database: leads, follows, reads
//! ```
//!
//! - `serve`: from a request to its reply. `service` and `doors` take requests; `evaluator` pins a version, applies quotas
//!   and the load limit, and runs a `job`; `inspect`, `export` and `peer` answer operators and other nodes.
//! - `versions`: the versions on this disk, and what pushes and rebalances want of them.
//! - `repair`: finding damage in files, and replacing them from the object store or from peers.
//! - `live`: live graphs. `lead` is the shell of [`kith_live::Leader`]; the other parts follow logs, keep caches and
//!   adjacency lists fresh, and answer reads.
//! - `node` puts the parts together; begin there to add one. `home` and `disk` watch the data directory, `threads` bounds
//!   the evaluations that run at a time, and `counts` names the metrics.
//!
//! The fate of a version is decided in `kith-topology`, what a leader does in `kith-live`, and how fast files may
//! move in `kith-routing`. This crate carries the decisions out: it has the tasks, files, sockets and clocks.

mod counts;
mod disk;
mod home;
mod live;
mod node;
mod options;
mod repair;
mod serve;
mod threads;
mod versions;

pub use kith_cluster::Labels;
pub use node::Node;
pub use options::NodeOptions;
pub use versions::peer::PeerSource;
