//! A fan-out under way. It carries out what `kith_routing::Execution` decides.

mod calls;
mod conclude;
mod question;
mod reached;
mod reply;
mod send;
mod trace;

pub(crate) use conclude::DeliveryEnd;
pub(super) use question::RoundQuestion;
pub(super) use reached::ReadPoints;

use super::{Executor, FanOutCall, PlannedFanOut, ReachedPoints, RoundOutcome, failure::query_error};
use crate::{alarm::Alarm, profile::Trace};
use calls::Call;
use conclude::{ids_in, mark_damaged, merged};
use futures::FutureExt;
use kith_net::{InFlight, waited_for_turns};
use kith_operators::Part;
use kith_query::QueryError;
use kith_routing::{
    Execution, NodeIndex,
    execution::{Action, Answers, Event, ExecutionOptions, Outcome, RequestId, Verdict},
    load::{Charge, RequestEnd},
};
use kith_types::{FanOutKind, NodeId, PartitionId, Timestamp};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tokio::sync::{broadcast, oneshot};
use trace::RoundTrace;

/// One fan-out under way.
pub(super) struct Round<'a> {
    question: RoundQuestion<'a>,
    planned: &'a PlannedFanOut,
    execution: Execution,
    downs: broadcast::Receiver<NodeId>,
    /// Requests under way. Dropping one cancels it.
    calls: InFlight<Call>,
    /// Rings when one of the requests is late.
    late: Alarm,
    open: BTreeMap<RequestId, Open>,
    parts: Vec<Part>,
    /// Answers that may still come to count: `Disposition::Held`.
    held: BTreeMap<RequestId, (Part, ReachedPoints)>,
    trace: RoundTrace<'a>,
    /// Messages of nodes, for errors.
    reasons: Vec<String>,
    points: ReadPoints,
    /// Whether an answer that was held back, and counts now, shows a partition at another point than the other answers.
    is_torn: bool,
    /// Whether a node refused because its share of the answer is too large.
    too_large: bool,
    /// The refusal of a node because this process may not ask it, its quota is used up, or the request does not fit a live
    /// graph's types.
    denied: Option<QueryError>,
    /// Keys whose record was damaged somewhere, as indexes into the query's keys.
    damaged: BTreeSet<u32>,
    /// The time until which the receiver had not taken an answer. The latency of a request that was sent before it says
    /// nothing about its node.
    held_up: Timestamp,
    /// The longest time that a node worked on a request whose answer counts, in microseconds.
    service_us: u64,
}

struct Open {
    charge: Charge,
    keys: Arc<[u32]>,
    /// The number of the request's keys that are answered.
    heard: usize,
    sent: Timestamp,
    /// The time that the query had waited for its turns to compute when this was sent.
    waited: Duration,
    /// Dropping this cancels the request.
    _cancel: oneshot::Sender<()>,
}

impl<'a> Round<'a> {
    pub(super) fn new(
        executor: &'a Executor,
        asking: &FanOutCall<'a>,
        planned: &'a PlannedFanOut,
        trace: &'a mut Trace,
        in_parts: bool,
    ) -> Self {
        let &FanOutCall { pinned, fan_out, reached, .. } = asking;
        let fleet = &executor.fleet;
        let how = execution_options(executor, asking, planned);
        Self {
            execution: Execution::new(&planned.plan, &planned.partitions, how, fleet.now()),
            question: RoundQuestion::new(executor, asking, in_parts),
            downs: fleet.downs(),
            calls: InFlight::default(),
            late: Alarm::default(),
            open: BTreeMap::new(),
            parts: Vec::new(),
            held: BTreeMap::new(),
            trace: RoundTrace::new(trace, fan_out.purpose, planned),
            reasons: Vec::new(),
            points: ReadPoints::new(pinned.pin, reached.clone()),
            is_torn: false,
            too_large: false,
            denied: None,
            damaged: BTreeSet::new(),
            held_up: Timestamp::ZERO,
            service_us: 0,
            planned,
        }
    }

    /// Drives the fan-out to its end.
    pub(super) async fn drive(&mut self) -> Outcome {
        loop {
            if let Some(outcome) = self.advance(false).await {
                return outcome;
            }
        }
    }

