//! The part of an execution that is stored, and the check that it is consistent.

use crate::rebalance::{Move, PlanStep, RebalancePlan, ResumeRefusal, StopReason};
use crate::{RoutingTable, TableParts};
use kith_types::{Epoch, NodeId, PartitionId, Timestamp};
use std::time::Duration;

/// The state of one copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferState {
    /// It has not begun, or must begin again.
    Pending,
    /// The stealer is copying.
    Running,
    /// The stealer has the data, verified, synced and opened.
    Copied,
    /// Copies from other donors have replaced it.
    Replaced,
}

/// One copy of the current batch. It is identified by its index in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The stores and partition to copy, from the current donor.
    pub copy: Move,
    /// The state of the copy.
    pub state: TransferState,
    /// The number of failures so far without a known culprit.
    pub failures: u32,
    /// The donors that were found unfit for it.
    pub avoid: Vec<NodeId>,
}

/// Files that no query will need any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reclaim {
    /// The node that has the files.
    pub node: NodeId,
    /// The partition.
    pub partition: PartitionId,
    /// Indexes in [`RebalancePlan::stores`], ascending.
    pub stores: Vec<u32>,
    /// The first epoch whose table does not name the node as an owner; 0 if no table ever did.
    pub gone_since: Epoch,
    /// The earliest time at which they may be freed.
    pub ready_at: Timestamp,
    /// Whether the node was asked to free them and has not confirmed.
    pub is_requested: bool,
}

/// The phase of the execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It copies the batch of the current step, if the step is a batch.
    Working,
    /// The current step's table is being written, and the outcome is not known yet.
    Committing,
    /// It waits for a user to continue or abort.
    Stopped(StopReason),
    /// The table of an abort is being written.
    Undoing,
    /// It is over. Files may still wait to be reclaimed.
    Ended(RebalanceEnding),
}

/// The ending of a rebalance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RebalanceEnding {
    /// The cluster has the requested shape.
    Finished,
    /// The cluster has the shape after the last finished batch.
    Aborted,
}

/// Everything about an execution that outlives a process. It is plain data, to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RebalanceParts {
    /// The plan.
    pub plan: RebalancePlan,
    /// The grace period of what was given up.
    pub grace: Duration,
    /// The number of [`RebalancePlan::steps`] that are finished.
    pub steps_done: usize,
    /// The first batch after the last change of the table.
    pub first_uncommitted: usize,
    /// The table in force as of the last step.
    pub table: TableParts,
    /// The phase.
    pub phase: Phase,
    /// Whether an abort was requested.
    pub abort_asked: bool,
    /// The copies of the current batch.
    pub transfers: Vec<Transfer>,
    /// The files to reclaim.
    pub reclaims: Vec<Reclaim>,
}

impl RebalanceParts {
    /// Checks the stored state, because it may be damaged or from another release.
    ///
    /// # Errors
    /// [`ResumeRefusal::Invalid`] with the first inconsistency.
    pub(crate) fn check(&self) -> Result<(), ResumeRefusal> {
        let contradiction = self
            .contradiction_of_plan()
            .or_else(|| self.contradiction_of_steps())
            .or_else(|| self.contradiction_of_names());
        contradiction.map_or(Ok(()), |reason| Err(ResumeRefusal::Invalid { reason }))
    }

    fn contradiction_of_plan(&self) -> Option<String> {
        self.plan.check().err().map(|reason| reason.to_string())
    }

    /// Checks that the steps lead to the stored table, and that the batch counts are consistent.
    fn contradiction_of_steps(&self) -> Option<String> {
        let steps = self.plan.steps();
        let Some(done) = steps.get(..self.steps_done) else {
            return Some(format!("{} steps are done of {}", self.steps_done, steps.len()));
        };
        if !matches!(self.phase, Phase::Ended(_)) && self.table_after(done).as_ref() != Some(&self.table) {
            return Some(format!("its table is not that of step {}", self.steps_done));
        }
        let batches_done = done.iter().filter(|step| matches!(step, PlanStep::Batch(_))).count();
        (batches_done < self.first_uncommitted)
            .then(|| format!("{} batches are in force of {batches_done}", self.first_uncommitted))
    }

    /// Returns the table after these steps, if they are valid.
    fn table_after(&self, steps: &[PlanStep]) -> Option<TableParts> {
        let mut table = self.plan.before.clone();
        steps.iter().try_for_each(|step| self.plan.apply(*step, &mut table).map(drop)).ok()?;
        RoutingTable::new(table).ok().map(|table| table.to_parts())
    }

    /// Checks that all named stores and partitions exist.
    fn contradiction_of_names(&self) -> Option<String> {
        let copied =
            self.transfers.iter().flat_map(|transfer| &transfer.copy.stores).map(|store| store.store);
        let freed = self.reclaims.iter().flat_map(|reclaim| reclaim.stores.iter().copied());
        let known = self.plan.stores.len();
        if let Some(store) = copied.chain(freed).find(|store| known <= *store as usize) {
            return Some(format!("it names store number {store} of {known}"));
        }
        let copied = self.transfers.iter().map(|transfer| transfer.copy.partition);
        let freed = self.reclaims.iter().map(|reclaim| reclaim.partition);
        let count = self.plan.before.partition_count.get();
        let partition = copied.chain(freed).find(|partition| count <= partition.0)?;
        Some(format!("it names partition {partition} of {count}"))
    }

    /// Returns the number of batches that are finished.
    pub(crate) fn batches_done(&self) -> usize {
        self.plan.steps()[..self.steps_done].iter().filter(|step| matches!(step, PlanStep::Batch(_))).count()
    }
}
