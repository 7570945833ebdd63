//! Where the execution of a plan stands: what is stored, and what it may start from.

use crate::{BeginRefusal, Move, PlanStep, RebalancePlan, ResumeRefusal, StopReason};
use kith_routing::{RoutingTable, TableParts};
use kith_types::{Epoch, NodeId, PartitionId, Timestamp};
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
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

/// What must hold to begin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// The store whose push, swap or rollback runs, if one does.
    pub push_running: Option<String>,
    /// What the rebalance before still has to reclaim ([`Progress::reclaims_left`]).
    pub reclaims_left: usize,
    /// Nodes that are down.
    pub dead: BTreeSet<NodeId>,
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

/// How far it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Batches finished.
    pub batches_done: usize,
    /// Batches of the plan.
    pub batches: usize,
    /// Copies finished, in all batches.
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

/// The execution of one plan, as a state machine. It decides; a shell acts:
///
/// 1. [`RebalanceState::begin`], or [`RebalanceState::resume`] after a restart;
/// 2. feed it what happened ([`RebalanceState::on`]), as it happens;
/// 3. call [`RebalanceState::next`], **store [`RebalanceState::parts`], then** do what it said.
///
/// Whatever is lost by a crash between these is found again: copies begun are begun
/// anew, and a commit whose outcome is unknown is known by the table in force.
///
/// # Invariants
/// At every moment each owner in a serving group of the table in force has what it owns;
/// so has each owner in any table that is still in use.
#[derive(Clone, Debug)]
pub struct RebalanceState {
    pub(crate) parts: RebalanceParts,
    pub(crate) steps: Vec<PlanStep>,
    pub(crate) dead: BTreeSet<NodeId>,
    /// No table before this epoch is used by anybody.
    pub(crate) oldest_in_use: Epoch,
    /// How it ended, until `next` has said so.
    pub(crate) untold: Option<Ending>,
}

impl RebalanceState {
    /// Begins a plan.
    ///
    /// # Errors
    /// While a push runs, or if another table is in force than the plan starts from.
    pub fn begin(
        plan: RebalancePlan,
        grace: Duration,
        in_force: &RoutingTable,
        conditions: &Conditions,
    ) -> Result<Self, BeginRefusal> {
        if let Some(store) = &conditions.push_running {
            return Err(BeginRefusal::PushRunning { store: store.clone() });
        }
        if let Some(left) = NonZeroUsize::new(conditions.reclaims_left) {
            return Err(BeginRefusal::NotSettled { left: left.get() });
        }
        if plan.before != in_force.to_parts() {
            let (planned, in_force) = (plan.before.epoch, in_force.epoch());
            return Err(BeginRefusal::TableChanged { planned, in_force });
        }
        plan.check().map_err(|reason| BeginRefusal::Invalid { reason: reason.to_string() })?;
        let parts = RebalanceParts {
            table: plan.before.clone(),
            plan,
            grace,
            steps_done: 0,
            first_uncommitted: 0,
            phase: Phase::Working,
            abort_asked: false,
            transfers: Vec::new(),
            reclaims: Vec::new(),
        };
        let mut state = Self::of(parts);
        state.dead.clone_from(&conditions.dead);
        state.enter_step();
        Ok(state)
    }

    /// Goes on after a restart. Grace begins anew, as the old clock is gone, and so does
    /// the knowledge of who is down and of which tables are in use.
    ///
    /// # Errors
    /// If the table in force is not one that this execution has written.
    pub fn resume(
        parts: RebalanceParts,
        in_force: &RoutingTable,
        now: Timestamp,
    ) -> Result<Self, ResumeRefusal> {
        let in_force = in_force.to_parts();
        check_stored(&parts)?;
        let mut state = Self::of(parts);
        let next = state.next_table();
        let parts = &mut state.parts;
        for transfer in &mut parts.transfers {
            if transfer.state == TransferState::Running {
                transfer.state = TransferState::Pending;
            }
        }
        for reclaim in &mut parts.reclaims {
            reclaim.told = false;
            let never_owned = reclaim.gone_since == Epoch(0);
            reclaim.ready_at = if never_owned { now } else { now + parts.grace };
        }
        match (&parts.phase, next) {
            _ if parts.table == in_force => state.commit_failed(),
            (Phase::Committing | Phase::Undoing, Some(next)) if next == in_force => state.committed(now),
            // An abort after another's change ends without touching the table.
            (Phase::Ended(_) | Phase::Stopped(StopReason::TableChanged { .. }), _) => {}
            _ => {
                let stored = parts.table.epoch;
                return Err(ResumeRefusal::TableChanged { stored, in_force: in_force.epoch });
            }
        }
        Ok(state)
    }

