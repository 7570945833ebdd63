//! Plans place what moves according to the placement strategies: on rings, and apart in zones.

use crate::shapes::{labelled, node};
use kith_routing::placement::{SharedPairs, preference_lists, shared_domains};
use kith_routing::rebalance::{PlanOptions, TargetShape, plan};
use kith_routing::{NodeEntry, RoutingTable, Strategy, TableParts};
use kith_types::{NodeId, PartitionId};
use proptest::prelude::*;

/// Voldemort §5.7, Table 2b: stealer 3, donor 0, chunk buckets 3_0 and 2_1. The plan for a *balanced* fourth node consists
/// of such steps; this is the batch that moves partition 3.
#[test]
fn the_plan_of_table_2b_is_that_of_the_batch_that_moves_partition_3() {
    let ring: Vec<NodeId> = (0..12).map(|partition| NodeId(partition % 3)).collect();
    let owners = preference_lists(&ring, 2).unwrap();
    let parts = labelled(Strategy::Ring, 2, (0..3).map(|id| node(id, 0, "")).collect(), 12, 1).to_parts();
    let table = RoutingTable::new(TableParts { owners, ..parts }).unwrap();
    let shape = TargetShape::AddNodes(vec![node(3, 0, "")]);
    // The seed decides which partitions move. Look for a plan that begins with partition 3 alone.
    let begins_with_3 = |seed: u64| {
        let options = PlanOptions { batch_size: 1, seed, ..PlanOptions::default() };
        let plan = plan(&table, &shape, &[], &options).unwrap();
        assert_eq!(plan.batches.len(), 3, "three of twelve partitions move");
        Some(plan).filter(|plan| plan.batches[0].changes[0].partition == PartitionId(3))
    };
    let plan = (0..100).find_map(begins_with_3).expect("one draw in twelve or so");
    let listed: Vec<_> = plan.batches[0]
        .moves
        .iter()
        .map(|copy| {
            let bucket = format!("{}_{}", copy.partition.0, copy.group.0);
            (copy.stealer.0, copy.donor.0, bucket, copy.is_secondary)
        })
        .collect();
    assert_eq!(listed, [(3, 0, "2_1".to_owned(), true), (3, 0, "3_0".to_owned(), false)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// The partitions that move to an added node are placed apart, and no more move than necessary.
    #[test]
    fn a_new_node_in_a_free_zone_takes_what_lay_together(seed: u64) {
        let mut nodes: Vec<NodeEntry> = (0..6).map(|id| node(id, id / 3, "a")).collect();
        let table = labelled(Strategy::ReplicaGroups, 2, nodes.clone(), 24, seed);
        let shape = TargetShape::AddNodes(vec![node(6, 0, "b"), node(7, 1, "b")]);
        let plan = plan(&table, &shape, &[], &PlanOptions { seed, ..PlanOptions::default() }).unwrap();
        nodes.extend([node(6, 0, "b"), node(7, 1, "b")]);
        let after = plan.check().unwrap().to_parts();
        prop_assert_eq!(plan.moves().count(), 12);
        // Six partitions of each group move to zone b, and never the same ones.
        prop_assert_eq!(shared_domains(&after.owners, &after.nodes), SharedPairs { zone_pairs: 12, rack_pairs: 0 });
    }
}
