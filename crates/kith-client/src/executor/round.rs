//! One fan-out under way: the shell of `kith_routing::Execution`.

use super::{
    Asking, Executor, Planned, RoundOutcome,
    calls::{self, Call, Rest},
    failure::{class_of, query_error},
    round_trace::RoundTrace,
};
use crate::{
    alarm::Alarm,
    profile::Trace,
    topology::{Pinned, Topology},
};
use futures::FutureExt;
use kith_api::{
    QueryError, QueryOptions,
    convert::{operator_to_wire, value_of_reply, workflow_to_wire},
};
use kith_net::InFlight;
use kith_ops::{
    EdgesEntry, FanOut, ListEntry, Missing as MissingKeys, Operator, Part, Record, RecordError, Records,
    Scope, Value, sets::Scratch,
};
use kith_routing::{
    Execution, HealthEvent, NodeIndex,
    execution::{
        Action, Answers, Cause, Disposition, Event, ExecutionOptions, Failure, FailureClass, Outcome,
        RequestId, Verdict,
    },
    load::{Charge, NodeReport, RequestEnd},
};
use kith_types::{ErrorCode, FanOutKind, NodeId, PartitionId, Timestamp};
use kith_wire::{body::encode_keys, v1};
use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Instant,
};
use tokio::sync::{broadcast, oneshot};

thread_local! {
    /// Its bitmap of half a mebibyte is cleared where it was used; a new one would be cleared whole for each merge.
    static MERGE_SCRATCH: RefCell<Scratch> = RefCell::new(Scratch::new());
}

/// One fan-out under way.
pub(super) struct Round<'a> {
    pub(super) executor: &'a Executor,
    pub(super) topology: &'a Topology,
    pinned: &'a Pinned,
    pub(super) fan_out: &'a FanOut,
    planned: &'a Planned,
    pub(super) options: &'a QueryOptions,
    deadline: Instant,
    plan: v1::Operator,
    /// Whether nodes may answer in parts.
    in_parts: bool,
    /// Whether values come with what proves them.
    pub(super) proofs: bool,
    execution: Execution,
    downs: broadcast::Receiver<NodeId>,
    /// Requests under way. Dropping one cancels it.
    calls: InFlight<Call>,
    /// Rings when one of them is late.
    late: Alarm,
    open: BTreeMap<RequestId, Open>,
    parts: Vec<Part>,
    /// Answers that may come to count: `Disposition::Held`.
    held: BTreeMap<RequestId, Part>,
    trace: RoundTrace<'a>,
    /// What nodes said, for messages.
    reasons: Vec<String>,
    /// Whether a node refused because its share of the answer is too large.
    too_large: bool,
    /// A node does not let this process ask it.
    denied: Option<QueryError>,
    /// Keys whose record was damaged somewhere, as indexes into the query's keys.
    damaged: BTreeSet<u32>,
    /// Until when nobody took what was handed on: how long requests took till then says nothing of their nodes.
    held_up: Timestamp,
    /// The longest that a node worked on a request whose answer counts, in microseconds.
    service_us: u64,
}

struct Open {
    charge: Charge,
    keys: Arc<[u32]>,
    /// How many of them are answered.
    heard: usize,
    sent: Timestamp,
    /// Dropped to cancel it.
    _cancel: oneshot::Sender<()>,
}

/// What is left to tell of a fan-out whose answers were handed on.
#[derive(Debug, Default)]
pub(crate) struct Handed {
    pub failures: Vec<Failure>,
    /// Keys that have no answer because their record is damaged.
    pub damaged: BTreeSet<u32>,
    pub service_us: u64,
}

