//! One fan-out under way: the shell of `kith_routing::Execution`.

use super::{
    Executor, Planned, RoundOutcome,
    failure::{TOO_LARGE, class_of, query_error},
    round_trace::RoundTrace,
};
use crate::{
    QueryError, QueryOptions,
    convert::{operator_to_wire, value_from_wire, workflow_to_wire},
    profile::Trace,
    topology::{Pinned, Topology},
    transport::Transport,
};
use futures::{StreamExt, future::BoxFuture, stream::FuturesUnordered};
use kith_ops::{
    FanOut, ListEntry, Missing as MissingKeys, Part, Record, RecordError, Scope, Value, sets::Scratch,
};
use kith_routing::{
    Execution, HealthEvent, NodeIndex,
    execution::{Action, Disposition, Event, ExecutionOptions, FailureClass, Outcome, RequestId, Verdict},
    load::NodeReport,
};
use kith_types::{FanOutKind, NodeId, PartitionId};
use kith_wire::{body::encode_keys, v1};
use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Instant,
};
use tokio::sync::{broadcast, oneshot};
use tonic::Status;

thread_local! {
    /// Its bitmap of half a mebibyte is cleared where it was used; a new one would be cleared whole for each merge.
    static MERGE_SCRATCH: RefCell<Scratch> = RefCell::new(Scratch::new());
}

/// One fan-out under way.
pub(super) struct Round<'a> {
    executor: &'a Executor,
    topology: &'a Topology,
    pinned: &'a Pinned,
    fan_out: &'a FanOut,
    planned: &'a Planned,
    options: &'a QueryOptions,
    deadline: Instant,
    plan: v1::Operator,
    execution: Execution,
    downs: broadcast::Receiver<NodeId>,
    /// Requests under way. Dropping one cancels it.
    calls: FuturesUnordered<BoxFuture<'a, Call>>,
    open: BTreeMap<RequestId, Open>,
    parts: Vec<Part>,
    trace: RoundTrace<'a>,
    /// What nodes said, for messages.
    reasons: Vec<String>,
    /// Whether a node refused because its share of the answer is too large.
    too_large: bool,
    /// Keys whose record was damaged somewhere, as indexes into the query's keys.
    damaged: BTreeSet<u32>,
}

struct Open {
    node: NodeId,
    keys: Arc<[u32]>,
    /// Dropped to cancel it.
    _cancel: oneshot::Sender<()>,
}

struct Call {
    request: RequestId,
    /// `None` if it was cancelled.
    answer: Option<Result<v1::EvaluateReply, Status>>,
}

impl<'a> Round<'a> {
    #[allow(clippy::too_many_arguments, reason = "a query's context is borrowed piece by piece")]
    pub(super) fn new(
        executor: &'a Executor,
        topology: &'a Topology,
        pinned: &'a Pinned,
        fan_out: &'a FanOut,
        planned: &'a Planned,
        options: &'a QueryOptions,
        deadline: Instant,
        trace: &'a mut Trace,
    ) -> Self {
        let fleet = &executor.fleet;
        let execution_options = ExecutionOptions {
            deadline: Some(fleet.at(deadline)),
            partial: options.partial,
            stop_early: planned.kind == FanOutKind::EarlyTerminable,
            seed: executor.with_routing(|state| rand::RngExt::random(&mut state.rng)),
            ..ExecutionOptions::default()
        };
        Self {
            execution: Execution::new(&planned.plan, &planned.partitions, execution_options, fleet.now()),
            plan: operator_to_wire(&fan_out.plan),
            downs: fleet.downs(),
            calls: FuturesUnordered::new(),
            open: BTreeMap::new(),
            parts: Vec::new(),
            trace: RoundTrace::new(trace, fan_out.purpose, planned),
            reasons: Vec::new(),
            too_large: false,
            damaged: BTreeSet::new(),
            executor,
            topology,
            pinned,
            fan_out,
            planned,
            options,
            deadline,
        }
    }

