//! The parts of a plan: stores, moves, batches, steps and totals.

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

/// The data that one node gives to another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PairTotals {
    /// The node that gives.
    pub donor: NodeId,
    /// The node that receives.
    pub stealer: NodeId,
    /// The number of partitions copied, including secondary ones.
    pub moves: u64,
    /// The number of those that only follow from other moves.
    pub secondary_moves: u64,
    /// The number of bytes copied.
    pub bytes: u64,
}

/// The data that one node has before, during and after a rebalance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeTotals {
    /// The node.
    pub node: NodeId,
    /// Its group; on a ring, the group of all nodes.
    pub group: GroupId,
    /// The partitions before, including the replicas of a ring.
    pub partitions_before: u64,
    /// The partitions after.
    pub partitions_after: u64,
    /// The bytes before.
    pub bytes_before: u64,
    /// The bytes after, once what was given up is reclaimed.
    pub bytes_after: u64,
    /// The bytes copied to it.
    pub bytes_in: u64,
}

impl NodeTotals {
    /// The bytes at the worst moment: what it had and all that it receives, before anything is reclaimed.
    pub fn bytes_peak(&self) -> u64 {
        self.bytes_before + self.bytes_in
    }

    /// The bytes at the worst moment divided by the larger of before and after. 1 means that the change needs no additional
    /// space. 1 for a node that has nothing.
    pub fn overhead(&self) -> f64 {
        let settled = self.bytes_before.max(self.bytes_after);
        if settled == 0 { 1.0 } else { self.bytes_peak() as f64 / settled as f64 }
    }
}
