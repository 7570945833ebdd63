//! The work that routers coordinate: pushes, swaps and rollbacks of stores, rebalances, and the shape of a new cluster.
//! [`Admin`] is the service that receives the requests. Any router can carry out any of them, and each change is one
//! conditional write of the metadata.

mod admin;
pub mod cluster;
mod fetch_rates;
mod live;
mod own_status;
mod rebalance;
pub mod recover;
pub mod shape;
mod status;
mod uploads;
mod versions;
mod who;

pub use admin::{Admin, RouterView};
pub use kith_database::{DatabaseServer, DatabaseServers};
pub use live::{Databases, LiveGraphStore, assign_leaders};
pub use own_status::own_status;
pub use rebalance::{Rebalancer, take_over};
pub use uploads::UploadSettings;
pub use versions::{Coordinator, Stores, take_care};
