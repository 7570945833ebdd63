//! The partitions that a table assigns to one node, for each store. A store with fewer copies than there are groups is
//! only in some groups.

use kith_routing::{GroupRole, Strategy, groups_of_store};
use kith_types::{GroupId, PartitionId};
use kith_wire::documents::{ClusterDocument, ServedDocument, TopologyDocument};
use parking_lot::RwLock;
use std::{collections::BTreeSet, sync::Arc, time::Instant};

/// The partitions that a table assigns to one node.
#[derive(Clone, Debug)]
pub struct PartitionOwnership {
    strategy: Strategy,
    /// Every group of the table, with this node's partitions in it, ascending.
    groups: Vec<(GroupId, GroupRole, Arc<[PartitionId]>)>,
    /// The time since which nothing else concerns this node: no rebalance has run and its part of the table has not
    /// changed.
    settled: Option<Instant>,
}

impl PartitionOwnership {
    /// Returns what a cluster's table assigns to `node`. O(groups × partitions).
    pub fn of(cluster: &ClusterDocument, node: u32) -> Self {
        let groups = cluster.groups.iter().map(|group| {
            let (id, role) = kith_topology::placed(group);
            let own = (0..).map(PartitionId).zip(&group.owners).filter(|(_, owner)| **owner == node);
            (id, role, own.map(|(partition, _)| partition).collect())
        });
        Self { strategy: kith_topology::strategy_of(cluster), groups: groups.collect(), settled: None }
    }

    /// Returns `next` with its `settled` time, for a table that has just arrived. `is_calm` says that no rebalance runs.
    pub fn followed_by(&self, mut next: Self, is_calm: bool, now: Instant) -> Self {
        let same = self.strategy == next.strategy && self.groups == next.groups;
        next.settled = if is_calm && same { self.settled.or(Some(now)) } else { None };
        next
    }

    /// The time since which the table has been assigning the same partitions to this node, with no rebalance running.
    pub fn settled(&self) -> Option<Instant> {
        self.settled
    }

    /// Returns the partitions of a store that are assigned to this node, ascending. Those of a group that is joining do not
    /// count yet.
    pub fn of_store(&self, store: &ServedDocument) -> Arc<[PartitionId]> {
        let groups = self.groups.iter().map(|(id, role, _)| (*id, *role));
        let held = groups_of_store(self.strategy, groups, &store.name, store.definition.replication);
        let all = self.groups.iter().enumerate();
        let own = all.filter(|(index, (.., own))| held >> index & 1 == 1 && !own.is_empty());
        let own: Vec<&Arc<[PartitionId]>> = own.map(|(_, (.., own))| own).collect();
        match own.as_slice() {
            [] => Arc::default(),
            [one] => Arc::clone(one),
            // On a ring, a node may own partitions in several ranks.
            several => {
                let all: BTreeSet<PartitionId> = several.iter().flat_map(|own| own.iter().copied()).collect();
                all.into_iter().collect()
            }
        }
    }
}

/// The partitions that the routing table assigns to this node; it is written when a table arrives. More may be open: copies
/// that a later table will assign, and partitions given up that clients with an older table still read.
pub struct OwnedPartitions(RwLock<PartitionOwnership>);

impl OwnedPartitions {
    /// Returns what the first table assigns.
    pub fn new(owned: PartitionOwnership) -> Self {
        Self(RwLock::new(owned))
    }

    /// Adopts what a table assigns to this node. The next preparation fetches what is missing.
    pub fn follow(&self, topology: &TopologyDocument, node: u32, now: Instant) {
        let next = PartitionOwnership::of(&topology.cluster, node);
        let mut owned = self.0.write();
        *owned = owned.followed_by(next, topology.rebalance.is_none(), now);
    }

    /// Returns the partitions of a store that the table assigns to this node, ascending.
    pub fn of_store(&self, store: &ServedDocument) -> Arc<[PartitionId]> {
        self.0.read().of_store(store)
    }

