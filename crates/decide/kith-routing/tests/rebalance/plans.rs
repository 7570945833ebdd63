//! Plans are minimal, balanced, valid at every epoch, and readable.

use crate::shapes::{bytes, grid, labelled, node, random_cluster, random_shape, random_stores};
use kith_routing::rebalance::{
    PlanOptions, PlanRefusal, PlanStep, RebalancePlan, StoreSizes, TargetShape, plan,
};
use kith_routing::{GroupRole, NodeEntry, RoutingTable, Strategy};
use kith_types::{GroupId, NodeId, PartitionId};
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::StdRng;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the holders according to a table, found the slow way.
fn holders(table: &RoutingTable, stores: &[StoreSizes]) -> BTreeSet<(NodeId, PartitionId, String)> {
    let mut held = BTreeSet::new();
    for partition in table.partition_count().iter() {
        for (group, index) in table.replicas(partition).iter().enumerate() {
            for store in stores {
                let in_group = table.groups_of_store(&store.name, store.replication) >> group & 1 == 1;
                if in_group && table.groups()[group].role != GroupRole::Joining {
                    held.insert((table.node_at(*index).id, partition, store.name.clone()));
                }
            }
        }
    }
    held
}

fn sizes(table: &RoutingTable, group: usize) -> BTreeMap<NodeId, usize> {
    let id = table.groups()[group].id;
    let ring = table.strategy() == Strategy::Ring;
    let members = table.nodes().iter().filter(|node| ring || node.group == id);
    let mut sizes: BTreeMap<NodeId, usize> =
        members.filter(|node| !node.drained).map(|node| (node.id, 0)).collect();
    for partition in table.partition_count().iter() {
        *sizes.entry(table.node_at(table.replicas(partition)[group]).id).or_default() += 1;
    }
    sizes
}

/// Returns the fewest partitions of one group that must change owners. Every node that stays may keep at most its share, and
/// as many nodes as the division allows keep one more.
fn lower_bound(before: &RoutingTable, after: &RoutingTable, group: usize) -> usize {
    let (old, new) = (sizes(before, group), sizes(after, group));
    let total: usize = old.values().sum();
    let mut kept: Vec<usize> = new.keys().map(|node| old.get(node).copied().unwrap_or(0)).collect();
    kept.sort_unstable_by(|a, b| b.cmp(a));
    let (each, spare) = (total / new.len(), total % new.len());
    total
        - kept
            .iter()
            .enumerate()
            .map(|(rank, size)| *size.min(&(each + usize::from(rank < spare))))
            .sum::<usize>()
}

