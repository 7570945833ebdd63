//! The records of stores, and the only way to change them: read, decide ([`kith_topology::versions`]), and write on condition that
//! nothing changed meanwhile. Whichever process does it, and whenever that process dies, at most one version is served.

pub mod bounds;
mod change;
mod document;
mod refused;
pub mod shares;

pub use change::{ChangeCaller, New, StoreEntry, WrittenChange, change, change_known, define, read};
pub use document::{UnknownName, policy_of, state_of};
pub use refused::{ChangeError, conflict, other_release, unknown_command};

use kith_topology::groups_of;
use kith_topology::versions::{Holders, UnixMillis};
use kith_types::NodeId;
use kith_types::clock::millis_since_1970;
use kith_wire::documents::ClusterDocument;

/// Returns the holders of a store with `copies` copies (`None` for one per group). Groups that are joining have no data yet,
/// so neither pushes nor swaps depend on them.
pub fn holders_of(cluster: &ClusterDocument, store: &str, copies: Option<u32>) -> Holders {
    let mut holders = Holders::default();
    for group in groups_of(cluster, store, copies) {
        let owners = group.owners.iter().copied().map(NodeId).collect();
        let groups = if group.takes_reads() { &mut holders.groups } else { &mut holders.drained };
        groups.push(owners);
    }
    holders
}

/// Returns the time of day as records store it.
pub fn now() -> UnixMillis {
    UnixMillis(millis_since_1970())
}
