//! The nodes that hold a store's partitions.

use kith_types::{NodeId, PartitionId};
use std::collections::{BTreeMap, BTreeSet};

/// The owner of each partition in each replica group that holds the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holders {
    /// The groups that serve reads. All have the same length, the partition count.
    pub groups: Vec<Vec<NodeId>>,
    /// The groups that are taken out. Their nodes prepare versions if they are up. A push neither waits for a node that is
    /// down nor fails because of it, because nobody reads there until the group is restored.
    pub drained: Vec<Vec<NodeId>>,
}

impl Holders {
    /// Returns every node that holds a partition.
    pub fn nodes(&self) -> BTreeSet<NodeId> {
        self.groups.iter().chain(&self.drained).flatten().copied().collect()
    }

    /// Returns the partitions of every node that holds some.
    pub(crate) fn owned(&self) -> BTreeMap<NodeId, BTreeSet<PartitionId>> {
        let mut owned: BTreeMap<NodeId, BTreeSet<PartitionId>> = BTreeMap::new();
        for owners in self.groups.iter().chain(&self.drained) {
            for (partition, owner) in (0u32..).zip(owners) {
                owned.entry(*owner).or_default().insert(PartitionId(partition));
            }
        }
        owned
    }

    /// Returns how many of `nodes` serve reads. A push may leave such nodes out only if its request allows that.
    pub fn missed(&self, nodes: &BTreeSet<NodeId>) -> usize {
        let reading: BTreeSet<NodeId> = self.groups.iter().flatten().copied().collect();
        nodes.intersection(&reading).count()
    }

    /// Returns the first partition that has no reading replica outside `without`.
    pub fn uncovered(&self, without: &BTreeSet<NodeId>) -> Option<PartitionId> {
        let partitions = self.groups.first().map_or(0, Vec::len);
        let is_lost = |partition: &usize| {
            let mut owners = self.groups.iter().filter_map(|owners| owners.get(*partition));
            owners.all(|owner| without.contains(owner))
        };
        (0..partitions).find(is_lost).map(|partition| PartitionId(partition as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_is_covered_while_one_of_its_owners_is_left() {
        let ids = |ids: &[u32]| ids.iter().copied().map(NodeId).collect::<Vec<_>>();
        let holders =
            Holders { groups: vec![ids(&[0, 1, 0]), ids(&[2, 2, 3])], drained: vec![ids(&[4, 4, 4])] };
        let without = |nodes: &[u32]| holders.uncovered(&ids(nodes).into_iter().collect());
        assert_eq!(without(&[]), None);
        assert_eq!(without(&[0, 1]), None);
        assert_eq!(without(&[0, 3]), Some(PartitionId(2)));
        assert_eq!(without(&[0, 1, 2]), Some(PartitionId(0)), "a group that is taken out covers nothing");
        assert_eq!(holders.nodes().len(), 5);
        assert_eq!(holders.missed(&ids(&[1, 4]).into_iter().collect()), 1);
    }
}
