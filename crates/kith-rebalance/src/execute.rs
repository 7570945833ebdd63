//! What happens to the execution of a plan, and what is to be done next.

use crate::{Ending, Phase, PlanStep, RebalanceState, StopReason};
use kith_routing::{RoutingTable, TableParts};
use kith_types::{Epoch, NodeId, PartitionId, Timestamp};

/// Whose fault a failed copy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyFault {
    /// The connection broke, or time ran out: worth another try.
    Transient,
    /// The donor lacks it, or what it gives is damaged: another replica is asked.
    Donor,
    /// The stealer cannot take it, as when its disk is full.
    Stealer,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RebalanceEvent {
    /// A stealer has a copy: verified, synced, opened. The number is [`RebalanceAction::Copy`]'s.
    Copied(usize),
    /// A copy failed.
    CopyFailed(usize, CopyFault),
    /// A node is down. What it was copying is lost, what it had copied is not.
    NodeDown(NodeId),
    /// A node is up again.
    NodeUp(NodeId),
    /// The table that [`RebalanceAction::Commit`] named is in force.
    Committed,
    /// It is not; this one is.
    CommitRefused(Box<RoutingTable>),
    /// Every process that routes has a table of at least this epoch.
    InUse(Epoch),
    /// A node has freed what [`RebalanceAction::Reclaim`] named, stores included.
    Reclaimed(NodeId, PartitionId, Vec<u32>),
    /// A node will never confirm: it was wiped, or left for good.
    Emptied(NodeId),
    /// A person says that the reason to stop is gone.
    Continue,
    /// A person wants it undone as far as it is not done.
    Abort,
}

/// What to do. Each is said once; after a restart what is not known to be done is said again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RebalanceAction {
    /// Have the stealer copy all kept versions of the stores from the donor. Idempotent.
    Copy(usize),
    /// Stop copying; what is there may stay, as it is proven before it is used.
    Cancel(usize),
    /// Put this table in force, on condition that the one before it is and that no other
    /// driver has taken over. If it is not known whether that worked, begin anew from what is stored.
    Commit(Box<TableParts>),
    /// Have the node free a partition of these stores; no table in use says that it has them.
    Reclaim(NodeId, PartitionId, Vec<u32>),
    /// Tell a person.
    Stopped(StopReason),
    /// It is over.
    Ended(Ending),
}

impl RebalanceState {
    /// Takes in what happened. What does not fit the state (a late answer) is passed over.
    /// Returns what must be stopped at once; call [`RebalanceState::next`] for the rest.
    pub fn on(&mut self, event: RebalanceEvent, now: Timestamp) -> Vec<RebalanceAction> {
        match event {
            RebalanceEvent::Copied(index) => self.copied(index),
            RebalanceEvent::CopyFailed(index, fault) => return self.copy_failed(index, fault),
            RebalanceEvent::NodeDown(node) => return self.node_down(node),
            RebalanceEvent::NodeUp(node) => drop(self.dead.remove(&node)),
            RebalanceEvent::Committed => self.committed(now),
            RebalanceEvent::CommitRefused(in_force) => return self.refused(&in_force.to_parts(), now),
            RebalanceEvent::InUse(epoch) => self.oldest_in_use = self.oldest_in_use.max(epoch),
            RebalanceEvent::Reclaimed(node, partition, stores) => self.freed((node, partition), &stores),
            RebalanceEvent::Emptied(node) => self.parts.reclaims.retain(|reclaim| reclaim.node != node),
            RebalanceEvent::Continue => self.go_on(),
            RebalanceEvent::Abort => self.abort(),
        }
        Vec::new()
    }

    /// What to do now, beyond what was said before. At most one commit is under way.
    pub fn next(&mut self, now: Timestamp) -> Vec<RebalanceAction> {
        let mut actions = Vec::new();
        // An abort that came too late finds nothing left to undo.
        let unfinished = self.parts.steps_done < self.steps.len();
        let may_undo = matches!(self.parts.phase, Phase::Working | Phase::Stopped(_));
        if self.parts.abort_asked && unfinished && may_undo {
            self.undo(now, &mut actions);
        }
        actions.extend(self.untold.take().map(RebalanceAction::Ended));
        while self.parts.phase == Phase::Working {
            let Some(step) = self.steps.get(self.parts.steps_done).copied() else {
                self.end(Ending::Finished, &mut actions);
                break;
            };
            if matches!(step, PlanStep::Batch(_)) && !self.batch_is_copied(&mut actions) {
                break;
            }
            match self.next_table() {
                Some(table) => {
                    self.parts.phase = Phase::Committing;
                    actions.push(RebalanceAction::Commit(Box::new(table)));
                }
                None => self.advance(),
            }
        }
        self.reclaim(now, &mut actions);
        actions
    }

    pub(crate) fn stop(&mut self, reason: StopReason) -> RebalanceAction {
        self.parts.phase = Phase::Stopped(reason.clone());
        RebalanceAction::Stopped(reason)
    }

    pub(crate) fn end(&mut self, ending: Ending, actions: &mut Vec<RebalanceAction>) {
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

    /// Noted, and done by `next` as soon as no commit is under way: only its outcome
    /// says what there is to undo.
    fn abort(&mut self) {
        if !matches!(self.parts.phase, Phase::Ended(_)) {
            self.parts.abort_asked = true;
        }
    }
}
