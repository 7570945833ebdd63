//! Plans fan-outs: first the controller decides, then the policy (Moolle §III).

use super::{Executor, FanOutCall, RoutingState};
use crate::profile::planned_requests;
use kith_operators::{Operator, ValueKind};
use kith_query::{FanOut, QueryError, QueryOptions};
use kith_routing::{
    Candidates, FanOutLimit, FanOutPlan, GroupLimit, LoadSnapshot, PlanError, PolicyInputs, QueryShape,
    ReplicaPolicy, Selector,
    execution::HedgeRule,
    fan_out::Decision,
    load::{RequestKind, Work},
    policy,
};
use kith_topology::{PinnedState, Topology};
use kith_types::{FanOutKind, PartitionId};
use kith_wire::v1;

/// One fan-out, ready to be sent.
pub(crate) struct PlannedFanOut {
    pub kind: FanOutKind,
    pub controller: &'static str,
    /// The selector that chose the controller, if one did.
    selector: Option<Selector>,
    groups_asked: u32,
    /// The inputs of the controller's decision, if a profile is wanted.
    inputs: Option<v1::ControllerInputs>,
    pub policy: &'static str,
    pub limit: GroupLimit,
    pub plan: FanOutPlan,
    pub work: Work,
    /// The rule for when its requests are late.
    pub hedging: Option<HedgeRule>,
    /// The partition of each key.
    pub partitions: Vec<PartitionId>,
    /// The reservation of each assignment of the plan, where keys are reserved.
    pub reservations: Vec<Option<u64>>,
}

impl Executor {
    /// Splits the replicas into as many disjoint shares as answers must agree, and returns the version pinned in each. No
    /// two shares ask one replica for the same key.
    pub(crate) fn shares(
        &self,
        topology: &Topology,
        pinned: &PinnedState,
        fan_out: &FanOut,
        required: u32,
    ) -> Vec<PinnedState> {
        let table = &topology.table;
        let partitions = fan_out.scope.partitions(table.partition_count());
        let availability = self.fleet.availability_within(table, &pinned.reach);
        let turn = self.with_routing(|state| rand::RngExt::random::<u32>(&mut state.rng)) as usize;
        let shares = pinned.reach.shares(table, &availability, &partitions, required as usize, turn);
        shares.into_iter().map(|reach| pinned.with_reach(reach)).collect()
    }

    /// Decides which nodes get which keys: first the controller, then the policy.
    ///
    /// # Errors
    /// [`QueryError::UnknownPolicy`]; an error for partitions without any replica, unless partial answers are allowed.
    pub(crate) fn plan(&self, asking: &FanOutCall<'_>) -> Result<PlannedFanOut, QueryError> {
        let &FanOutCall { topology, pinned, fan_out, options, .. } = asking;
        let partitions = fan_out.scope.partitions(topology.table.partition_count());
        let availability = self.fleet.availability_within(&topology.table, &pinned.reach);
        let (region, zone) = &self.region_and_zone;
        let near = topology.table.nodes_in_zone(region, zone);
        let view = topology.table.view(&availability).near(&near);
        let query = self.shape(asking, &view, partitions.len());
        let kind = query.kind;
        let work = Work { asked: asked(fan_out), kind };
        let policy = self.policy_for(work.asked, &query, options)?;
        let hedging = options.hedging.unwrap_or(self.hedging);
        let (load, hedging) = self.fleet.with_load(|load, now| {
            load.on_query(kind, now);
            (load.snapshot(now), load.hedge_rule(hedging, work, partitions.len(), now))
        });
        self.with_routing(|state| {
            let decision = self.controllers.decide(options.fan_out, &query, &load, &mut state.controllers);
            let Decision { by, groups_asked, limit } = decision;
            let inputs = PolicyInputs { view, keys: &partitions, limit, load: &load };
            let RoutingState { policy: memory, rng, .. } = state;
            let planned = match options.partial {
                true => policy::plan_what_is_up(policy, &inputs, memory, rng),
                false => policy.plan(&inputs, memory, rng),
            };
            let plan = planned.map_err(|error| unplannable(&error))?;
            Ok(PlannedFanOut {
                kind,
                controller: by.map_or(CALLER, |by| by.controller.name()),
                selector: by.and_then(|by| by.selector),
                groups_asked,
                inputs: options.profile.then(|| controller_inputs(&decision, &query, &load)),
                policy: policy.name(),
                limit,
                plan,
                work,
                hedging,
                partitions,
                reservations: Vec::new(),
            })
        })
    }

