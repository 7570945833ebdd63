//! The one executor: carries every fan-out of every query through sending, failing
//! over, stopping early and merging. What to do is decided by `kith_routing`; this
//! only does it.

use crate::{
    QueryError, QueryOptions,
    convert::{operator_to_wire, value_from_wire, workflow_to_wire},
    fleet::Fleet,
    profile::{Trace, planned_requests},
    settings::{SessionSettings, SettingsError},
    topology::{Graph, Topology},
    transport::{GrpcTransport, Transport},
};
use futures::{StreamExt, future::BoxFuture, stream::FuturesUnordered};
use kith_ops::{FanOut, ListEntry, Missing as MissingKeys, Part, Scope, Value, sets::Scratch};
use kith_routing::{
    Controllers, Execution, FanOutLimit, FanOutPlan, GroupLimit, HealthEvent, LoadMeter, LoadSnapshot,
    PlanError, PolicyState, QueryShape, ReplicaPolicy,
    execution::{
        Action, Disposition, Event, ExecutionOptions, FailureClass, MissingReason, Outcome, RequestId,
        Verdict,
    },
    fan_out::ControllerStates,
    load::NodeReport,
    policy,
};
use kith_types::{FanOutKind, NodeId, PartitionId, StoreVersion, Workflow, partition_of_id};
use kith_wire::v1;
use rand::{SeedableRng, rngs::StdRng};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};
use tokio::sync::{broadcast, watch};
use tonic::Status;

/// Runs fan-outs. One per process and cluster.
pub struct Executor {
    fleet: Arc<Fleet>,
    controllers: Controllers,
    policy: &'static dyn ReplicaPolicy,
    /// Cursors, controller memory, load measurements and the random source. Locked for microseconds, once per fan-out and reply.
    routing: Mutex<RoutingState>,
}

struct RoutingState {
    policy: PolicyState,
    controllers: ControllerStates,
    meter: LoadMeter,
    rng: StdRng,
}

/// What a fan-out gave.
#[derive(Debug)]
pub struct RoundOutcome {
    /// The nodes' values, merged.
    pub value: Value,
    /// Partitions without an answer; empty unless the caller accepts partial answers.
    pub missing: Vec<u32>,
}

/// One fan-out as it will be sent.
pub(crate) struct Planned {
    pub kind: FanOutKind,
    pub controller: &'static str,
    pub policy: &'static str,
    pub limit: GroupLimit,
    pub plan: FanOutPlan,
    /// The partition of each key.
    pub partitions: Vec<PartitionId>,
}

impl Executor {
    /// An executor over gRPC.
    ///
    /// # Errors
    /// If the settings name a policy or controller that does not exist.
    pub fn new(
        topology: watch::Receiver<Arc<Topology>>,
        settings: &SessionSettings,
    ) -> Result<Self, SettingsError> {
        Self::over(topology, settings, Arc::new(GrpcTransport::default()))
    }

    /// An executor over any transport.
    ///
    /// # Errors
    /// If the settings name a policy or controller that does not exist.
    pub fn over(
        topology: watch::Receiver<Arc<Topology>>,
        settings: &SessionSettings,
        transport: Arc<dyn Transport>,
    ) -> Result<Self, SettingsError> {
        let seed = rand::random();
        let state = RoutingState {
            policy: PolicyState::new(seed),
            controllers: ControllerStates::default(),
            meter: LoadMeter::default(),
            rng: StdRng::seed_from_u64(seed),
        };
        Ok(Self {
            controllers: settings.controllers()?,
            policy: settings.policy()?,
            fleet: Fleet::new(topology, transport),
            routing: Mutex::new(state),
        })
    }

    /// The nodes' health and connections.
    pub fn fleet(&self) -> &Arc<Fleet> {
        &self.fleet
    }

    /// The load as measured here.
    pub fn load(&self) -> LoadSnapshot {
        self.with_routing(|state| state.meter.snapshot(self.fleet.now()))
    }

