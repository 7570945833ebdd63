//! Tests of which replicas are asked, according to Venice's own tests (RO, CO) and the two tables of its paper. Each
//! test is named after its entry in the list distilled from those tests.

mod support;

use kith_routing::execution::{
    Action, Budgets, Cause, Disposition, Event, ExecutionOptions, FailureClass, HedgeRule, RequestId,
};
use kith_routing::{
    Availability, Execution, FanOutPlan, GroupLimit, LoadSnapshot, NodeLoad, PlanError, PolicyInputs,
    PolicyState, ReplicaPolicy, RoutingTable, Strategy, policy,
};
use kith_types::{GroupId, NodeId, PartitionId, Timestamp};
use rand::SeedableRng;
use rand::rngs::StdRng;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use support::{owned_by, random_keys, table};

fn at(millis: u64) -> Timestamp {
    Timestamp(Duration::from_millis(millis))
}

fn plan_with(
    table: &RoutingTable,
    policy: &dyn ReplicaPolicy,
    keys: &[PartitionId],
    load: &[(u32, u64, u32, Option<f64>)],
    seed: u64,
) -> FanOutPlan {
    let node =
        |(id, outstanding_keys, outstanding_requests, seconds_per_key): &(u32, u64, u32, Option<f64>)| {
            NodeLoad {
                node: NodeId(*id),
                outstanding_keys: *outstanding_keys,
                outstanding_requests: *outstanding_requests,
                seconds_per_key: *seconds_per_key,
                ..NodeLoad::default()
            }
        };
    let load = LoadSnapshot { nodes: load.iter().map(node).collect(), ..LoadSnapshot::default() };
    let up = Availability::all(table);
    let (mut state, mut rng) = (PolicyState::new(seed), StdRng::seed_from_u64(seed));
    let inputs = PolicyInputs { view: table.view(&up), keys, limit: GroupLimit(1), load: &load };
    policy.plan(&inputs, &mut state, &mut rng).expect("all is up")
}

fn named(name: &str) -> &'static dyn ReplicaPolicy {
    policy::by_name(name).expect("a registered policy")
}

/// RO-1: among replicas with 10, 5 and 1 pending requests, the last is chosen. Equal ones are chosen evenly.
#[test]
fn ro_1_the_least_loaded_replica_is_chosen_and_equals_evenly() {
    let table = owned_by(&[&[0], &[1], &[2]], &|node| node, Strategy::ReplicaGroups);
    for name in ["least-loaded", "least-pending"] {
        let chosen = |load: &[(u32, u64, u32, Option<f64>)], seed| {
            plan_with(&table, named(name), &[PartitionId(0)], load, seed).assignments[0].node
        };
        for seed in 0..50 {
            assert_eq!(chosen(&[(0, 10, 10, None), (1, 5, 5, None), (2, 1, 1, None)], seed), NodeId(2));
        }
        let mut counts = [0u32; 3];
        (0..3_000).for_each(|seed| {
            counts[chosen(&[(0, 7, 7, None), (1, 7, 7, None), (2, 7, 7, None)], seed).0 as usize] += 1;
        });
        assert!(counts.iter().all(|count| (900..1_100).contains(count)), "{name}: {counts:?}");
    }
}

/// RO-2, as Kith does it: among equal replicas, a fast one gets more, none gets nothing, and one without data is tried.
#[test]
fn ro_2_slower_replicas_get_less_and_unknown_ones_their_fair_share() {
    let table = owned_by(&[&[0], &[1], &[2]], &|node| node, Strategy::ReplicaGroups);
    let load = [(0, 0, 0, Some(0.001)), (1, 0, 0, Some(0.002)), (2, 0, 0, None)];
    let mut counts = [0u32; 3];
    (0..6_000).for_each(|seed| {
        let plan = plan_with(&table, named("least-loaded"), &[PartitionId(0)], &load, seed);
        counts[plan.assignments[0].node.0 as usize] += 1;
    });
    // 1/pace² gives 4 to 1; the unknown replica has the mean of the two.
    for (count, expected) in counts.iter().zip([3_200, 800, 2_000]) {
        assert!((*count as i64 - expected).abs() < 250, "{counts:?}");
    }
}

