//! Hedges, which are second requests for slow ones: whether to send them (Venice's
//! smart long-tail retry; 0008).

use super::requests::{Request, RequestState, Requests};
use crate::execution::{Budget, Cause, Disposition, HedgeAbort, RequestId};
use crate::{Candidates, GroupIndex};
use kith_types::{NodeId, Timestamp};
use std::collections::BTreeMap;

/// The decisions about hedges of one query.
#[derive(Clone, Debug, Default)]
pub(super) struct Hedges {
    /// Late requests for the next call of `hedge_late` to check.
    late: Vec<RequestId>,
    /// Requests sent before this time are late because this process was suspended.
    caught_up: Timestamp,
    /// The groups of the nodes whose requests were hedged.
    groups: Vec<Option<GroupIndex>>,
    /// Whether the floor of the budget has been charged for hedges of this query.
    is_paid: bool,
}

impl Hedges {
    /// Returns the time of the next check; `None` if no request is waiting for one. O(requests).
    pub fn next_due(&self, requests: &Requests) -> Option<Timestamp> {
        let planned = requests.list.iter().filter(|request| request.state == RequestState::Open);
        planned.filter_map(|request| Some(request.hedge?.due)).min()
    }

    /// Notes the requests that are due.
    pub fn note_late(&mut self, requests: &Requests, caught_up: Timestamp) -> Disposition {
        self.caught_up = self.caught_up.max(caught_up);
        let now = requests.now;
        let is_due = |request: &Request| request.hedge.is_some_and(|hedge| hedge.due <= now);
        let due = requests.list.iter().enumerate().filter(|(_, request)| is_due(request));
        self.late = due.map(|(index, _)| RequestId(index as u32)).collect();
        if self.late.is_empty() { Disposition::Ignored } else { Disposition::Accepted }
    }

    /// Checks each late request. If the reason against a hedge is temporary, the request is checked again later.
    pub fn hedge_late(&mut self, requests: &mut Requests, view: &Candidates<'_>, budget: &mut Budget) {
        for id in std::mem::take(&mut self.late) {
            let hedge = self.hedge(requests, id, view, budget);
            let request = &mut requests.list[id.0 as usize];
            let plan = request.hedge.take();
            match hedge {
                Ok(keys_by_node) => requests.send_hedges(id, keys_by_node),
                Err(abort) => {
                    if abort.is_passing() {
                        request.hedge = plan.map(|plan| plan.put_off(request.sent, requests.now));
                    }
                    requests.counts.aborted[abort as usize] += 1;
                }
            }
        }
    }

    /// Runs the six checks in order. Returns the keys to ask by node, or the reason not to hedge.
    fn hedge(
        &mut self,
        requests: &Requests,
        id: RequestId,
        view: &Candidates<'_>,
        budget: &mut Budget,
    ) -> Result<BTreeMap<NodeId, Vec<u32>>, HedgeAbort> {
        let request = &requests.list[id.0 as usize];
        let plan = request.hedge.filter(|_| request.state == RequestState::Open);
        let plan = plan.ok_or(HedgeAbort::Answered)?;
        if plan.slack() < requests.now.since(plan.due) || plan.since < self.caught_up {
            return Err(HedgeAbort::DelayConstraint);
        }
        let is_short = |deadline: Timestamp| deadline.since(requests.now) <= plan.time.expected;
        if requests.query.options.deadline.is_some_and(is_short) {
            return Err(HedgeAbort::NoTime);
        }
        let others = requests.others(request, view).ok_or(HedgeAbort::SlowRoute)?;
        // All nodes of a ring are in one group, so on a ring only the budget limits hedges.
        let group = view.node_index(request.node).map(|node| view.group_of(node));
        let is_new = !self.groups.contains(&group);
        let groups_max = requests.query.options.hedging.map_or(0, |rule| rule.groups_max);
        if is_new && groups_max <= self.groups.len() {
            return Err(HedgeAbort::MaxRoute);
        }
        let keys = others.values().map(Vec::len).sum();
        if !budget.take_for(&mut self.is_paid, keys, requests.now) {
            return Err(HedgeAbort::Budget);
        }
        self.groups.extend(is_new.then_some(group));
        Ok(others)
    }
}

impl Cause {
    pub(super) fn is_hedge(self) -> bool {
        matches!(self, Cause::Hedge { .. })
    }
}
