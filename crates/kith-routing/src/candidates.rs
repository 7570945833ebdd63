//! What a policy sees of a table: the replicas that may serve now.

use crate::table::GROUPS_MAX;
use crate::{Availability, GroupEntry, GroupIndex, NodeEntry, NodeIndex, RoutingTable};
use kith_types::{Epoch, NodeId, PartitionCount, PartitionId};

/// A table as one query sees it. Cheap to make and to copy; see [`RoutingTable::view`].
#[derive(Clone, Copy, Debug)]
pub struct Candidates<'a> {
    table: &'a RoutingTable,
    availability: &'a Availability,
    /// Bit `g` is set if every replica of group `g` may serve.
    complete: u64,
    /// Whether that holds for all groups, the usual case: nothing needs checking then.
    whole: bool,
}

impl<'a> Candidates<'a> {
    pub(crate) fn new(table: &'a RoutingTable, availability: &'a Availability) -> Self {
        assert_eq!(table.nodes().len(), availability.node_count(), "availability of another table");
        const { assert!(GROUPS_MAX <= u64::BITS as usize) };
        let is_whole = |group: &u32| {
            availability.is_by_node() && availability.serving().is_superset(table.owning(GroupIndex(*group)))
        };
        let groups = 0..table.groups().len() as u32;
        let complete: u64 = groups.filter(is_whole).fold(0, |bits, group| bits | 1 << group);
        let whole = complete.count_ones() as usize == table.groups().len();
        Self { table, availability, complete, whole }
    }

    /// The node of `group` that may serve `partition` now, if any.
    #[inline]
    pub fn replica(&self, partition: PartitionId, group: GroupIndex) -> Option<NodeIndex> {
        let node = self.table.replicas(partition)[group.index()];
        (self.whole || self.availability.may_serve(partition, node)).then_some(node)
    }

    /// The nodes that may serve `partition` now, in the order of the groups.
    #[inline]
    pub fn replicas(&self, partition: PartitionId) -> impl Iterator<Item = NodeIndex> + use<'a> {
        let (availability, whole) = (self.availability, self.whole);
        let replicas = self.table.replicas(partition).iter().copied();
        replicas.filter(move |node| whole || availability.may_serve(partition, *node))
    }

    /// Whether a node is up; one that is not may still be asked for partitions that have no other.
    pub fn is_up(&self, node: NodeIndex) -> bool {
        self.availability.serving().contains(node)
    }

    /// Whether every partition has a replica in this group that may serve now.
    pub fn is_complete(&self, group: GroupIndex) -> bool {
        self.complete >> group.0 & 1 == 1
    }

    /// Whether that holds for every group.
    pub fn all_complete(&self) -> bool {
        self.whole
    }

    /// The version of the table.
    pub fn epoch(&self) -> Epoch {
        self.table.epoch()
    }

    /// How many partitions the cluster has.
    pub fn partition_count(&self) -> PartitionCount {
        self.table.partition_count()
    }

    /// How many groups the table has, whatever their state: `c` of Moolle's equations.
    pub fn group_count(&self) -> usize {
        self.table.groups().len()
    }

    /// Every group.
    pub fn groups(&self) -> impl Iterator<Item = GroupIndex> + use<> {
        (0..self.table.groups().len() as u32).map(GroupIndex)
    }

    /// How many nodes the table has, whatever their state.
    pub fn node_count(&self) -> usize {
        self.table.nodes().len()
    }

    /// Nodes per group, rounded up: `n` of Moolle's equations.
    pub fn nodes_per_group(&self) -> usize {
        self.node_count().div_ceil(self.group_count())
    }

    /// The entry of a node.
    pub fn node(&self, index: NodeIndex) -> &'a NodeEntry {
        self.table.node_at(index)
    }

    /// The entry of a group.
    pub fn group(&self, index: GroupIndex) -> &'a GroupEntry {
        &self.table.groups()[index.index()]
    }

    /// The group of a node.
    pub fn group_of(&self, index: NodeIndex) -> GroupIndex {
        self.table.group_of(index)
    }

    /// The place of a node, if it is in the table.
    pub fn node_index(&self, node: NodeId) -> Option<NodeIndex> {
        self.table.node_index(node)
    }
}
