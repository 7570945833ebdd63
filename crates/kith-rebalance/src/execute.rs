//! What happens to the execution of a plan, and what is to be done next.

use crate::donors::{Donors, Need};
use crate::holdings::Holdings;
use crate::{Ending, Phase, PlanStep, RebalanceState, StopReason, Transfer, TransferState};
use kith_routing::{RoutingTable, TableParts};
use kith_types::{Epoch, NodeId, PartitionId, Timestamp};
use std::collections::BTreeMap;

/// Failures of one copy, by nobody's known fault, before another donor takes over; before a person is asked, if there is none.
const FAILURES_MAX: u32 = 5;

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

    /// Begins what can begin; whether the whole batch is there.
    fn batch_is_copied(&mut self, actions: &mut Vec<RebalanceAction>) -> bool {
        if let Err(reason) = self.check_nodes() {
            actions.push(self.stop(reason));
            return false;
        }
        // One stealer per donor at a time: a donor serves reads meanwhile.
        let mut busy: BTreeMap<NodeId, NodeId> = BTreeMap::new();
        for transfer in
            self.parts.transfers.iter().filter(|transfer| transfer.state == TransferState::Running)
        {
            busy.insert(transfer.copy.donor, transfer.copy.stealer);
        }
        let mut left = false;
        for index in 0..self.parts.transfers.len() {
            let Transfer { copy, state, .. } = &self.parts.transfers[index];
            left |= matches!(state, TransferState::Pending | TransferState::Running);
            let free = busy.get(&copy.donor).is_none_or(|stealer| *stealer == copy.stealer);
            if *state == TransferState::Pending && free && !self.is_being_freed(copy.stealer, copy.partition)
            {
                busy.insert(copy.donor, copy.stealer);
                self.parts.transfers[index].state = TransferState::Running;
                actions.push(RebalanceAction::Copy(index));
            }
        }
        !left
    }

    /// Every stealer of the batch is up, and so is every donor that has still to give;
    /// others take the place of donors that are not.
    fn check_nodes(&mut self) -> Result<(), StopReason> {
        let open = |transfer: &&Transfer| transfer.state != TransferState::Replaced;
        let mut stealers = self.parts.transfers.iter().filter(open).map(|transfer| transfer.copy.stealer);
        if let Some(node) = stealers.find(|node| self.dead.contains(node)) {
            return Err(StopReason::StealerDown { node });
        }
        for index in 0..self.parts.transfers.len() {
            let Transfer { copy, state, avoid, .. } = &self.parts.transfers[index];
            let unfit = self.dead.contains(&copy.donor) || avoid.contains(&copy.donor);
            if *state == TransferState::Pending && unfit {
                self.replace_donor(index)?;
            }
        }
        Ok(())
    }

    fn replace_donor(&mut self, index: usize) -> Result<(), StopReason> {
        let Transfer { copy, avoid, failures, .. } = self.parts.transfers[index].clone();
        let need = Need {
            partition: copy.partition,
            group: copy.group,
            stealer: copy.stealer,
            is_secondary: copy.is_secondary,
            loser: None,
            stores: copy.stores,
        };
        let held = Holdings::of(&self.parts.table, &self.parts.plan.stores);
        let mut donors = Donors::new(&self.parts.table.nodes, &self.parts.plan.stores, &self.dead);
        let open =
            |transfer: &&Transfer| matches!(transfer.state, TransferState::Pending | TransferState::Running);
        self.parts.transfers.iter().filter(open).for_each(|transfer| donors.note(&transfer.copy));
        let moves = donors
            .moves(&need, &held, &avoid)
            .map_err(|_| StopReason::NoDonor { partition: need.partition, stealer: need.stealer })?;
        self.parts.transfers[index].state = TransferState::Replaced;
        let fresh = |copy| Transfer { copy, state: TransferState::Pending, failures, avoid: avoid.clone() };
        self.parts.transfers.extend(moves.into_iter().map(fresh));
        Ok(())
    }

    fn stop(&mut self, reason: StopReason) -> RebalanceAction {
        self.parts.phase = Phase::Stopped(reason.clone());
        RebalanceAction::Stopped(reason)
    }

    pub(crate) fn end(&mut self, ending: Ending, actions: &mut Vec<RebalanceAction>) {
        self.parts.phase = Phase::Ended(ending);
        actions.push(RebalanceAction::Ended(ending));
    }

    fn copied(&mut self, index: usize) {
        if let Some(transfer) = self.parts.transfers.get_mut(index)
            && transfer.state == TransferState::Running
        {
            transfer.state = TransferState::Copied;
        }
    }

    fn copy_failed(&mut self, index: usize, fault: CopyFault) -> Vec<RebalanceAction> {
        let Some(transfer) = self.parts.transfers.get_mut(index) else { return Vec::new() };
        if transfer.state != TransferState::Running {
            return Vec::new();
        }
        transfer.state = TransferState::Pending;
        let (donor, stealer, partition) =
            (transfer.copy.donor, transfer.copy.stealer, transfer.copy.partition);
        let reason = match fault {
            CopyFault::Donor => {
                transfer.avoid.push(donor);
                return Vec::new();
            }
            CopyFault::Stealer => StopReason::StealerFailed { node: stealer, partition },
            CopyFault::Transient => {
                transfer.failures += 1;
                if transfer.failures < FAILURES_MAX {
                    return Vec::new();
                }
                transfer.failures = 0;
                transfer.avoid.push(donor);
                // Whoever is at fault: another replica may do better, as when a donor has died and nobody knows yet.
                if self.replace_donor(index).is_ok() {
                    return Vec::new();
                }
                self.parts.transfers[index].avoid.pop();
                StopReason::CopyFailed { partition, donor, stealer }
            }
        };
        // Stopped for another reason already: one at a time is enough to act on.
        if self.parts.phase == Phase::Working { vec![self.stop(reason)] } else { Vec::new() }
    }

    fn node_down(&mut self, node: NodeId) -> Vec<RebalanceAction> {
        self.dead.insert(node);
        let mut actions = Vec::new();
        for (index, transfer) in self.parts.transfers.iter_mut().enumerate() {
            let concerned = transfer.copy.donor == node || transfer.copy.stealer == node;
            if concerned && transfer.state == TransferState::Running {
                transfer.state = TransferState::Pending;
                actions.push(RebalanceAction::Cancel(index));
            }
        }
        // What a node was told to free before it went down, it is told again.
        let theirs = self.parts.reclaims.iter_mut().filter(|reclaim| reclaim.node == node);
        theirs.for_each(|reclaim| reclaim.told = false);
        actions
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

    /// The table that the commit under way, or the next one, puts in force.
    pub(crate) fn next_table(&self) -> Option<TableParts> {
        match self.parts.phase {
            Phase::Undoing => return self.undone_table(),
            Phase::Ended(_) => return None,
            Phase::Working | Phase::Committing | Phase::Stopped(_) => {}
        }
        let step = self.steps.get(self.parts.steps_done)?;
        let mut table = self.parts.table.clone();
        let changed = self.parts.plan.apply(*step, &mut table);
        // Invariant: a plan is checked from end to end when it is begun or resumed.
        changed.expect("a checked plan applies").then(|| settled(table))
    }

    /// The table in force is now the one that was to be written.
    pub(crate) fn committed(&mut self, now: Timestamp) {
        if !matches!(self.parts.phase, Phase::Committing | Phase::Undoing) {
            return;
        }
        let undoing = self.parts.phase == Phase::Undoing;
        if let Some(table) = self.next_table() {
            self.take_over(table, now);
        }
        if undoing {
            self.parts.phase = Phase::Ended(Ending::Aborted);
            self.untold = Some(Ending::Aborted);
            return;
        }
        self.parts.phase = Phase::Working;
        self.advance();
        self.parts.first_uncommitted = self.batches_done();
    }

    /// The table in force is still the one before: what was to be written is found anew.
    pub(crate) fn commit_failed(&mut self) {
        if matches!(self.parts.phase, Phase::Committing | Phase::Undoing) {
            self.parts.phase = Phase::Working;
        }
    }

    fn refused(&mut self, in_force: &TableParts, now: Timestamp) -> Vec<RebalanceAction> {
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

    /// The step is finished.
    fn advance(&mut self) {
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

    pub(crate) fn batches_done(&self) -> usize {
        self.steps[..self.parts.steps_done].iter().filter(|step| matches!(step, PlanStep::Batch(_))).count()
    }

    /// Noted, and done by `next` as soon as no commit is under way: only its outcome
    /// says what there is to undo.
    fn abort(&mut self) {
        if !matches!(self.parts.phase, Phase::Ended(_)) {
            self.parts.abort_asked = true;
        }
    }
}

/// As a table hands it out, so that parts can be compared.
pub(crate) fn settled(parts: TableParts) -> TableParts {
    RoutingTable::new(parts).expect("a checked plan makes valid tables").to_parts()
}
