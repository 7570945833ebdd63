//! The work that routers coordinate: pushes, swaps and rollbacks of stores, rebalances, live graphs, and the shape of a
//! new cluster. A router serves it as [`Admin`]; the command line also calls it to create and recover clusters. It is a
//! thin shell: `kith-topology` and `kith-routing` decide.
//!
//! ```text
//! request ─► Admin ─► versions │ rebalance │ live ─► read, decide, one conditional write of the metadata ─► nodes follow
//! ```
//!
//! - `service`, `caller`: the service, and who asks.
//! - `cluster_handle`: the metadata, the topology and the connections that all of them use.
//! - `versions`: the commands of stores. `run` carries out a push, `prepare` has nodes fetch, `fence` waits until all
//!   routers follow, `lifetime` creates and drops stores, `clean` removes files that no version names, `caretaker` takes
//!   back pushes whose router died.
//! - `rebalance`: plans for people (`plan`), the driver (`drive`), and taking over from a dead one (`takeover`).
//! - `live`: creates and drops live graphs, changes their types, assigns leaders.
//! - `object_store`, `read_from`: the claim to the object store, and the other places that versions may be read from.
//! - [`cluster`], [`shape`], [`recover`]: a new cluster, its shape, and metadata from a copy of the topology.
//! - `status`, `view`, `own_status`, `fetch_rates`, `uploads`: what operators see and set.
//!
//! Any router can carry out any change, and a driver that was wrongly believed dead cannot change anything: each write
//! is conditional on what was read.
//!
//! To add a command, decide it in `kith-topology` or `kith-routing`, then add its arm in `service`.

mod caller;
pub mod cluster;
mod cluster_handle;
mod fetch_rates;
mod live;
pub(crate) mod object_store;
mod own_status;
mod read_from;
mod rebalance;
pub mod recover;
mod service;
pub mod shape;
mod status;
mod uploads;
mod versions;
mod view;

pub use cluster_handle::{ClusterHandle, Coordinator};
pub use kith_database::{DatabaseServer, DatabaseServers};
pub use live::{Databases, LiveGraphStore, assign_leaders};
pub use own_status::own_status;
pub use read_from::ReadFrom;
pub use rebalance::{Rebalancer, take_over};
pub use service::Admin;
pub use uploads::UploadSettings;
pub use versions::Stores;
pub(crate) use view::RouterView;
