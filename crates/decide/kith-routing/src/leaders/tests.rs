//! Tests of how nodes and routers agree on leadership.

use super::{draft::BALANCING_MOVES_MAX, *};
use crate::placement;
use kith_types::PartitionCount;
use proptest::prelude::*;

const GRAPH: &str = "social";

fn table(groups: u32, nodes: u32) -> RoutingTable {
    placement::uniform_table(groups, nodes, PartitionCount::new(24).unwrap(), 1).unwrap()
}

fn everybody(table: &RoutingTable) -> BTreeSet<NodeId> {
    table.nodes().iter().map(|node| node.id).collect()
}

/// Applies decisions until nothing changes.
fn settle(mut leaders: Leaders, table: &RoutingTable, eligible: &BTreeSet<NodeId>) -> Leaders {
    for _ in 0..1_000 {
        match leaders.next(table, eligible) {
            Some(next) => leaders = next,
            None => return leaders,
        }
    }
    panic!("leadership never settles");
}

#[test]
fn a_new_graph_is_led_by_all_nodes_of_all_groups_alike() {
    let table = table(2, 3);
    let all = everybody(&table);
    let leaders = settle(Leaders::default(), &table, &all);
    let led: Vec<usize> = all.iter().map(|&node| leaders.led_by(node)).collect();
    assert_eq!(led, [4; 6]);
}

#[test]
fn a_node_that_is_gone_loses_its_partitions_and_no_other_moves() {
    let table = table(2, 3);
    let mut alive = everybody(&table);
    let before = settle(Leaders::default(), &table, &alive);
    let gone = NodeId(1);
    alive.remove(&gone);
    let after = before.next(&table, &alive).expect("somebody must take over");
    for partition in table.partition_count().iter() {
        let (old, new) = (before.of(partition).unwrap(), after.of(partition).unwrap());
        if old.node == gone {
            assert!(new.node != gone && before.term_last < new.term, "{partition}: {old:?} → {new:?}");
        } else {
            assert_eq!(old, new, "{partition}");
        }
    }
}

#[test]
fn a_node_that_comes_back_is_given_its_share_a_few_partitions_at_a_time() {
    let table = table(2, 3);
    let all = everybody(&table);
    let without: BTreeSet<NodeId> = all.iter().copied().filter(|node| *node != NodeId(1)).collect();
    let before = settle(Leaders::default(), &table, &without);
    assert_eq!(before.led_by(NodeId(1)), 0);
    let next = before.next(&table, &all).expect("it leads too little");
    assert!((1..=BALANCING_MOVES_MAX).contains(&next.led_by(NodeId(1))), "{next:?}");
    assert!(3 <= settle(next, &table, &all).led_by(NodeId(1)));
}

#[test]
fn without_any_replica_the_leader_stays() {
    let table = table(1, 2);
    let before = settle(Leaders::default(), &table, &everybody(&table));
    assert_eq!(before.next(&table, &BTreeSet::new()), None);
    assert_eq!(Leaders::default().next(&table, &BTreeSet::new()), None);
}

#[test]
fn a_node_that_started_again_gets_new_terms_for_what_it_leads() {
    let table = table(1, 2);
    let before = settle(Leaders::default(), &table, &everybody(&table));
    let refused: BTreeMap<PartitionId, Term> =
        table.partition_count().iter().map(|partition| (partition, before.term_last)).collect();
    let after = before.renew(NodeId(0), &refused).expect("it leads some");
    for (old, new) in before.by_partition.iter().flatten().zip(after.by_partition.iter().flatten()) {
        assert_eq!(old.node, new.node);
        assert_eq!(new.term, if old.node == NodeId(0) { after.term_last } else { old.term });
    }
    assert!(before.term_last < after.term_last);
    assert_eq!(before.renew(NodeId(9), &refused), None);
    assert_eq!(after.renew(NodeId(0), &refused), None, "they have new terms already");
}

#[test]
fn a_leader_that_is_alive_is_not_replaced_but_hands_over() {
    let table = table(2, 3);
    let mut lives = Lives { alive: everybody(&table), ..Lives::default() };
    let before = settle(Leaders::default(), &table, &lives.alive);
    let leaver = NodeId(1);
    lives.leaving.insert(leaver);
    assert_eq!(before.replaced(GRAPH, &table, &lives), None);
    let eligible = lives.eligible(GRAPH, &table);
    let due = before.due(leaver, &table, &eligible);
    assert_eq!(due.len(), before.led_by(leaver));
    assert_eq!(before.due(NodeId(0), &table, &eligible), BTreeMap::new());
    let after = before.given(leaver, &due, &table, &eligible).expect("others can lead");
    assert_eq!(after.led_by(leaver), 0);
    assert!(due.keys().all(|partition| before.term_last < after.of(*partition).unwrap().term));
    assert_eq!(after.given(leaver, &due, &table, &eligible), None, "it does not lead them any more");
    // Once its lease has ended, routers decide the same.
    lives.alive.remove(&leaver);
    assert_eq!(before.replaced(GRAPH, &table, &lives).expect("others can lead").led_by(leaver), 0);
}