    /// Describes a fan-out for controllers.
    pub(super) fn shape(&self, asking: &FanOutCall<'_>, view: &Candidates<'_>, keys: usize) -> QueryShape {
        let &FanOutCall { fan_out, options, .. } = asking;
        QueryShape {
            operation: asking.operation,
            kind: fan_out.kind.deciding(fan_out.scope.key_count(), options.workflow),
            keys: keys as u32,
            workflow: options.workflow,
            groups: view.group_count() as u32,
            nodes_per_group: view.nodes_per_group() as u32,
            now: self.fleet.now(),
        }
    }

    /// The policy that the caller names, else the session's. Reads by key have a policy of their own, which uses one group.
    /// It does not apply if the caller or a configured controller sets the number of groups.
    pub(super) fn policy_for(
        &self,
        asked: RequestKind,
        query: &QueryShape,
        options: &QueryOptions,
    ) -> Result<&'static dyn ReplicaPolicy, QueryError> {
        if let Some(name) = &options.policy {
            return policy::by_name(name).ok_or_else(|| unknown_policy(name));
        }
        let is_left_to_defaults = options.fan_out.of(query.kind) == FanOutLimit::Auto
            && self.controllers.deciding(query).selector.is_none();
        match asked {
            RequestKind::Values | RequestKind::Computed if is_left_to_defaults => Ok(self.policy_values),
            RequestKind::Values | RequestKind::Computed | RequestKind::Graph => Ok(self.policy),
        }
    }
}

/// The name in profiles for the decision of a caller who sets the number of groups.
const CALLER: &str = "the caller";

/// The inputs of a decision, for the profile.
fn controller_inputs(
    decision: &Decision<'_>,
    query: &QueryShape,
    load: &LoadSnapshot,
) -> v1::ControllerInputs {
    let of_kind = load.kind(query.kind);
    v1::ControllerInputs {
        controller: decision.by.map(|by| by.text.to_owned()).unwrap_or_default(),
        operation: query.operation.name().to_owned(),
        workflow: query.workflow.name().to_owned(),
        groups: query.groups,
        nodes_per_group: query.nodes_per_group,
        kind_fan_outs_per_second: of_kind.qps,
        kind_requests_per_second: of_kind.rps,
        client_requests_per_second: load.client_rps(),
        clients: load.clients,
        node_requests_per_second: load.node_rps_mean(),
        termination_share: load.termination_share,
    }
}

/// The kind of request for which latencies are compared.
pub(super) fn asked(fan_out: &FanOut) -> RequestKind {
    match (&fan_out.plan, fan_out.plan.check()) {
        (Operator::Lookup, _) => RequestKind::Values,
        (_, Ok(ValueKind::Records | ValueKind::Groups)) => RequestKind::Computed,
        _ => RequestKind::Graph,
    }
}

impl PlannedFanOut {
    /// The planned round for the profile.
    pub(crate) fn profile(&self) -> v1::RoundProfile {
        v1::RoundProfile {
            kind: self.kind.name().to_owned(),
            controller: self.controller.to_owned(),
            selector: self.selector.map(|selector| selector.to_string()).unwrap_or_default(),
            groups_asked: self.groups_asked,
            inputs: self.inputs.clone(),
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

fn unplannable(error: &PlanError) -> QueryError {
    match error {
        PlanError::NoReplica { partitions } => QueryError::PartitionsUnavailable {
            partitions: partitions.iter().map(|partition| partition.0).collect(),
            reason: "no replica is up".to_owned(),
        },
        other => QueryError::Internal { detail: other.to_string() },
    }
}

/// The error for a policy that does not exist.
pub(crate) fn unknown_policy(name: &str) -> QueryError {
    let known = policy::ALL.iter().map(|policy| policy.name().to_owned()).collect();
    QueryError::UnknownPolicy { name: name.to_owned(), known }
}
