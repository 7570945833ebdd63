//! What nodes and routers have in common as processes of a cluster: a data directory, a topology that is followed, a lease, the
//! cluster's object store, work in the background, counters that start at 0, and the reasons why a process does not start.

pub mod background;
mod clock;
mod cluster_reader;
pub mod counts;
pub mod data_dir;
mod error;
mod fail_point;
pub mod freshness;
#[cfg(test)]
#[path = "../../../testdata/formats/golden.rs"]
mod golden;
mod labels;
mod leaders;
pub mod liveness;
mod lives;
mod peer;
pub mod place;
pub mod private;
pub mod quotas;
pub mod topology;
pub mod types;

pub use clock::micros_since_1970;
pub use cluster_reader::ClusterReader;
pub use error::StartError;
pub use fail_point::{FailPoint, VARIABLE as FAIL_POINTS_VARIABLE};
pub use labels::Labels;
pub use leaders::change_leaders;
pub use lives::{LivesReceiver, follow_lives, unable};
pub use peer::PeerSource;
