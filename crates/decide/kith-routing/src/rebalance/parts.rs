//! The parts of a plan: stores, moves, batches and steps.

use crate::placement::OwnerChange;
use crate::{GroupEntry, NodeEntry};
use kith_types::{GroupId, NodeId, PartitionId};

/// The size and the placement of a store or graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreSizes {
    /// The name, which decides which groups hold it.
    pub name: String,
    /// The number of groups that hold it; `None` for all.
    pub replication: Option<u32>,
    /// The number of replicas that must agree on an answer; 0 means 1.
    pub required_reads: u32,
    /// The bytes per partition of all kept versions, which move together.
    pub bytes: Vec<u64>,
    /// The nodes that lack its current version and cannot be donors.
    pub excluded: Vec<NodeId>,
}

/// One store's part of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MovedStore {
    /// The index in [`RebalancePlan::stores`](crate::rebalance::RebalancePlan::stores).
    pub store: u32,
    /// The number of bytes to copy.
    pub bytes: u64,
}

/// A copy of one partition from one node to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The partition to copy.
    pub partition: PartitionId,
    /// The group whose replica it becomes; on a ring, the rank.
    pub group: GroupId,
    /// The node that gives the data.
    pub donor: NodeId,
    /// The node that receives the data.
    pub stealer: NodeId,
    /// Whether it only follows from another move: the replica of a partition whose first owner stays (Voldemort §5.7).
    pub is_secondary: bool,
    /// The stores to copy; empty if the cluster holds nothing.
    pub stores: Vec<MovedStore>,
}

impl Move {
    /// The number of bytes to copy.
    pub fn bytes(&self) -> u64 {
        self.stores.iter().map(|store| store.bytes).sum()
    }
}

/// The copies before one change of epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// The copies, in any order.
    pub moves: Vec<Move>,
    /// The owners that change once all copies are done; empty while a group joins.
    pub changes: Vec<OwnerChange>,
}

/// The groups and nodes that a table lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roster {
    /// The groups, ascending.
    pub groups: Vec<GroupEntry>,
    /// The nodes, in any order.
    pub nodes: Vec<NodeEntry>,
}

/// A group that joins, and its owners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedGroup {
    /// The group.
    pub group: GroupId,
    /// The owner of each partition.
    pub owners: Vec<NodeId>,
}

/// One step of a plan. Each ends with a new epoch, except batches that change no owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanStep {
    /// New nodes and groups are listed, without partitions or without serving.
    Announce,
    /// The batch with this index.
    Batch(usize),
    /// A new group serves; nodes that have given everything up are no longer listed.
    Close,
}
