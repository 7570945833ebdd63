//! Layouts and random queries for the tests of this crate.
#![allow(dead_code, reason = "each test binary uses its own part")]

use kith_routing::{Availability, NodeIndex, RoutingTable, placement};
use kith_types::{PartitionCount, PartitionId};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

pub fn table(groups: u32, nodes: u32, partitions: u32, seed: u64) -> RoutingTable {
    let count = PartitionCount::new(partitions).expect("tests use valid counts");
    placement::uniform_table(groups, nodes, count, seed).expect("tests use valid layouts")
}

pub fn random_keys(table: &RoutingTable, keys: usize, rng: &mut StdRng) -> Vec<PartitionId> {
    let partitions = table.partition_count().get();
    (0..keys).map(|_| PartitionId(rng.random_range(0..partitions))).collect()
}

/// Everything that can be wrong with a cluster, in some mixture given by the seed.
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
