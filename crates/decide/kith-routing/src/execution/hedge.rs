//! Hedges, which are second requests for slow ones: whether to send them, to which node, and whose answer counts (Venice's
//! smart long-tail retry; 0008).

use super::{Execution, Request, RequestState};
use crate::execution::{Action, Answers, Budget, Cause, Disposition, FailureClass, HedgeAbort, RequestId};
use crate::load::RequestEnd;
use crate::{Candidates, NodeIndex};
use kith_types::{NodeId, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Execution {
    /// Returns when to report the next [`crate::execution::Event::HedgeDue`]; `None` if no request is waiting for one.
    /// O(requests).
    pub fn next_hedge(&self) -> Option<Timestamp> {
        let planned = self.requests.iter().filter(|request| request.state == RequestState::Open);
        planned.filter_map(|request| Some(request.hedge?.due)).min().filter(|_| !self.finished)
    }

    /// Notes the requests that are due.
    pub(super) fn note_late(&mut self, caught_up: Timestamp) -> Disposition {
        self.caught_up = self.caught_up.max(caught_up);
        let now = self.now;
        let is_due = |request: &Request| request.hedge.is_some_and(|hedge| hedge.due <= now);
        let due = self.requests.iter().enumerate().filter(|(_, request)| is_due(request));
        self.late = due.map(|(index, _)| RequestId(index as u32)).collect();
        if self.late.is_empty() { Disposition::Ignored } else { Disposition::Accepted }
    }

    /// Checks each late request. If the reason against a hedge is temporary, the request is checked again later.
    pub(super) fn hedge_late(&mut self, view: &Candidates<'_>, budget: &mut Budget) {
        for id in std::mem::take(&mut self.late) {
            let hedge = self.hedge(id, view, budget);
            let request = &mut self.requests[id.0 as usize];
            let plan = request.hedge.take();
            match hedge {
                Ok(keys_by_node) => self.send_hedges(id, keys_by_node),
                Err(abort) => {
                    if abort.is_passing() {
                        request.hedge = plan.map(|plan| plan.put_off(request.sent, self.now));
                    }
                    self.hedges.aborted[abort as usize] += 1;
                }
            }
        }
    }

    /// Runs the six checks in order. Returns the keys to ask by node, or the reason not to hedge.
    fn hedge(
        &mut self,
        id: RequestId,
        view: &Candidates<'_>,
        budget: &mut Budget,
    ) -> Result<BTreeMap<NodeId, Vec<u32>>, HedgeAbort> {
        let request = &self.requests[id.0 as usize];
        let plan = request.hedge.filter(|_| request.state == RequestState::Open);
        let plan = plan.ok_or(HedgeAbort::Answered)?;
        if plan.slack() < self.now.since(plan.due) || plan.since < self.caught_up {
            return Err(HedgeAbort::DelayConstraint);
        }
        let is_short = |deadline: Timestamp| deadline.since(self.now) <= plan.time.expected;
        if self.options.deadline.is_some_and(is_short) {
            return Err(HedgeAbort::NoTime);
        }
        let others = self.others(request, view).ok_or(HedgeAbort::SlowRoute)?;
        // All nodes of a ring are in one group, so on a ring only the budget limits hedges.
        let group = view.node_index(request.node).map(|node| view.group_of(node));
        let is_new = !self.hedged_groups.contains(&group);
        let groups_max = self.options.hedging.map_or(0, |rule| rule.groups_max);
        if is_new && groups_max <= self.hedged_groups.len() {
            return Err(HedgeAbort::MaxRoute);
        }
        let keys = others.values().map(Vec::len).sum();
        if !budget.take_for(&mut self.is_hedging_paid, keys, self.now) {
            return Err(HedgeAbort::Budget);
        }
        self.hedged_groups.extend(is_new.then_some(group));
        Ok(others)
    }

    /// Returns the keys of a late request by the node that can be asked for them. Such a node is a replica that is up, has
    /// not failed the key, and owes this query no planned request. `None` if there is no such node or, if answers cannot be
    /// divided by key, if any key has none.
    fn others(&self, request: &Request, view: &Candidates<'_>) -> Option<BTreeMap<NodeId, Vec<u32>>> {
        let open = self.requests.iter().filter(|request| request.state == RequestState::Open);
        let owing: Vec<NodeId> =
            open.filter(|request| !request.cause.is_hedge()).map(|request| request.node).collect();
        let mut keys_by_node: BTreeMap<NodeId, Vec<u32>> = BTreeMap::new();
        for key in request.rest().iter().copied().filter(|key| self.ledger.is_waiting(*key)) {
            let tried = self.ledger.tried(key);
            let may_be_asked = |node: &NodeIndex| {
                let id = view.node(*node).id;
                view.is_up(*node) && !owing.contains(&id) && !tried.contains(&id)
            };
            let replicas = view.replicas(self.partitions[key as usize]).filter(may_be_asked);
            let has_turn = (tried.len() as u32) < self.options.retries_max;
            match replicas.min_by_key(|node| self.rank(view, *node)).filter(|_| has_turn) {
                Some(node) => keys_by_node.entry(view.node(node).id).or_default().push(key),
                None if self.options.answers == Answers::Together => return None,
                None => {}
            }
        }
        Some(keys_by_node).filter(|keys_by_node| !keys_by_node.is_empty())
    }

    fn send_hedges(&mut self, of: RequestId, keys_by_node: BTreeMap<NodeId, Vec<u32>>) {
        for (node, keys) in keys_by_node {
            self.hedges.sent += 1;
            self.hedges.keys += keys.len() as u32;
            self.send(node, keys.into(), Cause::Hedge { of });
        }
    }

    pub(super) fn is_hedge(&self, request: RequestId) -> bool {
        self.requests.get(request.0 as usize).is_some_and(|request| request.cause.is_hedge())
    }

    pub(super) fn note_won(&mut self, request: RequestId, keys: u32) {
        let request = &mut self.requests[request.0 as usize];
        if request.cause.is_hedge() && 0 < keys {
            self.hedges.won += u32::from(!std::mem::replace(&mut request.won, true));
            self.hedges.keys_won += keys;
        }
    }

    /// Whether the answer of this request does not count on its own: it is a hedge whose answer cannot be divided by key,
    /// while the original may still answer.
    pub(super) fn is_withheld(&self, request: RequestId) -> bool {
        let Some(request) = self.requests.get(request.0 as usize) else { return false };
        match request.cause {
            Cause::Hedge { of } => {
                self.options.answers == Answers::Together
                    && request.state == RequestState::Open
                    && self.requests[of.0 as usize].state == RequestState::Open
            }
            Cause::Plan | Cause::Retry => false,
        }
    }

    /// Holds an answer until all hedges of the same original have answered. Only together do they replace it.
    pub(super) fn hold(&mut self, request: RequestId, failed: &[(u32, FailureClass)]) -> Disposition {
        let Some((node, keys)) = self.close(request) else { return Disposition::Ignored };
        if let Some((_, class)) = failed.first() {
            // A part of a sum is useless.
            keys.iter().for_each(|key| self.fail_key(*key, node, *class, true));
            return Disposition::Ignored;
        }
        self.requests[request.0 as usize].state = RequestState::Held;
        self.ledger.ask(&keys);
        let Cause::Hedge { of } = self.requests[request.0 as usize].cause else {
            unreachable!("only hedges are held")
        };
        let hedges = self.hedges_of(of);
        let held = |id: &RequestId| self.requests[id.0 as usize].state == RequestState::Held;
        if hedges.iter().all(held) {
            self.cancel(of, RequestEnd::Overtaken);
            self.release_hedges(of);
        }
        Disposition::Held
    }

    /// Releases the held hedges of an original that can no longer answer: their answers count from now on.
    pub(super) fn release_hedges(&mut self, of: RequestId) {
        for id in self.hedges_of(of) {
            let request = &mut self.requests[id.0 as usize];
            if request.state != RequestState::Held {
                continue;
            }
            request.state = RequestState::Over;
            let keys = Arc::clone(&request.keys);
            self.ledger.unask(&keys);
            let first = keys.iter().filter(|key| self.ledger.answer(**key)).count() as u32;
            debug_assert_eq!(first as usize, keys.len(), "nobody else could answer them");
            self.note_won(id, first);
            self.actions.push(Action::Use { request: id });
        }
    }

    /// Drops the hedges of a request that has answered all its keys at once. Their answers can no longer count.
    pub(super) fn drop_hedges(&mut self, of: RequestId) {
        for id in self.hedges_of(of) {
            let request = &mut self.requests[id.0 as usize];
            if request.state == RequestState::Held {
                request.state = RequestState::Over;
                let keys = Arc::clone(&request.keys);
                self.ledger.unask(&keys);
            }
            self.cancel(id, RequestEnd::Cancelled);
        }
    }

    /// Cancels the other requests for the same keys after a request was answered, in full or in part, once no key that they
    /// owe is waited for.
    pub(super) fn call_off(&mut self, answered: RequestId) {
        let (beside, end) = match self.requests[answered.0 as usize].cause {
            Cause::Hedge { of } => (vec![of], RequestEnd::Overtaken),
            Cause::Plan | Cause::Retry => (self.hedges_of(answered), RequestEnd::Cancelled),
        };
        for id in beside {
            if !self.is_awaited(id) {
                self.cancel(id, end);
            }
        }
    }

    fn hedges_of(&self, of: RequestId) -> Vec<RequestId> {
        if self.hedges.sent == 0 {
            return Vec::new();
        }
        let is_hedge = |(_, request): &(usize, &Request)| request.cause == Cause::Hedge { of };
        let hedges = self.requests.iter().enumerate().filter(is_hedge);
        hedges.map(|(index, _)| RequestId(index as u32)).collect()
    }
}

impl Cause {
    pub(super) fn is_hedge(self) -> bool {
        matches!(self, Cause::Hedge { .. })
    }
}
