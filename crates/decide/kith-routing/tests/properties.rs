//! Properties of placement and policies, compared with slow, obvious twins.

mod support;

use kith_routing::placement::{add_node, place, rebalance, remove_node};
use kith_routing::{
    Availability, Candidates, FanOutPlan, GroupLimit, LoadSnapshot, NodeIndex, OwnerChoice, OwnerOutcome,
    OwnerVerdict, Owners, OwnersOptions, PolicyInputs, PolicyState, RoutingTable, policy,
};
use kith_types::{NodeId, PartitionCount, PartitionId, Timestamp};
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::StdRng;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use support::{damaged, random_keys, table};

fn sizes(owners: &[NodeId]) -> BTreeMap<NodeId, usize> {
    let mut sizes = BTreeMap::new();
    owners.iter().for_each(|owner| *sizes.entry(*owner).or_default() += 1);
    sizes
}

fn is_balanced(owners: &[NodeId], nodes: &[NodeId]) -> bool {
    let sizes = sizes(owners);
    let of = |node: &NodeId| sizes.get(node).copied().unwrap_or(0);
    let most = nodes.iter().map(of).max().unwrap_or(0);
    let least = nodes.iter().map(of).min().unwrap_or(0);
    most - least <= 1 && sizes.values().sum::<usize>() == owners.len()
}

fn ids(range: std::ops::Range<u32>) -> Vec<NodeId> {
    range.map(NodeId).collect()
}

/// Returns the fewest moves after which sizes differ by at most one, over all choices of the nodes that keep one more. The
/// choice is decided by size alone.
fn fewest_moves(owners: &[NodeId], nodes: &[NodeId]) -> usize {
    let sizes = sizes(owners);
    let mut now: Vec<usize> = nodes.iter().map(|node| sizes.get(node).copied().unwrap_or(0)).collect();
    now.sort_unstable_by(|a, b| b.cmp(a));
    let (each, spare) = (owners.len() / nodes.len(), owners.len() % nodes.len());
    let kept: usize =
        now.iter().enumerate().map(|(rank, size)| *size.min(&(each + usize::from(rank < spare)))).sum();
    owners.len() - kept
}

fn plan(name: &str, view: &Candidates<'_>, keys: &[PartitionId], limit: u32, seed: u64) -> FanOutPlan {
    let (mut state, mut rng) = (PolicyState::new(seed), StdRng::seed_from_u64(seed));
    let policy = policy::by_name(name).expect("a registered policy");
    let inputs = PolicyInputs { view: *view, keys, limit: GroupLimit(limit), load: &LoadSnapshot::default() };
    policy.plan(&inputs, &mut state, &mut rng).expect("all are up")
}