    fn with_routing<T>(&self, work: impl FnOnce(&mut RoutingState) -> T) -> T {
        work(&mut self.routing.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Decides who is asked for what: controller, then policy.
    ///
    /// # Errors
    /// [`QueryError::UnknownPolicy`]; partitions without any replica, unless partial answers are allowed.
    pub(crate) fn plan(
        &self,
        topology: &Topology,
        fan_out: &FanOut,
        options: &QueryOptions,
    ) -> Result<Planned, QueryError> {
        let policy = match &options.policy {
            None => self.policy,
            Some(name) => {
                policy::by_name(name).ok_or_else(|| QueryError::UnknownPolicy { name: name.clone() })?
            }
        };
        let count = topology.table.partition_count();
        let partitions: Vec<PartitionId> = match &fan_out.scope {
            Scope::Keys(keys) => keys.iter().map(|&key| partition_of_id(key, count)).collect(),
            Scope::Partitions => count.iter().collect(),
        };
        let availability = self.fleet.availability(&topology.table);
        let view = topology.table.view(&availability);
        let kind = effective_kind(fan_out, options.workflow);
        let query = QueryShape {
            kind,
            keys: partitions.len() as u32,
            workflow: options.workflow,
            groups: view.group_count() as u32,
            nodes_per_group: view.nodes_per_group() as u32,
            now: self.fleet.now(),
        };
        self.with_routing(|state| {
            state.meter.on_query(kind, query.now);
            let load = state.meter.snapshot(query.now);
            let limit = self.controllers.limit(options.fan_out, &query, &load, &mut state.controllers);
            let RoutingState { policy: memory, rng, .. } = state;
            let planned = if options.partial {
                policy::plan_what_is_up(policy, &view, &partitions, limit, memory, &load, rng)
            } else {
                policy.plan(&view, &partitions, limit, memory, &load, rng)
            };
            let plan = planned.map_err(|error| unplannable(&error))?;
            let controller = match options.fan_out {
                FanOutLimit::Auto => self.controllers.controller(kind, options.workflow).name(),
                FanOutLimit::Min | FanOutLimit::Max | FanOutLimit::Groups(_) => "the caller",
            };
            Ok(Planned { kind, controller, policy: policy.name(), limit, plan, partitions })
        })
    }

    /// Runs one fan-out to its end.
    ///
    /// # Errors
    /// [`QueryError`], within the deadline.
    pub async fn run(
        &self,
        topology: &Topology,
        graph: &Graph,
        fan_out: &FanOut,
        options: &QueryOptions,
        deadline: Instant,
        trace: &mut Trace,
    ) -> Result<RoundOutcome, QueryError> {
        let planned = self.plan(topology, fan_out, options)?;
        let started = Instant::now();
        let execution = Execution::new(
            &planned.plan,
            &planned.partitions,
            ExecutionOptions {
                deadline: Some(self.fleet.at(deadline)),
                partial: options.partial,
                stop_early: planned.kind == FanOutKind::EarlyTerminable,
                seed: self.with_routing(|state| rand::RngExt::random(&mut state.rng)),
                ..ExecutionOptions::default()
            },
            self.fleet.now(),
        );
        let mut round = Round {
            executor: self,
            topology,
            graph,
            fan_out,
            planned: &planned,
            options,
            deadline,
            plan: operator_to_wire(&fan_out.plan),
            execution,
            downs: self.fleet.downs(),
            calls: FuturesUnordered::new(),
            open: BTreeMap::new(),
            parts: Vec::new(),
            profile: trace.is_wanted().then(|| planned.profile()),
            trace,
            reasons: Vec::new(),
        };
        let outcome = round.drive().await;
        if planned.kind == FanOutKind::EarlyTerminable && outcome.verdict == Verdict::Complete {
            self.with_routing(|state| state.meter.on_terminable_end(outcome.stopped_early));
        }
        round.conclude(outcome, started)
    }
}

fn effective_kind(fan_out: &FanOut, workflow: Workflow) -> FanOutKind {
    match (&fan_out.scope, fan_out.kind, workflow) {
        (Scope::Keys(keys), _, _) if keys.len() == 1 => FanOutKind::SingleKey,
        (_, FanOutKind::SyncUnion, Workflow::Background) => FanOutKind::AsyncUnion,
        (_, kind, _) => kind,
    }
}

fn unplannable(error: &PlanError) -> QueryError {
    match error {
        PlanError::NoReplica { partitions } => QueryError::PartitionsUnavailable {
            partitions: partitions.iter().map(|partition| partition.0).collect(),
            reason: "no replica is up".to_owned(),
        },
        other => QueryError::Internal { detail: other.to_string() },
    }
}

/// One fan-out under way.
struct Round<'a> {
    executor: &'a Executor,
    topology: &'a Topology,
    graph: &'a Graph,
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
    profile: Option<v1::RoundProfile>,
    trace: &'a mut Trace,
    /// What nodes said, for messages.
    reasons: Vec<String>,
}

struct Open {
    node: NodeId,
    keys: Arc<[u32]>,
    cancel: Option<tokio::sync::oneshot::Sender<()>>,
    sent: Instant,
    /// Its place in the profile.
    profile: Option<usize>,
}

struct Call {
    request: RequestId,
    /// `None` if it was cancelled.
    answer: Option<Result<v1::EvaluateReply, Status>>,
}

impl<'a> Round<'a> {
    async fn drive(&mut self) -> Outcome {
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
        let availability = self.executor.fleet.availability(&self.topology.table);
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
        let (cancel, cancelled) = tokio::sync::oneshot::channel();
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
        let sent = Instant::now();
        let profile = self.profile_sent(node, group, keys.len(), sent);
        self.open.insert(request, Open { node, keys, cancel: Some(cancel), sent, profile });
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
        let (ids, partitions) = match &self.fan_out.scope {
            Scope::Keys(all) => (keys.iter().map(|&key| all[key as usize]).collect(), Vec::new()),
            Scope::Partitions => (Vec::new(), keys.to_vec()),
        };
        v1::EvaluateRequest {
            header: Some(header),
            graph: self.graph.name.clone(),
            graph_version: self.graph.version,
            keys: ids,
            partitions,
            plan: Some(self.plan.clone()),
        }
    }

