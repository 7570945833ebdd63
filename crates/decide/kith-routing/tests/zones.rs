//! Failure domains (replicas apart, reads near), and stores that only some groups hold.
#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

mod support {
    pub mod shapes;
}

use kith_routing::placement::{place, shared_domains};
use kith_routing::{
    Availability, GroupIndex, GroupLimit, GroupRole, LoadSnapshot, NodeEntry, NodeIndex, PolicyInputs,
    PolicyState, StoreReach, Strategy, policy, store_groups,
};
use kith_types::{GroupId, NodeId, PartitionCount, PartitionId};
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::StdRng;
use std::collections::BTreeMap;
use support::shapes::{labelled, node};

/// Returns `groups` groups of `each` nodes, spread over `zones` zones, with racks by the parity of the node's id.
fn spread_out(groups: u32, each: u32, zones: u32) -> Vec<NodeEntry> {
    let entry = |id: u32| {
        let zone = format!("z{}", id % each % zones);
        NodeEntry { rack: format!("r{}", id % 2), ..node(id, id / each, &zone) }
    };
    (0..groups * each).map(entry).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// With at least as many zones as groups, evenly filled, no two replicas share a zone.
    #[test]
    fn replicas_lie_apart_where_zones_allow(groups in 1u32..4, extra in 0u32..3, fold in 1u32..3, seed: u64) {
        let zones = groups + extra;
        let each = zones * fold;
        let table = labelled(Strategy::ReplicaGroups, groups, spread_out(groups, each, zones), each * 6, seed);
        let parts = table.to_parts();
        prop_assert_eq!(shared_domains(&parts.owners, &parts.nodes).zone_pairs, 0);
        let mut again = spread_out(groups, each, zones);
        again.reverse();
        prop_assert_eq!(labelled(Strategy::ReplicaGroups, groups, again, each * 6, seed), table);
    }

    /// With any labels, the result is never worse than without them, sizes are the same, and no single exchange of two
    /// owners would improve it.
    #[test]
    fn labels_never_hurt_and_no_exchange_would_help(groups in 1u32..4, each in 1u32..5, labels in prop::collection::vec(0usize..4, 12), seed: u64) {
        let nodes: Vec<NodeEntry> = (0..groups * each).map(|id| NodeEntry {
            rack: ["", "r", "s"][labels[(id as usize + 5) % 12] % 3].to_owned(),
            ..node(id, id / each, ["", "a", "b", "c"][labels[id as usize % 12]])
        }).collect();
        let count = PartitionCount::new(each * 5).unwrap();
        let ids: Vec<Vec<NodeId>> = (0..groups).map(|group| (group * each..(group + 1) * each).map(NodeId).collect()).collect();
        let plain = shared_domains(&place(count, &ids, seed).unwrap(), &nodes);
        let owners = labelled(Strategy::ReplicaGroups, groups, nodes.clone(), each * 5, seed).to_parts().owners;
        let labelled = shared_domains(&owners, &nodes);
        prop_assert!(labelled <= plain, "{:?} is worse than {:?}", labelled, plain);
        for group in 0..groups as usize {
            for node in &ids[group] {
                prop_assert_eq!(owners[group].iter().filter(|owner| *owner == node).count(), 5);
            }
            for a in 0..owners[group].len() {
                for b in 0..a {
                    let mut other = owners.clone();
                    other[group].swap(a, b);
                    prop_assert!(labelled <= shared_domains(&other, &nodes));
                }
            }
        }
    }

    /// Rendezvous hashing: a new group takes its share, and nothing else moves.
    #[test]
    fn a_new_group_takes_stores_over_and_no_other_gets_one(groups in 1u32..8, copies in 1u32..5, name: String) {
        let before: Vec<GroupId> = (0..groups).map(GroupId).collect();
        let mut more = before.clone();
        more.push(GroupId(groups));
        let (old, new) = (store_groups(&name, &before, copies), store_groups(&name, &more, copies));
        prop_assert_eq!(old.len(), copies.min(groups) as usize);
        prop_assert!(new.iter().all(|group| old.contains(group) || *group == GroupId(groups)));
        prop_assert!(new.is_sorted());
    }

    /// Shares have no replica in common and together have all replicas. Each has one that is up, as long as there are
    /// enough.
    #[test]
    fn shares_deal_out_what_is_up(seed: u64, copies in 1u32..5, lacks in 0u32..12, down in 0u32..12, count in 1usize..4, turn: usize) {
        let table = labelled(Strategy::ReplicaGroups, 4, (0..12).map(|id| node(id, id / 3, "")).collect(), 24, seed);
        let fleet = Availability::all_but(&table, &[NodeId(down)]);
        let reach = StoreReach::new(&table, "people", Some(copies), &[NodeId(lacks)]);
        let availability = fleet.for_store(&table, &reach);
        let partitions: Vec<_> = table.partition_count().iter().collect();
        let shares = reach.shares(&table, &availability, &partitions, count, turn);
        prop_assert_eq!(shares.len(), count);
        let narrowed: Vec<Availability> = shares.iter().map(|share| fleet.for_store(&table, share)).collect();
        for partition in partitions {
            let up: Vec<NodeIndex> = table.view(&availability).replicas(partition).collect();
            let dealt: Vec<Vec<NodeIndex>> = narrowed.iter().map(|share| table.view(share).replicas(partition).collect()).collect();
            let mut all = dealt.concat();
            all.sort_unstable();
            let mut expected = up.clone();
            expected.sort_unstable();
            prop_assert_eq!(&all, &expected);
            prop_assert_eq!(dealt.iter().filter(|share| !share.is_empty()).count(), count.min(up.len()));
        }
    }

    /// A view of a store equals the view of a table without the other groups and without the nodes that lack the version.
    #[test]
    fn a_view_of_a_store_shows_the_replicas_that_hold_it(seed: u64, copies in 1u32..5, lacks in 0u32..12, down in 0u32..12, rescue: bool) {
        let table = labelled(Strategy::ReplicaGroups, 4, (0..12).map(|id| node(id, id / 3, "")).collect(), 24, seed);
        let mut fleet = Availability::all_but(&table, &[NodeId(down)]);
        if rescue { fleet.rescue(&table); }
        let reach = StoreReach::new(&table, "people", Some(copies), &[NodeId(lacks), NodeId(99)]);
        let availability = fleet.for_store(&table, &reach);
        let view = table.view(&availability);
        let ids: Vec<GroupId> = (0..4).map(GroupId).collect();
        let homes = store_groups("people", &ids, copies);
        prop_assert_eq!(view.group_count(), homes.len());
        let mut keys = Vec::new();
        for partition in table.partition_count().iter() {
            let holds = |index: &NodeIndex| homes.contains(&table.node_at(*index).group) && table.node_at(*index).id != NodeId(lacks);
            let holders: Vec<NodeIndex> = table.replicas(partition).iter().copied().filter(holds).collect();
            let mut expected: Vec<NodeIndex> = holders.iter().copied().filter(|index| table.node_at(*index).id != NodeId(down)).collect();
            if expected.is_empty() && rescue { expected = holders; }
            prop_assert_eq!(view.replicas(partition).collect::<Vec<_>>(), expected.clone());
            if !expected.is_empty() { keys.push(partition); }
        }
        for policy in policy::ALL {
            for limit in [1, 3, 9] {
                let mut rng = StdRng::seed_from_u64(seed);
                let load = LoadSnapshot::default();
                let inputs = PolicyInputs { view, keys: &keys, limit: GroupLimit(limit), load: &load };
                let plan = policy.plan(&inputs, &mut PolicyState::new(seed), &mut rng).unwrap();
                prop_assert!(plan.groups.iter().all(|group| homes.contains(group)), "{}", plan);
                for assignment in &plan.assignments {
                    let index = table.node_index(assignment.node).unwrap();
                    prop_assert!(assignment.keys.iter().all(|key| view.replicas(keys[*key as usize]).any(|node| node == index)));
                }
            }
        }
    }
}

