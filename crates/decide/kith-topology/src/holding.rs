//! Derives from the cluster's documents which versions must be held, and by which groups: by all of them, or by as many as
//! the store's definition asks for. [`kith_routing::groups_of_store`] decides which groups, for routers, nodes and clients
//! alike.

use kith_routing::{GroupRole, Strategy, groups_of_store};
use kith_types::GroupId;
use kith_wire::documents::{ClusterDocument, GroupDocument, ServedDocument, TopologyDocument};

/// The strategy by which replicas follow from ownership.
pub fn strategy_of(cluster: &ClusterDocument) -> Strategy {
    if cluster.strategy == "ring" { Strategy::Ring } else { Strategy::ReplicaGroups }
}

/// The role of a group for placement: a joining group holds nothing yet, and a group in maintenance still holds its stores.
pub fn placed(group: &GroupDocument) -> (GroupId, GroupRole) {
    let role = match (group.is_filled(), group.takes_reads()) {
        (false, _) => GroupRole::Joining,
        (true, false) => GroupRole::Maintenance,
        (true, true) => GroupRole::Serving,
    };
    (GroupId(group.group), role)
}

/// The groups that hold a store with this number of copies (`None` means one per group), in the document's order. In a
/// ring, its first `copies` ranks.
pub fn groups_of<'a>(
    cluster: &'a ClusterDocument,
    store: &str,
    copies: Option<u32>,
) -> impl Iterator<Item = &'a GroupDocument> {
    let held = groups_of_store(strategy_of(cluster), cluster.groups.iter().map(placed), store, copies);
    let groups = cluster.groups.iter().enumerate();
    groups.filter(move |(index, _)| held >> index & 1 == 1).map(|(_, group)| group)
}

/// The versions that nodes hold: first those that are served, then those that are kept for a rollback.
pub fn wanted(topology: &TopologyDocument) -> Vec<ServedDocument> {
    let served = topology.stores.iter().filter(|store| store.version != 0).cloned();
    let kept = topology.kept.iter().filter(|kept| kept.is_whole).map(|kept| kept.at.clone());
    served.chain(kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_routing::store_groups;
    use kith_wire::documents::DOCUMENT_FORMAT;

    #[test]
    fn a_store_of_two_copies_is_held_by_two_groups_and_by_none_that_joins() {
        let group = |group: u32, role: &str| GroupDocument {
            group,
            nodes: vec![group],
            owners: vec![group; 4],
            role: role.to_owned(),
        };
        let mut cluster = ClusterDocument {
            format: DOCUMENT_FORMAT,
            cluster_id: String::new(),
            epoch: 1,
            partitions: 4,
            groups: vec![group(0, ""), group(3, "maintenance"), group(5, ""), group(7, "joining")],
            object_store: String::new(),
            strategy: String::new(),
            listed: vec![],
            partition_epochs: vec![],
        };
        let held = |cluster: &ClusterDocument, copies| {
            groups_of(cluster, "people", copies).map(|group| GroupId(group.group)).collect::<Vec<_>>()
        };
        let settled = [0, 3, 5].map(GroupId);
        assert_eq!(held(&cluster, None), settled);
        assert_eq!(held(&cluster, Some(2)), store_groups("people", &settled, 2));
        cluster.strategy = "ring".to_owned();
        assert_eq!(held(&cluster, Some(2)), settled[..2]);
    }
}
