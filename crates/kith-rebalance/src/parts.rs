//! What a plan is made of: stores, moves, batches and steps.

use kith_routing::placement::OwnerChange;
use kith_routing::{GroupEntry, NodeEntry};
use kith_types::{GroupId, NodeId, PartitionId};

/// What a store (or graph) weighs, and where it lies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreSizes {
    /// Its name: decides which groups hold it.
    pub name: String,
    /// How many groups hold it; `None`: all.
    pub replication: Option<u32>,
    /// How many replicas must agree on an answer; 0 says the same as 1.
    pub required_reads: u32,
    /// Bytes per partition, of all versions that are kept: they move together.
    pub bytes: Vec<u64>,
    /// Nodes that lack its current version and cannot give it.
    pub excluded: Vec<NodeId>,
}

/// One store's part of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MovedStore {
    /// Its place in [`RebalancePlan::stores`](crate::RebalancePlan::stores).
    pub store: u32,
    /// How much is copied.
    pub bytes: u64,
}

/// One partition is copied from one node to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// What is copied.
    pub partition: PartitionId,
    /// The group whose replica it becomes; on a ring the rank.
    pub group: GroupId,
    /// Who gives.
    pub donor: NodeId,
    /// Who gets it.
    pub stealer: NodeId,
    /// It follows from another move: the replica of a partition whose own owner stays (Voldemort §5.7).
    pub is_secondary: bool,
    /// What is copied; empty if the cluster holds nothing.
    pub stores: Vec<MovedStore>,
}

impl Move {
    /// How much is copied.
    pub fn bytes(&self) -> u64 {
        self.stores.iter().map(|store| store.bytes).sum()
    }
}

/// What is copied before one change of epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Copies, in any order.
    pub moves: Vec<Move>,
    /// Owners that change once all copies are there; empty while a group joins.
    pub changes: Vec<OwnerChange>,
}

/// What a table lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roster {
    /// Ascending.
    pub groups: Vec<GroupEntry>,
    /// In any order.
    pub nodes: Vec<NodeEntry>,
}

/// A group that joins, and what will be its own.
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
    /// The batch at this place.
    Batch(usize),
    /// A new group serves; nodes that gave everything up are no longer listed.
    Close,
}
