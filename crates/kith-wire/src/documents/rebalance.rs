//! Documents of rebalances: the plan, how far it is, and what a person is told.

use super::{ClusterDocument, Document, ListedNodeDocument};
use serde::{Deserialize, Serialize};

/// A rebalance: key `rebalance` while owners may change, `rebalance-ended` after that. Every write of it is conditional
/// on the one before, by the same driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RebalanceDocument {
    /// Document format.
    pub format: u32,
    /// Its id.
    pub id: String,
    /// Who asked for it.
    pub who: String,
    /// Since when, milliseconds since 1970.
    pub since: u64,
    /// The router that drives it and which start of that router: the value of its leased key while it lives.
    pub driver: String,
    /// Raised by each driver when it takes over.
    pub fence: u64,
    /// How long what was given up is kept.
    pub grace_ms: u64,
    /// What each stealer may copy per second; 0: as fast as it goes.
    pub bytes_per_second: u64,
    /// The plan.
    pub plan: PlanDocument,
    /// Steps finished.
    pub steps_done: usize,
    /// The first batch since the last change of the table.
    pub first_uncommitted: usize,
    /// The table in force as of the last step.
    pub table: ClusterDocument,
    /// What it is doing.
    pub phase: PhaseDocument,
    /// An abort was asked for.
    pub abort_asked: bool,
    /// Copies of the current batch.
    pub transfers: Vec<TransferDocument>,
    /// What is to be freed.
    pub reclaims: Vec<ReclaimDocument>,
    /// What was said of the last copy that failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_failure: String,
}
impl Document for RebalanceDocument {
    const WHAT: &'static str = "rebalance";
}

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

/// What an execution is doing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum PhaseDocument {
    /// Copying.
    Working,
    /// A table is being written.
    Committing,
    /// Waiting for a person.
    Stopped { reason: StopDocument },
    /// The table of an abort is being written.
    Undoing,
    /// The cluster has the shape asked for.
    Finished,
    /// It has the shape of the last batch finished.
    Aborted,
}

/// Why an execution waits for a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum StopDocument {
    /// A node that is to get a partition is down.
    StealerDown { node: u32 },
    /// A node cannot take a partition.
    StealerFailed { node: u32, partition: u32 },
    /// Nobody alive can give a partition.
    NoDonor {
        partition: u32,
        /// Who waits for it.
        stealer: u32,
    },
    /// A copy failed too often.
    CopyFailed {
        partition: u32,
        /// Who gives.
        donor: u32,
        /// Who gets.
        stealer: u32,
    },
    /// Somebody else changed the table.
    TableChanged {
        /// The epoch in force.
        in_force: u64,
    },
}

/// One copy of the current batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferDocument {
    /// What is copied.
    pub copy: MoveDocument,
    /// `pending`, `running`, `copied` or `replaced`.
    pub state: String,
    /// Failures so far.
    pub failures: u32,
    /// Donors found unfit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub avoid: Vec<u32>,
}

/// Files that nobody will ask for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReclaimDocument {
    /// Who has them.
    pub node: u32,
    /// The partition.
    pub partition: u32,
    /// Places of the stores in the plan.
    pub stores: Vec<u32>,
    /// The first epoch that does not give them to the node; 0 if none ever did.
    pub gone_since: u64,
}

/// A rebalance as a person is told. Its fields are a contract of the command line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RebalanceStatusDocument {
    /// Its id; `None`: only planned.
    pub id: Option<String>,
    /// What was asked for, in words.
    pub shape: String,
    /// `planned`, `working`, `stopped`, `aborting`, `finished` or `aborted`.
    pub state: String,
    /// Why it stopped.
    pub reason: Option<String>,
    /// Who asked for it.
    pub who: String,
    /// The router that drives it.
    pub driver: Option<String>,
    /// The epoch as of its last step.
    pub epoch: u64,
    /// How far it is.
    pub progress: ProgressDocument,
    /// The worst node's bytes at their peak over the larger of before and after.
    pub overhead: f64,
    /// Moves and bytes per pair of nodes.
    pub pairs: Vec<PairTotalsDocument>,
    /// What each node has before and after.
    pub nodes: Vec<NodeTotalsDocument>,
}

/// How far a rebalance is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgressDocument {
    /// Batches finished.
    pub batches_done: usize,
    /// Batches of the plan.
    pub batches: usize,
    /// Copies finished.
    pub moves_done: usize,
    /// Copies of the plan.
    pub moves: usize,
    /// Bytes of the copies finished.
    pub bytes_done: u64,
    /// Bytes of the plan.
    pub bytes: u64,
    /// Given-up partitions that still lie on a disk.
    pub reclaims_left: usize,
}
