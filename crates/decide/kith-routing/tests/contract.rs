//! The contract of every replica policy: see `ReplicaPolicy`. A new policy is tested as soon as it is registered.

mod support;

use kith_routing::{
    Availability, Candidates, FanOutPlan, GroupLimit, LoadSnapshot, PlanError, PolicyInputs, PolicyState,
    ReplicaPolicy, RoutingTable, policy,
};
use kith_types::PartitionId;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeSet;
use support::{damaged, random_keys, table};

fn plan(
    policy: &dyn ReplicaPolicy,
    view: &Candidates<'_>,
    keys: &[PartitionId],
    limit: u32,
    state: &mut PolicyState,
    seed: u64,
) -> Result<FanOutPlan, PlanError> {
    let mut rng = StdRng::seed_from_u64(seed);
    let inputs = PolicyInputs { view: *view, keys, limit: GroupLimit(limit), load: &LoadSnapshot::default() };
    policy.plan(&inputs, state, &mut rng)
}

/// Checks that each key is on exactly one node that may serve it, and that the plan's own numbers are correct.
fn check(plan: &FanOutPlan, table: &RoutingTable, view: &Candidates<'_>, keys: &[PartitionId]) {
    let mut seen = vec![false; keys.len()];
    for assignment in &plan.assignments {
        assert!(!assignment.keys.is_empty(), "an empty request: {plan}");
        assert!(assignment.keys.is_sorted(), "keys out of order: {plan}");
        let node = table.node_index(assignment.node).expect("a node of the table");
        for key in &assignment.keys {
            assert!(
                !std::mem::replace(&mut seen[*key as usize], true),
                "key {key} is assigned twice: {plan}"
            );
            assert!(view.replicas(keys[*key as usize]).any(|replica| replica == node), "key {key}: {plan}");
        }
    }
    assert!(seen.iter().all(|seen| *seen), "a key is left out: {plan}");
    assert_eq!(plan.keys(), keys.len());
    let nodes: BTreeSet<_> = plan.assignments.iter().map(|assignment| assignment.node).collect();
    assert_eq!(nodes.len(), plan.requests(), "two requests to one node: {plan}");
    let groups: BTreeSet<_> =
        nodes.iter().filter_map(|node| table.node(*node)).map(|node| node.group).collect();
    assert_eq!(plan.groups, groups.into_iter().collect::<Vec<_>>());
    assert!(plan.spilled_keys as usize <= keys.len());
}

#[test]
fn every_key_is_planned_once_or_its_partition_is_named() {
    for seed in 0..600 {
        let mut rng = StdRng::seed_from_u64(seed);
        let (groups, nodes) = (rng.random_range(1..=6), rng.random_range(1..=9));
        let table = table(groups, nodes, rng.random_range(nodes..=60), seed);
        let availability = damaged(&table, seed);
        let view = table.view(&availability);
        let count = rng.random_range(0..120);
        let keys = random_keys(&table, count, &mut rng);
        let lost: BTreeSet<_> = keys.iter().copied().filter(|p| view.replicas(*p).next().is_none()).collect();
        for policy in policy::ALL {
            let mut state = PolicyState::new(seed);
            match plan(*policy, &view, &keys, rng.random_range(0..=groups + 1), &mut state, seed) {
                Ok(plan) => {
                    assert!(lost.is_empty(), "{} planned partitions without a replica", policy.name());
                    check(&plan, &table, &view, &keys);
                }
                Err(error) => {
                    let partitions = lost.iter().copied().collect();
                    assert_eq!(error, PlanError::NoReplica { partitions }, "{}", policy.name());
                    assert!(!lost.is_empty());
                }
            }
        }
    }
}

#[test]
fn what_is_up_can_be_planned_without_the_rest() {
    for seed in 0..200 {
        let mut rng = StdRng::seed_from_u64(seed);
        let table = table(2, 4, 24, seed);
        let availability = damaged(&table, seed);
        let view = table.view(&availability);
        let keys = random_keys(&table, 40, &mut rng);
        let up = |key: &u32| view.replicas(keys[*key as usize]).next().is_some();
        let expected: Vec<u32> = (0..40).filter(up).collect();
        for policy in policy::ALL {
            let (mut state, load) = (PolicyState::new(seed), LoadSnapshot::default());
            let limit = GroupLimit(1);
            let inputs = PolicyInputs { view, keys: &keys, limit, load: &load };
            let plan = policy::plan_what_is_up(*policy, &inputs, &mut state, &mut rng).unwrap();
            let mut planned: Vec<u32> = plan.assignments.iter().flat_map(|a| a.keys.clone()).collect();
            planned.sort_unstable();
            assert_eq!(planned, expected, "{}", policy.name());
        }
    }
}