/// RO-3: a request that touches all partitions hits exactly the hosts of one group. While it is in flight, the next request
/// takes another group. A partition whose replica is gone goes to another group, and the others stay.
#[test]
fn ro_3_all_partitions_are_asked_in_one_group_and_only_what_is_gone_elsewhere() {
    let table = table(3, 4, 48, 5);
    let keys: Vec<PartitionId> = table.partition_count().iter().collect();
    let group_of = |node: NodeId| table.node(node).unwrap().group;
    let mut outstanding: BTreeMap<NodeId, u64> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for seed in 0..3 {
        let load: Vec<_> = outstanding.iter().map(|(node, keys)| (node.0, *keys, 1, None)).collect();
        let plan = plan_with(&table, named("least-loaded"), &keys, &load, seed);
        assert_eq!((plan.requests(), plan.groups.len()), (4, 1));
        seen.insert(plan.groups[0]);
        for assignment in &plan.assignments {
            *outstanding.entry(assignment.node).or_default() += assignment.keys.len() as u64;
        }
    }
    assert_eq!(seen.len(), 3, "each of the three is in another group");

    let gone = table.replicas(PartitionId(7))[0];
    let mut availability = Availability::all(&table);
    availability.exclude_replica(PartitionId(7), gone);
    // The other groups are busy, so group 0 is chosen although it lacks a partition.
    let busy = |group: u32| 100 * u64::from(group);
    let nodes = table.nodes().iter().map(|node| NodeLoad {
        node: node.id,
        outstanding_keys: busy(node.group.0),
        ..NodeLoad::default()
    });
    let load = LoadSnapshot { nodes: nodes.collect(), ..LoadSnapshot::default() };
    let (mut state, mut rng) = (PolicyState::new(1), StdRng::seed_from_u64(1));
    let view = table.view(&availability);
    let inputs = PolicyInputs { view, keys: &keys, limit: GroupLimit(1), load: &load };
    let plan = named("least-loaded").plan(&inputs, &mut state, &mut rng).unwrap();
    assert_eq!((plan.groups.clone(), plan.spilled_keys), (vec![GroupId(0), GroupId(1)], 1), "{plan}");
    for assignment in &plan.assignments {
        let elsewhere = group_of(assignment.node) != GroupId(0);
        assert!(!elsewhere || assignment.keys == [7], "{plan}");
    }
}

/// RO-5: excluded nodes are never asked. If all are excluded, this is reported at once.
#[test]
fn ro_5_excluded_nodes_are_never_asked_and_nobody_waits_for_them() {
    let table = table(2, 2, 8, 1);
    let keys: Vec<PartitionId> = table.partition_count().iter().collect();
    for policy in policy::ALL {
        let mut availability = Availability::all(&table);
        let planned = |availability: &Availability| {
            let (mut state, mut rng) = (PolicyState::new(1), StdRng::seed_from_u64(1));
            let load = LoadSnapshot::default();
            let inputs = PolicyInputs {
                view: table.view(availability),
                keys: &keys,
                limit: GroupLimit(1),
                load: &load,
            };
            policy.plan(&inputs, &mut state, &mut rng)
        };
        let blocked = table.node_index(NodeId(1)).unwrap();
        availability.exclude(blocked);
        availability.rescue(&table);
        let plan = planned(&availability).unwrap();
        assert!(plan.assignments.iter().all(|assignment| assignment.node != NodeId(1)), "{plan}");
        (0..4).for_each(|node| availability.exclude(table.node_index(NodeId(node)).unwrap()));
        availability.rescue(&table);
        assert_eq!(planned(&availability), Err(PlanError::NoReplica { partitions: keys.clone() }));
    }
}

/// RO-6: counters that overflow and the largest seeds still give valid groups and replicas.
#[test]
fn ro_6_huge_counters_and_seeds_are_harmless() {
    let rule = HedgeRule::fixed(Duration::from_millis(10), Duration::from_millis(4));
    let hedged =
        ExecutionOptions { hedging: Some(rule), deadline: Some(at(100)), ..ExecutionOptions::default() };
    let table = table(3, 2, 12, 1);
    let up = Availability::all(&table);
    let view = table.view(&up);
    let keys = random_keys(&table, 50, &mut StdRng::seed_from_u64(1));
    for policy in policy::ALL {
        for seed in [u64::MAX, u64::MAX - 1, 1 << 63] {
            let huge = table.nodes().iter().map(|node| NodeLoad {
                node: node.id,
                outstanding_keys: u64::MAX / 8,
                outstanding_requests: u32::MAX,
                seconds_per_key: Some(f64::MAX),
                rps: f64::MAX,
                ..NodeLoad::default()
            });
            let load = LoadSnapshot { nodes: huge.collect(), ..LoadSnapshot::default() };
            let (mut state, mut rng) = (PolicyState::new(seed), StdRng::seed_from_u64(seed));
            let inputs = PolicyInputs { view, keys: &keys, limit: GroupLimit(u32::MAX), load: &load };
            let plan = policy.plan(&inputs, &mut state, &mut rng).unwrap();
            let mut execution = Execution::new(
                &plan,
                &keys,
                ExecutionOptions { seed, retries_max: u32::MAX, ..hedged },
                at(0),
            );
            let mut budgets = Budgets::unlimited();
            assert_eq!(execution.next(&view, &mut budgets).len(), plan.requests());
            let class = FailureClass::Connection;
            assert_eq!(
                execution.on(Event::Failed { request: RequestId(0), class }, at(1)),
                Disposition::Accepted
            );
            let retried = execution.next(&view, &mut budgets);
            assert!(matches!(retried[0], Action::Send { cause: Cause::Retry, .. }), "{}", policy.name());
        }
    }
}