proptest! {
    #[test]
    fn borrowed_nodes_are_few_and_make_no_node_busier(
        groups in 2u32..5, nodes in 1u32..12, partitions in 1u32..80, keys in 1usize..400, limit in 1u32..3, seed: u64,
    ) {
        let table = table(groups, nodes, partitions, seed);
        let up = Availability::all(&table);
        let view = table.view(&up);
        let keys = random_keys(&table, keys, &mut StdRng::seed_from_u64(seed));
        let [spread, adjusted, borrowed] =
            ["n-groups", "adjust", "borrow"].map(|name| plan(name, &view, &keys, limit, seed));
        prop_assert!(adjusted.busiest_keys() <= spread.busiest_keys(), "{} and {}", spread, adjusted);
        prop_assert_eq!(adjusted.requests(), spread.requests());
        prop_assert!(borrowed.busiest_keys() <= adjusted.busiest_keys(), "{} and {}", adjusted, borrowed);
        let more = borrowed.requests() - adjusted.requests();
        prop_assert!(more <= nodes.div_ceil(4) as usize, "{} and {}", adjusted, borrowed);
    }

    #[test]
    fn placements_are_balanced_and_repeatable(
        partitions in 1u32..300, groups in 1u32..6, nodes in 1u32..30, seed: u64,
    ) {
        let count = PartitionCount::new(partitions).unwrap();
        let by_group: Vec<_> = (0..groups).map(|group| ids(group * 100..group * 100 + nodes)).collect();
        let owners = place(count, &by_group, seed).unwrap();
        prop_assert_eq!(&owners, &place(count, &by_group, seed).unwrap());
        for (owners, nodes) in owners.iter().zip(&by_group) {
            prop_assert_eq!(owners.len(), partitions as usize);
            prop_assert!(owners.iter().all(|owner| nodes.contains(owner)));
            prop_assert!(is_balanced(owners, nodes));
        }
    }

    #[test]
    fn a_new_node_gets_its_share_and_nothing_else_moves(partitions in 1u32..400, nodes in 1u32..20, seed: u64) {
        let count = PartitionCount::new(partitions).unwrap();
        let before = place(count, &[ids(0..nodes)], seed).unwrap().remove(0);
        // A node that owns nothing does not appear among the owners, so only groups with owners on all nodes are extended
        // here.
        prop_assume!(nodes <= partitions);
        let plan = add_node(&before, NodeId(900), seed).unwrap();
        prop_assert_eq!(plan.moves.len(), (partitions / (nodes + 1)) as usize);
        prop_assert!(plan.moves.iter().all(|step| step.to == NodeId(900)));
        let mut all = ids(0..nodes);
        all.push(NodeId(900));
        prop_assert!(is_balanced(&plan.owners, &all));
        for (partition, owner) in before.iter().enumerate() {
            let moved = plan.moves.iter().find(|step| step.partition.index() == partition);
            prop_assert_eq!(plan.owners[partition], moved.map_or(*owner, |step| step.to));
            prop_assert!(moved.is_none_or(|step| step.from == *owner));
        }
    }

    #[test]
    fn rebalancing_moves_as_few_as_any_way_could(
        owners in prop::collection::vec(0u32..9, 1..200), left in 0u32..5, right in 5u32..14, seed: u64,
    ) {
        let owners: Vec<NodeId> = owners.into_iter().map(NodeId).collect();
        let nodes = ids(left..right);
        let plan = rebalance(&owners, &nodes, seed).unwrap();
        prop_assert!(is_balanced(&plan.owners, &nodes));
        prop_assert_eq!(plan.moves.len(), fewest_moves(&owners, &nodes));
        prop_assert!(plan.moves.iter().all(|step| step.from != step.to));
    }

    #[test]
    fn a_removed_node_keeps_nothing(partitions in 4u32..200, nodes in 2u32..5, seed: u64) {
        let count = PartitionCount::new(partitions).unwrap();
        let before = place(count, &[ids(0..nodes)], seed).unwrap().remove(0);
        let plan = remove_node(&before, NodeId(1), seed).unwrap();
        prop_assert_eq!(plan.moves.len(), sizes(&before)[&NodeId(1)]);
        prop_assert!(plan.moves.iter().all(|step| step.from == NodeId(1)));
        prop_assert!(!plan.owners.contains(&NodeId(1)));
    }

    #[test]
    fn a_table_is_made_again_from_its_parts(groups in 1u32..5, nodes in 1u32..8, partitions in 1u32..60, seed: u64) {
        let table = table(groups, nodes, partitions, seed);
        prop_assert_eq!(RoutingTable::new(table.to_parts()).unwrap(), table);
    }

    #[test]
    fn round_robin_is_a_queue_of_nodes_per_partition(groups in 1u32..6, seed: u64, rounds in 1usize..12) {
        let table = table(groups, 3, 9, seed);
        let mut rng = StdRng::seed_from_u64(seed);
        let mut state = PolicyState::at_first_group();
        let mut queues: Vec<VecDeque<NodeIndex>> =
            table.partition_count().iter().map(|p| table.replicas(p).iter().copied().collect()).collect();
        for round in 0..rounds as u64 {
            // Nodes come and go between queries.
            let availability = damaged(&table, seed ^ round);
            let view = table.view(&availability);
            let mut keys = random_keys(&table, 25, &mut rng);
            keys.retain(|key| view.replicas(*key).next().is_some());
            let policy = policy::by_name("round-robin").unwrap();
            let load = LoadSnapshot::default();
            let inputs = PolicyInputs { view, keys: &keys, limit: GroupLimit(1), load: &load };
            let plan = policy.plan(&inputs, &mut state, &mut rng).unwrap();
            for (key, partition) in keys.iter().enumerate() {
                // In the twin, nodes that are skipped go to the end of the queue, as do nodes that are taken.
                let queue = &mut queues[partition.index()];
                let index = queue.iter().position(|node| view.replicas(*partition).any(|up| up == *node)).unwrap();
                queue.rotate_left(index + 1);
                let node = table.node_at(*queue.back().unwrap()).id;
                let assigned = plan.assignments.iter().find(|a| a.keys.contains(&(key as u32))).unwrap();
                prop_assert_eq!(assigned.node, node);
            }
        }
    }

    #[test]
    fn a_limit_is_kept_but_for_keys_that_no_chosen_group_can_serve(
        groups in 1u32..7, limit in 1u32..7, keys in 0usize..200, seed: u64,
    ) {
        let table = table(groups, 4, 32, seed);
        let keys = random_keys(&table, keys, &mut StdRng::seed_from_u64(seed));
        let whole = Availability::all(&table);
        for name in ["one-group", "n-groups", "adjust"] {
            let limit = if name == "one-group" { 1 } else { limit };
            let plan = plan(name, &table.view(&whole), &keys, limit, seed);
            prop_assert!(plan.groups.len() <= limit as usize && plan.spilled_keys == 0, "{}: {}", name, plan);
            prop_assert!(plan.requests() <= (limit * 4) as usize, "{}: {}", name, plan);
        }
        // With any one node dead, a complete group is chosen, so no request goes elsewhere.
        let dead = NodeId((seed % u64::from(groups * 4)) as u32);
        let hurt = Availability::all_but(&table, &[dead]);
        if 1 < groups {
            let plan = plan("one-group", &table.view(&hurt), &keys, 1, seed);
            prop_assert!(plan.groups.len() <= 1 && plan.spilled_keys == 0, "{}", plan);
        }
    }

    #[test]
    fn evening_out_helps_and_costs_what_it_says(limit in 1u32..5, keys in 1usize..400, seed: u64) {
        let table = table(5, 8, 80, seed);
        let keys = random_keys(&table, keys, &mut StdRng::seed_from_u64(seed));
        let availability = Availability::all(&table);
        let view = table.view(&availability);
        let [plain, adjusted, borrowed] = ["n-groups", "adjust", "borrow"].map(|name| plan(name, &view, &keys, limit, seed));
        prop_assert!(adjusted.busiest_keys() <= plain.busiest_keys());
        prop_assert!(adjusted.requests() <= plain.requests());
        prop_assert!(borrowed.busiest_keys() <= adjusted.busiest_keys());
        prop_assert!(borrowed.requests() <= adjusted.requests() + 2, "a quarter of a group is borrowed at most");
    }

    #[test]
    fn set_cover_needs_at_most_the_nodes_of_the_naive_plan(groups in 1u32..6, keys in 1usize..150, seed: u64) {
        let table = table(groups, 6, 60, seed);
        let keys = random_keys(&table, keys, &mut StdRng::seed_from_u64(seed));
        let availability = Availability::all(&table);
        let view = table.view(&availability);
        let naive = plan("round-robin", &view, &keys, 1, seed);
        for name in ["set-cover", "set-cover-norbert"] {
            let plan = plan(name, &view, &keys, 1, seed);
            prop_assert!(plan.requests() <= naive.requests(), "{}: {}", name, plan);
        }
        // Each choice of the full greedy algorithm covers the most of what is left, so sizes only fall.
        let mut distinct: Vec<_> = keys.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let best = table.nodes().iter().map(|node| {
            let index = table.node_index(node.id).unwrap();
            distinct.iter().filter(|p| table.replicas(**p).contains(&index)).count()
        });
        let cover = plan("set-cover", &view, &keys, 1, seed);
        let largest = cover.assignments.iter().map(|assignment| {
            let mut partitions: Vec<_> = assignment.keys.iter().map(|key| keys[*key as usize]).collect();
            partitions.sort_unstable();
            partitions.dedup();
            partitions.len()
        });
        prop_assert_eq!(largest.max(), best.max());
    }
}

