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
mod overlap;
mod reply;
mod requests;
mod retry;
mod rule;
#[cfg(test)]
mod tests;

pub use crate::load::{HedgeRule, HedgeTime};
pub use budget::{Budget, BudgetOptions, Budgets};
pub use event::{Action, Cause, Disposition, Event, RequestId};
pub use failure::{FailureClass, Retry};
pub use options::{Answers, ExecutionOptions};
pub use outcome::{Failure, MissingPart, MissingReason, Outcome, Verdict};
pub use rule::{HedgeAbort, HedgeCounts};

use crate::{Candidates, FanOutPlan};
use hedge::Hedges;
use kith_types::{PartitionId, Timestamp};
use requests::{Query, Requests};
use retry::{Retries, UnassignedKey};

/// One fan-out in progress.
#[derive(Clone, Debug)]
pub struct Execution {
    requests: Requests,
    retries: Retries,
    hedges: Hedges,
    /// Whether `next` has been called.
    begun: bool,
    finished: bool,
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
        let query = Query { partitions: partitions.to_vec(), options, groups: plan.groups.clone() };
        let mut requests = Requests::new(query, plan.assignments.len(), now);
        for assignment in &plan.assignments {
            for key in &assignment.keys {
                assert!(!std::mem::replace(&mut planned[*key as usize], true), "key {key} is planned twice");
            }
            requests.send(assignment.node, assignment.keys.as_slice().into(), Cause::Plan);
        }
        let left_out = planned.iter().enumerate().filter(|(_, planned)| !**planned);
        let left_out = left_out.map(|(key, _)| UnassignedKey::new(key as u32, MissingReason::NoReplica));
        Self {
            retries: Retries::new(left_out.collect()),
            requests,
            hedges: Hedges::default(),
            begun: false,
            finished: false,
        }
    }

    /// Takes in an event. Call [`Execution::next`] afterwards.
    pub fn on(&mut self, event: Event, now: Timestamp) -> Disposition {
        if self.finished {
            return Disposition::Ignored;
        }
        self.requests.now = self.requests.now.max(now);
        match event {
            Event::Reply { request } => self.reply(request, &[]),
            Event::ReplyInPart { request, failed } => self.reply(request, &failed),
            Event::ReplySoFar { request, keys, failed } => self.reply_so_far(request, keys, &failed),
            Event::Failed { request, class } => self.retries.fail(&mut self.requests, request, class),
            Event::NodeDown { node } => self.requests.doubt(node),
            Event::HedgeDue { caught_up } => self.hedges.note_late(&self.requests, caught_up),
            Event::Deadline => self.requests.expire(),
            Event::Satisfied if self.requests.query.options.stop_early => {
                self.finish(Verdict::Complete, true)
            }
            Event::Satisfied => Disposition::Ignored,
            Event::Cancelled => self.finish(Verdict::Cancelled, false),
        }
    }

    /// Returns what to do now. Failed and late keys are sent to another replica that may serve according to `view`, as far
    /// as `budgets` allow. Call it once at the start and after each event.
    pub fn next(&mut self, view: &Candidates<'_>, budgets: &mut Budgets) -> Vec<Action> {
        if !self.finished {
            if !std::mem::replace(&mut self.begun, true) {
                budgets.on_asked(self.requests.query.partitions.len(), self.requests.now);
            }
            self.retries.move_doubted(&mut self.requests, view, &mut budgets.retries);
            self.hedges.hedge_late(&mut self.requests, view, &mut budgets.hedges);
            self.retries.resend(&mut self.requests, view, &mut budgets.retries);
            self.conclude();
        }
        std::mem::take(&mut self.requests.actions)
    }

    /// Whether [`Action::Finish`] has been decided.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// The number of requests that were sent and not answered, failed or cancelled.
    pub fn outstanding(&self) -> usize {
        self.requests.open
    }

    /// Returns when to report the next [`Event::HedgeDue`]; `None` if no request is waiting for one. O(requests).
    pub fn next_hedge(&self) -> Option<Timestamp> {
        if self.finished { None } else { self.hedges.next_due(&self.requests) }
    }
}
