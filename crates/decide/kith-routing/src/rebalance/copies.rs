//! The copies of a batch: which of them may begin, and how failures and the deaths of nodes affect them.

use crate::rebalance::donors::{Donors, Need};
use crate::rebalance::holdings::Holdings;
use crate::rebalance::state::Nodes;
use crate::rebalance::{CopyFault, RebalanceAction, RebalanceParts, StopReason, Transfer, TransferState};
use kith_types::NodeId;
use std::collections::BTreeMap;

/// After this many failures without a known culprit, a copy is taken over by another donor or, if there is none, the
/// rebalance stops.
const FAILURES_MAX: u32 = 5;

/// The copies of the current batch, with the nodes that take part in them.
pub(crate) struct Copies<'a> {
    pub(crate) parts: &'a mut RebalanceParts,
    pub(crate) nodes: &'a Nodes,
}

impl Copies<'_> {
    /// Begins the copies that can begin. Returns whether the whole batch has been copied, or why the rebalance stops.
    pub(crate) fn begin(&mut self, actions: &mut Vec<RebalanceAction>) -> Result<bool, StopReason> {
        self.check_nodes()?;
        // A donor has one stealer at a time, because it serves reads meanwhile.
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
            if *state == TransferState::Pending
                && free
                && !self.parts.is_being_freed(copy.stealer, copy.partition)
            {
                busy.insert(copy.donor, copy.stealer);
                self.parts.transfers[index].state = TransferState::Running;
                actions.push(RebalanceAction::Copy(index));
            }
        }
        Ok(!left)
    }

    /// Checks that every stealer of the batch is up, and every donor of a pending copy too. Replaces donors that are not.
    fn check_nodes(&mut self) -> Result<(), StopReason> {
        let open = |transfer: &&Transfer| transfer.state != TransferState::Replaced;
        let mut stealers = self.parts.transfers.iter().filter(open).map(|transfer| transfer.copy.stealer);
        if let Some(node) = stealers.find(|node| self.nodes.dead.contains(node)) {
            return Err(StopReason::StealerDown { node });
        }
        for index in 0..self.parts.transfers.len() {
            let Transfer { copy, state, avoid, .. } = &self.parts.transfers[index];
            let unfit = self.nodes.dead.contains(&copy.donor) || avoid.contains(&copy.donor);
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
        let mut donors = Donors::new(&self.parts.table.nodes, &self.parts.plan.stores, &self.nodes.dead);
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

    /// Records that a copy is finished.
    pub(crate) fn finish(&mut self, index: usize) {
        if let Some(transfer) = self.parts.transfers.get_mut(index)
            && transfer.state == TransferState::Running
        {
            transfer.state = TransferState::Copied;
        }
    }

    /// Records that a copy has failed. Returns the reason to stop, if there is one.
    pub(crate) fn fail(&mut self, index: usize, fault: CopyFault) -> Option<StopReason> {
        let transfer = self.parts.transfers.get_mut(index)?;
        if transfer.state != TransferState::Running {
            return None;
        }
        transfer.state = TransferState::Pending;
        let (donor, stealer, partition) =
            (transfer.copy.donor, transfer.copy.stealer, transfer.copy.partition);
        let reason = match fault {
            CopyFault::Donor => {
                transfer.avoid.push(donor);
                return None;
            }
            CopyFault::Stealer => StopReason::StealerFailed { node: stealer, partition },
            CopyFault::Transient => {
                transfer.failures += 1;
                if transfer.failures < FAILURES_MAX {
                    return None;
                }
                transfer.failures = 0;
                transfer.avoid.push(donor);
                // Another replica may succeed, whatever the reason: a donor may have died without being noticed.
                if self.replace_donor(index).is_ok() {
                    return None;
                }
                self.parts.transfers[index].avoid.pop();
                StopReason::CopyFailed { partition, donor, stealer }
            }
        };
        Some(reason)
    }

    /// Records that a node is down. Returns the copies to cancel.
    pub(crate) fn lose(&mut self, node: NodeId) -> Vec<RebalanceAction> {
        let mut actions = Vec::new();
        for (index, transfer) in self.parts.transfers.iter_mut().enumerate() {
            let concerned = transfer.copy.donor == node || transfer.copy.stealer == node;
            if concerned && transfer.state == TransferState::Running {
                transfer.state = TransferState::Pending;
                actions.push(RebalanceAction::Cancel(index));
            }
        }
        // A node that was down is asked again to free the partitions that it was asked to free before.
        let theirs = self.parts.reclaims.iter_mut().filter(|reclaim| reclaim.node == node);
        theirs.for_each(|reclaim| reclaim.is_requested = false);
        actions
    }
}
