//! Random clusters, stores and target shapes for rebalance tests.

use kith_routing::placement::{Placement, ReplicaGroups, Ring};
use kith_routing::rebalance::{StoreSizes, TargetShape};
use kith_routing::{GroupEntry, GroupRole, NodeEntry, RoutingTable, Strategy, TableParts};
use kith_types::{Epoch, GroupId, NodeId, PartitionCount};
use rand::RngExt;
use rand::rngs::StdRng;

pub fn node(id: u32, group: u32, zone: &str) -> NodeEntry {
    NodeEntry { id: NodeId(id), group: GroupId(group), zone: zone.to_owned(), ..NodeEntry::default() }
}

/// Returns a store with `each` bytes in each partition.
pub fn bytes(name: &str, partitions: u32, each: u64) -> StoreSizes {
    StoreSizes { name: name.to_owned(), bytes: vec![each; partitions as usize], ..StoreSizes::default() }
}

/// Returns a table of `groups` groups of `each` nodes, without labels.
pub fn grid(groups: u32, each: u32, partitions: u32) -> RoutingTable {
    let nodes = (0..groups * each).map(|id| node(id, id / each, "")).collect();
    labelled(Strategy::ReplicaGroups, groups, nodes, partitions, 5)
}

/// Returns a table of labelled nodes; on a ring, `groups` ranks over nodes of group 0.
pub fn labelled(
    strategy: Strategy,
    groups: u32,
    nodes: Vec<NodeEntry>,
    partitions: u32,
    seed: u64,
) -> RoutingTable {
    let partition_count = PartitionCount::new(partitions).expect("tests use valid counts");
    let ids: Vec<GroupId> = (0..groups).map(GroupId).collect();
    let owners = match strategy {
        Strategy::ReplicaGroups => ReplicaGroups { groups: ids.clone() }.place(partition_count, &nodes, seed),
        Strategy::Ring => Ring { replicas: groups as usize }.place(partition_count, &nodes, seed),
    };
    RoutingTable::new(TableParts {
        epoch: Epoch(7),
        strategy,
        partition_count,
        groups: ids.into_iter().map(|id| GroupEntry { id, role: GroupRole::Serving }).collect(),
        nodes,
        owners: owners.expect("tests use valid layouts"),
        partition_epochs: Vec::new(),
    })
    .expect("tests use valid layouts")
}

pub fn random_cluster(rng: &mut StdRng) -> RoutingTable {
    let strategy = if rng.random_bool(0.3) { Strategy::Ring } else { Strategy::ReplicaGroups };
    let (groups, each) = (rng.random_range(2..=3), rng.random_range(2..=4));
    let zone = |index: u32| ["", "a", "b", "c"][index as usize % 4];
    let nodes = (0..groups * each).map(|id| {
        let group = if strategy == Strategy::Ring { 0 } else { id / each };
        node(id, group, zone(rng.random_range(0..4)))
    });
    let nodes: Vec<NodeEntry> = nodes.collect();
    labelled(strategy, groups, nodes, rng.random_range(groups * each..=24), rng.random_range(0..1 << 40))
}

pub fn random_stores(table: &RoutingTable, rng: &mut StdRng) -> Vec<StoreSizes> {
    let partitions = table.partition_count().get();
    let store = |index: u32| {
        let replication = rng.random_bool(0.4).then(|| rng.random_range(1..=table.groups().len() as u32));
        let copies = replication.unwrap_or(table.groups().len() as u32);
        // One node may lack a version that others have.
        let lacks = 1 < copies && rng.random_bool(0.3);
        let node = table.nodes()[rng.random_range(0..table.nodes().len())].id;
        StoreSizes {
            name: format!("store-{index}-{}", rng.random_range(0..1000)),
            replication,
            required_reads: 1,
            bytes: (0..partitions).map(|_| rng.random_range(0..10_000)).collect(),
            excluded: if lacks { vec![node] } else { Vec::new() },
        }
    };
    (0..3).map(store).collect()
}

pub fn random_shape(table: &RoutingTable, rng: &mut StdRng) -> TargetShape {
    let groups = table.groups().len() as u32;
    let some = table.nodes()[rng.random_range(0..table.nodes().len())].clone();
    let is_ring = table.strategy() == Strategy::Ring;
    let fresh = |id: u32, group: u32| node(id, group, ["", "a", "b"][id as usize % 3]);
    match rng.random_range(0..if is_ring { 6 } else { 9 }) {
        0 => TargetShape::AddNodes(vec![fresh(100, some.group.0)]),
        1 if is_ring => TargetShape::AddNodes(vec![fresh(100, 0), fresh(101, 0)]),
        1 => TargetShape::AddNodes((0..groups).map(|group| fresh(100 + group, group)).collect()),
        2 => TargetShape::RemoveNodes(vec![some.id]),
        3 => TargetShape::DrainNodes(vec![some.id]),
        4 => TargetShape::ReplaceNode { old: some.id, new: fresh(100, some.group.0) },
        5 => TargetShape::Even,
        6 => TargetShape::DrainGroup(some.group),
        _ => {
            let nodes = (100..100 + rng.random_range(1..4)).map(|id| fresh(id, 9)).collect();
            TargetShape::AddGroup { group: GroupId(9), nodes }
        }
    }
}