impl<'a> Round<'a> {
    pub(super) fn new(
        executor: &'a Executor,
        asking: &Asking<'a>,
        planned: &'a Planned,
        trace: &'a mut Trace,
        in_parts: bool,
    ) -> Self {
        let &Asking { topology, pinned, fan_out, options, deadline, .. } = asking;
        let fleet = &executor.fleet;
        let execution_options = ExecutionOptions {
            deadline: Some(fleet.at(deadline)),
            partial: options.partial,
            stop_early: planned.kind == FanOutKind::EarlyTerminable,
            seed: executor.with_routing(|state| rand::RngExt::random(&mut state.rng)),
            hedging: planned.hedging,
            answers: match fan_out.plan.check() {
                Ok(kind) if kind.is_by_key() => Answers::ByKey,
                _ => Answers::Together,
            },
            ..ExecutionOptions::default()
        };
        Self {
            execution: Execution::new(&planned.plan, &planned.partitions, execution_options, fleet.now()),
            plan: operator_to_wire(&fan_out.plan),
            in_parts,
            proofs: matches!(fan_out.plan, Operator::Lookup),
            downs: fleet.downs(),
            calls: InFlight::default(),
            late: Alarm::default(),
            open: BTreeMap::new(),
            parts: Vec::new(),
            held: BTreeMap::new(),
            trace: RoundTrace::new(trace, fan_out.purpose, planned),
            reasons: Vec::new(),
            too_large: false,
            denied: None,
            damaged: BTreeSet::new(),
            held_up: Timestamp::ZERO,
            service_us: 0,
            executor,
            topology,
            pinned,
            fan_out,
            planned,
            options,
            deadline,
        }
    }

    /// Goes on to the end.
    pub(super) async fn drive(&mut self) -> Outcome {
        loop {
            if let Some(outcome) = self.advance(false).await {
                return outcome;
            }
        }
    }

    /// Goes on to the next answers that count, and takes them out; with the last of them comes the outcome.
    pub(super) async fn next_parts(&mut self) -> (Vec<Part>, Option<Outcome>) {
        let outcome = self.advance(true).await;
        (std::mem::take(&mut self.parts), outcome)
    }

    /// Whoever is handed the answers took them only now.
    pub(super) fn was_held_up(&mut self) {
        self.held_up = self.executor.fleet.now();
    }

    /// Goes on until it is over, or, if that is wanted, there are `parts`.
    async fn advance(&mut self, parts: bool) -> Option<Outcome> {
        let deadline = tokio::time::sleep_until(self.deadline.into());
        tokio::pin!(deadline);
        loop {
            if let Some(outcome) = self.act() {
                return Some(outcome);
            }
            if parts && !self.parts.is_empty() {
                return None;
            }
            let due = self.execution.next_hedge();
            self.late.set(due.map(|due| self.executor.fleet.instant(due)));
            tokio::select! {
                biased;
                call = self.calls.next() => self.on_call(call),
                down = self.downs.recv() => self.on_down(down),
                () = self.late.rings() => self.on_hedge_due().await,
                () = &mut deadline => {
                    let now = self.executor.fleet.now();
                    let _ = self.execution.on(Event::Deadline, now);
                }
            }
        }
    }

    /// Carries out what the execution wants; its outcome once it is over.
    fn act(&mut self) -> Option<Outcome> {
        let availability = self.executor.fleet.availability_within(&self.topology.table, &self.pinned.reach);
        let view = self.topology.table.view(&availability);
        let mut outcome = None;
        let execution = &mut self.execution;
        let actions = self.executor.with_routing(|state| execution.next(&view, &mut state.budgets));
        for action in actions {
            match action {
                Action::Send { request, node, keys, cause } => self.send(request, node, keys, cause),
                Action::Cancel { request, end } => self.close(request, end, name_of(end)),
                Action::Use { request } => {
                    self.trace.won(request);
                    self.parts.extend(self.held.remove(&request));
                }
                Action::Refresh { epoch } => tracing::info!(%epoch, "a node knows a newer routing table"),
                Action::Finish(ended) => outcome = Some(ended),
            }
        }
        outcome
    }

    /// A request is late. Replies that are here already are looked at first: the one that is late may be among them,
    /// and if this process stood still, most are.
    async fn on_hedge_due(&mut self) {
        // The connections' tasks get to read their sockets.
        tokio::task::yield_now().await;
        while let Some(call) = self.calls.next().now_or_never() {
            self.on_call(call);
        }
        let (caught_up, now) = self.executor.fleet.with_load(|load, now| (load.caught_up(now), now));
        let _ = self.execution.on(Event::HedgeDue { caught_up }, now);
    }