    pub(super) async fn drive(&mut self) -> Outcome {
        let deadline = tokio::time::sleep_until(self.deadline.into());
        tokio::pin!(deadline);
        loop {
            if let Some(outcome) = self.act() {
                return outcome;
            }
            tokio::select! {
                biased;
                Some(call) = self.calls.next() => self.on_call(call),
                down = self.downs.recv() => self.on_down(down),
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
        for action in self.execution.next(&view) {
            match action {
                Action::Send { request, node, keys } => self.send(request, node, keys),
                Action::Cancel { request } => self.close(request, "cancelled"),
                Action::Refresh { epoch } => tracing::info!(%epoch, "a node knows a newer routing table"),
                Action::Finish(ended) => outcome = Some(ended),
            }
        }
        outcome
    }

    fn send(&mut self, request: RequestId, node: NodeId, keys: Arc<[u32]>) {
        let fleet = &self.executor.fleet;
        let message = self.message(&keys);
        let (cancel, cancelled) = oneshot::channel();
        let (addr, group) = match self.topology.table.node_index(node) {
            Some(index) => {
                let entry = self.topology.table.node_at(index);
                (entry.address.clone(), entry.group.0)
            }
            None => (String::new(), 0),
        };
        let transport: Arc<dyn Transport> = Arc::clone(fleet.transport());
        self.executor
            .with_routing(|state| state.meter.on_send(self.planned.kind, node, keys.len(), fleet.now()));
        self.trace.sent(request, node, group, keys.len());
        self.open.insert(request, Open { node, keys, _cancel: cancel });
        self.calls.push(Box::pin(async move {
            let call = transport.evaluate(&addr, message);
            let answer = tokio::select! {
                answer = call => Some(answer),
                _ = cancelled => None,
            };
            Call { request, answer }
        }));
    }

    fn message(&self, keys: &[u32]) -> v1::EvaluateRequest {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let header = v1::RequestHeader {
            epoch: self.topology.table.epoch().0,
            deadline_us: u64::try_from(left.as_micros()).unwrap_or(u64::MAX).max(1),
            client: self.executor.fleet.client(),
            trace_id: self.options.trace_id.clone(),
            workflow: workflow_to_wire(self.options.workflow),
            ..Default::default()
        };
        let mut request = v1::EvaluateRequest {
            header: Some(header),
            graph: self.pinned.name.clone(),
            graph_version: self.pinned.version,
            plan: Some(self.plan.clone()),
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
        let (node, keys) = (open.node, Arc::clone(&open.keys));
        let fleet = &self.executor.fleet;
        match answer {
            Ok(reply) => {
                fleet.on(node, HealthEvent::Success);
                self.trace.replied(call.request, &reply);
                self.close(call.request, "ok");
                self.on_reply(call.request, node, keys, reply);
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
                self.too_large |= kith_wire::detail_of(&status).code == TOO_LARGE;
                self.reasons.push(format!("{node}: {}", status.message()));
                self.close(call.request, class.name());
                let _ = self.execution.on(Event::Failed { request: call.request, class }, fleet.now());
            }
        }
    }

    fn on_reply(&mut self, request: RequestId, node: NodeId, keys: Arc<[u32]>, reply: v1::EvaluateReply) {
        let fleet = &self.executor.fleet;
        let now = fleet.now();
        if let Some(load) = &reply.load {
            let report = NodeReport { rps: load.requests_per_second, clients: load.clients };
            self.executor.with_routing(|state| state.meter.on_report(node, report, now));
        }
        let wrong_version = reply.served.iter().any(|served| served.version != self.pinned.version);
        let mut positions = keys.to_vec();
        let mut value = match reply.value.map(value_from_wire) {
            Some(Ok(value)) if !wrong_version && answers_all(&value, keys.len()) => value,
            _ => {
                self.reasons.push(format!("{node}: sent a malformed answer"));
                let _ = self.execution.on(Event::Failed { request, class: FailureClass::Internal }, now);
                return;
            }
        };
        let settled = value == Value::Exists(true);
        let event = match value.records_mut() {
            Some(records) => self.reply_of(request, node, records.split_damaged(&mut positions)),
            None => Event::Reply { request },
        };
        if self.execution.on(event, now) == Disposition::Accepted {
            self.parts.push(Part { positions, value });
            if settled {
                let _ = self.execution.on(Event::Satisfied, now);
            }
        }
    }

    /// A reply with damaged records is one in part: another replica is asked for their keys, and for nothing else.
    fn reply_of(&mut self, request: RequestId, node: NodeId, damaged: Vec<u32>) -> Event {
        if damaged.is_empty() {
            return Event::Reply { request };
        }
        self.reasons.push(format!("{node}: {} damaged records", damaged.len()));
        self.damaged.extend(&damaged);
        let failed = damaged.into_iter().map(|key| (key, FailureClass::Damaged)).collect();
        Event::ReplyInPart { request, failed }
    }

    fn on_down(&mut self, down: Result<NodeId, broadcast::error::RecvError>) {
        let now = self.executor.fleet.now();
        match down {
            Ok(node) => drop(self.execution.on(Event::NodeDown { node }, now)),
            Err(broadcast::error::RecvError::Lagged(_)) => {
                let nodes: Vec<NodeId> = self.open.values().map(|open| open.node).collect();
                for node in nodes.into_iter().filter(|node| !self.executor.fleet.is_up(*node)) {
                    let _ = self.execution.on(Event::NodeDown { node }, now);
                }
            }
            Err(broadcast::error::RecvError::Closed) => {}
        }
    }

    /// A request is over, whatever became of it: released exactly once.
    fn close(&mut self, request: RequestId, outcome: &str) {
        let Some(open) = self.open.remove(&request) else { return };
        self.executor.with_routing(|state| state.meter.on_end(open.node, open.keys.len()));
        self.trace.closed(request, outcome);
    }

    /// Merges what the nodes sent, or says why there is nothing to merge.
    pub(super) fn conclude(mut self, outcome: Outcome) -> Result<RoundOutcome, QueryError> {
        for request in self.open.keys().copied().collect::<Vec<_>>() {
            self.close(request, "cancelled");
        }
        if matches!(outcome.verdict, Verdict::Failed | Verdict::Cancelled) {
            self.trace.finish(0, outcome.stopped_early);
            let availability =
                self.executor.fleet.availability_within(&self.topology.table, &self.pinned.reach);
            let table = &self.topology.table;
            let is_up = |node: &NodeIndex| availability.serving().contains(*node);
            let is_lost = |partition: PartitionId| !table.replicas(partition).iter().any(is_up);
            if self.too_large {
                return Err(QueryError::too_large());
            }
            let deadline_ms = self.trace.allowed_ms(self.deadline);
            return Err(query_error(&outcome, self.pinned, deadline_ms, &self.reasons, &is_lost));
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
        Ok(RoundOutcome { value, missing })
    }
}

fn ids_in(value: &Value) -> u64 {
    match value {
        Value::Set(ids) | Value::Tallies { ids, .. } => ids.len() as u64,
        Value::Count(count) => *count,
        Value::Lists(lists) => {
            lists.iter().map(|entry| if let ListEntry::Ids(ids) = entry { ids.len() as u64 } else { 0 }).sum()
        }
        Value::Exists(exists) => u64::from(*exists),
        Value::Records(records) => records.counts().found,
        Value::Groups(groups) => groups.counts.len() as u64,
    }
}

/// A node answers each of its keys, be it with an error.
fn answers_all(value: &Value, keys: usize) -> bool {
    value.records().is_none_or(|records| records.len() == keys && records.counts().unanswered == 0)
}
