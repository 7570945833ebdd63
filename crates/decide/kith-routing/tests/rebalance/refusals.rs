//! Shapes that are not planned, and why.

use crate::shapes::{bytes, grid, labelled, node};
use kith_routing::rebalance::{PlanOptions, PlanRefusal, StoreSizes, TargetShape, plan};
use kith_routing::{RoutingTable, Strategy};
use kith_types::{GroupId, NodeId};
use std::collections::BTreeSet;

#[test]
fn a_group_is_not_taken_out_while_a_store_cannot_be_read_without_it() {
    let table = grid(3, 2, 12);
    let drain = |group, store: &StoreSizes| {
        let shape = TargetShape::DrainGroup(GroupId(group));
        plan(&table, &shape, std::slice::from_ref(store), &PlanOptions::default())
    };
    let agreeing = |required_reads| StoreSizes { required_reads, ..bytes("people", 12, 7) };
    assert!(drain(0, &agreeing(2)).is_ok());
    let refused = drain(0, &agreeing(3)).unwrap_err().to_string();
    assert_eq!(
        refused,
        "3 replicas of store people must agree, and without group g0 2 would answer: restore another group first"
    );
    // Two groups hold the store. A node of one of them has yet to fetch it, so the other group must stay.
    let two = StoreSizes { replication: Some(2), ..bytes("two", 12, 7) };
    let held: Vec<u32> =
        (0..3).filter(|group| table.groups_of_store("two", Some(2)) >> group & 1 == 1).collect();
    let [first, second] = held[..] else { panic!("{held:?}") };
    let behind = StoreSizes { excluded: vec![NodeId(2 * first)], ..two.clone() };
    let partition = table.partitions_of(NodeId(2 * first))[0];
    let expected = PlanRefusal::StoreBehind { store: "two".to_owned(), group: GroupId(second), partition };
    assert_eq!(drain(second, &behind), Err(expected));
    for group in [first, 3 - first - second] {
        assert!(drain(group, &behind).is_ok(), "what is read is not there");
    }
    assert!(drain(second, &two).is_ok());
}

fn refusal(table: &RoutingTable, shape: &TargetShape) -> String {
    plan(table, shape, &[], &PlanOptions::default()).unwrap_err().to_string()
}

#[test]
fn nodes_and_groups_that_contradict_the_table_are_refused() {
    let table = grid(2, 2, 8);
    let new_group = |id: u32, nodes| TargetShape::AddGroup { group: GroupId(id), nodes };
    for (shape, reason) in [
        (TargetShape::RemoveNodes(vec![NodeId(9)]), "node n9 is not in the routing table"),
        (TargetShape::AddNodes(vec![node(1, 0, "")]), "node n1 is in the routing table already"),
        (TargetShape::AddNodes(vec![node(9, 5, "")]), "group g5 is not in the routing table"),
        (new_group(1, vec![]), "group g1 is in the routing table already"),
        (new_group(2, vec![]), "group number 0 has no nodes"),
        (new_group(2, vec![node(9, 1, "")]), "node n9 belongs to group g1, not g2"),
        (TargetShape::RemoveNodes(vec![NodeId(0), NodeId(1)]), "group number 0 has no nodes"),
        (TargetShape::RestoreGroup(GroupId(0)), "group g0 is serving already"),
    ] {
        assert_eq!(refusal(&table, &shape), reason);
    }
}

#[test]
fn a_group_is_taken_out_once_and_never_the_last_one() {
    let (table, g0, g1) = (grid(2, 2, 8), GroupId(0), GroupId(1));
    let drained = plan(&table, &TargetShape::DrainGroup(g0), &[], &PlanOptions::default()).unwrap();
    assert_eq!(drained.to_string(), "take out group g0: no data moves");
    let drained = drained.check().unwrap();
    assert_eq!(refusal(&drained, &TargetShape::DrainGroup(g0)), "group g0 is taken out already");
    assert_eq!(
        refusal(&drained, &TargetShape::DrainGroup(g1)),
        "group g1 is the last one that serves: restore or add another first"
    );
    let restored = plan(&drained, &TargetShape::RestoreGroup(g0), &[], &PlanOptions::default()).unwrap();
    assert_eq!(restored.check().unwrap().to_parts().groups, table.to_parts().groups);
}