    fn of(parts: RebalanceParts) -> Self {
        let (steps, oldest_in_use) = (parts.plan.steps(), parts.plan.before.epoch);
        Self { parts, steps, dead: BTreeSet::new(), oldest_in_use, untold: None }
    }

    /// What is to be stored.
    pub fn parts(&self) -> &RebalanceParts {
        &self.parts
    }

    /// What it is doing.
    pub fn phase(&self) -> &Phase {
        &self.parts.phase
    }

    /// Whether nothing is left to do, reclaiming included.
    pub fn is_settled(&self) -> bool {
        matches!(self.parts.phase, Phase::Ended(_)) && self.parts.reclaims.is_empty()
    }

    /// The table in force, as far as this execution knows.
    pub fn table(&self) -> &TableParts {
        &self.parts.table
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        let plan = &self.parts.plan;
        let batches_done = self.steps[..self.parts.steps_done]
            .iter()
            .filter(|step| matches!(step, PlanStep::Batch(_)))
            .count();
        let mut progress = Progress {
            batches_done,
            batches: plan.batches.len(),
            moves: plan.moves().count(),
            bytes: plan.bytes(),
            reclaims_left: self.parts.reclaims.len(),
            ..Progress::default()
        };
        let finished = plan.batches[..batches_done].iter().flat_map(|batch| &batch.moves);
        let copied = self.parts.transfers.iter().filter(|transfer| transfer.state == TransferState::Copied);
        for done in finished.chain(copied.map(|transfer| &transfer.copy)) {
            progress.moves_done += 1;
            progress.bytes_done += done.bytes();
        }
        // A copy whose donor was replaced by two counts as two.
        progress.moves_done = progress.moves_done.min(progress.moves);
        progress
    }
}

fn check_stored(parts: &RebalanceParts) -> Result<(), ResumeRefusal> {
    let invalid = |reason: String| Err(ResumeRefusal::Invalid { reason });
    if let Err(reason) = parts.plan.check() {
        return invalid(reason.to_string());
    }
    let steps = parts.plan.steps();
    if steps.len() < parts.steps_done {
        return invalid(format!("{} steps are done of {}", parts.steps_done, steps.len()));
    }
    if !matches!(parts.phase, Phase::Ended(_)) {
        let mut table = parts.plan.before.clone();
        let applied = steps[..parts.steps_done]
            .iter()
            .try_for_each(|step| parts.plan.apply(*step, &mut table).map(drop));
        let table = applied.map_err(|error| error.to_string()).and_then(|()| {
            RoutingTable::new(table).map(|table| table.to_parts()).map_err(|error| error.to_string())
        });
        if table.as_ref() != Ok(&parts.table) {
            return invalid(format!("its table is not that of step {}", parts.steps_done));
        }
    }
    let batches_done =
        steps[..parts.steps_done].iter().filter(|step| matches!(step, PlanStep::Batch(_))).count();
    if batches_done < parts.first_uncommitted {
        return invalid(format!("{} batches are in force of {batches_done}", parts.first_uncommitted));
    }
    let transfers = parts.transfers.iter().map(|transfer| &transfer.copy);
    let stores = transfers.flat_map(|copy| copy.stores.iter().map(|store| store.store));
    let mut stores = stores.chain(parts.reclaims.iter().flat_map(|reclaim| reclaim.stores.iter().copied()));
    let known = parts.plan.stores.len();
    if let Some(store) = stores.find(|store| known <= *store as usize) {
        return invalid(format!("it names store number {store} of {known}"));
    }
    let count = parts.plan.before.partition_count.get();
    let partitions = parts.transfers.iter().map(|transfer| transfer.copy.partition);
    let mut partitions = partitions.chain(parts.reclaims.iter().map(|reclaim| reclaim.partition));
    match partitions.find(|partition| count <= partition.0) {
        Some(partition) => invalid(format!("it names partition {partition} of {count}")),
        None => Ok(()),
    }
}
