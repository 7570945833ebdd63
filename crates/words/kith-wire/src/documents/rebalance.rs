//! Documents of rebalances: the state that the driver keeps, and the status that operators see.

use super::{ClusterDocument, Document, MoveDocument, NodeTotalsDocument, PairTotalsDocument, PlanDocument};
use serde::{Deserialize, Serialize};

/// A rebalance, under the key `rebalance` while owners may change, and under `rebalance-ended` afterwards. Every write
/// is conditional on the same driver's previous write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RebalanceDocument {
    /// Document format.
    pub format: u32,
    /// The id of the rebalance.
    pub id: String,
    /// The user who requested it.
    pub who: String,
    /// The time at which it began, in milliseconds since 1970.
    pub since: u64,
    /// The router that drives it, and which start of that router. It equals the value of the router's leased key while
    /// that router is alive.
    pub driver: String,
    /// The fencing number. Each driver raises it when it takes over.
    pub fence: u64,
    /// The time for which given-up files are kept, in milliseconds.
    pub grace_ms: u64,
    /// The most bytes that each stealer may copy per second. 0 means no limit.
    pub bytes_per_second: u64,
    /// The plan.
    pub plan: PlanDocument,
    /// The number of finished steps.
    pub steps_done: usize,
    /// The index of the first batch after the last change of the routing table.
    pub first_uncommitted: usize,
    /// The routing table in force after the last step.
    pub table: ClusterDocument,
    /// The current phase.
    pub phase: PhaseDocument,
    /// Whether an abort was requested.
    pub abort_asked: bool,
    /// The copies of the current batch.
    pub transfers: Vec<TransferDocument>,
    /// The files that are still to be freed.
    pub reclaims: Vec<ReclaimDocument>,
    /// The error of the last copy that failed; empty if there was none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_failure: String,
}
impl Document for RebalanceDocument {
    const WHAT: &'static str = "rebalance";
}

/// The phase of a rebalance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum PhaseDocument {
    /// Partitions are being copied.
    Working,
    /// A new routing table is being written.
    Committing,
    /// The rebalance waits for an operator.
    Stopped { reason: StopDocument },
    /// The routing table of an abort is being written.
    Undoing,
    /// The cluster has the requested shape.
    Finished,
    /// The rebalance was aborted; the cluster has the shape after the last finished batch.
    Aborted,
}

/// The reason why a rebalance waits for an operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum StopDocument {
    /// A node that is to take a partition is down.
    StealerDown { node: u32 },
    /// A node cannot take a partition.
    StealerFailed { node: u32, partition: u32 },
    /// No node that is up can give a partition.
    NoDonor {
        partition: u32,
        /// The node that waits for the partition.
        stealer: u32,
    },
    /// A copy failed too often.
    CopyFailed {
        partition: u32,
        /// The node that gives.
        donor: u32,
        /// The node that takes.
        stealer: u32,
    },
    /// The routing table was changed by something other than this rebalance.
    TableChanged {
        /// The epoch in force now.
        in_force: u64,
    },
}

/// One copy of the current batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferDocument {
    /// The copy.
    pub copy: MoveDocument,
    /// `pending`, `running`, `copied` or `replaced`.
    pub state: String,
    /// The number of failures so far.
    pub failures: u32,
    /// Donors that have proved unsuitable for this copy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub avoid: Vec<u32>,
}

/// Files that no client can ask for any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReclaimDocument {
    /// The node that has the files.
    pub node: u32,
    /// The partition.
    pub partition: u32,
    /// The indexes of the stores in the plan.
    pub stores: Vec<u32>,
    /// The first epoch at which the node no longer owns the partition; 0 if it never did.
    pub gone_since: u64,
}

/// The status of a rebalance as operators see it. Its fields are a contract of the command line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RebalanceStatusDocument {
    /// The id of the rebalance; `None` if it is only planned.
    pub id: Option<String>,
    /// The requested shape, in words.
    pub shape: String,
    /// `planned`, `working`, `stopped`, `aborting`, `finished` or `aborted`.
    pub state: String,
    /// The reason why it stopped; `None` unless it is stopped.
    pub reason: Option<String>,
    /// The user who requested it.
    pub who: String,
    /// The router that drives it.
    pub driver: Option<String>,
    /// The epoch after its last step.
    pub epoch: u64,
    /// The progress.
    pub progress: ProgressDocument,
    /// The largest ratio, over all nodes, of the peak bytes during the rebalance to the larger of the bytes before and
    /// after.
    pub overhead: f64,
    /// The number of copies and of bytes for each pair of nodes.
    pub pairs: Vec<PairTotalsDocument>,
    /// The partitions and bytes of each node before and after.
    pub nodes: Vec<NodeTotalsDocument>,
}

/// The progress of a rebalance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgressDocument {
    /// The number of finished batches.
    pub batches_done: usize,
    /// The number of batches in the plan.
    pub batches: usize,
    /// The number of finished copies.
    pub moves_done: usize,
    /// The number of copies in the plan.
    pub moves: usize,
    /// The bytes of the finished copies.
    pub bytes_done: u64,
    /// The bytes of all copies in the plan.
    pub bytes: u64,
    /// The number of given-up partitions that are still on a disk.
    pub reclaims_left: usize,
}
