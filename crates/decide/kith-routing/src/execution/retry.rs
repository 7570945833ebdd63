//! Retries after errors: which keys are asked again, and of which nodes.

use super::{Execution, Request, RequestState};
use crate::execution::failure::Retry;
use crate::execution::{Action, Budget, Cause, Disposition, FailureClass, MissingReason, RequestId};
use crate::load::RequestEnd;
use crate::{Candidates, NodeIndex};
use kith_types::NodeId;
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

impl Execution {
    pub(super) fn doubt(&mut self, node: NodeId) -> Disposition {
        let is_owing = |request: &&mut Request| request.state == RequestState::Open && request.node == node;
        let mut disposition = Disposition::Ignored;
        for request in self.requests.iter_mut().filter(is_owing) {
            request.doubted = true;
            disposition = Disposition::Accepted;
        }
        disposition
    }

    /// Asks other nodes for what doubted nodes owe. It does so if every key has another replica that is up, or is being
    /// asked for already, and the budget allows it. Otherwise it is better to wait: a node that only seems down, for example
    /// because this machine is busy, still answers.
    pub(super) fn move_doubted(&mut self, view: &Candidates<'_>, budget: &mut Budget) {
        let doubted: Vec<RequestId> =
            self.open_requests().filter(|id| self.requests[id.0 as usize].doubted).collect();
        for request in doubted {
            let owing = &self.requests[request.0 as usize];
            let (node, keys) = (owing.node, owing.rest().to_vec());
            if keys.iter().all(|key| self.is_movable(view, *key, node))
                && budget.take(keys.len(), self.now)
                && let Some((node, keys)) = self.cancel(request, RequestEnd::Failed)
            {
                let before = self.homeless.len();
                self.lose(request, node, &keys, FailureClass::NodeDown);
                self.homeless[before..].iter_mut().for_each(|homeless| homeless.is_paid = true);
            }
        }
    }

    /// Whether another node than `from` can be asked for a key, or is being asked already. That `from` itself is up again
    /// does not count, because nobody would be asked for its keys if it were given up.
    fn is_movable(&self, view: &Candidates<'_>, key: u32, from: NodeId) -> bool {
        if !self.ledger.is_waiting(key) || self.ledger.is_asked_twice(key) {
            return true;
        }
        let is_other = |replica: &NodeIndex| view.node(*replica).id != from;
        let mut others = self.untried_replicas(view, key).filter(is_other);
        (self.ledger.tried(key).len() as u32) < self.options.retries_max
            && others.any(|replica| view.is_up(replica))
    }

    pub(super) fn fail_key(&mut self, key: u32, node: NodeId, class: FailureClass, is_hedge: bool) {
        if let FailureClass::NotOwner { epoch } = class
            && self.refresh_asked < epoch
        {
            self.refresh_asked = epoch;
            self.actions.push(Action::Refresh { epoch });
        }
        let class = self.ledger.fail(key, node, class, is_hedge);
        let reason = MissingReason::Failed(class);
        let may_retry = self.ledger.tried(key).len() as u32 <= self.options.retries_max;
        match class.retry() {
            Retry::FailQuery => self.ledger.miss(key, reason),
            // Another node that was asked for the key may still answer.
            _ if self.ledger.is_asked(key) || !self.ledger.is_waiting(key) => {}
            Retry::OtherReplica if may_retry => self.homeless.push(UnassignedKey::new(key, reason)),
            Retry::OtherReplica | Retry::Never => self.ledger.miss(key, reason),
        }
    }

    pub(super) fn resend(&mut self, view: &Candidates<'_>, budget: &mut Budget) {
        let late = self.is_late();
        let mut keys_by_node: BTreeMap<NodeId, Vec<UnassignedKey>> = BTreeMap::new();
        for homeless in std::mem::take(&mut self.homeless) {
            match self.another_replica(view, homeless.key) {
                Some(_) if late => self.ledger.miss(homeless.key, MissingReason::Deadline),
                Some(node) => keys_by_node.entry(view.node(node).id).or_default().push(homeless),
                None => self.ledger.miss(homeless.key, homeless.reason),
            }
        }
        if !self.ledger.missing().is_empty() && !self.options.partial {
            return;
        }
        for (node, mut keys) in keys_by_node {
            let unpaid = keys.iter().filter(|homeless| !homeless.is_paid).count();
            if 0 < unpaid && !budget.take(unpaid, self.now) {
                let refused = keys.extract_if(.., |homeless| !homeless.is_paid);
                refused.for_each(|homeless| self.ledger.miss(homeless.key, homeless.reason));
            }
            if keys.is_empty() {
                continue;
            }
            keys.sort_unstable_by_key(|homeless| homeless.key);
            self.retries += 1;
            self.send(node, keys.into_iter().map(|homeless| homeless.key).collect(), Cause::Retry);
        }
    }

    /// Returns the best replica that may serve and has not failed this key, according to [`Execution::rank`].
    fn another_replica(&self, view: &Candidates<'_>, key: u32) -> Option<NodeIndex> {
        self.untried_replicas(view, key).min_by_key(|node| self.rank(view, *node))
    }

    fn untried_replicas(&self, view: &Candidates<'_>, key: u32) -> impl Iterator<Item = NodeIndex> {
        let tried = self.ledger.tried(key);
        view.replicas(self.partitions[key as usize]).filter(|node| !tried.contains(&view.node(*node).id))
    }

    /// The order in which replicas are tried: those in groups of the plan come first. All keys of a query use the same order
    /// of groups, so that the keys of a lost node stay together.
    pub(super) fn rank(&self, view: &Candidates<'_>, node: NodeIndex) -> (bool, u64) {
        let groups = view.group_count() as u64;
        let group = view.group_of(node);
        let inside = self.groups.contains(&view.group(group).id);
        (!inside, (u64::from(group.0) + self.options.seed % groups) % groups)
    }
}