#[test]
fn equal_seeds_give_equal_plans() {
    let table = table(4, 5, 60, 1);
    let availability = damaged(&table, 17);
    let view = table.view(&availability);
    let keys: Vec<_> = random_keys(&table, 90, &mut StdRng::seed_from_u64(2));
    for policy in policy::ALL {
        let run = || {
            let mut state = PolicyState::new(9);
            (0..20).map(|round| plan(*policy, &view, &keys, 2, &mut state, round)).collect::<Vec<_>>()
        };
        assert_eq!(run(), run(), "{}", policy.name());
    }
}

#[test]
fn state_may_come_from_another_policy_and_another_table() {
    let tables = [table(3, 4, 50, 1), table(1, 2, 7, 2), table(5, 9, 90, 3), table(2, 3, 24, 4)];
    let mut state = PolicyState::new(5);
    for round in 0..40 {
        let mut rng = StdRng::seed_from_u64(round);
        let table = &tables[round as usize % tables.len()];
        let availability = Availability::all(table);
        let view = table.view(&availability);
        let keys = random_keys(table, 33, &mut rng);
        for policy in policy::ALL {
            let plan = plan(*policy, &view, &keys, 2, &mut state, round).unwrap();
            check(&plan, table, &view, &keys);
        }
    }
}

#[test]
fn no_keys_need_no_requests() {
    let table = table(2, 3, 24, 1);
    let availability = Availability::all(&table);
    for policy in policy::ALL {
        let plan = plan(*policy, &table.view(&availability), &[], 1, &mut PolicyState::new(1), 1).unwrap();
        assert_eq!((plan.requests(), plan.groups.len(), plan.busiest_keys()), (0, 0, 0));
    }
}

#[test]
fn a_partition_that_does_not_exist_is_refused() {
    let table = table(2, 3, 24, 1);
    let availability = Availability::all(&table);
    let view = table.view(&availability);
    for policy in policy::ALL {
        let keys = [PartitionId(3), PartitionId(24)];
        let error = plan(*policy, &view, &keys, 1, &mut PolicyState::new(1), 1).unwrap_err();
        assert_eq!(error.to_string(), "partition p24 does not exist: the table has 24", "{}", policy.name());
    }
}

#[test]
fn names_are_distinct_and_explained() {
    let names: BTreeSet<_> = policy::ALL.iter().map(|policy| policy.name()).collect();
    assert_eq!(names.len(), policy::ALL.len());
    for policy in policy::ALL {
        assert!(!policy.summary().is_empty());
        assert_eq!(policy::by_name(policy.name()).map(|found| found.name()), Some(policy.name()));
    }
    assert!(policy::by_name("set-cove").is_none());
}

#[test]
fn single_keys_fall_on_all_nodes_alike() {
    let table = table(4, 5, 60, 1);
    let availability = Availability::all(&table);
    let view = table.view(&availability);
    let mut rng = StdRng::seed_from_u64(3);
    for policy in policy::ALL {
        let mut state = PolicyState::new(7);
        let mut requests = vec![0u32; table.nodes().len()];
        for round in 0..20_000 {
            let keys = random_keys(&table, 1, &mut rng);
            let plan = plan(*policy, &view, &keys, 1, &mut state, round).unwrap();
            requests[plan.assignments[0].node.0 as usize] += 1;
        }
        let (least, most) = (requests.iter().min().unwrap(), requests.iter().max().unwrap());
        assert!(850 < *least && *most < 1_150, "{}: 1,000 expected, {requests:?}", policy.name());
    }
}

#[test]
fn a_message_names_the_first_partitions_and_counts_the_rest() {
    let partitions: Vec<_> = (0..20).map(PartitionId).collect();
    let message = PlanError::NoReplica { partitions }.to_string();
    assert_eq!(message, "no replica of p0, p1, p2, p3, p4, p5, p6, p7 and 12 more can serve now");
}