#[test]
fn a_node_that_cannot_open_a_graph_leads_none_of_its_partitions() {
    let table = table(2, 3);
    let mut lives = Lives { alive: everybody(&table), ..Lives::default() };
    let before = settle(Leaders::default(), &table, &lives.alive);
    let outsider = NodeId(1);
    lives.unable.insert(outsider, BTreeSet::from([GRAPH.to_owned()]));
    assert!(!lives.eligible(GRAPH, &table).contains(&outsider));
    // It has nothing to hand over, so routers replace it although it is alive.
    let after = before.replaced(GRAPH, &table, &lives).expect("others can lead");
    assert_eq!(after.led_by(outsider), 0);
    assert_eq!(before.replaced("another graph", &table, &lives), None);
    // If no node can open the graph, nobody is better.
    lives.unable = lives.alive.iter().map(|node| (*node, BTreeSet::from([GRAPH.to_owned()]))).collect();
    assert_eq!(before.replaced(GRAPH, &table, &lives), None);
}

#[test]
fn if_nobody_can_take_over_nothing_is_due_and_what_was_released_is_led_again() {
    let table = table(1, 2);
    let before = settle(Leaders::default(), &table, &everybody(&table));
    let nobody = BTreeSet::new();
    assert_eq!(before.due(NodeId(0), &table, &nobody), BTreeMap::new());
    let (partition, leader) = (PartitionId(3), before.of(PartitionId(3)).unwrap());
    let released = BTreeMap::from([(partition, leader.term)]);
    let after = before.given(leader.node, &released, &table, &nobody).expect("it goes on");
    assert_eq!(after.of(partition), Some(Leader { node: leader.node, term: after.term_last }));
    let earlier = BTreeMap::from([(partition, Term(0))]);
    assert_eq!(before.given(leader.node, &earlier, &table, &nobody), None, "it leads for another term");
}

#[test]
fn nodes_of_groups_that_take_no_reads_may_not_lead() {
    let mut parts = table(2, 3).to_parts();
    parts.groups[0].role = GroupRole::Maintenance;
    let table = RoutingTable::new(parts).unwrap();
    let lives = Lives { alive: everybody(&table), leaving: BTreeSet::from([NodeId(4)]), ..Lives::default() };
    assert_eq!(lives.eligible(GRAPH, &table), BTreeSet::from([NodeId(3), NodeId(5)]));
}

proptest! {
    #[test]
    fn nodes_and_routers_carry_out_the_decision_together_and_come_to_rest(
        steps in proptest::collection::vec(proptest::collection::btree_set(0u32..6, 1..=6), 1..8),
        dead in proptest::collection::btree_set(0u32..6, 0..=2),
    ) {
        let table = table(2, 3);
        let mut leaders = settle(Leaders::default(), &table, &everybody(&table));
        for eligible in steps {
            let eligible: BTreeSet<NodeId> = eligible.into_iter().map(NodeId).collect();
            let dead = dead.iter().copied().map(NodeId).filter(|node| !eligible.contains(node)).collect();
            let alive: BTreeSet<NodeId> = everybody(&table).difference(&dead).copied().collect();
            let leaving = alive.difference(&eligible).copied().collect();
            let lives = Lives { alive, leaving, ..Lives::default() };
            prop_assert_eq!(lives.eligible(GRAPH, &table), eligible.clone());
            let moves = |next: Option<Leaders>| -> BTreeSet<PartitionId> {
                let changed = |partition: &PartitionId| {
                    next.as_ref().is_some_and(|next| next.of(*partition) != leaders.of(*partition))
                };
                table.partition_count().iter().filter(changed).collect()
            };
            let mut carried_out = moves(leaders.replaced(GRAPH, &table, &lives));
            for node in &lives.alive {
                carried_out.extend(leaders.due(*node, &table, &eligible).into_keys());
            }
            prop_assert_eq!(carried_out, moves(leaders.next(&table, &eligible)));
            // At the beginning of each round, all nodes decide what is due. Then they hand it over one after the other.
            for _ in 0..200 {
                leaders = leaders.replaced(GRAPH, &table, &lives).unwrap_or(leaders);
                let before = leaders.clone();
                for node in &lives.alive {
                    let due = before.due(*node, &table, &eligible);
                    leaders = leaders.given(*node, &due, &table, &eligible).unwrap_or(leaders);
                }
                if leaders == before {
                    break;
                }
            }
            prop_assert_eq!(leaders.next(&table, &eligible), None, "leadership never settles");
        }
    }

    #[test]
    fn whatever_happens_leaders_are_eligible_replicas_and_no_term_is_given_twice(
        steps in proptest::collection::vec(proptest::collection::btree_set(0u32..6, 0..=6), 1..20),
    ) {
        let table = table(2, 3);
        let mut leaders = Leaders::default();
        for alive in steps {
            let alive: BTreeSet<NodeId> = alive.into_iter().map(NodeId).collect();
            let Some(next) = leaders.next(&table, &alive) else { continue };
            for partition in table.partition_count().iter() {
                let (old, new) = (leaders.of(partition), next.of(partition));
                if old == new {
                    continue;
                }
                let new = new.expect("a leader is only replaced");
                prop_assert!(alive.contains(&new.node));
                let index = table.node_index(new.node).expect("it is in the table");
                prop_assert!(table.replicas(partition).contains(&index));
                prop_assert!(leaders.term_last < new.term && new.term <= next.term_last);
            }
            leaders = next;
        }
        let settled = settle(leaders, &table, &everybody(&table));
        let led: Vec<usize> = table.nodes().iter().map(|node| settled.led_by(node.id)).collect();
        prop_assert!(led.iter().max().unwrap() - led.iter().min().unwrap() <= 4, "{led:?}");
    }
}