#[test]
fn stores_spread_evenly_over_groups() {
    let groups: Vec<GroupId> = (0..5).map(GroupId).collect();
    let mut counts: BTreeMap<GroupId, u32> = BTreeMap::new();
    for store in 0..5_000 {
        for group in store_groups(&format!("store-{store}"), &groups, 2) {
            *counts.entry(group).or_default() += 1;
        }
    }
    assert!(counts.values().all(|count| (1_850..2_150).contains(count)), "{counts:?}");
    assert_eq!(store_groups("people", &groups, 2), [GroupId(0), GroupId(2)], "the same for ever");
}

#[test]
fn a_joining_group_holds_no_store_and_a_group_taken_out_keeps_its_own() {
    let mut parts =
        labelled(Strategy::ReplicaGroups, 3, (0..6).map(|id| node(id, id / 2, "")).collect(), 8, 1)
            .to_parts();
    let with_role = |role| {
        let mut parts = parts.clone();
        parts.groups[1].role = role;
        kith_routing::RoutingTable::new(parts).unwrap()
    };
    assert_eq!(with_role(GroupRole::Joining).groups_of_store("people", None), 0b101);
    assert_eq!(with_role(GroupRole::Maintenance).groups_of_store("people", None), 0b111);
    parts.groups[1].role = GroupRole::Joining;
    let table = kith_routing::RoutingTable::new(parts).unwrap();
    let mut availability = Availability::all(&table);
    availability.rescue(&table);
    let view = table.view(&availability);
    assert!(table.partition_count().iter().all(|partition| view.replica(partition, GroupIndex(1)).is_none()));
}

