//! The state machine of one fan-out: what to send, what to send again, and when it is over.
//!
//! It does no I/O: the shell reports events and carries out actions. Every plan of every kind of query, in one process, in
//! many and in the simulator, runs through this. It has the only retry decision in Kith ([`FailureClass`]). Every key is
//! answered exactly once or reported as missing; the predecessor's retry lost all but one key per node (Norbert, defect 1 in
//! our reading).
//!
//! A request may be answered in parts, in the order of its keys (`docs/design/0010-streaming.md`). What happens to it after
//! that concerns only the keys that it still owes.
//!
//! A key is asked of one node at a time, or of a second one at the same time while it is hedged ([`HedgeRule`],
//! `docs/design/0008-hedged-reads.md`). It is never asked twice of the same node.

mod budget;
mod conclude;
mod event;
mod failure;
mod hedge;
mod ledger;
mod options;
mod outcome;
mod reply;
mod retry;
mod rule;
#[cfg(test)]
mod tests;

pub use budget::{Budget, BudgetOptions, Budgets};
pub use event::{Action, Cause, Disposition, Event, RequestId};
pub use failure::{FailureClass, Retry};
pub use options::{Answers, ExecutionOptions};
pub use outcome::{Failure, Missing, MissingReason, Outcome, Verdict};
pub use rule::{HedgeAbort, HedgeCounts, HedgeRule, HedgeTime};

use crate::load::{KeyClass, RequestEnd};
use crate::{Candidates, FanOutPlan, GroupIndex};
use kith_types::{Epoch, GroupId, NodeId, PartitionId, Timestamp};
use ledger::Ledger;
use retry::UnassignedKey;
use rule::HedgePlan;
use std::sync::Arc;

/// One fan-out in progress.
#[derive(Clone, Debug)]
pub struct Execution {
    partitions: Vec<PartitionId>,
    options: ExecutionOptions,
    /// The groups of the plan. Retries stay inside them where possible.
    groups: Vec<GroupId>,
    requests: Vec<Request>,
    /// The number of open requests.
    open: usize,
    ledger: Ledger,
    /// Keys without a request, with the reason, until the next call of `next`.
    homeless: Vec<UnassignedKey>,
    /// Late requests for the next call of `next` to check.
    late: Vec<RequestId>,
    /// Requests sent before this time are late because this process was suspended.
    caught_up: Timestamp,
    /// The groups of the nodes whose requests were hedged.
    hedged_groups: Vec<Option<GroupIndex>>,
    /// Whether the floor of the budget has been charged for hedges of this query.
    is_hedging_paid: bool,
    hedges: HedgeCounts,
    actions: Vec<Action>,
    retries: u32,
    refresh_asked: Epoch,
    now: Timestamp,
    /// Whether `next` has been called.
    begun: bool,
    finished: bool,
}

#[derive(Clone, Debug)]
struct Request {
    node: NodeId,
    keys: Arc<[u32]>,
    /// The number of the keys that have been answered. The request owes the others.
    heard: usize,
    cause: Cause,
    state: RequestState,
    /// Whether its answer counted for some key.
    won: bool,
    /// Whether its node seems to be down.
    doubted: bool,
    sent: Timestamp,
    /// The time at which to hedge it; `None` once this has been decided.
    hedge: Option<HedgePlan>,
}

