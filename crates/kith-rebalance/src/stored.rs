//! What of an execution is stored, and whether what was stored makes sense.

use crate::{Move, PlanStep, RebalancePlan, ResumeRefusal, StopReason};
use kith_routing::{RoutingTable, TableParts};
use kith_types::{Epoch, NodeId, PartitionId, Timestamp};
use std::time::Duration;

/// How far one copy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferState {
    /// Not begun, or to be begun again.
    Pending,
    /// The stealer copies.
    Running,
    /// The stealer has it: verified, synced and opened.
    Copied,
    /// Others took its place, from other donors.
    Replaced,
}

/// One copy of the current batch. Its place in the list is its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// What is copied, from whom as things stand.
    pub copy: Move,
    /// How far it is.
    pub state: TransferState,
    /// Failures so far that were nobody's fault.
    pub failures: u32,
    /// Donors that were found unfit for it.
    pub avoid: Vec<NodeId>,
}

/// Files that nobody will ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reclaim {
    /// Who has them.
    pub node: NodeId,
    /// The partition.
    pub partition: PartitionId,
    /// Places in [`RebalancePlan::stores`], ascending.
    pub stores: Vec<u32>,
    /// The first epoch whose table does not say that the node has them; 0 if none ever said so.
    pub gone_since: Epoch,
    /// Not before.
    pub ready_at: Timestamp,
    /// The node was told to, and has not confirmed.
    pub told: bool,
}

/// What the execution is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Copying the batch of the current step, if it is one.
    Working,
    /// The current step's table is being written; whether it was is not known yet.
    Committing,
    /// Waiting for a person: to go on, or to abort.
    Stopped(StopReason),
    /// The table of an abort is being written.
    Undoing,
    /// Over. Files may still be waiting to be reclaimed.
    Ended(Ending),
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The cluster has the shape that was asked for.
    Finished,
    /// It has the shape after the last batch that was finished.
    Aborted,
}

/// Everything about an execution that outlives a process. Plain data, to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RebalanceParts {
    /// The plan.
    pub plan: RebalancePlan,
    /// How long what was given up is kept.
    pub grace: Duration,
    /// Steps finished, of [`RebalancePlan::steps`].
    pub steps_done: usize,
    /// The first batch since the last change of the table.
    pub first_uncommitted: usize,
    /// The table in force as of the last step.
    pub table: TableParts,
    /// What it is doing.
    pub phase: Phase,
    /// An abort was asked for.
    pub abort_asked: bool,
    /// Copies of the current batch.
    pub transfers: Vec<Transfer>,
    /// What is to be reclaimed.
    pub reclaims: Vec<Reclaim>,
}

impl RebalanceParts {
    /// Checks what was stored, as it may be damaged or another's.
    ///
    /// # Errors
    /// [`ResumeRefusal::Invalid`]: the first contradiction.
    pub(crate) fn check(&self) -> Result<(), ResumeRefusal> {
        let contradiction = self
            .contradiction_of_plan()
            .or_else(|| self.contradiction_of_steps())
            .or_else(|| self.contradiction_of_places());
        contradiction.map_or(Ok(()), |reason| Err(ResumeRefusal::Invalid { reason }))
    }

    fn contradiction_of_plan(&self) -> Option<String> {
        self.plan.check().err().map(|reason| reason.to_string())
    }

    /// Whether the steps lead to the table, and to what is in force.
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

    /// The table after these steps, if they fit.
    fn table_after(&self, steps: &[PlanStep]) -> Option<TableParts> {
        let mut table = self.plan.before.clone();
        steps.iter().try_for_each(|step| self.plan.apply(*step, &mut table).map(drop)).ok()?;
        RoutingTable::new(table).ok().map(|table| table.to_parts())
    }

    /// Whether stores and partitions are ones that there are.
    fn contradiction_of_places(&self) -> Option<String> {
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
}