    fn on_call(&mut self, call: Call) {
        let Some(answer) = call.answer else { return };
        let Some(open) = self.open.get(&call.request) else { return };
        let (node, keys) = (open.node, Arc::clone(&open.keys));
        let fleet = &self.executor.fleet;
        match answer {
            Ok(reply) => {
                fleet.on(node, HealthEvent::Success);
                self.profile_reply(call.request, &reply);
                self.close(call.request, "ok");
                self.on_reply(call.request, node, keys, reply);
            }
            Err(status) => {
                let class = class_of(&status, self.graph.version);
                match class {
                    FailureClass::Connection => fleet.on(node, HealthEvent::ConnectionError),
                    FailureClass::DeadlineExceeded | FailureClass::Timeout => {
                        fleet.on(node, HealthEvent::Timeout)
                    }
                    _ => fleet.on(node, HealthEvent::Success),
                }
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
        let wrong_version = reply.served.iter().any(|served| served.version != self.graph.version);
        let value = match reply.value.map(value_from_wire) {
            Some(Ok(value)) if !wrong_version => value,
            _ => {
                self.reasons.push(format!("{node}: sent a malformed answer"));
                let _ = self.execution.on(Event::Failed { request, class: FailureClass::Internal }, now);
                return;
            }
        };
        let settled = value == Value::Exists(true);
        if self.execution.on(Event::Reply { request }, now) == Disposition::Accepted {
            self.parts.push(Part { positions: keys.to_vec(), value });
            if settled {
                let _ = self.execution.on(Event::Satisfied, now);
            }
        }
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
        drop(open.cancel);
        self.executor.with_routing(|state| state.meter.on_end(open.node, open.keys.len()));
        if let (Some(round), Some(place)) = (&mut self.profile, open.profile) {
            let entry = &mut round.requests[place];
            entry.took_us = u64::try_from(open.sent.elapsed().as_micros()).unwrap_or(u64::MAX);
            entry.outcome = outcome.to_owned();
        }
    }

    fn profile_sent(&mut self, node: NodeId, group: u32, keys: usize, sent: Instant) -> Option<usize> {
        let start_us = self.trace.micros(sent);
        let round = self.profile.as_mut()?;
        let attempt = 1 + round
            .requests
            .iter()
            .filter(|request| !request.outcome.is_empty() && request.outcome != "ok")
            .count()
            .min(1) as u32;
        round.requests.push(v1::RequestProfile {
            node: node.0,
            group,
            keys: keys as u64,
            start_us,
            attempt,
            ..Default::default()
        });
        Some(round.requests.len() - 1)
    }

    fn profile_reply(&mut self, request: RequestId, reply: &v1::EvaluateReply) {
        let place = self.open.get(&request).and_then(|open| open.profile);
        if let (Some(round), Some(place)) = (&mut self.profile, place) {
            round.requests[place].service_us = reply.service_us;
            round.requests[place].reply_bytes = kith_wire::encoded_len(reply) as u64;
        }
    }

    fn conclude(mut self, outcome: Outcome, started: Instant) -> Result<RoundOutcome, QueryError> {
        for request in self.open.keys().copied().collect::<Vec<_>>() {
            self.close(request, "cancelled");
        }
        if matches!(outcome.verdict, Verdict::Failed | Verdict::Cancelled) {
            self.note_round(started, 0, outcome.stopped_early);
            return Err(self.failure(&outcome));
        }
        let key_count = self.planned.partitions.len();
        let allowed = if self.options.partial { MissingKeys::Allow } else { MissingKeys::Refuse };
        let parts = std::mem::take(&mut self.parts);
        let value = Value::merge(&self.fan_out.plan, key_count, parts, allowed, &mut Scratch::new())
            .map_err(|error| QueryError::Internal { detail: format!("{}: {error}", self.fan_out.purpose) })?;
        self.note_round(started, ids_in(&value), outcome.stopped_early);
        let missing = outcome.missing.iter().map(|missing| missing.partition.0).collect();
        Ok(RoundOutcome { value, missing })
    }

    fn note_round(&mut self, started: Instant, merged_ids: u64, ended_early: bool) {
        if let Some(mut round) = self.profile.take() {
            round.start_us = self.trace.micros(started);
            round.took_us = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
            round.name = self.fan_out.purpose.to_owned();
            round.merged_ids = merged_ids;
            round.ended_early = ended_early;
            self.trace.round(round);
        }
    }

    fn failure(&self, outcome: &Outcome) -> QueryError {
        let Some(first) = outcome.missing.first() else {
            return QueryError::Internal { detail: "a fan-out failed without a reason".to_owned() };
        };
        let all = |wanted: fn(&MissingReason) -> bool| {
            outcome.missing.iter().all(|missing| wanted(&missing.reason))
        };
        let is_late = |reason: &MissingReason| {
            matches!(reason, MissingReason::Deadline | MissingReason::Failed(FailureClass::DeadlineExceeded))
        };
        if outcome.missing.iter().any(|missing| is_late(&missing.reason)) {
            return QueryError::DeadlineExceeded {
                deadline_ms: self.trace.micros(self.deadline).div_ceil(1_000),
            };
        }
        if all(|reason| matches!(reason, MissingReason::Failed(FailureClass::VersionUnavailable { .. }))) {
            return QueryError::VersionUnavailable {
                graph: self.graph.name.clone(),
                version: self.graph.version,
            };
        }
        let detail = self.reasons.last().cloned().unwrap_or_else(|| first.reason.to_string());
        match first.reason {
            MissingReason::Failed(FailureClass::Overloaded) => QueryError::Overloaded { detail },
            MissingReason::Failed(FailureClass::BadRequest) => QueryError::BadRequest { detail },
            _ => QueryError::PartitionsUnavailable {
                partitions: outcome.missing.iter().map(|missing| missing.partition.0).collect(),
                reason: detail,
            },
        }
    }
}

impl Planned {
    /// The round as planned: who will be asked for how much.
    pub(crate) fn profile(&self) -> v1::RoundProfile {
        v1::RoundProfile {
            kind: self.kind.name().to_owned(),
            controller: self.controller.to_owned(),
            policy: self.policy.to_owned(),
            groups_allowed: self.limit.0,
            keys: self.partitions.len() as u64,
            busiest_over_mean: self.plan.imbalance(),
            ..Default::default()
        }
    }

    /// The requests that will be sent, for `explain`.
    pub(crate) fn requests(&self, topology: &Topology) -> Vec<v1::RequestProfile> {
        planned_requests(&self.plan, |node| {
            topology.table.node_index(node).map_or(0, |index| topology.table.node_at(index).group.0)
        })
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
    }
}

/// What a status means for retries: the node's own code where it gave one.
fn class_of(status: &Status, version: u64) -> FailureClass {
    let detail = kith_wire::detail_of(status);
    match detail.code.as_str() {
        "unavailable" => FailureClass::Connection,
        "version_unavailable" => FailureClass::VersionUnavailable { version: StoreVersion(version) },
        "not_owner" => FailureClass::NotOwner { epoch: kith_types::Epoch(detail.epoch) },
        "overloaded" => FailureClass::Overloaded,
        "damaged" => FailureClass::Damaged,
        "deadline_exceeded" => FailureClass::DeadlineExceeded,
        "cancelled" => FailureClass::Connection,
        "bad_request" => FailureClass::BadRequest,
        "unsupported_operation" => FailureClass::Unsupported,
        _ if is_transport(status) => FailureClass::Connection,
        _ => FailureClass::Internal,
    }
}

/// Whether the status was made on this side, by a connection that broke.
fn is_transport(status: &Status) -> bool {
    std::error::Error::source(status).is_some() && status.details().is_empty()
}