fn tables(plan: &RebalancePlan) -> Vec<(PlanStep, RoutingTable)> {
    let mut parts = plan.before.clone();
    let mut tables = Vec::new();
    for step in plan.steps() {
        plan.apply(step, &mut parts).unwrap();
        tables.push((step, RoutingTable::new(parts.clone()).unwrap()));
    }
    tables
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Replays plans against sets of what nodes have: a donor must have what it gives, and an owner what it owns.
    #[test]
    fn every_epoch_of_a_plan_is_a_valid_table_whose_owners_have_their_data(seed: u64, batch_size in 1usize..20) {
        let mut rng = StdRng::seed_from_u64(seed);
        let table = random_cluster(&mut rng);
        let stores = random_stores(&table, &mut rng);
        let shape = random_shape(&table, &mut rng);
        let options = PlanOptions { batch_size, seed, ..PlanOptions::default() };
        let plan = match plan(&table, &shape, &stores, &options) {
            Ok(plan) => plan,
            // Such shapes can meet only these refusals.
            Err(PlanRefusal::StoreOnlyThere { .. } | PlanRefusal::StoreBehind { .. } | PlanRefusal::NoDonor { .. } | PlanRefusal::Placement(_)) => return Ok(()),
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        };
        let mut has = holders(&table, &stores);
        let mut last = table.clone();
        for (step, table) in tables(&plan) {
            if let PlanStep::Batch(index) = step {
                prop_assert!(plan.batches[index].changes.len() <= batch_size);
                for copy in &plan.batches[index].moves {
                    prop_assert_ne!(copy.donor, copy.stealer);
                    for moved in &copy.stores {
                        let store = &stores[moved.store as usize];
                        let item = |node| (node, copy.partition, store.name.clone());
                        prop_assert!(has.contains(&item(copy.donor)), "{} has not {:?}", copy.donor, copy);
                        prop_assert!(!store.excluded.contains(&copy.donor));
                        prop_assert_eq!(moved.bytes, store.bytes[copy.partition.index()]);
                        prop_assert!(has.insert(item(copy.stealer)), "copied twice: {:?}", copy);
                    }
                }
            }
            let held = holders(&table, &stores);
            prop_assert!(held.is_subset(&has), "after {:?}", step);
            prop_assert!(last.epoch() <= table.epoch());
            // Only the intermediate lists of a ring can bring a partition back. What was given up is kept meanwhile.
            if table.strategy() == Strategy::Ring { has = held; }
            last = table;
        }
    }

    #[test]
    fn moves_are_as_few_as_balance_allows_and_sizes_differ_by_at_most_one(seed: u64) {
        let mut rng = StdRng::seed_from_u64(seed);
        let table = random_cluster(&mut rng);
        let shape = random_shape(&table, &mut rng);
        let Ok(plan) = plan(&table, &shape, &[], &PlanOptions { seed, ..PlanOptions::default() }) else { return Ok(()) };
        let after = plan.check().unwrap();
        let ranks = if table.strategy() == Strategy::Ring { 1 } else { table.groups().len() };
        for group in 0..ranks {
            let id = table.groups()[group].id;
            let changes = plan.batches.iter().flat_map(|batch| &batch.changes);
            let moved = changes.filter(|change| change.group.index() == group).count();
            match shape {
                TargetShape::AddGroup { .. } | TargetShape::DrainGroup(_) | TargetShape::RemoveGroup(_) => prop_assert_eq!(moved, 0),
                TargetShape::ReplaceNode { old, .. } => {
                    prop_assert_eq!(moved, sizes(&table, group).get(&old).copied().unwrap_or(0));
                }
                _ => prop_assert_eq!(moved, lower_bound(&table, &after, group), "group {}", id),
            }
        }
        for group in 0..if table.strategy() == Strategy::Ring { 1 } else { after.groups().len() } {
            let sizes = sizes(&after, group);
            let (least, most) = (sizes.values().min().unwrap(), sizes.values().max().unwrap());
            prop_assert!(most - least <= 1, "{:?}", sizes);
        }
    }

    #[test]
    fn a_plan_does_not_change_from_run_to_run(seed: u64) {
        let run = || {
            let mut rng = StdRng::seed_from_u64(seed);
            let table = random_cluster(&mut rng);
            let stores = random_stores(&table, &mut rng);
            plan(&table, &random_shape(&table, &mut rng), &stores, &PlanOptions::default())
        };
        prop_assert_eq!(run(), run());
    }
}

#[test]
fn from_three_to_four_nodes_per_group() {
    let table = grid(2, 3, 24);
    let shape = TargetShape::AddNodes(vec![node(6, 0, ""), node(7, 1, "")]);
    let plan = plan(
        &table,
        &shape,
        &[bytes("people", 24, 1 << 20)],
        &PlanOptions { batch_size: 5, ..PlanOptions::default() },
    )
    .unwrap();
    let expected = "\
add nodes n6 n7: 12 copies in 3 batches, 12.0 MiB; the cluster has 48 replicas

donor   stealer  partitions  secondary       bytes
n0      n6                2          0     2.0 MiB
n1      n6                2          0     2.0 MiB
n2      n6                2          0     2.0 MiB
n3      n7                2          0     2.0 MiB
n4      n7                2          0     2.0 MiB
n5      n7                2          0     2.0 MiB

node    group    partitions   after       bytes       after        peak  overhead
n0      g0                8       6     8.0 MiB     6.0 MiB     8.0 MiB      1.00
n1      g0                8       6     8.0 MiB     6.0 MiB     8.0 MiB      1.00
n2      g0                8       6     8.0 MiB     6.0 MiB     8.0 MiB      1.00
n6      g0                0       6         0 B     6.0 MiB     6.0 MiB      1.00
n3      g1                8       6     8.0 MiB     6.0 MiB     8.0 MiB      1.00
n4      g1                8       6     8.0 MiB     6.0 MiB     8.0 MiB      1.00
n5      g1                8       6     8.0 MiB     6.0 MiB     8.0 MiB      1.00
n7      g1                0       6         0 B     6.0 MiB     6.0 MiB      1.00";
    assert_eq!(plan.to_string(), expected);
    // Every batch keeps more than one pair of nodes busy.
    for batch in &plan.batches {
        let pairs: BTreeSet<_> = batch.moves.iter().map(|copy| (copy.donor, copy.stealer)).collect();
        assert!(2 <= pairs.len(), "{batch:?}");
    }
}