const OUTCOMES: [OwnerOutcome; 6] = [
    OwnerOutcome::Answered,
    OwnerOutcome::Refused,
    OwnerOutcome::Unreachable,
    OwnerOutcome::Broken,
    OwnerOutcome::Overloaded,
    OwnerOutcome::Silent,
];

proptest! {
    /// The twin remembers everything that happened and searches all of it.
    #[test]
    fn owners_are_avoided_as_the_whole_history_says(
        steps in prop::collection::vec((0usize..4, 0usize..6, 0u64..900, 0u64..3_000), 1..80),
        timeout in 1u64..2_000,
        avoid_for in 0u64..2_500,
    ) {
        let millis = Duration::from_millis;
        let mut owners = Owners::new(OwnersOptions { timeout: millis(timeout), avoid_for: millis(avoid_for) });
        let mut away: Vec<(usize, u64)> = Vec::new();
        let mut now = 0;
        for (owner, outcome, pause, deadline) in steps {
            now += pause;
            let (addr, at) = (format!("owner:{owner}"), Timestamp(millis(now)));
            let avoided = away.iter().any(|(who, since)| *who == owner && now < since + avoid_for);
            let expected = if avoided || deadline == 0 {
                OwnerChoice::ServeHere
            } else {
                OwnerChoice::Ask { timeout: millis(timeout).min(millis(deadline) / 2) }
            };
            prop_assert_eq!(owners.choose(&addr, Some(millis(deadline)), at), expected);
            let goes_around = 2 <= outcome;
            let verdict = if goes_around { OwnerVerdict::GoAround } else { OwnerVerdict::PassOn };
            prop_assert_eq!(owners.on(&addr, OUTCOMES[outcome], at), verdict);
            if goes_around {
                away.push((owner, now));
            }
        }
    }
}
