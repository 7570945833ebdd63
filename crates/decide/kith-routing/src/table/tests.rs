//! Tests of what a table refuses, and how its indexes relate.

use super::*;
use crate::placement::uniform_table;
use kith_types::GroupId;

fn parts() -> TableParts {
    uniform_table(2, 2, PartitionCount::new(4).unwrap(), 1).unwrap().to_parts()
}

fn refused(change: impl FnOnce(&mut TableParts)) -> String {
    let mut parts = parts();
    change(&mut parts);
    RoutingTable::new(parts).unwrap_err().to_string()
}

#[test]
fn contradictions_are_named() {
    assert_eq!(refused(|parts| parts.nodes.clear()), "a routing table needs at least one group and one node");
    assert_eq!(refused(|parts| parts.groups.swap(0, 1)), "group g0 is out of order or listed twice");
    assert_eq!(refused(|parts| parts.nodes[1].id = NodeId(0)), "node n0 is listed twice");
    assert_eq!(
        refused(|parts| parts.nodes[3].group = GroupId(9)),
        "node n3 belongs to group g9, which is not listed"
    );
    assert_eq!(refused(|parts| _ = parts.owners.pop()), "owners has 1 entries, expected 2");
    assert_eq!(refused(|parts| _ = parts.owners[1].pop()), "the owners of a group has 3 entries, expected 4");
    assert_eq!(
        refused(|parts| parts.owners[1][2] = NodeId(0)),
        "group g1 gives partition p2 to node n0, which is not one of its nodes"
    );
    assert_eq!(
        refused(|parts| parts.owners[0][0] = NodeId(77)),
        "group g0 gives partition p0 to node n77, which is not one of its nodes"
    );
    assert_eq!(
        refused(|parts| parts.partition_epochs[3] = Epoch(5)),
        "partition p3 has epoch e5, later than the table's e1"
    );
    let group = |id| GroupEntry { id: GroupId(id), role: GroupRole::Serving };
    assert_eq!(
        refused(|parts| parts.groups = (0..65).map(group).collect()),
        "65 groups, but a routing table holds at most 64"
    );
}

#[test]
fn nodes_come_in_any_order() {
    let mut shuffled = parts();
    shuffled.nodes.reverse();
    assert_eq!(RoutingTable::new(shuffled).unwrap(), RoutingTable::new(parts()).unwrap());
}

#[test]
fn places_lead_back_to_ids() {
    let table = RoutingTable::new(parts()).unwrap();
    for node in table.nodes() {
        let index = table.node_index(node.id).unwrap();
        assert_eq!(table.node_at(index), node);
        assert_eq!(table.groups()[table.group_of(index).index()].id, node.group);
        assert_eq!(table.partitions_of(node.id).len(), 2);
    }
    assert_eq!(table.node(NodeId(4)), None);
    assert_eq!(table.partitions_of(NodeId(4)), []);
    assert_eq!(table.nodes_of(GroupIndex(1)).map(|node| node.id.0).collect::<Vec<_>>(), [2, 3]);
}

#[test]
fn a_group_in_maintenance_is_not_asked() {
    let mut parts = parts();
    parts.groups[0].role = GroupRole::Maintenance;
    let table = RoutingTable::new(parts).unwrap();
    let mut availability = Availability::all(&table);
    availability.rescue(&table);
    let view = table.view(&availability);
    for partition in table.partition_count().iter() {
        assert_eq!(view.replica(partition, GroupIndex(0)), None);
        assert!(view.replica(partition, GroupIndex(1)).is_some());
    }
    assert!(!view.is_complete(GroupIndex(0)) && view.is_complete(GroupIndex(1)));
}

#[test]
fn a_replica_that_is_excluded_makes_its_group_incomplete() {
    let table = RoutingTable::new(parts()).unwrap();
    let mut availability = Availability::all(&table);
    assert!(table.view(&availability).all_complete());
    let node = table.replicas(PartitionId(3))[1];
    availability.exclude_replica(PartitionId(3), node);
    availability.exclude_replica(PartitionId(3), node);
    let view = table.view(&availability);
    assert_eq!(view.replica(PartitionId(3), GroupIndex(1)), None);
    assert_eq!(view.replicas(PartitionId(3)).count(), 1);
    assert!(!view.is_complete(GroupIndex(1)));
    let others = (0..3).map(PartitionId).filter(|p| view.replicas(*p).count() == 2);
    assert_eq!(others.count(), 3, "the node's other partitions are served on");
}