    /// Drives the fan-out until further answers count, and takes them out. The last of them come with the outcome.
    pub(super) async fn next_parts(&mut self) -> (Vec<Part>, Option<Outcome>) {
        let outcome = self.advance(true).await;
        (std::mem::take(&mut self.parts), outcome)
    }

    /// Notes that the receiver of the answers has only now taken them, so that the wait is not attributed to nodes.
    pub(super) fn was_held_up(&mut self) {
        self.held_up = self.question.executor.fleet.now();
    }

    /// Drives the fan-out until it ends or, with `parts`, until there are answers to hand on.
    async fn advance(&mut self, parts: bool) -> Option<Outcome> {
        let deadline = tokio::time::sleep_until(self.question.deadline.into());
        tokio::pin!(deadline);
        loop {
            if let Some(outcome) = self.act() {
                return Some(outcome);
            }
            if parts && !self.parts.is_empty() {
                return None;
            }
            let due = self.execution.next_hedge();
            self.late.set(due.map(|due| self.question.executor.fleet.instant(due)));
            tokio::select! {
                biased;
                call = self.calls.next() => self.on_call(call),
                down = self.downs.recv() => self.on_down(down),
                () = self.late.rings() => self.on_hedge_due().await,
                () = &mut deadline => {
                    let now = self.question.executor.fleet.now();
                    let _ = self.execution.on(Event::Deadline, now);
                }
            }
        }
    }

    /// Carries out the actions that the execution asks for. Returns the outcome once it has ended.
    fn act(&mut self) -> Option<Outcome> {
        let availability = self
            .question
            .executor
            .fleet
            .availability_within(&self.question.topology.table, &self.question.pinned.reach);
        let view = self.question.topology.table.view(&availability);
        let mut outcome = None;
        let execution = &mut self.execution;
        let actions = self.question.executor.with_routing(|state| execution.next(&view, &mut state.budgets));
        for action in actions {
            match action {
                Action::Send { request, node, keys, cause } => self.send(request, node, keys, cause),
                Action::Cancel { request, end } => self.close(request, end, name_of(end)),
                Action::Use { request } => {
                    self.trace.won(request);
                    if let Some((part, points)) = self.held.remove(&request) {
                        self.is_torn |= !self.points.note(points);
                        self.parts.push(part);
                    }
                }
                Action::Refresh { epoch } => tracing::info!(%epoch, "a node knows a newer routing table"),
                Action::Finish(ended) => outcome = Some(ended),
            }
        }
        outcome
    }

    /// A request is late. Replies that have already arrived are taken first: the late one may be among them, and most are
    /// if this process was paused.
    async fn on_hedge_due(&mut self) {
        // Lets the tasks of the connections read their sockets.
        tokio::task::yield_now().await;
        while let Some(call) = self.calls.next().now_or_never() {
            self.on_call(call);
        }
        let (caught_up, now) = self.question.executor.fleet.with_load(|load, now| (load.caught_up(now), now));
        let _ = self.execution.on(Event::HedgeDue { caught_up }, now);
    }

    fn on_down(&mut self, down: Result<NodeId, broadcast::error::RecvError>) {
        let now = self.question.executor.fleet.now();
        match down {
            Ok(node) => drop(self.execution.on(Event::NodeDown { node }, now)),
            Err(broadcast::error::RecvError::Lagged(_)) => {
                let nodes: Vec<NodeId> = self.open.values().map(|open| open.charge.node()).collect();
                for node in nodes.into_iter().filter(|node| !self.question.executor.fleet.is_up(*node)) {
                    let _ = self.execution.on(Event::NodeDown { node }, now);
                }
            }
            Err(broadcast::error::RecvError::Closed) => {}
        }
    }

    /// Ends a request, whatever its outcome. Its load is released exactly once.
    fn close(&mut self, request: RequestId, end: RequestEnd, outcome: &str) {
        let Some(mut open) = self.open.remove(&request) else { return };
        // The answer may have arrived while the query waited for its turn.
        open.charge.leave_out(waited_for_turns().saturating_sub(open.waited));
        // The answer may have waited for the receiver.
        let end = if open.sent < self.held_up { RequestEnd::Cancelled } else { end };
        self.question.executor.fleet.with_load(|load, now| load.on_end(open.charge, end, now));
        self.trace.closed(request, outcome);
    }

