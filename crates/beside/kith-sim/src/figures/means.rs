//! The mean cost of plans: production policies on random queries. Time is not simulated.

use crate::{strategy::Strategy, workload::operation_of};
use kith_routing::fan_out::ControllerStates;
use kith_routing::{
    Availability, FanOutLimits, LoadSnapshot, PolicyInputs, PolicyState, QueryShape, RoutingTable,
};
use kith_types::{FanOutKind, PartitionId, Timestamp, Workflow};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Means over several plans.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MeanPlan {
    /// The mean number of groups that the controller allowed.
    pub groups: f64,
    /// The mean number of requests per query.
    pub requests: f64,
    /// The mean number of keys on the busiest node.
    pub busiest_keys: f64,
}

/// Plans `queries` queries of `keys` uniformly random keys on a cluster in which every node is up.
///
/// # Panics
/// If a partition of the table has no replica.
pub fn mean_plan(
    table: &RoutingTable,
    strategy: &Strategy,
    kind: FanOutKind,
    keys: u32,
    queries: u32,
    seed: u64,
) -> MeanPlan {
    let up = Availability::all(table);
    let view = table.view(&up);
    let shape = QueryShape {
        operation: operation_of(kind),
        kind,
        keys,
        workflow: Workflow::Interactive,
        groups: view.group_count() as u32,
        nodes_per_group: view.nodes_per_group() as u32,
        now: Timestamp::ZERO,
    };
    let load = LoadSnapshot::default();
    let (mut memory, mut states) = (PolicyState::new(seed), ControllerStates::default());
    let mut rng = StdRng::seed_from_u64(seed);
    let partitions = table.partition_count().get();
    let mut sum = MeanPlan::default();
    for _ in 0..queries {
        let keys: Vec<PartitionId> =
            (0..keys).map(|_| PartitionId(rng.random_range(0..partitions))).collect();
        let limit = strategy.controllers.decide(FanOutLimits::default(), &shape, &load, &mut states).limit;
        let inputs = PolicyInputs { view, keys: &keys, limit, load: &load };
        let plan = strategy.policy.plan(&inputs, &mut memory, &mut rng);
        let plan = plan.expect("every replica is up");
        sum.groups += f64::from(limit.0);
        sum.requests += plan.requests() as f64;
        sum.busiest_keys += plan.busiest_keys() as f64;
    }
    let each = |sum: f64| sum / f64::from(queries);
    MeanPlan { groups: each(sum.groups), requests: each(sum.requests), busiest_keys: each(sum.busiest_keys) }
}