    fn send(&mut self, request: RequestId, node: NodeId, keys: Arc<[u32]>, cause: Cause) {
        let fleet = &self.executor.fleet;
        let mut message = self.message(&keys);
        if cause == Cause::Plan {
            let reservation = self.planned.reservations.get(request.0 as usize).copied().flatten();
            message.reservation = reservation.map(|id| v1::Reservation { id, ..Default::default() });
        }
        let (cancel, cancelled) = oneshot::channel();
        let (addr, group) = match self.topology.table.node_index(node) {
            Some(index) => {
                let entry = self.topology.table.node_at(index);
                (entry.address.clone(), entry.group.0)
            }
            None => (String::new(), 0),
        };
        let transport = Arc::clone(fleet.transport());
        let charge = fleet.with_load(|load, now| {
            let charge = load.on_send(self.planned.work, node, keys.len(), now);
            if let Cause::Hedge { .. } = cause {
                load.on_hedge(&charge);
            }
            charge
        });
        self.trace.sent(request, node, group, keys.len(), cause);
        let sent = fleet.now();
        self.open.insert(request, Open { charge, keys, heard: 0, sent, _cancel: cancel });
        match self.in_parts {
            true => self.calls.push(calls::in_parts(request, transport, addr, message, cancelled)),
            false => self.calls.push(calls::whole(request, transport, addr, message, cancelled)),
        }
    }

    pub(super) fn message(&self, keys: &[u32]) -> v1::EvaluateRequest {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let header = v1::RequestHeader {
            epoch: self.topology.table.epoch().0,
            deadline_us: u64::try_from(left.as_micros()).unwrap_or(u64::MAX).max(1),
            client: self.executor.fleet.client(),
            trace_id: self.options.trace_id.clone(),
            workflow: workflow_to_wire(self.options.workflow),
            admitted: self.executor.admits,
            ..Default::default()
        };
        let mut request = v1::EvaluateRequest {
            header: Some(header),
            name: self.pinned.name.clone(),
            version: self.pinned.version,
            plan: Some(self.plan.clone()),
            in_slices: !self.in_parts,
            proofs: self.proofs,
            ..Default::default()
        };
        match &self.fan_out.scope {
            Scope::Keys(all) => request.keys = keys.iter().map(|&key| all[key as usize]).collect(),
            Scope::ByteKeys(all) => request.byte_keys = encode_keys(&all.select(keys)),
            Scope::Partitions => request.partitions = keys.to_vec(),
        }
        request
    }

    fn on_call(&mut self, call: Call) {
        let Some(answer) = call.answer else { return };
        let Some(open) = self.open.get(&call.request) else { return };
        let node = open.charge.node();
        let fleet = &self.executor.fleet;
        match answer {
            Ok(reply) => {
                fleet.on(node, HealthEvent::Success);
                self.trace.replied(call.request, &reply);
                self.executor.note_quota(&self.pinned.name, node, reply.quota_left());
                self.on_reply(call.request, node, reply, call.rest);
            }
            Err(status) => {
                let class = class_of(&status, self.pinned.version);
                match class {
                    FailureClass::Connection => fleet.on(node, HealthEvent::ConnectionError),
                    FailureClass::DeadlineExceeded | FailureClass::Timeout => {
                        fleet.on(node, HealthEvent::Timeout)
                    }
                    _ => fleet.on(node, HealthEvent::Success),
                }
                let code = kith_wire::code_of(&status);
                self.too_large |= code == ErrorCode::TooLarge;
                if class == FailureClass::Throttled {
                    self.executor.note_quota(&self.pinned.name, node, v1::QuotaLeft::QuotaTight);
                }
                if code.is_denial() || class == FailureClass::Throttled {
                    self.denied = Some(QueryError::from_status(&status));
                }
                self.reasons.push(format!("{node}: {}", status.message()));
                let is_late = matches!(class, FailureClass::DeadlineExceeded | FailureClass::Timeout);
                let end = if is_late { RequestEnd::TimedOut } else { RequestEnd::Failed };
                self.close(call.request, end, class.name());
                let _ = self.execution.on(Event::Failed { request: call.request, class }, fleet.now());
            }
        }
    }

