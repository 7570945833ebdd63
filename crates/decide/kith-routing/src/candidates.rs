//! A policy's view of a table: the replicas that may serve now.

use crate::table::GROUPS_MAX;
use crate::{Availability, GroupEntry, GroupIndex, NodeEntry, NodeIndex, NodeSet, RoutingTable, Strategy};
use kith_types::{Epoch, NodeId, PartitionCount, PartitionId};

/// A table as one query sees it. Cheap to create and to copy; see [`RoutingTable::view`].
#[derive(Clone, Copy, Debug)]
pub struct Candidates<'a> {
    table: &'a RoutingTable,
    availability: &'a Availability,
    /// Bit `g` is set if every replica of group `g` may serve.
    complete: u64,
    /// Whether this is true for all groups, which is the usual case. Nothing else needs to be checked then.
    whole: bool,
    /// The nodes in the caller's zone, if it has one.
    near: Option<&'a NodeSet>,
}

impl<'a> Candidates<'a> {
    pub(crate) fn new(table: &'a RoutingTable, availability: &'a Availability) -> Self {
        assert_eq!(table.nodes().len(), availability.node_count(), "availability of another table");
        const { assert!(GROUPS_MAX <= u64::BITS as usize) };
        let is_whole = |group: &u32| availability.is_whole(table, GroupIndex(*group));
        let groups = 0..table.groups().len() as u32;
        let complete: u64 = groups.filter(is_whole).fold(0, |bits, group| bits | 1 << group);
        let whole = complete.count_ones() as usize == table.groups().len();
        Self { table, availability, complete, whole, near: None }
    }

    /// Returns this view for a caller whose zone has the nodes `near` ([`RoutingTable::nodes_in_zone`]). Among equally
    /// healthy groups, policies then prefer those whose replicas of the keys are near.
    pub fn near(self, near: &'a NodeSet) -> Self {
        Self { near: Some(near).filter(|near| !near.is_empty()), ..self }
    }

    /// The number of `keys` that a group would serve from outside the caller's zone; 0 if the caller has no zone.
    pub fn far_keys(&self, group: GroupIndex, keys: &[PartitionId]) -> usize {
        let Some(near) = self.near.filter(|near| !near.is_superset(self.table.owning(group))) else {
            return 0;
        };
        keys.iter().filter(|key| !near.contains(self.table.replicas(**key)[group.index()])).count()
    }

    /// Whether the caller's zone affects the choice of groups.
    pub fn has_zone(&self) -> bool {
        self.near.is_some()
    }

    /// The node of `group` that may serve `partition` now, if any.
    #[inline]
    pub fn replica(&self, partition: PartitionId, group: GroupIndex) -> Option<NodeIndex> {
        let node = self.table.replicas(partition)[group.index()];
        (self.whole || self.may_serve(partition, group, node)).then_some(node)
    }

    fn may_serve(&self, partition: PartitionId, group: GroupIndex, node: NodeIndex) -> bool {
        self.availability.is_open(group) && self.availability.may_serve(partition, node)
    }

    /// Whether this node may serve `partition` now.
    #[inline]
    pub fn serves(&self, partition: PartitionId, node: NodeIndex) -> bool {
        match self.table.strategy() {
            Strategy::ReplicaGroups => self.replica(partition, self.table.group_of(node)) == Some(node),
            Strategy::Ring => self.replicas(partition).any(|replica| replica == node),
        }
    }

    /// The nodes that may serve `partition` now, in the order of the groups.
    #[inline]
    pub fn replicas(&self, partition: PartitionId) -> impl Iterator<Item = NodeIndex> + use<'a> {
        let (availability, whole) = (self.availability, self.whole);
        let may_serve = move |(group, node): &(usize, NodeIndex)| {
            whole
                || availability.is_open(GroupIndex(*group as u32)) && availability.may_serve(partition, *node)
        };
        self.table.replicas(partition).iter().copied().enumerate().filter(may_serve).map(|(_, node)| node)
    }

    /// Whether a node is up. A node that is down may still be asked for partitions without another replica.
    pub fn is_up(&self, node: NodeIndex) -> bool {
        self.availability.serving().contains(node)
    }

    /// Whether every partition has a replica in this group that may serve now.
    pub fn is_complete(&self, group: GroupIndex) -> bool {
        self.complete >> group.0 & 1 == 1
    }

    /// Whether every group is complete.
    pub fn all_complete(&self) -> bool {
        self.whole
    }

    /// The version of the table.
    pub fn epoch(&self) -> Epoch {
        self.table.epoch()
    }

    /// The number of partitions of the cluster.
    pub fn partition_count(&self) -> PartitionCount {
        self.table.partition_count()
    }

    /// The number of groups that hold the store in question, whatever their state: `c` in Moolle's equations.
    pub fn group_count(&self) -> usize {
        self.groups().count()
    }

    /// Returns every group that holds the store in question; on a ring, every rank.
    pub fn groups(&self) -> impl Iterator<Item = GroupIndex> + use<'a> {
        let availability = self.availability;
        (0..self.table.groups().len() as u32)
            .map(GroupIndex)
            .filter(move |group| availability.is_open(*group))
    }

    /// Returns the nodes that own a partition in a group, whatever their state.
    pub fn nodes_of(&self, group: GroupIndex) -> impl Iterator<Item = NodeIndex> + use<'a> {
        self.table.owning(group).iter()
    }

    /// The number of nodes in the table, whatever their state.
    pub fn node_count(&self) -> usize {
        self.table.nodes().len()
    }

    /// The number of nodes per group, rounded up: `n` in Moolle's equations.
    pub fn nodes_per_group(&self) -> usize {
        match self.table.strategy() {
            Strategy::ReplicaGroups => self.node_count().div_ceil(self.table.groups().len()),
            // Each rank is spread over all nodes.
            Strategy::Ring => self.node_count(),
        }
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

    /// Returns the index of a node, if it is in the table.
    pub fn node_index(&self, node: NodeId) -> Option<NodeIndex> {
        self.table.node_index(node)
    }
}
