//! Documents of rebalances: how far they are, and what a person is told.

use super::{ClusterDocument, Document, MoveDocument, NodeTotalsDocument, PairTotalsDocument, PlanDocument};
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
