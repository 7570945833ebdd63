//! Tests of when nodes go down, come back and are probed.

use super::*;
use crate::placement::uniform_table;
use kith_types::{PartitionCount, PartitionId};

const NODE: NodeId = NodeId(2);

fn at(millis: u64) -> Timestamp {
    Timestamp(Duration::from_millis(millis))
}

fn table() -> RoutingTable {
    uniform_table(2, 3, PartitionCount::new(24).unwrap(), 1).unwrap()
}

fn health() -> Health {
    let mut health = Health::default();
    health.follow(&table(), at(0));
    health.probes_due(at(0)).into_iter().for_each(|node| {
        assert_eq!(health.on(node, HealthEvent::ProbeOk, at(0)), Some(HealthChange::Joined));
    });
    assert!(health.is_settled());
    health
}

#[test]
fn a_new_node_is_probed_at_once_and_asked_once_it_has_answered() {
    let (mut health, table) = (Health::default(), table());
    health.follow(&table, at(0));
    assert!(!health.is_settled() && health.is_up(NODE));
    assert_eq!(health.probes_due(at(0)).len(), 6);
    let nodes = || table.nodes().iter().map(|node| node.id);
    for node in nodes().filter(|node| *node != NODE) {
        assert_eq!(health.on(node, HealthEvent::ProbeOk, at(1)), Some(HealthChange::Joined));
    }
    let index = table.node_index(NODE).unwrap();
    assert!(!health.availability(&table).serving().contains(index), "it has not answered yet");
    assert!(!health.is_settled());
    assert_eq!(health.on(NODE, HealthEvent::ProbeFailed, at(2)), Some(HealthChange::Down));
    assert!(health.is_settled(), "it is down: nobody waits for it");
    assert_eq!(health.on(NODE, HealthEvent::ProbeOk, at(202)), Some(HealthChange::Up));
    assert!(health.availability(&table).serving().contains(index));
}

#[test]
fn a_node_that_listens_elsewhere_is_new() {
    let mut health = health();
    let mut parts = table().to_parts();
    parts.nodes[2].address = "elsewhere:1".to_owned();
    let moved = RoutingTable::new(parts).unwrap();
    health.follow(&moved, at(50));
    assert_eq!(health.probes_due(at(50)), [NODE], "at once, and nobody else");
    assert!(!health.is_settled());
    // Before its first probe has ended, a node is asked if no other node has the data. The answer counts like one to a
    // probe.
    assert_eq!(health.on(NODE, HealthEvent::Success, at(51)), Some(HealthChange::Joined));
}

#[test]
fn a_connection_that_is_lost_is_opened_again_at_once() {
    let mut health = health();
    health.on(NODE, HealthEvent::Success, at(10));
    assert_eq!(health.on(NODE, HealthEvent::ConnectionIdleLost, at(20)), None);
    assert!(health.is_up(NODE));
    assert_eq!(health.probes_due(at(20)), [NODE]);
}

#[test]
fn a_connection_error_takes_a_node_down_and_a_good_probe_brings_it_back() {
    let mut health = health();
    assert_eq!(health.on(NODE, HealthEvent::ConnectionError, at(10)), Some(HealthChange::Down));
    assert_eq!(health.on(NODE, HealthEvent::ConnectionError, at(11)), None, "it is down already");
    assert!(!health.is_up(NODE));
    assert!(health.probes_due(at(150)).is_empty());
    assert_eq!(health.on(NODE, HealthEvent::ProbeFailed, at(230)), None);
    assert_eq!(health.on(NODE, HealthEvent::ProbeOk, at(440)), Some(HealthChange::Up));
    assert!(health.is_up(NODE));
}

#[test]
fn a_failed_probe_takes_a_silent_node_down() {
    let mut health = health();
    assert_eq!(health.probes_due(at(200)).len(), 6, "all have been silent");
    assert_eq!(health.on(NODE, HealthEvent::ProbeFailed, at(205)), Some(HealthChange::Down));
}