#[test]
fn a_new_group_is_filled_evenly_and_from_its_own_zones_first() {
    let zone = |id: u32| ["a", "b"][id as usize % 2];
    let nodes: Vec<NodeEntry> = (0..8).map(|id| node(id, id / 4, zone(id))).collect();
    let table = labelled(Strategy::ReplicaGroups, 2, nodes, 96, 3);
    let added: Vec<NodeEntry> = (8..12).map(|id| node(id, 2, zone(id))).collect();
    let shape = TargetShape::AddGroup { group: GroupId(2), nodes: added };
    let plan = plan(&table, &shape, &[bytes("people", 96, 100)], &PlanOptions::default()).unwrap();
    assert_eq!(plan.moves().count(), 96);
    let zone_of = |node: NodeId| zone(node.0);
    for copy in plan.moves() {
        let replicas = table.replicas(copy.partition).iter().map(|index| table.node_at(*index));
        let near = replicas.into_iter().any(|donor| donor.zone == zone_of(copy.stealer));
        assert!(!near || zone_of(copy.donor) == zone_of(copy.stealer), "{copy:?} crosses zones");
    }
    let mut given: BTreeMap<NodeId, u32> = BTreeMap::new();
    plan.moves().for_each(|copy| *given.entry(copy.donor).or_default() += 1);
    assert_eq!(given.len(), 8, "every node of the live groups gives: {given:?}");
    let (least, most) = (given.values().min().unwrap(), given.values().max().unwrap());
    assert!(most - least <= 8, "{given:?}");
    let steps = tables(&plan);
    let role = |table: &RoutingTable| table.groups()[2].role;
    assert!(steps[..steps.len() - 1].iter().all(|(_, table)| role(table) == GroupRole::Joining));
    assert_eq!(role(&steps.last().unwrap().1), GroupRole::Serving);
}

#[test]
fn a_dead_node_is_replaced_from_other_groups() {
    let table = grid(3, 3, 36);
    let shape = TargetShape::ReplaceNode { old: NodeId(4), new: node(9, 1, "") };
    let options = PlanOptions { dead: BTreeSet::from([NodeId(4)]), ..PlanOptions::default() };
    let plan = plan(&table, &shape, &[bytes("people", 36, 10)], &options).unwrap();
    assert_eq!(plan.moves().count(), 12);
    assert!(plan.moves().all(|copy| copy.stealer == NodeId(9) && copy.donor != NodeId(4)));
    let after = plan.check().unwrap();
    assert_eq!(after.node(NodeId(4)), None);
    assert_eq!(after.partitions_of(NodeId(9)), table.partitions_of(NodeId(4)));
}

#[test]
fn a_drained_node_gets_nothing_until_it_is_added_again() {
    let table = grid(1, 3, 12);
    let options = PlanOptions::default();
    let drained =
        plan(&table, &TargetShape::DrainNodes(vec![NodeId(1)]), &[], &options).unwrap().check().unwrap();
    assert_eq!(drained.partitions_of(NodeId(1)), []);
    let even = plan(&drained, &TargetShape::Even, &[], &options).unwrap();
    assert_eq!(even.to_string(), "even out: no data moves");
    let more = TargetShape::AddNodes(vec![node(3, 0, "")]);
    let more = plan(&drained, &more, &[], &options).unwrap().check().unwrap();
    assert_eq!(more.partitions_of(NodeId(1)), []);
    let again = TargetShape::AddNodes(vec![node(1, 0, "")]);
    let again = plan(&drained, &again, &[], &options).unwrap().check().unwrap();
    assert_eq!(again.partitions_of(NodeId(1)).len(), 4);
}

#[test]
fn a_store_moves_only_where_it_lives() {
    let table = grid(3, 2, 12);
    let one = StoreSizes { replication: Some(1), ..bytes("one", 12, 7) };
    let home = table.groups_of_store("one", Some(1)).trailing_zeros();
    for group in 0..3 {
        let shape = TargetShape::AddNodes(vec![node(6, group, "")]);
        let plan = plan(&table, &shape, std::slice::from_ref(&one), &PlanOptions::default()).unwrap();
        assert_eq!(plan.moves().count(), 4);
        assert_eq!(plan.bytes(), if group == home { 28 } else { 0 });
    }
    let refused = plan(&table, &TargetShape::DrainGroup(GroupId(home)), &[one], &PlanOptions::default());
    assert_eq!(refused, Err(PlanRefusal::StoreOnlyThere { store: "one".to_owned(), group: GroupId(home) }));
}
