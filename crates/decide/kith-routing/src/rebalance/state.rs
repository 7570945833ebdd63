//! The state of an execution: how it begins and resumes, and its progress.

use crate::rebalance::{
    BeginRefusal, Phase, PlanStep, RebalanceEnding, RebalanceParts, RebalancePlan, ResumeRefusal, StopReason,
    TransferState,
};
use crate::{RoutingTable, TableParts};
use kith_types::{Epoch, NodeId, Timestamp};
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::time::Duration;

/// The conditions for beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// The store with a running push, swap or rollback, if any.
    pub push_running: Option<String>,
    /// The number of partitions that the previous rebalance still has to reclaim ([`Progress::reclaims_left`]).
    pub reclaims_left: usize,
    /// The nodes that are down.
    pub dead: BTreeSet<NodeId>,
}

/// The progress of a rebalance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The finished batches.
    pub batches_done: usize,
    /// All batches of the plan.
    pub batches: usize,
    /// The finished copies in all batches.
    pub moves_done: usize,
    /// All copies of the plan.
    pub moves: usize,
    /// The bytes of the finished copies.
    pub bytes_done: u64,
    /// All bytes of the plan.
    pub bytes: u64,
    /// The given-up partitions that are still on a disk.
    pub reclaims_left: usize,
}

/// The execution of one plan, as a state machine. It decides, and a shell acts:
///
/// 1. [`RebalanceState::begin`], or [`RebalanceState::resume`] after a restart;
/// 2. report events as they happen ([`RebalanceState::on`]);
/// 3. call [`RebalanceState::next`], **store [`RebalanceState::parts`], then** carry out the actions.
///
/// A crash between these steps loses nothing. Copies that had begun are begun again, and the table in force shows the
/// outcome of a commit.
///
/// # Invariants
/// At every moment, each owner in a serving group of the table in force has what it owns. The same is true for each owner in
/// any table that is still in use.
#[derive(Clone, Debug)]
pub struct RebalanceState {
    pub(crate) parts: RebalanceParts,
    pub(crate) steps: Vec<PlanStep>,
    pub(crate) nodes: Nodes,
    /// The ending, until `next` has returned it.
    pub(crate) new_ending: Option<RebalanceEnding>,
}

/// The facts about the nodes of the cluster, as far as they are known.
#[derive(Clone, Debug)]
pub(crate) struct Nodes {
    pub(crate) dead: BTreeSet<NodeId>,
    /// No process uses a table before this epoch.
    pub(crate) oldest_in_use: Epoch,
}

impl RebalanceState {
    /// Begins a plan.
    ///
    /// # Errors
    /// If a push is running, or the table in force is not the one that the plan starts from.
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
        state.nodes.dead.clone_from(&conditions.dead);
        state.enter_step();
        Ok(state)
    }

    /// Resumes after a restart. Grace periods start again, because the old clock is gone. Which nodes are down and which
    /// tables are in use must be learnt again too.
    ///
    /// # Errors
    /// If this execution has not written the table in force.
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
            reclaim.is_requested = false;
            let never_owned = reclaim.gone_since == Epoch(0);
            reclaim.ready_at = if never_owned { now } else { now + parts.grace };
        }
        match (&parts.phase, next) {
            _ if parts.table == in_force => state.commit_failed(),
            (Phase::Committing | Phase::Undoing, Some(next)) if next == in_force => state.committed(now),
            // An abort after a change by another process ends without changing the table.
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
        let nodes = Nodes { dead: BTreeSet::new(), oldest_in_use };
        Self { parts, steps, nodes, new_ending: None }
    }

    /// Returns what must be stored.
    pub fn parts(&self) -> &RebalanceParts {
        &self.parts
    }

    /// Returns the current phase.
    pub fn phase(&self) -> &Phase {
        &self.parts.phase
    }

    /// Whether nothing is left to do, including reclaiming.
    pub fn is_settled(&self) -> bool {
        matches!(self.parts.phase, Phase::Ended(_)) && self.parts.reclaims.is_empty()
    }

    /// Returns the table in force, as far as this execution knows.
    pub fn table(&self) -> &TableParts {
        &self.parts.table
    }

    /// Returns the progress.
    pub fn progress(&self) -> Progress {
        let plan = &self.parts.plan;
        let batches_done = self.parts.batches_done();
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
        // A copy whose donor was replaced by two donors counts as two.
        progress.moves_done = progress.moves_done.min(progress.moves);
        progress
    }
}
