//! Layouts and random queries for the tests of this crate.
#![allow(dead_code, reason = "each test binary uses its own part")]

use kith_routing::{
    Availability, GroupEntry, GroupRole, NodeEntry, NodeIndex, RoutingTable, Strategy, TableParts, placement,
};
use kith_types::{Epoch, GroupId, NodeId, PartitionCount, PartitionId};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeSet;

pub fn table(groups: u32, nodes: u32, partitions: u32, seed: u64) -> RoutingTable {
    let count = PartitionCount::new(partitions).expect("tests use valid counts");
    placement::uniform_table(groups, nodes, count, seed).expect("tests use valid layouts")
}

/// Returns a table with these owners of each partition in each group (rank), and this group of each node.
pub fn owned_by(owners: &[&[u32]], group_of: &dyn Fn(u32) -> u32, strategy: Strategy) -> RoutingTable {
    let nodes: BTreeSet<u32> = owners.iter().flat_map(|owners| owners.iter().copied()).collect();
    RoutingTable::new(TableParts {
        epoch: Epoch(1),
        strategy,
        partition_count: PartitionCount::new(owners[0].len() as u32).expect("tests use valid counts"),
        groups: (0..owners.len() as u32)
            .map(|id| GroupEntry { id: GroupId(id), role: GroupRole::Serving })
            .collect(),
        nodes: nodes
            .into_iter()
            .map(|id| NodeEntry { id: NodeId(id), group: GroupId(group_of(id)), ..NodeEntry::default() })
            .collect(),
        owners: owners.iter().map(|owners| owners.iter().copied().map(NodeId).collect()).collect(),
        partition_epochs: vec![],
    })
    .expect("tests use valid tables")
}

pub fn random_keys(table: &RoutingTable, keys: usize, rng: &mut StdRng) -> Vec<PartitionId> {
    let partitions = table.partition_count().get();
    (0..keys).map(|_| PartitionId(rng.random_range(0..partitions))).collect()
}

/// Returns a random mixture, given by the seed, of everything that can be wrong with a cluster.
pub fn damaged(table: &RoutingTable, seed: u64) -> Availability {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut availability = Availability::all(table);
    let nodes = table.nodes().len() as u32;
    let share = rng.random_range(0.0..0.7);
    for node in (0..nodes).map(NodeIndex) {
        if rng.random_bool(share) {
            availability.mark_down(node);
        } else if rng.random_bool(share / 4.0) {
            availability.exclude(node);
        }
    }
    for _ in 0..rng.random_range(0..6) {
        let partition = PartitionId(rng.random_range(0..table.partition_count().get()));
        availability.exclude_replica(partition, NodeIndex(rng.random_range(0..nodes)));
    }
    if rng.random_bool(0.3) {
        availability.rescue(table);
    }
    availability
}
