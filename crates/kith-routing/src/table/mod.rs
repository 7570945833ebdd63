//! The routing table: which node owns which partition in which replica group
//! (Moolle §III-B). An immutable snapshot at one epoch; a change of topology is
//! a new table. Who is up right now is not in it: see [`Availability`].

mod error;
mod ring;
#[cfg(test)]
mod tests;

pub use error::TableError;

use crate::{Availability, Candidates, NodeSet};
use kith_types::{Epoch, GroupId, NodeId, PartitionCount, PartitionId};
use std::collections::BTreeMap;

/// The most groups a table may have: a set of groups fits one machine word, and
/// a replication factor above it serves nobody.
pub const GROUPS_MAX: usize = 64;

/// The most nodes a table may have: keeps the scratch space of a plan in cache.
pub const NODES_MAX: usize = 4_096;

/// A node's place in its table: `0..node_count`, nodes of a group side by side.
/// Means nothing in another table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIndex(pub u32);

/// A group's place in its table: `0..group_count`. Means nothing in another table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupIndex(pub u32);

impl NodeIndex {
    /// As an index into a slice.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl GroupIndex {
    /// As an index into a slice.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One serving process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeEntry {
    /// Unique in the cluster, never reused.
    pub id: NodeId,
    /// The replica group it belongs to.
    pub group: GroupId,
    /// Where it listens, `host:port`.
    pub address: String,
    /// Failure domain inside the region; empty if unlabelled.
    pub zone: String,
    /// Failure domain inside the zone; empty if unlabelled.
    pub rack: String,
    /// Data centre; empty if unlabelled.
    pub region: String,
    /// Taken out of use: it keeps or gives up what it owns, and gets nothing more.
    pub drained: bool,
}

/// What a group is used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupRole {
    /// Answers queries.
    #[default]
    Serving,
    /// Taken out for maintenance; the other groups answer (Moolle §II-B).
    Maintenance,
    /// New, and still being filled from the other groups: its owners do not have their partitions yet.
    Joining,
}

/// How replicas follow from ownership.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Strategy {
    /// Each group's nodes together own each partition once (Moolle §II-B).
    #[default]
    ReplicaGroups,
    /// One ring of partitions; a partition's replicas are the owners of it and of the next partitions
    /// clockwise that belong to other nodes (Voldemort §3). The table's groups are then *ranks*: group
    /// 0 holds each partition's first replica, group 1 the second. Every node is of group 0.
    Ring,
}

/// One replica group: nodes that together hold each partition once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupEntry {
    /// Unique in the cluster.
    pub id: GroupId,
    /// What it is used for.
    pub role: GroupRole,
}

/// What a [`RoutingTable`] is made from, and what metadata stores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableParts {
    /// The version of the table.
    pub epoch: Epoch,
    /// How the replicas follow from ownership.
    pub strategy: Strategy,
    /// Fixed when the cluster was created.
    pub partition_count: PartitionCount,
    /// In ascending order of id.
    pub groups: Vec<GroupEntry>,
    /// In any order; the table sorts them by group, then id.
    pub nodes: Vec<NodeEntry>,
    /// For each group, in the order of `groups`, the owner of each partition.
    pub owners: Vec<Vec<NodeId>>,
    /// For each partition the epoch at which its owners last changed: a fencing
    /// token for leaders. Empty means that of the table.
    pub partition_epochs: Vec<Epoch>,
}

/// Which node owns which partition in which group, at one epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutingTable {
    epoch: Epoch,
    strategy: Strategy,
    partition_count: PartitionCount,
    groups: Vec<GroupEntry>,
    nodes: Vec<NodeEntry>,
    group_of_node: Vec<GroupIndex>,
    index_of_node: BTreeMap<NodeId, NodeIndex>,
    /// Owner of partition `p` in group `g` at `p × groups + g`: the replicas of a
    /// partition share a cache line.
    owners: Vec<NodeIndex>,
    /// For each group, the nodes that own a partition.
    owning: Vec<NodeSet>,
    partition_epochs: Vec<Epoch>,
}

impl RoutingTable {
    /// Checks the parts and builds the table.
    ///
    /// # Errors
    /// If the parts contradict themselves; the first contradiction is named.
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

    /// What policies see: this table with the replicas that may serve now.
    /// Costs a few words per group, whatever the number of partitions.
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

    /// How the replicas follow from ownership.
    pub fn strategy(&self) -> Strategy {
        self.strategy
    }