/// CO-1: replica lists are immutable. Plans made concurrently on many threads never contain a key twice.
#[test]
fn co_1_concurrent_plans_share_a_table_and_hold_each_key_once() {
    let table = table(3, 4, 48, 2);
    let up = Availability::all(&table);
    let replicas: Vec<_> = table.partition_count().iter().map(|p| table.replicas(p).to_vec()).collect();
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let (table, up) = (&table, &up);
            scope.spawn(move || {
                let (mut state, mut rng) = (PolicyState::new(thread), StdRng::seed_from_u64(thread));
                for round in 0..300 {
                    let keys = random_keys(table, 60, &mut rng);
                    let policy = policy::ALL[round % policy::ALL.len()];
                    let load = LoadSnapshot::default();
                    let inputs =
                        PolicyInputs { view: table.view(up), keys: &keys, limit: GroupLimit(2), load: &load };
                    let plan = policy.plan(&inputs, &mut state, &mut rng).unwrap();
                    let mut held: Vec<u32> = plan.assignments.iter().flat_map(|a| a.keys.clone()).collect();
                    held.sort_unstable();
                    assert_eq!(held, (0..60).collect::<Vec<_>>());
                }
            });
        }
    });
    let after: Vec<_> = table.partition_count().iter().map(|p| table.replicas(p).to_vec()).collect();
    assert_eq!(replicas, after);
}

/// The paper's first table: six hosts in six zones, three replicas of six partitions, without groups. Requests for all
/// partitions hit two, three or more hosts, depending on which replicas are chosen. (H1 to H6 are n1 to n6.)
#[test]
fn without_groups_the_papers_six_hosts_give_a_fan_out_that_varies() {
    let hosted: [&[u32]; 6] = [&[1, 3, 5], &[1, 3, 5], &[1, 4, 6], &[2, 3, 6], &[2, 4, 5], &[2, 4, 6]];
    // Six zones of one host each. Each of them lacks three partitions.
    let owners: Vec<Vec<u32>> = (1..=6).map(|host| vec![host; 6]).collect();
    let owners: Vec<&[u32]> = owners.iter().map(Vec::as_slice).collect();
    let table = owned_by(&owners, &|node| node - 1, Strategy::ReplicaGroups);
    let mut availability = Availability::all(&table);
    for (index, held) in hosted.iter().enumerate() {
        let host = table.node_index(NodeId(index as u32 + 1)).unwrap();
        let lacks = (1..=6u32).filter(|partition| !held.contains(partition));
        lacks.for_each(|partition| availability.exclude_replica(PartitionId(partition - 1), host));
    }
    let view = table.view(&availability);
    let keys: Vec<PartitionId> = table.partition_count().iter().collect();
    assert!(keys.iter().all(|partition| view.replicas(*partition).count() == 3));
    let fan_out = |policy: &str, seed: u64| {
        let (mut state, mut rng) = (PolicyState::new(seed), StdRng::seed_from_u64(seed));
        let load = LoadSnapshot::default();
        let inputs = PolicyInputs { view, keys: &keys, limit: GroupLimit(1), load: &load };
        let plan = named(policy).plan(&inputs, &mut state, &mut rng);
        plan.unwrap().requests()
    };
    let fan_outs: BTreeSet<usize> = (0..300).map(|seed| fan_out("least-pending", seed)).collect();
    assert!(fan_outs.iter().any(|fan_out| 4 <= *fan_out) && 2 <= fan_outs.len(), "{fan_outs:?}");
    // The minimum is two: H1 or H2 together with H6.
    assert_eq!((0..300).map(|seed| fan_out("set-cover", seed)).min(), Some(2));
}

/// The paper's second table: as many zones as replicas. Requests for all partitions always hit two hosts.
#[test]
fn with_groups_the_papers_six_hosts_give_a_fan_out_of_two_always() {
    // R1: H1[1 3 5] H2[2 4 6], R2: H3[1 4 6] H4[2 3 5], R3: H5[2 4 5] H6[1 3 6].
    let owners: &[&[u32]] = &[&[1, 2, 1, 2, 1, 2], &[3, 4, 4, 3, 4, 3], &[6, 5, 6, 5, 5, 6]];
    let table = owned_by(owners, &|node| (node - 1) / 2, Strategy::ReplicaGroups);
    let keys: Vec<PartitionId> = table.partition_count().iter().collect();
    let mut groups = BTreeSet::new();
    for seed in 0..300u64 {
        let busy =
            |node: u32| (node, seed * 7_919 % (100 + u64::from(node)), 1, Some(0.001 * f64::from(node)));
        let load: Vec<_> = (1..=6).map(busy).collect();
        let plan = plan_with(&table, named("least-loaded"), &keys, &load, seed);
        assert_eq!(plan.requests(), 2, "{plan}");
        groups.insert(plan.groups[0]);
    }
    assert_eq!(groups.len(), 3, "all of them serve");
}
