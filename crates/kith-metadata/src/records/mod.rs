//! The records of stores, and the one way to change them: read, decide ([`kith_versions`]), write on the condition that nothing
//! changed meanwhile. Whatever process does it, and whenever it dies, at most one version is served.

pub mod bounds;
mod change;
mod document;
mod refused;

pub use change::{Asker, Changed, Known, New, change, change_known, define, read};
pub use document::{UnknownName, policy_of, state_of};
pub use refused::{ChangeError, conflict, other_release};

use kith_api::topology::groups_of;
use kith_types::NodeId;
use kith_versions::{Holders, UnixMillis};
use kith_wire::documents::ClusterDocument;
use std::time::SystemTime;

/// Who holds a store of `copies` copies (`None`: one per group). Groups that are joining have nothing yet: neither a push nor a
/// swap rests on them.
pub fn holders_of(cluster: &ClusterDocument, store: &str, copies: Option<u32>) -> Holders {
    let mut holders = Holders::default();
    for group in groups_of(cluster, store, copies) {
        let owners = group.owners.iter().copied().map(NodeId).collect();
        let groups = if group.takes_reads() { &mut holders.groups } else { &mut holders.drained };
        groups.push(owners);
    }
    holders
}

/// The time of day, as records have it.
pub fn now() -> UnixMillis {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    UnixMillis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
