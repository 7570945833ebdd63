//! Clusters of labelled nodes, with either placement strategy.

use kith_routing::placement::{Placement, ReplicaGroups, Ring};
use kith_routing::{GroupEntry, GroupRole, NodeEntry, RoutingTable, Strategy, TableParts};
use kith_types::{Epoch, GroupId, NodeId, PartitionCount};

pub fn node(id: u32, group: u32, zone: &str) -> NodeEntry {
    NodeEntry { id: NodeId(id), group: GroupId(group), zone: zone.to_owned(), ..NodeEntry::default() }
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