/// Groups in the caller's zone come first when they are healthy. Health takes precedence over nearness.
#[test]
fn reads_stay_in_the_callers_zone_while_it_can_serve() {
    let nodes = (0..9).map(|id| node(id, id / 3, ["a", "b", "c"][id as usize / 3])).collect();
    let table = labelled(Strategy::ReplicaGroups, 3, nodes, 24, 1);
    let keys: Vec<PartitionId> = table.partition_count().iter().collect();
    let near = table.nodes_in_zone("", "b");
    assert_eq!(near.len(), 3);
    assert!(table.nodes_in_zone("", "").is_empty() && table.nodes_in_zone("elsewhere", "b").is_empty());
    let groups = |down: &[NodeId], name: &str, limit: u32, seed: u64| {
        let availability = Availability::all_but(&table, down);
        let view = table.view(&availability).near(&near);
        let (mut state, mut rng) = (PolicyState::new(seed), StdRng::seed_from_u64(seed));
        let policy = policy::by_name(name).unwrap();
        let inputs =
            PolicyInputs { view, keys: &keys, limit: GroupLimit(limit), load: &LoadSnapshot::default() };
        policy.plan(&inputs, &mut state, &mut rng).unwrap().groups
    };
    for seed in 0..50 {
        for name in ["one-group", "n-groups", "adjust"] {
            assert_eq!(groups(&[], name, 1, seed), [GroupId(1)], "{name}");
            assert!(!groups(&[NodeId(3)], name, 1, seed).contains(&GroupId(1)), "{name}");
        }
        assert!(groups(&[], "n-groups", 2, seed).contains(&GroupId(1)));
    }
}

/// If groups span zones, the group whose replicas of these keys are nearest is chosen.
#[test]
fn groups_that_span_zones_are_compared_by_the_keys_of_the_query() {
    let nodes = (0..6).map(|id| node(id, id / 3, ["a", "b", "c"][id as usize % 3])).collect();
    let table = labelled(Strategy::ReplicaGroups, 2, nodes, 24, 1);
    let availability = Availability::all(&table);
    let near = table.nodes_in_zone("", "a");
    let view = table.view(&availability).near(&near);
    for partition in table.partition_count().iter() {
        let far: Vec<usize> = view.groups().map(|group| view.far_keys(group, &[partition])).collect();
        let (mut state, mut rng) = (PolicyState::new(1), StdRng::seed_from_u64(partition.0.into()));
        let policy = policy::by_name("one-group").unwrap();
        let inputs =
            PolicyInputs { view, keys: &[partition], limit: GroupLimit(1), load: &LoadSnapshot::default() };
        let plan = policy.plan(&inputs, &mut state, &mut rng).unwrap();
        let chosen = plan.groups[0].0 as usize;
        assert_eq!(far[chosen], *far.iter().min().unwrap());
    }
}

#[test]
fn one_group_can_be_asked_alone() {
    let table = labelled(Strategy::ReplicaGroups, 3, spread_out(3, 2, 1), 12, 1);
    let reach = StoreReach::new(&table, "people", None, &[]);
    let alone = reach.within(&table, GroupId(1)).unwrap();
    for partition in table.partition_count().iter() {
        let held: Vec<NodeIndex> = alone.replicas(&table, partition).collect();
        assert_eq!(held, [table.replicas(partition)[1]]);
    }
    assert!(reach.is_everything() && !alone.is_everything());
    assert_eq!(reach.within(&table, GroupId(3)), None);
}
