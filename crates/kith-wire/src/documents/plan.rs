//! The plan of a rebalance, as its document keeps it.

use super::{ClusterDocument, ListedNodeDocument};
use serde::{Deserialize, Serialize};

/// How a cluster gets from one table to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanDocument {
    /// What was asked for.
    pub shape: ShapeDocument,
    /// The table it starts from.
    pub before: ClusterDocument,
    /// What is listed while data moves.
    pub announced: RosterDocument,
    /// What is listed in the end.
    pub closing: RosterDocument,
    /// The group that joins, if one does.
    pub added: Option<AddedGroupDocument>,
    /// What moves, in order.
    pub batches: Vec<BatchDocument>,
    /// The stores that move.
    pub stores: Vec<SizedStoreDocument>,
    /// Moves and bytes per pair of nodes.
    pub pairs: Vec<PairTotalsDocument>,
    /// What each node has before, meanwhile and after.
    pub nodes: Vec<NodeTotalsDocument>,
}

/// What shall become of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum ShapeDocument {
    /// New nodes, or drained ones again, take their share.
    AddNodes { nodes: Vec<ListedNodeDocument> },
    /// Nodes give everything up and leave.
    RemoveNodes {
        /// Their ids.
        nodes: Vec<u32>,
    },
    /// Nodes give everything up and stay listed.
    DrainNodes {
        /// Their ids.
        nodes: Vec<u32>,
    },
    /// One node takes over from another, which leaves.
    ReplaceNode {
        /// Who leaves.
        old: u32,
        /// Who takes over.
        new: ListedNodeDocument,
    },
    /// A new group is filled, then serves.
    AddGroup { group: u32, nodes: Vec<ListedNodeDocument> },
    /// A group is taken out of serving.
    DrainGroup { group: u32 },
    /// And put back.
    RestoreGroup { group: u32 },
    /// The nodes that are there share evenly.
    Even,
}

/// What a table lists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RosterDocument {
    /// Id and role (as in a `GroupDocument`) of each group, ascending.
    pub groups: Vec<(u32, String)>,
    /// The nodes.
    pub nodes: Vec<ListedNodeDocument>,
}

/// A group that joins, and what will be its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddedGroupDocument {
    /// The group.
    pub group: u32,
    /// The owner of each partition.
    pub owners: Vec<u32>,
}

/// What is copied before one change of epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchDocument {
    /// Copies.
    pub moves: Vec<MoveDocument>,
    /// Place of the group, partition, new owner.
    pub changes: Vec<(u32, u32, u32)>,
}

/// One partition is copied from one node to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveDocument {
    /// What is copied.
    pub partition: u32,
    /// The group whose replica it becomes.
    pub group: u32,
    /// Who gives.
    pub donor: u32,
    /// Who gets it.
    pub stealer: u32,
    /// It follows from another move.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub secondary: bool,
    /// Place of each store in the plan, and its bytes.
    pub stores: Vec<(u32, u64)>,
}

/// A store that moves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizedStoreDocument {
    /// Its name.
    pub name: String,
    /// How many groups hold it; `None`: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replication: Option<u32>,
    /// How many replicas must agree on an answer.
    pub required_reads: u32,
    /// Nodes that cannot give it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<u32>,
}

/// What one node gives to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairTotalsDocument {
    /// Who gives.
    pub donor: u32,
    /// Who gets.
    pub stealer: u32,
    /// Partitions copied.
    pub moves: u64,
    /// Those that only follow from other moves.
    pub secondary_moves: u64,
    /// Bytes copied.
    pub bytes: u64,
}

/// What one node has before, meanwhile and after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeTotalsDocument {
    /// The node.
    pub node: u32,
    /// Its group.
    pub group: u32,
    /// Partitions before.
    pub partitions_before: u64,
    /// Partitions after.
    pub partitions_after: u64,
    /// Bytes before.
    pub bytes_before: u64,
    /// Bytes after.
    pub bytes_after: u64,
    /// Bytes copied to it.
    pub bytes_in: u64,
}