    /// A reply, or the next part of one.
    fn on_reply(
        &mut self,
        request: RequestId,
        node: NodeId,
        mut reply: v1::EvaluateReply,
        rest: Option<Rest>,
    ) {
        let fleet = &self.executor.fleet;
        let now = fleet.now();
        if let Some(load) = &reply.load {
            let report = NodeReport { rps: load.requests_per_second, clients: load.clients };
            fleet.with_load(|load, now| load.on_report(node, report, now));
            if load.leaving {
                // Its answers count still; what comes next goes to others.
                fleet.on(node, HealthEvent::ProbeFailed);
            }
        }
        let wrong_version = reply.served.iter().any(|served| served.version != self.pinned.version);
        let Some(open) = self.open.get_mut(&request) else { return };
        let owed = &open.keys[open.heard..];
        let mut value = match value_of_reply(&mut reply, owed.len()) {
            Ok(value) if !wrong_version && answers(&value, owed.len(), rest.is_some()) => value,
            _ => {
                self.reasons.push(format!("{node}: sent a malformed answer"));
                self.close(request, RequestEnd::Failed, FailureClass::Internal.name());
                let _ = self.execution.on(Event::Failed { request, class: FailureClass::Internal }, now);
                return;
            }
        };
        let count = value.records().map_or(owed.len(), Records::len);
        let mut positions = owed[..count].to_vec();
        let is_last = count == owed.len();
        open.heard += count;
        match rest.filter(|_| !is_last) {
            Some(rest) => self.calls.push(calls::next_part(request, rest)),
            None => self.close(request, RequestEnd::Answered, "ok"),
        }
        let settled = value == Value::Exists(true);
        self.prove(node, &mut value, &positions);
        let damaged = value.records_mut().map(|records| records.split_damaged(&mut positions));
        let failed = self.failed_of(node, damaged.unwrap_or_default());
        let event = match (is_last, failed.is_empty()) {
            (false, _) => Event::ReplySoFar { request, keys: count as u32, failed },
            (true, false) => Event::ReplyInPart { request, failed },
            (true, true) => Event::Reply { request },
        };
        let mut part = Part { positions, value };
        match self.execution.on(event, now) {
            Disposition::Ignored => return,
            Disposition::Held => {
                self.held.insert(request, part);
                return;
            }
            Disposition::Accepted => {}
            Disposition::AcceptedInPart { late } => part.leave_out(&late),
        }
        self.service_us = self.service_us.max(reply.service_us);
        self.trace.won(request);
        self.parts.push(part);
        if settled {
            let _ = self.execution.on(Event::Satisfied, now);
        }
    }

    /// A reply with damaged records is one in part: another replica is asked for their keys, and for nothing else.
    fn failed_of(&mut self, node: NodeId, damaged: Vec<u32>) -> Vec<(u32, FailureClass)> {
        if !damaged.is_empty() {
            self.reasons.push(format!("{node}: {} damaged records", damaged.len()));
            self.damaged.extend(&damaged);
        }
        damaged.into_iter().map(|key| (key, FailureClass::Damaged)).collect()
    }

    fn on_down(&mut self, down: Result<NodeId, broadcast::error::RecvError>) {
        let now = self.executor.fleet.now();
        match down {
            Ok(node) => drop(self.execution.on(Event::NodeDown { node }, now)),
            Err(broadcast::error::RecvError::Lagged(_)) => {
                let nodes: Vec<NodeId> = self.open.values().map(|open| open.charge.node()).collect();
                for node in nodes.into_iter().filter(|node| !self.executor.fleet.is_up(*node)) {
                    let _ = self.execution.on(Event::NodeDown { node }, now);
                }
            }
            Err(broadcast::error::RecvError::Closed) => {}
        }
    }

    /// A request is over, whatever became of it: released exactly once.
    fn close(&mut self, request: RequestId, end: RequestEnd, outcome: &str) {
        let Some(open) = self.open.remove(&request) else { return };
        // It may have waited for us.
        let end = if open.sent < self.held_up { RequestEnd::Cancelled } else { end };
        self.executor.fleet.with_load(|load, now| load.on_end(open.charge, end, now));
        self.trace.closed(request, outcome);
    }

    fn close_all(&mut self) {
        for request in self.open.keys().copied().collect::<Vec<_>>() {
            self.close(request, RequestEnd::Cancelled, "cancelled");
        }
    }

