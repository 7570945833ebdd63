//! Retries after errors: which keys are asked again, and of which nodes.

use super::requests::Requests;
use crate::Candidates;
use crate::execution::failure::Retry;
use crate::execution::{Action, Budget, Cause, Disposition, FailureClass, MissingReason, RequestId};
use crate::load::RequestEnd;
use kith_types::{Epoch, NodeId};
use std::collections::BTreeMap;

/// A key that no node is being asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnassignedKey {
    key: u32,
    /// The reason to report if no node can be asked.
    reason: MissingReason,
    /// Whether the budget has been charged for asking again.
    is_paid: bool,
}

impl UnassignedKey {
    pub(super) fn new(key: u32, reason: MissingReason) -> Self {
        // A node that throttles has done no work, and clients that read too much must not use up the budget of others.
        let is_paid = reason == MissingReason::Failed(FailureClass::Throttled);
        Self { key, reason, is_paid }
    }
}

/// The retries of one query.
#[derive(Clone, Debug)]
pub(super) struct Retries {
    /// Keys without a request, with the reason, until the next call of `resend`.
    unassigned: Vec<UnassignedKey>,
    /// The number of requests that were retries.
    pub count: u32,
    refresh_asked: Epoch,
}

impl Retries {
    pub fn new(unassigned: Vec<UnassignedKey>) -> Self {
        Self { unassigned, count: 0, refresh_asked: Epoch(0) }
    }

    pub fn fail(&mut self, requests: &mut Requests, request: RequestId, class: FailureClass) -> Disposition {
        let Some((node, keys)) = requests.close(request) else { return Disposition::Ignored };
        self.lose(requests, request, node, &keys, class);
        Disposition::Accepted
    }

    /// Fails the keys of a request that will not be answered.
    pub fn lose(
        &mut self,
        requests: &mut Requests,
        request: RequestId,
        node: NodeId,
        keys: &[u32],
        class: FailureClass,
    ) {
        requests.release_hedges(request);
        let is_hedge = requests.is_hedge(request);
        keys.iter().for_each(|key| self.fail_key(requests, *key, node, class, is_hedge));
    }

    /// Asks other nodes for what doubted nodes owe. It does so if every key has another replica that is up, or is being
    /// asked for already, and the budget allows it. Otherwise it is better to wait: a node that only seems down, for example
    /// because this machine is busy, still answers.
    pub fn move_doubted(&mut self, requests: &mut Requests, view: &Candidates<'_>, budget: &mut Budget) {
        let doubted: Vec<RequestId> =
            requests.open_ids().filter(|id| requests.list[id.0 as usize].doubted).collect();
        for request in doubted {
            let owing = &requests.list[request.0 as usize];
            let (node, keys) = (owing.node, owing.rest().to_vec());
            if keys.iter().all(|key| requests.is_movable(view, *key, node))
                && budget.take(keys.len(), requests.now)
                && let Some((node, keys)) = requests.cancel(request, RequestEnd::Failed)
            {
                let before = self.unassigned.len();
                self.lose(requests, request, node, &keys, FailureClass::NodeDown);
                self.unassigned[before..].iter_mut().for_each(|homeless| homeless.is_paid = true);
            }
        }
    }

    pub fn fail_key(
        &mut self,
        requests: &mut Requests,
        key: u32,
        node: NodeId,
        class: FailureClass,
        is_hedge: bool,
    ) {
        if let FailureClass::NotOwner { epoch } = class
            && self.refresh_asked < epoch
        {
            self.refresh_asked = epoch;
            requests.actions.push(Action::Refresh { epoch });
        }
        let class = requests.ledger.fail(key, node, class, is_hedge);
        let reason = MissingReason::Failed(class);
        let may_retry = requests.ledger.tried(key).len() as u32 <= requests.query.options.retries_max;
        match class.retry() {
            Retry::FailQuery => requests.ledger.miss(key, reason),
            // Another node that was asked for the key may still answer.
            _ if requests.ledger.is_asked(key) || !requests.ledger.is_waiting(key) => {}
            Retry::OtherReplica if may_retry => self.unassigned.push(UnassignedKey::new(key, reason)),
            Retry::OtherReplica | Retry::Never => requests.ledger.miss(key, reason),
        }
    }

    pub fn resend(&mut self, requests: &mut Requests, view: &Candidates<'_>, budget: &mut Budget) {
        let late = requests.is_late();
        let mut keys_by_node: BTreeMap<NodeId, Vec<UnassignedKey>> = BTreeMap::new();
        for homeless in std::mem::take(&mut self.unassigned) {
            match requests.another_replica(view, homeless.key) {
                Some(_) if late => requests.ledger.miss(homeless.key, MissingReason::Deadline),
                Some(node) => keys_by_node.entry(view.node(node).id).or_default().push(homeless),
                None => requests.ledger.miss(homeless.key, homeless.reason),
            }
        }
        if !requests.ledger.missing().is_empty() && !requests.query.options.partial {
            return;
        }
        for (node, mut keys) in keys_by_node {
            let unpaid = keys.iter().filter(|homeless| !homeless.is_paid).count();
            if 0 < unpaid && !budget.take(unpaid, requests.now) {
                let refused = keys.extract_if(.., |homeless| !homeless.is_paid);
                refused.for_each(|homeless| requests.ledger.miss(homeless.key, homeless.reason));
            }
            if keys.is_empty() {
                continue;
            }
            keys.sort_unstable_by_key(|homeless| homeless.key);
            self.count += 1;
            requests.send(node, keys.into_iter().map(|homeless| homeless.key).collect(), Cause::Retry);
        }
    }
}
