//! The source's tables for its consistent-hash ring, and the properties of a ring.
#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

mod support {
    pub mod shapes;
}

use kith_routing::placement::{OwnerChange, Placement, Ring, preference_lists};
use kith_routing::{
    Availability, GroupIndex, GroupLimit, LoadSnapshot, PolicyInputs, PolicyState, RoutingTable, Strategy,
    TableError, policy,
};
use kith_types::{NodeId, PartitionId};
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::StdRng;
use std::collections::BTreeSet;
use support::shapes::{labelled, node};

const RING: Ring = Ring { replicas: 2 };

/// Voldemort §3, Figure 3: three nodes and twelve partitions, assigned in turn; N = 2.
fn figure_3() -> Vec<Vec<NodeId>> {
    let ring: Vec<NodeId> = (0..12).map(|partition| NodeId(partition % 3)).collect();
    preference_lists(&ring, 2).unwrap()
}

fn buckets(owners: &[Vec<NodeId>], node: u32) -> String {
    let buckets = RING.buckets_of(owners, NodeId(node));
    buckets.iter().map(|(partition, rank)| format!("{}_{rank}", partition.0)).collect::<Vec<_>>().join(", ")
}

/// Figure 3: "the preference list for a key hashing to partition 11 will be (Partition 11, Partition 0)".
#[test]
fn the_list_of_the_last_partition_goes_round() {
    let owners = figure_3();
    assert_eq!([owners[0][11], owners[1][11]], [NodeId(2), NodeId(0)]);
}

/// Voldemort §5.1, Table 1.
#[test]
fn nodes_have_the_chunk_buckets_of_table_1() {
    let owners = figure_3();
    assert_eq!(buckets(&owners, 0), "0_0, 3_0, 6_0, 9_0, 2_1, 5_1, 8_1, 11_1");
    assert_eq!(buckets(&owners, 1), "1_0, 4_0, 7_0, 10_0, 0_1, 3_1, 6_1, 9_1");
    assert_eq!(buckets(&owners, 2), "2_0, 5_0, 8_0, 11_0, 1_1, 4_1, 7_1, 10_1");
}

/// Voldemort §5.7, Table 2a: partition 3 goes to node 3, and partition 2's second replica follows.
#[test]
fn stealing_partition_3_changes_the_lists_as_table_2a_says() {
    let before = figure_3();
    let change = OwnerChange { group: GroupIndex(0), partition: PartitionId(3), node: NodeId(3) };
    let after = RING.apply(&before, &[change]).unwrap();
    for partition in 0..12 {
        let list = |owners: &[Vec<NodeId>]| [owners[0][partition].0, owners[1][partition].0];
        match partition {
            2 => assert_eq!((list(&before), list(&after)), ([2, 0], [2, 3])),
            3 => assert_eq!((list(&before), list(&after)), ([0, 1], [3, 1])),
            _ => assert_eq!(list(&before), list(&after), "partition {partition}"),
        }
    }
}

#[test]
fn a_table_that_is_no_ring_is_refused() {
    let parts = labelled(Strategy::Ring, 2, (0..3).map(|id| node(id, 0, "")).collect(), 12, 1).to_parts();
    let mut wrong = parts.clone();
    wrong.owners[1][4] = wrong.owners[0][4];
    assert!(matches!(
        RoutingTable::new(wrong),
        Err(TableError::NotOnRing { rank: 1, partition: PartitionId(4), .. })
    ));
    let mut alone = parts.clone();
    alone.owners = vec![vec![NodeId(0); 12]; 2];
    assert_eq!(RoutingTable::new(alone), Err(TableError::RingTooSmall { replicas: 2, nodes: 1 }));
    let mut apart = parts;
    apart.nodes[1].group = kith_types::GroupId(1);
    assert_eq!(RoutingTable::new(apart), Err(TableError::RingGroups));
}

proptest! {
    /// The twin walks along the ring with a set.
    #[test]
    fn a_list_is_the_next_distinct_nodes(ring in prop::collection::vec(0u32..6, 1..40), replicas in 1usize..5) {
        let ring: Vec<NodeId> = ring.into_iter().map(NodeId).collect();
        let distinct: BTreeSet<_> = ring.iter().collect();
        let lists = preference_lists(&ring, replicas);
        if distinct.len() < replicas {
            prop_assert_eq!(lists, Err(distinct.len()));
            return Ok(());
        }
        let lists = lists.unwrap();
        for start in 0..ring.len() {
            let mut seen = BTreeSet::new();
            let walk = (0..ring.len()).map(|step| ring[(start + step) % ring.len()]).filter(|node| seen.insert(*node));
            let expected: Vec<_> = walk.take(replicas).collect();
            let got: Vec<_> = lists.iter().map(|rank| rank[start]).collect();
            prop_assert_eq!(got, expected);
        }
    }

    /// Every policy keeps its contract on a ring, where a node is in several ranks, and for a store with fewer replicas,
    /// which are in the first ranks.
    #[test]
    fn policies_plan_on_a_ring(seed: u64, nodes in 3u32..8, copies in 1u32..4, down in 0u32..8) {
        let table = labelled(Strategy::Ring, 3, (0..nodes).map(|id| node(id, 0, "")).collect(), 48, seed);
        let reach = kith_routing::StoreReach::new(&table, "people", Some(copies), &[]);
        let up = Availability::all_but(&table, &[NodeId(down)]).for_store(&table, &reach);
        let view = table.view(&up);
        let keys: Vec<PartitionId> = (0..48).map(PartitionId).collect();
        let may: Vec<BTreeSet<NodeId>> = keys.iter().map(|partition| {
            let list = &table.replicas(*partition)[..copies.min(3) as usize];
            list.iter().map(|index| table.node_at(*index).id).filter(|node| node.0 != down).collect()
        }).collect();
        for policy in policy::ALL {
            let mut rng = StdRng::seed_from_u64(seed);
            let load = LoadSnapshot::default();
            let inputs = PolicyInputs { view, keys: &keys, limit: GroupLimit(2), load: &load };
            let plan = policy.plan(&inputs, &mut PolicyState::new(seed), &mut rng);
            let lost = may.iter().any(BTreeSet::is_empty);
            prop_assert_eq!(plan.is_err(), lost, "{}", policy.name());
            let Ok(plan) = plan else { continue };
            prop_assert_eq!(plan.keys(), 48);
            for assignment in &plan.assignments {
                prop_assert!(assignment.keys.iter().all(|key| may[*key as usize].contains(&assignment.node)));
            }
            let asked: BTreeSet<_> = plan.assignments.iter().map(|assignment| assignment.node).collect();
            prop_assert_eq!(asked.len(), plan.requests());
        }
    }
}