#[test]
fn a_death_is_noticed_and_a_return_too_well_within_a_second() {
    let mut health = health();
    let (mut down, mut up) = (None, None);
    for now in (0..4_000).step_by(10) {
        for node in health.probes_due(at(now)) {
            let alive = node != NODE || !(1_000..2_500).contains(&now);
            let event = if alive { HealthEvent::ProbeOk } else { HealthEvent::ProbeFailed };
            match health.on(node, event, at(now + 1)) {
                Some(HealthChange::Down) => down = Some(now),
                Some(HealthChange::Up) => up = Some(now),
                Some(HealthChange::Joined) | None => {}
            }
        }
    }
    assert!(down.is_some_and(|down| (1_000..1_300).contains(&down)), "{down:?}");
    assert!(up.is_some_and(|up| (2_500..2_800).contains(&up)), "{up:?}");
}

#[test]
fn a_busy_node_is_not_probed() {
    let mut health = health();
    for now in (0..2_000).step_by(100) {
        health.on(NODE, HealthEvent::Success, at(now));
        assert!(!health.probes_due(at(now)).contains(&NODE));
    }
}

#[test]
fn a_timeout_asks_for_a_probe_at_once_and_decides_nothing() {
    let mut health = health();
    health.on(NODE, HealthEvent::Success, at(0));
    assert_eq!(health.on(NODE, HealthEvent::Timeout, at(50)), None);
    assert_eq!(health.next_probe(), Some(at(50)));
    assert_eq!(health.probes_due(at(50)), [NODE]);
    assert!(health.probes_due(at(60)).is_empty(), "one probe at a time");
}

#[test]
fn an_answer_sent_before_the_node_died_does_not_revive_it() {
    let mut health = health();
    health.on(NODE, HealthEvent::ConnectionError, at(10));
    assert_eq!(health.on(NODE, HealthEvent::Success, at(12)), None);
    assert!(!health.is_up(NODE));
    assert_eq!(health.probes_due(at(12)), [NODE], "but it is looked at again at once");
}

#[test]
fn a_probe_that_hangs_is_given_up() {
    let mut health = health();
    health.on(NODE, HealthEvent::ConnectionError, at(0));
    assert!(health.probes_due(at(200)).contains(&NODE));
    assert!(!health.probes_due(at(650)).contains(&NODE));
    assert!(health.probes_due(at(700)).contains(&NODE));
}

#[test]
fn a_new_table_keeps_what_is_known() {
    let mut health = health();
    health.on(NODE, HealthEvent::ConnectionError, at(10));
    health.follow(&uniform_table(2, 4, PartitionCount::new(24).unwrap(), 1).unwrap(), at(20));
    assert!(!health.is_up(NODE));
    assert_eq!(health.probes_due(at(20)), [NodeId(6), NodeId(7)], "new nodes are looked at");
    health.follow(&uniform_table(1, 2, PartitionCount::new(24).unwrap(), 1).unwrap(), at(30));
    assert_eq!(health.on(NODE, HealthEvent::ProbeOk, at(40)), None, "it left");
}

#[test]
fn a_table_with_every_node_down_is_tried_all_the_same() {
    let (mut health, table) = (health(), table());
    table.nodes().iter().for_each(|node| {
        health.on(node.id, HealthEvent::ConnectionError, at(1));
    });
    let mut availability = health.availability(&table);
    let up = |availability: &Availability| {
        let view = table.view(availability);
        table.partition_count().iter().filter(|p| view.replicas(*p).next().is_some()).count()
    };
    assert_eq!(up(&availability), 0);
    availability.rescue(&table);
    assert_eq!(up(&availability), 24);
}

#[test]
fn only_partitions_without_a_live_replica_are_tried_on_dead_nodes() {
    let (mut health, table) = (health(), table());
    health.on(NodeId(0), HealthEvent::ConnectionError, at(1));
    health.on(NodeId(4), HealthEvent::ConnectionError, at(1));
    let mut availability = health.availability(&table);
    availability.rescue(&table);
    let view = table.view(&availability);
    for partition in (0..24).map(PartitionId) {
        let owners: Vec<u32> =
            table.replicas(partition).iter().map(|node| table.node_at(*node).id.0).collect();
        let tried: Vec<u32> = view.replicas(partition).map(|node| view.node(node).id.0).collect();
        let live: Vec<u32> = owners.iter().copied().filter(|node| ![0, 4].contains(node)).collect();
        assert_eq!(tried, if live.is_empty() { owners } else { live }, "{partition}");
    }
}