    /// The time since which the table has been assigning the same partitions to this node, with no rebalance running.
    pub fn settled(&self) -> Option<Instant> {
        self.0.read().settled()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_wire::documents::{DOCUMENT_FORMAT, DefinitionDocument, GroupDocument, HoldsDocument};

    fn cluster(strategy: &str, groups: &[(u32, &[u32], &str)]) -> ClusterDocument {
        let group = |(group, owners, role): &(u32, &[u32], &str)| GroupDocument {
            group: *group,
            nodes: owners.to_vec(),
            owners: owners.to_vec(),
            role: (*role).to_owned(),
        };
        ClusterDocument {
            format: DOCUMENT_FORMAT,
            cluster_id: String::new(),
            epoch: 1,
            partitions: 3,
            groups: groups.iter().map(group).collect(),
            object_store: String::new(),
            strategy: strategy.to_owned(),
            listed: vec![],
            partition_epochs: vec![],
        }
    }

    fn store(name: &str, replication: Option<u32>) -> ServedDocument {
        ServedDocument {
            format: DOCUMENT_FORMAT,
            name: name.to_owned(),
            definition: DefinitionDocument { replication, ..DefinitionDocument::new(HoldsDocument::Graph) },
            version: 1,
            components: vec![],
            excluded: vec![],
        }
    }

    #[test]
    fn a_node_owns_of_a_store_what_its_group_holds_of_it() {
        let two = cluster("", &[(0, &[0, 1, 0], ""), (1, &[2, 3, 3], "maintenance")]);
        let of = |node, store: &ServedDocument| PartitionOwnership::of(&two, node).of_store(store).to_vec();
        let ids = |ids: &[u32]| ids.iter().copied().map(PartitionId).collect::<Vec<_>>();
        assert_eq!(of(0, &store("people", None)), ids(&[0, 2]));
        assert_eq!(of(3, &store("people", None)), ids(&[1, 2]), "a group that is taken out holds on");
        assert_eq!(of(9, &store("people", None)), []);
        for name in ["people", "scores", "views", "likes"] {
            let one = store(name, Some(1));
            let copies: usize = (0..4).map(|node| of(node, &one).len()).sum();
            assert_eq!(copies, 3, "{name} lies in one group");
        }
        let joining = cluster("", &[(0, &[0, 1, 0], ""), (1, &[2, 3, 3], "joining")]);
        assert_eq!(PartitionOwnership::of(&joining, 3).of_store(&store("people", None)).to_vec(), []);
    }

    #[test]
    fn on_a_ring_a_store_has_its_first_ranks() {
        let ring = cluster("ring", &[(0, &[0, 1, 2], ""), (1, &[1, 2, 0], "")]);
        let of =
            |node, copies| PartitionOwnership::of(&ring, node).of_store(&store("people", copies)).to_vec();
        assert_eq!(of(0, Some(1)), [PartitionId(0)]);
        assert_eq!(of(0, None), [PartitionId(0), PartitionId(2)]);
    }

    #[test]
    fn a_change_of_the_table_begins_a_new_calm() {
        let (first, other) = (cluster("", &[(0, &[0, 1, 0], "")]), cluster("", &[(0, &[0, 1, 1], "")]));
        let now = Instant::now();
        let later = now + std::time::Duration::from_secs(1);
        let calm =
            PartitionOwnership::of(&first, 0).followed_by(PartitionOwnership::of(&first, 0), true, now);
        assert_eq!(calm.settled(), Some(now));
        assert_eq!(calm.followed_by(PartitionOwnership::of(&first, 0), true, later).settled(), Some(now));
        assert_eq!(calm.followed_by(PartitionOwnership::of(&first, 0), false, later).settled(), None);
        assert_eq!(calm.followed_by(PartitionOwnership::of(&other, 0), true, later).settled(), None);
    }
}
