//! Reports that a node which a push left out has the version after all, so that it gets reads of it again.

use super::HeldStores;
use kith_cluster::metadata::{
    MetadataStore,
    records::{ChangeCaller, ChangeError, change},
};
use kith_topology::versions::Command;
use kith_types::{NodeId, StoreVersion};
use kith_wire::documents::{ServedDocument, TopologyDocument};
use std::sync::Arc;

/// Reports the repairs of one node.
pub(crate) struct Repairs {
    pub node: u32,
    pub metadata: Arc<dyn MetadataStore>,
}

impl Repairs {
    /// Reports every version that this node was left out of and has by now. Returns `false` if some report is still missing.
    pub async fn report(&self, held: &HeldStores, topology: &TopologyDocument) -> bool {
        let named = topology.stores.iter().chain(topology.kept.iter().map(|kept| &kept.at));
        let mut all_reported = true;
        // A node does not owe what has been assigned to another group since.
        let owes = |store: &&ServedDocument| {
            store.excluded.contains(&self.node) && !held.owned.of_store(store).is_empty()
        };
        for store in named.filter(owes) {
            if held.open.get(&store.name, store.version).is_none() {
                all_reported = false;
                continue;
            }
            let version = StoreVersion(store.version);
            let command = Command::Repaired { version, node: NodeId(self.node) };
            let who = format!("node {}", self.node);
            let caller = ChangeCaller::own(&who, &topology.cluster);
            match change(&*self.metadata, &store.name, caller, &[command]).await {
                Ok(_) => tracing::info!(store = store.name, version = version.0, "repaired"),
                // The store was dropped meanwhile, or the version does not exist yet. The topology will show which.
                Err(ChangeError::Refused(_) | ChangeError::Unknown) => {}
                Err(error) => {
                    let status = error.to_status(&store.name);
                    tracing::warn!(
                        error = status.message(),
                        store = store.name,
                        "a repair could not be reported"
                    );
                    all_reported = false;
                }
            }
        }
        all_reported
    }
}
