//! Where the execution of a plan stands: how it begins and goes on, and how far it is.

use crate::{
    BeginRefusal, Ending, Phase, PlanStep, RebalanceParts, RebalancePlan, ResumeRefusal, StopReason,
    TransferState,
};
use kith_routing::{RoutingTable, TableParts};
use kith_types::{Epoch, NodeId, Timestamp};
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::time::Duration;

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
        parts.check()?;
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
        let batches_done = self.batches_done();
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
