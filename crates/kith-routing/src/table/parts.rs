//! What a routing table is made from: nodes, groups, and places in a table.

use kith_types::{Epoch, GroupId, NodeId, PartitionCount};

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

/// What a [`RoutingTable`](crate::RoutingTable) is made from, and what metadata stores.
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