impl Request {
    /// The keys that the request owes.
    fn rest(&self) -> &[u32] {
        &self.keys[self.heard..]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestState {
    Open,
    /// It was answered, and the answer is held.
    Held,
    Over,
}

impl Execution {
    /// Begins a fan-out. `partitions` are the partitions of the query's keys, in their order, as they were given to the
    /// policy. Keys that the plan leaves out are missing from the start.
    ///
    /// # Panics
    /// If the plan names a key that does not exist, or names a key twice.
    pub fn new(
        plan: &FanOutPlan,
        partitions: &[PartitionId],
        options: ExecutionOptions,
        now: Timestamp,
    ) -> Self {
        let mut planned = vec![false; partitions.len()];
        let mut execution = Self {
            partitions: partitions.to_vec(),
            options,
            groups: plan.groups.clone(),
            requests: Vec::with_capacity(plan.assignments.len()),
            open: 0,
            ledger: Ledger::new(partitions.len()),
            homeless: Vec::new(),
            late: Vec::new(),
            caught_up: Timestamp::ZERO,
            hedged_groups: Vec::new(),
            is_hedging_paid: false,
            hedges: HedgeCounts::default(),
            actions: Vec::with_capacity(plan.assignments.len()),
            retries: 0,
            refresh_asked: Epoch(0),
            now,
            begun: false,
            finished: false,
        };
        for assignment in &plan.assignments {
            for key in &assignment.keys {
                assert!(!std::mem::replace(&mut planned[*key as usize], true), "key {key} is planned twice");
            }
            execution.send(assignment.node, assignment.keys.as_slice().into(), Cause::Plan);
        }
        let left_out = planned.iter().enumerate().filter(|(_, planned)| !**planned);
        execution.homeless =
            left_out.map(|(key, _)| UnassignedKey::new(key as u32, MissingReason::NoReplica)).collect();
        execution
    }

    /// Takes in an event. Call [`Execution::next`] afterwards.
    pub fn on(&mut self, event: Event, now: Timestamp) -> Disposition {
        if self.finished {
            return Disposition::Ignored;
        }
        self.now = self.now.max(now);
        match event {
            Event::Reply { request } => self.reply(request, &[]),
            Event::ReplyInPart { request, failed } => self.reply(request, &failed),
            Event::ReplySoFar { request, keys, failed } => self.reply_so_far(request, keys, &failed),
            Event::Failed { request, class } => self.fail(request, class),
            Event::NodeDown { node } => self.doubt(node),
            Event::HedgeDue { caught_up } => self.note_late(caught_up),
            Event::Deadline => self.expire(),
            Event::Satisfied if self.options.stop_early => self.finish(Verdict::Complete, true),
            Event::Satisfied => Disposition::Ignored,
            Event::Cancelled => self.finish(Verdict::Cancelled, false),
        }
    }

    /// Returns what to do now. Failed and late keys are sent to another replica that may serve according to `view`, as far
    /// as `budgets` allow. Call it once at the start and after each event.
    pub fn next(&mut self, view: &Candidates<'_>, budgets: &mut Budgets) -> Vec<Action> {
        if !self.finished {
            if !std::mem::replace(&mut self.begun, true) {
                budgets.on_asked(self.partitions.len(), self.now);
            }
            self.move_doubted(view, &mut budgets.retries);
            self.hedge_late(view, &mut budgets.hedges);
            self.resend(view, &mut budgets.retries);
            self.conclude();
        }
        std::mem::take(&mut self.actions)
    }

    /// Whether [`Action::Finish`] has been decided.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// The number of requests that were sent and not answered, failed or cancelled.
    pub fn outstanding(&self) -> usize {
        self.open
    }

    fn send(&mut self, node: NodeId, keys: Arc<[u32]>, cause: Cause) {
        let request = RequestId(self.requests.len() as u32);
        let time = self.options.hedging.and_then(|rule| rule.times[KeyClass::of(keys.len()).index()]);
        let may_be_hedged = cause == Cause::Plan;
        let hedge = time.filter(|_| may_be_hedged).map(|time| HedgePlan::new(self.now, time));
        self.open += 1;
        self.ledger.ask(&keys);
        self.requests.push(Request {
            node,
            keys: keys.clone(),
            heard: 0,
            cause,
            state: RequestState::Open,
            won: false,
            doubted: false,
            sent: self.now,
            hedge,
        });
        self.actions.push(Action::Send { request, node, keys, cause });
    }

    /// Closes a request if it is open. Returns its node and the keys that it owed.
    fn close(&mut self, request: RequestId) -> Option<(NodeId, Arc<[u32]>)> {
        let request = self.requests.get_mut(request.0 as usize);
        let request = request.filter(|request| request.state == RequestState::Open)?;
        request.state = RequestState::Over;
        self.open -= 1;
        self.ledger.unask(request.rest());
        let rest = if request.heard == 0 { Arc::clone(&request.keys) } else { request.rest().into() };
        Some((request.node, rest))
    }

    fn cancel(&mut self, request: RequestId, end: RequestEnd) -> Option<(NodeId, Arc<[u32]>)> {
        let closed = self.close(request)?;
        self.actions.push(Action::Cancel { request, end });
        Some(closed)
    }

    fn fail(&mut self, request: RequestId, class: FailureClass) -> Disposition {
        let Some((node, keys)) = self.close(request) else { return Disposition::Ignored };
        self.lose(request, node, &keys, class);
        Disposition::Accepted
    }

    /// Fails the keys of a request that will not be answered.
    fn lose(&mut self, request: RequestId, node: NodeId, keys: &[u32], class: FailureClass) {
        self.release_hedges(request);
        let is_hedge = self.is_hedge(request);
        keys.iter().for_each(|key| self.fail_key(*key, node, class, is_hedge));
    }

    fn open_requests(&self) -> impl Iterator<Item = RequestId> {
        let is_open = |(_, request): &(usize, &Request)| request.state == RequestState::Open;
        let open = self.requests.iter().enumerate().filter(is_open);
        open.map(|(index, _)| RequestId(index as u32))
    }
}