    /// How many partitions the cluster has.
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

    /// The place of a node, if it is in this table.
    pub fn node_index(&self, node: NodeId) -> Option<NodeIndex> {
        self.index_of_node.get(&node).copied()
    }

    /// The node with this id, if it is in this table.
    pub fn node(&self, node: NodeId) -> Option<&NodeEntry> {
        self.node_index(node).map(|index| &self.nodes[index.index()])
    }

    /// The node at a place of this table.
    pub fn node_at(&self, index: NodeIndex) -> &NodeEntry {
        &self.nodes[index.index()]
    }

    /// The group of the node at a place of this table.
    pub fn group_of(&self, index: NodeIndex) -> GroupIndex {
        self.group_of_node[index.index()]
    }

    /// The owner of a partition in each group, in the order of the groups,
    /// whether it is up or not.
    pub fn replicas(&self, partition: PartitionId) -> &[NodeIndex] {
        let start = partition.index() * self.groups.len();
        &self.owners[start..start + self.groups.len()]
    }

    /// The epoch at which a partition's owners last changed.
    pub fn partition_epoch(&self, partition: PartitionId) -> Epoch {
        self.partition_epochs[partition.index()]
    }

    /// The partitions that a node owns, ascending.
    pub fn partitions_of(&self, node: NodeId) -> Vec<PartitionId> {
        let Some(index) = self.node_index(node) else { return Vec::new() };
        self.partition_count.iter().filter(|p| self.replicas(*p).contains(&index)).collect()
    }

    /// The parts that make this table again.
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

    /// The nodes of one zone, for [`Candidates::near`]; none if `zone` is empty. O(nodes).
    pub fn nodes_in_zone(&self, region: &str, zone: &str) -> NodeSet {
        let mut near = NodeSet::empty(self.nodes.len());
        for (index, node) in self.nodes.iter().enumerate() {
            if !zone.is_empty() && node.zone == zone && node.region == region {
                near.insert(NodeIndex(index as u32));
            }
        }
        near
    }

    /// The nodes of a group that own a partition.
    pub(crate) fn owning(&self, group: GroupIndex) -> &NodeSet {
        &self.owning[group.index()]
    }
}

fn check_sizes(groups: &[GroupEntry], nodes: &[NodeEntry]) -> Result<(), TableError> {
    if groups.is_empty() || nodes.is_empty() {
        return Err(TableError::Empty);
    }
    for (what, got, max) in [("groups", groups.len(), GROUPS_MAX), ("nodes", nodes.len(), NODES_MAX)] {
        if max < got {
            return Err(TableError::TooMany { what, got, max });
        }
    }
    match groups.windows(2).find(|pair| pair[1].id <= pair[0].id) {
        Some(pair) => Err(TableError::GroupOrder { group: pair[1].id }),
        None => Ok(()),
    }
}

fn groups_of_nodes(groups: &[GroupEntry], nodes: &[NodeEntry]) -> Result<Vec<GroupIndex>, TableError> {
    let group_of = |node: &NodeEntry| {
        let place = groups.binary_search_by_key(&node.group, |group| group.id);
        let index = place.map_err(|_| TableError::UnknownGroup { node: node.id, group: node.group })?;
        Ok(GroupIndex(index as u32))
    };
    nodes.iter().map(group_of).collect()
}

fn index_nodes(nodes: &[NodeEntry]) -> Result<BTreeMap<NodeId, NodeIndex>, TableError> {
    let mut index_of_node = BTreeMap::new();
    for (index, node) in nodes.iter().enumerate() {
        if index_of_node.insert(node.id, NodeIndex(index as u32)).is_some() {
            return Err(TableError::DuplicateNode { node: node.id });
        }
    }
    Ok(index_of_node)
}

fn checked_epochs(epochs: Vec<Epoch>, table: Epoch, count: PartitionCount) -> Result<Vec<Epoch>, TableError> {
    if epochs.is_empty() {
        return Ok(vec![table; count.get() as usize]);
    }
    check_length("partition epochs", epochs.len(), count.get() as usize)?;
    match epochs.iter().position(|epoch| table < *epoch) {
        Some(p) => {
            Err(TableError::PartitionEpoch { partition: PartitionId(p as u32), got: epochs[p], table })
        }
        None => Ok(epochs),
    }
}

fn check_length(what: &'static str, got: usize, expected: usize) -> Result<(), TableError> {
    if got == expected { Ok(()) } else { Err(TableError::Length { what, got, expected }) }
}