#[test]
fn a_group_is_removed_once_it_is_taken_out_and_only_if_enough_answers_remain() {
    let (table, g2) = (grid(3, 2, 12), GroupId(2));
    let remove = TargetShape::RemoveGroup(g2);
    assert_eq!(
        refusal(&table, &remove),
        "group g2 still serves its partitions: take it out with `kith cluster drain-group`, then remove it"
    );
    let drained = plan(&table, &TargetShape::DrainGroup(g2), &[], &PlanOptions::default()).unwrap();
    let drained = drained.check().unwrap();
    // Stores in two of the three groups: those of the group that leaves go to the third.
    let stores: Vec<StoreSizes> = (0..6)
        .map(|store| StoreSizes { replication: Some(2), ..bytes(&format!("store-{store}"), 12, 7) })
        .collect();
    let removed = plan(&drained, &remove, &stores, &PlanOptions::default()).unwrap();
    let after = removed.check().unwrap();
    assert_eq!((after.groups().len(), after.nodes().len()), (2, 4));
    assert!(after.nodes().iter().all(|node| node.group != g2) && after.to_parts().owners.len() == 2);
    let there = |store: &StoreSizes| drained.groups_of_store(&store.name, Some(2)) >> 2 & 1 == 1;
    let moved = stores.iter().filter(|store| there(store)).count();
    assert!(0 < moved && moved < stores.len(), "{moved} of the stores are in the group");
    let copied: u64 = removed.moves().map(|step| step.stores.len() as u64).sum();
    assert_eq!(copied, 12 * moved as u64);
    assert!(removed.moves().all(|step| step.group != g2));
    // On the second request, there is nothing left to do.
    let again = plan(&after, &remove, &stores, &PlanOptions::default()).unwrap();
    assert!(again.steps().is_empty());
    assert_eq!(again.to_string(), "remove group g2: the cluster has no such group, so nothing is left to do");
    // Three replicas must agree.
    let agreeing = [StoreSizes { required_reads: 3, ..bytes("people", 12, 7) }];
    let refused = plan(&drained, &remove, &agreeing, &PlanOptions::default()).unwrap_err();
    assert!(matches!(refused, PlanRefusal::AnswersMissing { left: 2, required: 3, .. }), "{refused}");
}

#[test]
fn a_ring_keeps_its_ranks_and_as_many_nodes() {
    let ring = labelled(Strategy::Ring, 2, (0..3).map(|id| node(id, 0, "")).collect(), 12, 1);
    assert_eq!(
        refusal(&ring, &TargetShape::DrainGroup(GroupId(0))),
        "a ring has no groups to add or take out: add or drain nodes"
    );
    assert_eq!(
        refusal(&ring, &TargetShape::RemoveNodes(vec![NodeId(0), NodeId(1)])),
        "2 replicas need as many nodes on the ring, which has 1"
    );
}

#[test]
fn sizes_batches_and_donors_must_be_there() {
    let table = grid(2, 2, 8);
    let short = plan(&table, &TargetShape::Even, &[bytes("people", 7, 1)], &PlanOptions::default());
    assert_eq!(short.unwrap_err().to_string(), "store people gives sizes of 7 partitions, the cluster has 8");
    let none = PlanOptions { batch_size: 0, ..PlanOptions::default() };
    assert_eq!(
        plan(&table, &TargetShape::Even, &[], &none).unwrap_err().to_string(),
        "a batch holds at least one partition"
    );
    let alone = grid(1, 2, 8);
    let dead = PlanOptions { dead: BTreeSet::from([NodeId(0)]), ..PlanOptions::default() };
    let refused = plan(&alone, &TargetShape::RemoveNodes(vec![NodeId(0)]), &[bytes("people", 8, 1)], &dead)
        .unwrap_err();
    assert!(refused.to_string().starts_with("no live node can give store people, partition p"), "{refused}");
}
