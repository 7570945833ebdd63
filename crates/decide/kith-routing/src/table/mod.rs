//! The routing table: which node owns which partition in which replica group (Moolle §III-B). It is an immutable snapshot at
//! one epoch; a change of topology makes a new table. It does not say which nodes are up: see [`Availability`].

mod check;
mod error;
mod parts;
mod ring;
#[cfg(test)]
mod tests;

pub use error::TableError;
pub use parts::{GroupEntry, GroupIndex, GroupRole, NodeEntry, NodeIndex, Strategy, TableParts};

use crate::{Availability, Candidates, NodeSet};
use check::{check_length, check_sizes, checked_epochs, groups_of_nodes, index_nodes};
use kith_types::{Epoch, NodeId, PartitionCount, PartitionId};
use std::collections::BTreeMap;

/// The largest number of groups of a table. A set of groups then fits one machine word, and a greater replication factor
/// would be useless.
pub const GROUPS_MAX: usize = 64;

/// The largest number of nodes of a table. It keeps the scratch space of a plan in the processor's cache.
pub const NODES_MAX: usize = 4_096;

/// The owner of each partition in each group, at one epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutingTable {
    epoch: Epoch,
    strategy: Strategy,
    partition_count: PartitionCount,
    groups: Vec<GroupEntry>,
    nodes: Vec<NodeEntry>,
    group_of_node: Vec<GroupIndex>,
    index_of_node: BTreeMap<NodeId, NodeIndex>,
    /// The owner of partition `p` in group `g` is at `p × groups + g`, so that the replicas of a partition share a cache
    /// line.
    owners: Vec<NodeIndex>,
    /// For each group, the nodes that own a partition.
    owning: Vec<NodeSet>,
    partition_epochs: Vec<Epoch>,
}

impl RoutingTable {
    /// Checks the parts and builds the table.
    ///
    /// # Errors
    /// If the parts contradict each other. The error names the first contradiction.
    pub fn new(parts: TableParts) -> Result<Self, TableError> {
        let TableParts { epoch, strategy, partition_count, groups, mut nodes, owners, partition_epochs } =
            parts;
        check_sizes(&groups, &nodes)?;
        nodes.sort_by_key(|node| (node.group, node.id));
        let group_of_node = groups_of_nodes(&groups, &nodes)?;
        let index_of_node = index_nodes(&nodes)?;
        let partition_epochs = checked_epochs(partition_epochs, epoch, partition_count)?;
        check_length("owners", owners.len(), groups.len())?;
        let mut table = Self {
            epoch,
            strategy,
            partition_count,
            owners: vec![NodeIndex(0); groups.len() * partition_count.get() as usize],
            owning: vec![NodeSet::empty(nodes.len()); groups.len()],
            groups,
            nodes,
            group_of_node,
            index_of_node,
            partition_epochs,
        };
        for (group, owners) in owners.iter().enumerate() {
            table.fill_group(GroupIndex(group as u32), owners)?;
        }
        if strategy == Strategy::Ring {
            ring::check(&table, &owners)?;
        }
        Ok(table)
    }

    fn fill_group(&mut self, group: GroupIndex, owners: &[NodeId]) -> Result<(), TableError> {
        check_length("the owners of a group", owners.len(), self.partition_count.get() as usize)?;
        for (partition, &node) in owners.iter().enumerate() {
            let index = self
                .node_index(node)
                .filter(|index| self.strategy == Strategy::Ring || self.group_of_node[index.index()] == group)
                .ok_or(TableError::ForeignOwner {
                    group: self.groups[group.index()].id,
                    partition: PartitionId(partition as u32),
                    node,
                })?;
            self.owners[partition * self.groups.len() + group.index()] = index;
            self.owning[group.index()].insert(index);
        }
        Ok(())
    }

    /// Returns the view for policies: this table with the replicas that may serve now. It costs a few words per group,
    /// whatever the number of partitions.
    ///
    /// # Panics
    /// If `availability` was made for a table with another number of nodes.
    pub fn view<'a>(&'a self, availability: &'a Availability) -> Candidates<'a> {
        Candidates::new(self, availability)
    }

    /// The version of the table.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The strategy by which replicas follow from ownership.
    pub fn strategy(&self) -> Strategy {
        self.strategy
    }

    /// The number of partitions of the cluster.
    pub fn partition_count(&self) -> PartitionCount {
        self.partition_count
    }

    /// The groups, ascending by id.
    pub fn groups(&self) -> &[GroupEntry] {
        &self.groups
    }

    /// The nodes, by group, then by id.
    pub fn nodes(&self) -> &[NodeEntry] {
        &self.nodes
    }

    /// The nodes of one group.
    pub fn nodes_of(&self, group: GroupIndex) -> impl Iterator<Item = &NodeEntry> {
        self.nodes.iter().zip(&self.group_of_node).filter(move |(_, of)| **of == group).map(|(node, _)| node)
    }

    /// Returns the index of a node, if it is in this table.
    pub fn node_index(&self, node: NodeId) -> Option<NodeIndex> {
        self.index_of_node.get(&node).copied()
    }

    /// Returns the node with this id, if it is in this table.
    pub fn node(&self, node: NodeId) -> Option<&NodeEntry> {
        self.node_index(node).map(|index| &self.nodes[index.index()])
    }

    /// Returns the node at an index of this table.
    pub fn node_at(&self, index: NodeIndex) -> &NodeEntry {
        &self.nodes[index.index()]
    }

    /// Returns the group of the node at an index of this table.
    pub fn group_of(&self, index: NodeIndex) -> GroupIndex {
        self.group_of_node[index.index()]
    }

    /// Returns the owner of a partition in each group, in the order of the groups, whether it is up or not.
    pub fn replicas(&self, partition: PartitionId) -> &[NodeIndex] {
        let start = partition.index() * self.groups.len();
        &self.owners[start..start + self.groups.len()]
    }

    /// Returns the partitions that a node owns, ascending.
    pub fn partitions_of(&self, node: NodeId) -> Vec<PartitionId> {
        let Some(index) = self.node_index(node) else { return Vec::new() };
        self.partition_count.iter().filter(|p| self.replicas(*p).contains(&index)).collect()
    }

    /// Returns the parts from which this table can be built again.
    pub fn to_parts(&self) -> TableParts {
        let owners_of = |group: usize| {
            let id = |p: PartitionId| self.nodes[self.replicas(p)[group].index()].id;
            self.partition_count.iter().map(id).collect()
        };
        TableParts {
            epoch: self.epoch,
            strategy: self.strategy,
            partition_count: self.partition_count,
            groups: self.groups.clone(),
            nodes: self.nodes.clone(),
            owners: (0..self.groups.len()).map(owners_of).collect(),
            partition_epochs: self.partition_epochs.clone(),
        }
    }

    /// Returns the nodes of one zone, for [`Candidates::near`]; none if `zone` is empty. O(nodes).
    pub fn nodes_in_zone(&self, region: &str, zone: &str) -> NodeSet {
        let mut near = NodeSet::empty(self.nodes.len());
        for (index, node) in self.nodes.iter().enumerate() {
            if !zone.is_empty() && node.zone == zone && node.region == region {
                near.insert(NodeIndex(index as u32));
            }
        }
        near
    }

    /// Returns the nodes of a group that own a partition.
    pub(crate) fn owning(&self, group: GroupIndex) -> &NodeSet {
        &self.owning[group.index()]
    }
}
