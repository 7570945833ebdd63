//! A client, which decides with production code and acts through a simulated processor.
//!
//! It calls the production code in the same order as the executor of `kith-session`: it counts the query and measures the
//! load, the controller sets the limit, the policy makes the plan, and the execution decides what to do.

use crate::cluster::{ClusterConfig, QueryRecord};
use crate::station::Station;
use crate::workload::{QuerySpec, operation_of};
use kith_routing::execution::{Budgets, ExecutionOptions, RequestId};
use kith_routing::fan_out::ControllerStates;
use kith_routing::load::{Charge, Hedging, RequestEnd, Work};
use kith_routing::{
    Availability, Controllers, Execution, FanOutLimits, FanOutPlan, Health, HealthChange, HealthEvent,
    LoadMeter, PlanError, PolicyInputs, PolicyState, QueryShape, ReplicaPolicy, RoutingTable,
};
use kith_types::{FanOutKind, NodeId, PartitionId, Timestamp, Workflow};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Identifies a request of a client's query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RequestKey {
    pub(super) client: u32,
    pub(super) query: u64,
    pub(super) request: RequestId,
}

/// A task of a client's processor.
#[derive(Clone, Copy, Debug)]
pub(super) enum Task {
    Send(RequestKey),
    Receive(RequestKey),
}

impl Task {
    pub(super) fn key(&self) -> RequestKey {
        match self {
            Task::Send(key) | Task::Receive(key) => *key,
        }
    }
}

/// A request in flight.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) node: NodeId,
    pub(super) keys: Arc<[u32]>,
    /// The time at which the request left the client's processor.
    pub(super) left: Timestamp,
    /// The time at which the reply reached the client's queue.
    pub(super) back: Timestamp,
    pub(super) open: bool,
    /// `None` once the request has ended.
    pub(super) charge: Option<Charge>,
}

/// A query in progress.
#[derive(Debug)]
pub(super) struct Query {
    pub(super) kind: FanOutKind,
    pub(super) partitions: Vec<PartitionId>,
    pub(super) hits: Vec<PartitionId>,
    pub(super) execution: Execution,
    /// The time of the next [`Event::HedgeDue`](super::Event::HedgeDue), if one is scheduled.
    pub(super) hedge_timer: Option<Timestamp>,
    pub(super) calls: Vec<Call>,
    /// The number of answers for each key. It should be 1 for every key when the query is complete.
    pub(super) answers: Vec<u8>,
    pub(super) record: QueryRecord,
}

pub(super) struct Client {
    policy: &'static dyn ReplicaPolicy,
    controllers: Controllers,
    policy_state: PolicyState,
    controller_states: ControllerStates,
    pub(super) meter: LoadMeter,
    budgets: Budgets,
    pub(super) health: Health,
    availability: Availability,
    pub(super) station: Station<Task>,
    pub(super) queries: BTreeMap<u64, Query>,
    next_query: u64,
    /// The random numbers for queries and their times. They do not depend on the strategy, so all strategies get the same
    /// queries.
    pub(super) asked: StdRng,
    decided: StdRng,
    deadline: Option<Duration>,
    hedging: Hedging,
}

impl Client {
    pub(super) fn new(config: &ClusterConfig, table: &RoutingTable, number: u32) -> Self {
        let stream = |stream: u64| kith_types::fmix64(config.seed ^ (u64::from(number) << 8 | stream) << 32);
        let mut health = Health::new(config.health);
        health.follow(table, Timestamp::ZERO);
        // Routers probe each node once before they accept queries. This puts the client in the same state.
        for node in table.nodes() {
            health.on(node.id, HealthEvent::ProbeOk, Timestamp::ZERO);
        }
        Self {
            policy: config.strategy.policy,
            controllers: config.strategy.controllers.clone(),
            policy_state: PolicyState::new(stream(1)),
            controller_states: ControllerStates::default(),
            meter: LoadMeter::default(),
            budgets: Budgets::default(),
            availability: Availability::all(table),
            health,
            station: Station::new(config.client.workers),
            queries: BTreeMap::new(),
            next_query: 0,
            asked: StdRng::seed_from_u64(stream(2)),
            decided: StdRng::seed_from_u64(stream(3)),
            deadline: config.deadline,
            hedging: config.strategy.hedging,
        }
    }

