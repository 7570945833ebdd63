//! The tables that an execution puts in force one after the other, and the steps that end with them.

use crate::rebalance::{
    Phase, PlanStep, RebalanceAction, RebalanceEnding, RebalanceState, StopReason, Transfer, TransferState,
};
use crate::{RoutingTable, TableParts};
use kith_types::Timestamp;

impl RebalanceState {
    /// Returns the table that the running or the next commit puts in force.
    pub(crate) fn next_table(&self) -> Option<TableParts> {
        match self.parts.phase {
            Phase::Undoing => return self.parts.undone_table(),
            Phase::Ended(_) => return None,
            Phase::Working | Phase::Committing | Phase::Stopped(_) => {}
        }
        let step = self.steps.get(self.parts.steps_done)?;
        let mut table = self.parts.table.clone();
        let changed = self.parts.plan.apply(*step, &mut table);
        // Invariant: a plan is checked completely when it is begun or resumed.
        changed.expect("a checked plan applies").then(|| settled(table))
    }

    /// Records that the table to be written is now in force.
    pub(crate) fn committed(&mut self, now: Timestamp) {
        if !matches!(self.parts.phase, Phase::Committing | Phase::Undoing) {
            return;
        }
        let undoing = self.parts.phase == Phase::Undoing;
        if let Some(table) = self.next_table() {
            self.parts.take_over(table, now);
        }
        if undoing {
            self.parts.phase = Phase::Ended(RebalanceEnding::Aborted);
            self.new_ending = Some(RebalanceEnding::Aborted);
            return;
        }
        self.parts.phase = Phase::Working;
        self.advance();
        self.parts.first_uncommitted = self.parts.batches_done();
    }

    /// Records that the old table is still in force. What to write is decided again.
    pub(crate) fn commit_failed(&mut self) {
        if matches!(self.parts.phase, Phase::Committing | Phase::Undoing) {
            self.parts.phase = Phase::Working;
        }
    }

    pub(crate) fn refused(&mut self, in_force: &TableParts, now: Timestamp) -> Vec<RebalanceAction> {
        if !matches!(self.parts.phase, Phase::Committing | Phase::Undoing) {
            return Vec::new();
        }
        if self.next_table().as_ref() == Some(in_force) {
            self.committed(now);
        } else if self.parts.table == *in_force {
            self.commit_failed();
        } else {
            return vec![self.stop(StopReason::TableChanged { in_force: in_force.epoch })];
        }
        Vec::new()
    }

    /// Records that the step is finished.
    pub(crate) fn advance(&mut self) {
        self.parts.steps_done += 1;
        self.enter_step();
    }

    pub(crate) fn enter_step(&mut self) {
        let step = self.steps.get(self.parts.steps_done);
        let moves = match step {
            Some(PlanStep::Batch(index)) => self.parts.plan.batches[*index].moves.clone(),
            _ => Vec::new(),
        };
        let fresh = |copy| Transfer { copy, state: TransferState::Pending, failures: 0, avoid: Vec::new() };
        self.parts.transfers = moves.into_iter().map(fresh).collect();
    }
}

/// Returns the parts in the form that a table returns them, so that they can be compared.
pub(crate) fn settled(parts: TableParts) -> TableParts {
    RoutingTable::new(parts).expect("a checked plan makes valid tables").to_parts()
}
