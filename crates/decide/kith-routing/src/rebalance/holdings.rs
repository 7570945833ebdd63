//! The partitions of each store that each node has, according to a table.

use crate::rebalance::StoreSizes;
use crate::{GroupRole, TableParts, groups_of_store};
use kith_types::{NodeId, PartitionId};

/// The holders of partitions according to one table. Groups that are joining have nothing yet.
pub(crate) struct Holdings<'a> {
    owners: &'a [Vec<NodeId>],
    /// The groups (ranks) that hold each store.
    of_store: Vec<u64>,
    /// The groups that hold anything.
    any: u64,
}

impl<'a> Holdings<'a> {
    pub(crate) fn of(parts: &'a TableParts, stores: &[StoreSizes]) -> Self {
        let groups = || parts.groups.iter().map(|group| (group.id, group.role));
        let of =
            |store: &StoreSizes| groups_of_store(parts.strategy, groups(), &store.name, store.replication);
        let bit = |(index, (_, role))| u64::from(role != GroupRole::Joining) << index;
        Self {
            owners: &parts.owners,
            of_store: stores.iter().map(of).collect(),
            any: groups().enumerate().map(bit).fold(0, |bits, bit: u64| bits | bit),
        }
    }

    /// Returns holdings with the same groups for each store, but other owners.
    pub(crate) fn with_owners(&self, owners: &'a [Vec<NodeId>]) -> Self {
        Self { owners, of_store: self.of_store.clone(), any: self.any }
    }

    /// Returns the nodes that have a partition of a store, in the order of the groups.
    pub(crate) fn of_store(&self, store: usize, partition: PartitionId) -> impl Iterator<Item = NodeId> + '_ {
        self.in_groups(self.of_store[store], partition).map(|(_, node)| node)
    }

    /// Returns the nodes that have a partition of any store.
    pub(crate) fn any(&self, partition: PartitionId) -> impl Iterator<Item = NodeId> + '_ {
        self.in_groups(self.any, partition).map(|(_, node)| node)
    }

    /// Like [`Holdings::any`], with the index of the group.
    pub(crate) fn replicas(&self, partition: PartitionId) -> impl Iterator<Item = (usize, NodeId)> + '_ {
        self.in_groups(self.any, partition)
    }

    pub(crate) fn has(&self, store: usize, partition: PartitionId, node: NodeId) -> bool {
        self.of_store(store, partition).any(|holder| holder == node)
    }

    fn in_groups(&self, groups: u64, partition: PartitionId) -> impl Iterator<Item = (usize, NodeId)> + '_ {
        let held = self.owners.iter().enumerate().filter(move |(group, _)| groups >> group & 1 == 1);
        held.map(move |(group, owners)| (group, owners[partition.index()]))
    }
}

/// Returns what nodes had and no longer have, as (node, partition, stores), ascending. O(stores × partitions × groups).
pub(crate) fn given_up(
    before: &Holdings<'_>,
    after: &Holdings<'_>,
    partitions: impl Iterator<Item = PartitionId>,
) -> Vec<(NodeId, PartitionId, Vec<u32>)> {
    let mut gone: Vec<(NodeId, PartitionId, u32)> = Vec::new();
    for partition in partitions {
        for store in 0..before.of_store.len() {
            let lost = before.of_store(store, partition).filter(|node| !after.has(store, partition, *node));
            gone.extend(lost.map(|node| (node, partition, store as u32)));
        }
    }
    gone.sort_unstable();
    let stores =
        |run: &[(NodeId, PartitionId, u32)]| (run[0].0, run[0].1, run.iter().map(|item| item.2).collect());
    gone.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)).map(stores).collect()
}