    fn plan(
        &mut self,
        spec: &QuerySpec,
        table: &RoutingTable,
        now: Timestamp,
    ) -> Result<FanOutPlan, PlanError> {
        let view = table.view(&self.availability);
        let shape = QueryShape {
            operation: operation_of(spec.kind),
            kind: spec.kind,
            keys: spec.partitions.len() as u32,
            workflow: Workflow::Interactive,
            groups: view.group_count() as u32,
            nodes_per_group: view.nodes_per_group() as u32,
            now,
        };
        self.meter.on_query(spec.kind, now);
        let load = self.meter.snapshot(now);
        let limits = FanOutLimits::default();
        let decision = self.controllers.decide(limits, &shape, &load, &mut self.controller_states);
        let limit = decision.limit;
        let inputs = PolicyInputs { view, keys: &spec.partitions, limit, load: &load };
        self.policy.plan(&inputs, &mut self.policy_state, &mut self.decided)
    }

    /// Plans a query and begins its execution. Returns the number of the query.
    ///
    /// # Errors
    /// If a partition has no replica that the client knows.
    pub(super) fn begin(
        &mut self,
        spec: QuerySpec,
        table: &RoutingTable,
        now: Timestamp,
    ) -> Result<u64, PlanError> {
        let plan = self.plan(&spec, table, now)?;
        let QuerySpec { kind, partitions, hits } = spec;
        let options = ExecutionOptions {
            deadline: self.deadline.map(|deadline| now + deadline),
            stop_early: kind == FanOutKind::EarlyTerminable,
            seed: self.decided.random(),
            hedging: self.meter.hedge_rule(self.hedging, Work::graph(kind), partitions.len(), now),
            ..ExecutionOptions::default()
        };
        let query = Query {
            kind,
            execution: Execution::new(&plan, &partitions, options, now),
            hedge_timer: None,
            hits,
            calls: Vec::with_capacity(plan.requests()),
            answers: vec![0; partitions.len()],
            record: QueryRecord::begin(kind, partitions.len(), plan.busiest_keys(), now),
            partitions,
        };
        let number = self.next_query;
        self.next_query += 1;
        self.queries.insert(number, query);
        Ok(number)
    }

    /// Returns the request and the kind of its query if the request is still open.
    pub(super) fn open_call(&mut self, key: RequestKey) -> Option<(&mut Call, FanOutKind)> {
        let query = self.queries.get_mut(&key.query)?;
        let call = query.calls.get_mut(key.request.0 as usize)?;
        call.open.then_some((call, query.kind))
    }

    /// Closes a request with the given outcome, if it is still open.
    pub(super) fn close(&mut self, key: RequestKey, end: RequestEnd, now: Timestamp) {
        let Some((call, _)) = self.open_call(key) else { return };
        call.open = false;
        if let Some(charge) = call.charge.take() {
            self.meter.on_end(charge, end, now);
        }
    }

    /// Returns the next actions of the query's execution.
    pub(super) fn next(&mut self, query: u64, table: &RoutingTable) -> Vec<kith_routing::execution::Action> {
        let view = table.view(&self.availability);
        let budgets = &mut self.budgets;
        self.queries.get_mut(&query).map_or(Vec::new(), |query| query.execution.next(&view, budgets))
    }

    /// Records a health event of a node. Returns whether this event made the client consider the node down.
    pub(super) fn on_health(
        &mut self,
        node: NodeId,
        event: HealthEvent,
        table: &RoutingTable,
        now: Timestamp,
    ) -> bool {
        let Some(change) = self.health.on(node, event, now) else { return false };
        self.availability = self.health.availability(table);
        self.availability.rescue(table);
        if change == HealthChange::Up {
            self.meter.on_return(node);
        }
        change == HealthChange::Down
    }
}
