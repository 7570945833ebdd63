//! The parts of a routing table: nodes, groups, and indexes in a table.

use kith_types::{Epoch, GroupId, NodeId, PartitionCount};

/// The index of a node in its table: `0..node_count`, with the nodes of a group adjacent. It has no meaning in another
/// table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIndex(pub u32);

/// The index of a group in its table: `0..group_count`. It has no meaning in another table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupIndex(pub u32);

impl NodeIndex {
    /// Returns an index into a slice.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl GroupIndex {
    /// Returns an index into a slice.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One serving process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeEntry {
    /// The id, which is unique in the cluster and never reused.
    pub id: NodeId,
    /// The replica group that it belongs to.
    pub group: GroupId,
    /// The address, as `host:port`.
    pub address: String,
    /// The failure domain inside the region; empty if unlabelled.
    pub zone: String,
    /// The failure domain inside the zone; empty if unlabelled.
    pub rack: String,
    /// The data centre; empty if unlabelled.
    pub region: String,
    /// Whether it was taken out of use: it keeps or gives up what it owns, and gets nothing more.
    pub drained: bool,
}

/// The role of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupRole {
    /// The group answers queries.
    #[default]
    Serving,
    /// The group was taken out for maintenance; the other groups answer (Moolle §II-B).
    Maintenance,
    /// The group is new and still being filled from the other groups: its owners do not have their partitions yet.
    Joining,
}

/// The strategy by which replicas follow from ownership.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Strategy {
    /// The nodes of each group together own each partition once (Moolle §II-B).
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
    /// The id, which is unique in the cluster.
    pub id: GroupId,
    /// The role of the group.
    pub role: GroupRole,
}

/// The parts of a [`RoutingTable`](crate::RoutingTable), as metadata stores them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableParts {
    /// The version of the table.
    pub epoch: Epoch,
    /// The strategy by which the replicas follow from ownership.
    pub strategy: Strategy,
    /// The number of partitions, fixed when the cluster was created.
    pub partition_count: PartitionCount,
    /// The groups, ascending by id.
    pub groups: Vec<GroupEntry>,
    /// The nodes in any order; the table sorts them by group, then by id.
    pub nodes: Vec<NodeEntry>,
    /// For each group, in the order of `groups`, the owner of each partition.
    pub owners: Vec<Vec<NodeId>>,
    /// The epoch at which the owners of each partition last changed, which is a fencing token for leaders. An empty list
    /// stands for the table's epoch everywhere.
    pub partition_epochs: Vec<Epoch>,
}
