//! What an execution does: what each event changes, and which actions are due.

use crate::rebalance::copies::Copies;
use crate::rebalance::{
    CopyFault, Phase, PlanStep, RebalanceAction, RebalanceEnding, RebalanceEvent, RebalanceState, StopReason,
    TransferState,
};
use kith_types::Timestamp;

impl RebalanceState {
    /// Takes in an event. Events that do not fit the state, such as late answers, are ignored. Returns the actions that must
    /// be carried out at once, such as cancelling copies; [`RebalanceState::next`] returns the others.
    pub fn on(&mut self, event: RebalanceEvent, now: Timestamp) -> Vec<RebalanceAction> {
        match event {
            RebalanceEvent::Copied(index) => self.copies().finish(index),
            RebalanceEvent::CopyFailed(index, fault) => return self.copy_failed(index, fault),
            RebalanceEvent::NodeDown(node) => {
                self.nodes.dead.insert(node);
                return self.copies().lose(node);
            }
            RebalanceEvent::NodeUp(node) => drop(self.nodes.dead.remove(&node)),
            RebalanceEvent::Committed => self.committed(now),
            RebalanceEvent::CommitRefused(in_force) => return self.refused(&in_force.to_parts(), now),
            RebalanceEvent::InUse(epoch) => self.nodes.oldest_in_use = self.nodes.oldest_in_use.max(epoch),
            RebalanceEvent::Reclaimed(node, partition, stores) => {
                self.parts.freed((node, partition), &stores)
            }
            RebalanceEvent::Emptied(node) => self.parts.reclaims.retain(|reclaim| reclaim.node != node),
            RebalanceEvent::Continue => self.go_on(),
            RebalanceEvent::Abort => self.abort(),
        }
        Vec::new()
    }

    /// Returns what to do now, in addition to earlier actions. At most one commit is in progress at a time.
    pub fn next(&mut self, now: Timestamp) -> Vec<RebalanceAction> {
        let mut actions = Vec::new();
        // If an abort comes too late, there is nothing left to undo.
        let unfinished = self.parts.steps_done < self.steps.len();
        let may_undo = matches!(self.parts.phase, Phase::Working | Phase::Stopped(_));
        if self.parts.abort_asked && unfinished && may_undo {
            self.undo(now, &mut actions);
        }
        actions.extend(self.new_ending.take().map(RebalanceAction::Ended));
        while self.parts.phase == Phase::Working {
            let Some(step) = self.steps.get(self.parts.steps_done).copied() else {
                self.end(RebalanceEnding::Finished, &mut actions);
                break;
            };
            if matches!(step, PlanStep::Batch(_)) {
                match self.copies().begin(&mut actions) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(reason) => {
                        actions.push(self.stop(reason));
                        break;
                    }
                }
            }
            match self.next_table() {
                Some(table) => {
                    self.parts.phase = Phase::Committing;
                    actions.push(RebalanceAction::Commit(Box::new(table)));
                }
                None => self.advance(),
            }
        }
        self.parts.reclaim(now, &self.nodes, &mut actions);
        actions
    }

    fn copies(&mut self) -> Copies<'_> {
        Copies { parts: &mut self.parts, nodes: &self.nodes }
    }

    fn copy_failed(&mut self, index: usize, fault: CopyFault) -> Vec<RebalanceAction> {
        let Some(reason) = self.copies().fail(index, fault) else { return Vec::new() };
        // If the rebalance is stopped for another reason already, keep that one: a user can act on one reason at a time.
        if self.parts.phase == Phase::Working { vec![self.stop(reason)] } else { Vec::new() }
    }

    fn undo(&mut self, now: Timestamp, actions: &mut Vec<RebalanceAction>) {
        let running = self
            .parts
            .transfers
            .iter()
            .enumerate()
            .filter(|(_, transfer)| transfer.state == TransferState::Running);
        actions.extend(running.map(|(index, _)| RebalanceAction::Cancel(index)));
        if matches!(self.parts.phase, Phase::Stopped(StopReason::TableChanged { .. })) {
            // It is unknown here what the other table says about these files. Nodes free by themselves what no table assigns
            // to them.
            self.parts.transfers.clear();
            self.parts.reclaims.clear();
            return self.end(RebalanceEnding::Aborted, actions);
        }
        self.parts.discard_copies(now);
        match self.parts.undone_table() {
            Some(table) => {
                self.parts.phase = Phase::Undoing;
                actions.push(RebalanceAction::Commit(Box::new(table)));
            }
            None => self.end(RebalanceEnding::Aborted, actions),
        }
    }

    pub(crate) fn stop(&mut self, reason: StopReason) -> RebalanceAction {
        self.parts.phase = Phase::Stopped(reason.clone());
        RebalanceAction::Stopped(reason)
    }

    pub(crate) fn end(&mut self, ending: RebalanceEnding, actions: &mut Vec<RebalanceAction>) {
        self.parts.phase = Phase::Ended(ending);
        actions.push(RebalanceAction::Ended(ending));
    }

    fn go_on(&mut self) {
        let Phase::Stopped(reason) = &self.parts.phase else { return };
        if matches!(reason, StopReason::TableChanged { .. }) {
            return;
        }
        self.parts.phase = Phase::Working;
        for transfer in &mut self.parts.transfers {
            transfer.failures = 0;
            transfer.avoid.clear();
        }
    }

    /// Records the request. `next` carries it out as soon as no commit is in progress, because what has to be undone depends
    /// on the outcome of the commit.
    fn abort(&mut self) {
        if !matches!(self.parts.phase, Phase::Ended(_)) {
            self.parts.abort_asked = true;
        }
    }
}