    /// Why there is no answer.
    fn failure(&mut self, outcome: &Outcome) -> QueryError {
        self.trace.finish(0, outcome.stopped_early);
        if let Some(denied) = &self.denied {
            return denied.clone();
        }
        if self.too_large {
            return QueryError::too_large();
        }
        let availability = self.executor.fleet.availability_within(&self.topology.table, &self.pinned.reach);
        let table = &self.topology.table;
        let is_up = |node: &NodeIndex| availability.serving().contains(*node);
        let is_lost = |partition: PartitionId| !table.replicas(partition).iter().any(is_up);
        let deadline_ms = self.trace.allowed_ms(self.deadline);
        query_error(outcome, self.pinned, deadline_ms, &self.reasons, &is_lost)
    }

    /// What is left to tell once the answers were handed on, or why there were none: also of those who take partial answers,
    /// if nothing at all was answered.
    pub(super) fn conclude_handed(mut self, outcome: Outcome) -> Result<Handed, QueryError> {
        self.close_all();
        let is_failed = matches!(outcome.verdict, Verdict::Failed | Verdict::Cancelled);
        if is_failed || (outcome.answered == 0 && 0 < outcome.keys) {
            return Err(self.failure(&outcome));
        }
        self.trace.finish(outcome.answered.into(), outcome.stopped_early);
        Ok(Handed {
            failures: outcome.failures(),
            damaged: std::mem::take(&mut self.damaged),
            service_us: self.service_us,
        })
    }

    /// Merges what the nodes sent, or says why there is nothing to merge.
    pub(super) fn conclude(mut self, outcome: Outcome) -> Result<RoundOutcome, QueryError> {
        self.close_all();
        if matches!(outcome.verdict, Verdict::Failed | Verdict::Cancelled) {
            return Err(self.failure(&outcome));
        }
        let key_count = self.planned.partitions.len();
        let allowed = if self.options.partial { MissingKeys::Allow } else { MissingKeys::Refuse };
        let parts = std::mem::take(&mut self.parts);
        let merged = MERGE_SCRATCH
            .with_borrow_mut(|scratch| Value::merge(&self.fan_out.plan, key_count, parts, allowed, scratch));
        let mut value = merged
            .map_err(|error| QueryError::Internal { detail: format!("{}: {error}", self.fan_out.purpose) })?;
        if let Some(records) = value.records_mut() {
            for key in self.damaged.iter().map(|&key| key as usize) {
                if records.get(key) == Some(Record::Unanswered) {
                    records.fail(key, RecordError::Damaged);
                }
            }
        }
        self.trace.finish(ids_in(&value), outcome.stopped_early);
        let missing = outcome.missing.iter().map(|missing| missing.partition.0).collect();
        Ok(RoundOutcome { value, missing, failures: outcome.failures() })
    }
}

/// A query that nobody waits for any more owes its nodes nothing.
impl Drop for Round<'_> {
    fn drop(&mut self) {
        self.close_all();
    }
}

/// What a profile calls a request that was given up.
fn name_of(end: RequestEnd) -> &'static str {
    match end {
        RequestEnd::Overtaken => "overtaken",
        RequestEnd::TimedOut => "timed_out",
        RequestEnd::Answered | RequestEnd::Failed | RequestEnd::Cancelled => "cancelled",
    }
}

fn ids_in(value: &Value) -> u64 {
    match value {
        Value::Set(ids) | Value::Tallies { ids, .. } => ids.len() as u64,
        Value::Neighbourhood { ids, union } => (ids.len() + union.len()) as u64,
        Value::Count(count) => *count,
        Value::Lists(lists) => {
            lists.iter().map(|entry| if let ListEntry::Ids(ids) = entry { ids.len() as u64 } else { 0 }).sum()
        }
        Value::Edges(entries) => {
            let edges =
                |entry: &EdgesEntry| if let EdgesEntry::Page(page) = entry { page.ids.len() } else { 0 };
            entries.iter().map(edges).sum::<usize>() as u64
        }
        Value::Exists(exists) => u64::from(*exists),
        Value::Records(records) => records.counts().found,
        Value::Groups(groups) => groups.counts.len() as u64,
    }
}

/// A node answers each of the keys that it `owes`, be it with an error; if more may follow, the first of them at least.
fn answers(value: &Value, owes: usize, more: bool) -> bool {
    value.records().is_none_or(|records| {
        let is_enough = records.len() == owes || (more && (1..owes).contains(&records.len()));
        is_enough && records.counts().unanswered == 0
    })
}
