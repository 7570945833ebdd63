//! The parts that nodes, routers and database processes have in common as processes of a cluster. `kith-node`,
//! `kith-router` and `kith::database` use it; it answers no queries.
//!
//! ```text
//! metadata store ── watch ──► topology (a copy on disk) ──► every part of the process
//!        ▲── lease, document ── liveness               freshness: how old this view may be
//! ```
//!
//! - [`metadata`]: the metadata of a cluster, behind one trait.
//! - [`topology`]: follows the documents of the cluster, and reads the copy on disk if the metadata store is lost.
//! - [`liveness`], `lives`: registers this process, and says which processes live.
//! - [`freshness`]: whether this process has lost the metadata store, and after which time others count it as gone.
//! - [`data_dir`], [`private`]: the data directory with its lock and format, and permissions of files.
//! - [`background`]: work on threads of low priority, so that reads come first.
//! - `cluster_reader`, `peer`: the topology for clients, and the objects of a version from a node that holds it.
//! - [`quotas`], [`counts`], `labels`, `leaders`: read quotas, counters that start at 0, failure domains, and the write
//!   that changes leaders.
//! - `fail_point`: the steps at which a test ends a process. `testing`: an etcd (feature `testing`).
//! - `error`: [`StartError`], the reasons why a process does not start.
//!
//! One process holds an id at a time, and one process uses a data directory at a time.
//!
//! A part that several roles need belongs here; a part that only one needs belongs to its crate.

pub mod background;
mod cluster_reader;
pub mod counts;
pub mod data_dir;
mod error;
mod fail_point;
pub mod freshness;
mod labels;
mod leaders;
pub mod liveness;
mod lives;
pub mod metadata;
mod peer;
pub mod private;
pub mod quotas;
#[cfg(feature = "testing")]
pub mod testing;
pub mod topology;
pub mod types;

pub use cluster_reader::ClusterReader;
pub use error::StartError;
pub use fail_point::{FailPoint, VARIABLE as FAIL_POINTS_VARIABLE};
pub use labels::Labels;
pub use leaders::change_leaders;
pub use lives::{LivesReceiver, follow_lives, unable};
pub use peer::PeerObjects;