    fn close_all(&mut self) {
        for request in self.open.keys().copied().collect::<Vec<_>>() {
            self.close(request, RequestEnd::Cancelled, "cancelled");
        }
    }

    /// Ends a fan-out whose answers have been handed on. Returns the remaining failures, or an error if it failed or no key
    /// at all was answered, even if the caller accepts partial answers.
    pub(super) fn conclude_handed(mut self, outcome: Outcome) -> Result<DeliveryEnd, QueryError> {
        self.close_all();
        let is_failed = matches!(outcome.verdict, Verdict::Failed | Verdict::Cancelled);
        if is_failed || (outcome.answered == 0 && 0 < outcome.keys) {
            return Err(self.failure(&outcome));
        }
        self.trace.finish(outcome.answered.into(), outcome.stopped_early);
        Ok(DeliveryEnd {
            failures: outcome.failures(),
            damaged: std::mem::take(&mut self.damaged),
            service_us: self.service_us,
        })
    }

    /// Merges the answers of the nodes, or returns the error of the fan-out.
    pub(super) fn conclude(mut self, outcome: Outcome) -> Result<RoundOutcome, QueryError> {
        self.close_all();
        if matches!(outcome.verdict, Verdict::Failed | Verdict::Cancelled) {
            return Err(self.failure(&outcome));
        }
        if self.is_torn {
            let (name, reason) =
                (self.question.pinned.name.clone(), "answers are of different states".to_owned());
            return Err(QueryError::OtherPosition { name, reason });
        }
        let parts = std::mem::take(&mut self.parts);
        let (keys, is_partial) = (self.planned.partitions.len(), self.question.options.partial);
        let mut value = merged(self.question.fan_out, keys, parts, is_partial)?;
        mark_damaged(&mut value, &self.damaged);
        self.trace.finish(ids_in(&value), outcome.stopped_early);
        let missing = outcome.missing.iter().map(|missing| missing.partition.0).collect();
        let reached = self.points.take();
        Ok(RoundOutcome { value, missing, failures: outcome.failures(), reached })
    }

    /// The error of a failed fan-out.
    fn failure(&mut self, outcome: &Outcome) -> QueryError {
        self.trace.finish(0, outcome.stopped_early);
        if let Some(denied) = &self.denied {
            return denied.clone();
        }
        if self.too_large {
            return QueryError::too_large();
        }
        let availability = self
            .question
            .executor
            .fleet
            .availability_within(&self.question.topology.table, &self.question.pinned.reach);
        let table = &self.question.topology.table;
        let is_up = |node: &NodeIndex| availability.serving().contains(*node);
        let is_lost = |partition: PartitionId| !table.replicas(partition).iter().any(is_up);
        let deadline_ms = self.trace.allowed_ms(self.question.deadline);
        query_error(outcome, self.question.pinned, deadline_ms, &self.reasons, &is_lost)
    }
}

/// A query that nobody waits for any more cancels its requests and releases their load.
impl Drop for Round<'_> {
    fn drop(&mut self) {
        self.close_all();
    }
}

/// The options of the execution. The operator decides whether nodes may be asked twice.
fn execution_options(
    executor: &Executor,
    asking: &FanOutCall<'_>,
    planned: &PlannedFanOut,
) -> ExecutionOptions {
    let &FanOutCall { fan_out, options, deadline, .. } = asking;
    ExecutionOptions {
        deadline: Some(executor.fleet.at(deadline)),
        partial: options.partial,
        stop_early: planned.kind == FanOutKind::EarlyTerminable,
        seed: executor.with_routing(|state| rand::RngExt::random(&mut state.rng)),
        hedging: planned.hedging,
        answers: match fan_out.plan.check() {
            Ok(kind) if kind.is_by_key() => Answers::ByKey,
            _ => Answers::Together,
        },
        ..ExecutionOptions::default()
    }
}

/// The name in profiles of a request that was given up.
fn name_of(end: RequestEnd) -> &'static str {
    match end {
        RequestEnd::Overtaken => "overtaken",
        RequestEnd::TimedOut => "timed_out",
        RequestEnd::Answered | RequestEnd::Failed | RequestEnd::Cancelled => "cancelled",
    }
}
