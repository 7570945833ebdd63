//! The plan of a rebalance, as the metadata store keeps it.

use super::{ClusterDocument, ListedNodeDocument};
use serde::{Deserialize, Serialize};

/// The steps from one routing table of a cluster to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanDocument {
    /// The shape that was requested.
    pub shape: ShapeDocument,
    /// The routing table at the start.
    pub before: ClusterDocument,
    /// The groups and nodes that are listed while data moves.
    pub announced: RosterDocument,
    /// The groups and nodes that are listed in the end.
    pub closing: RosterDocument,
    /// The group that joins, if any.
    pub added: Option<AddedGroupDocument>,
    /// The copies, in the order in which they are made.
    pub batches: Vec<BatchDocument>,
    /// The stores that are copied.
    pub stores: Vec<SizedStoreDocument>,
    /// The number of copies and of bytes for each pair of nodes.
    pub pairs: Vec<PairTotalsDocument>,
    /// The partitions and bytes of each node before and after, and the bytes copied to it.
    pub nodes: Vec<NodeTotalsDocument>,
}

/// The requested change of a cluster's shape.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum ShapeDocument {
    /// New or drained nodes take their share of the partitions.
    AddNodes { nodes: Vec<ListedNodeDocument> },
    /// Nodes give up all partitions and leave the cluster.
    RemoveNodes {
        /// The ids of the nodes.
        nodes: Vec<u32>,
    },
    /// Nodes give up all partitions but stay listed.
    DrainNodes {
        /// The ids of the nodes.
        nodes: Vec<u32>,
    },
    /// One node takes over the partitions of another, which leaves.
    ReplaceNode {
        /// The node that leaves.
        old: u32,
        /// The node that takes over.
        new: ListedNodeDocument,
    },
    /// A new group is filled, and then serves.
    AddGroup { group: u32, nodes: Vec<ListedNodeDocument> },
    /// A group stops serving reads.
    DrainGroup { group: u32 },
    /// A drained group serves reads again.
    RestoreGroup { group: u32 },
    /// A drained group leaves the cluster with its nodes.
    RemoveGroup { group: u32 },
    /// The existing nodes share the partitions evenly.
    Even,
}

/// The groups and nodes that a routing table lists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RosterDocument {
    /// The id and role (as in [`GroupDocument`](super::GroupDocument)) of each group, ascending.
    pub groups: Vec<(u32, String)>,
    /// The nodes, with their labels and states.
    pub nodes: Vec<ListedNodeDocument>,
}

/// A group that joins, and the owners of its partitions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddedGroupDocument {
    /// The id of the group.
    pub group: u32,
    /// The node that will own each partition, by partition number.
    pub owners: Vec<u32>,
}

/// The copies that precede one change of epoch, and the change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchDocument {
    /// The copies.
    pub moves: Vec<MoveDocument>,
    /// The changes of owners: the index of the group, the partition, and its new owner.
    pub changes: Vec<(u32, u32, u32)>,
}

/// A copy of one partition from one node to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveDocument {
    /// The partition.
    pub partition: u32,
    /// The group to which the new replica belongs.
    pub group: u32,
    /// The node that gives the partition.
    pub donor: u32,
    /// The node that takes the partition.
    pub stealer: u32,
    /// Whether the copy is needed only because of another copy.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub secondary: bool,
    /// For each store that is copied, its index in the plan and its size in bytes.
    pub stores: Vec<(u32, u64)>,
}

/// A store that is copied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizedStoreDocument {
    /// The name of the store.
    pub name: String,
    /// The number of groups that hold the store. `None` means all groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replication: Option<u32>,
    /// The number of replicas that must agree on an answer.
    pub required_reads: u32,
    /// The nodes that do not have the store and cannot give it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<u32>,
}

/// The total that one node gives to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairTotalsDocument {
    /// The node that gives.
    pub donor: u32,
    /// The node that takes.
    pub stealer: u32,
    /// The number of partitions copied.
    pub moves: u64,
    /// The number of those copies that are needed only because of other copies.
    pub secondary_moves: u64,
    /// The number of bytes copied.
    pub bytes: u64,
}

/// The totals of one node before and after the change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeTotalsDocument {
    /// The id of the node.
    pub node: u32,
    /// The group of the node.
    pub group: u32,
    /// The number of partitions before the change.
    pub partitions_before: u64,
    /// The number of partitions after the change.
    pub partitions_after: u64,
    /// The bytes held before the change.
    pub bytes_before: u64,
    /// The bytes held after the change.
    pub bytes_after: u64,
    /// The bytes copied to the node.
    pub bytes_in: u64,
}
