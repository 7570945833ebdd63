//! Tests in which the database is replaced by an older copy of itself, while leaders keep their state.

use super::client::State;
use super::scenes::*;
use super::world::{PendingTask, World};
use crate::Guards;
use crate::leader::{CommitResult, Delivery, Event};
use kith_types::{LogPoint, PartitionId};
use std::time::Duration;

#[test]
fn a_leader_that_reads_an_older_copy_gives_up_its_term() {
    for (older_copies_noticed, is_right) in [(true, true), (false, false)] {
        let mut world = begun(Guards { older_copies_noticed, ..Guards::default() });
        let (one, _) = pairs(&world);
        let copy = world.twin.clone();
        world.submit(0, add(one, "likes", 1));
        world.run_all();
        world.twin.restore(&copy);
        world.submit(0, add(one, "likes", 2));
        world.run_all();
        assert_eq!(world.nodes[0].end(PartitionId(0)).is_none(), is_right);
    }
}

#[test]
fn an_idle_leader_gives_up_its_term_when_it_hears_that_the_database_was_replaced() {
    for (older_copies_noticed, is_right) in [(true, true), (false, false)] {
        let mut world = begun(Guards { older_copies_noticed, ..Guards::default() });
        let before = world.nodes[0].end(PartitionId(0)).unwrap();
        world.tell(0, Event::Replaced { partition: PartitionId(0), before });
        assert_eq!(world.nodes[0].end(PartitionId(0)).is_none(), is_right);
        // Another report of the same replacement does not end a term that began after it.
        world.elect(PartitionId(0), 0);
        world.run_all();
        world.tell(0, Event::Replaced { partition: PartitionId(0), before });
        assert!(world.nodes[0].end(PartitionId(0)).is_some());
    }
}

fn end_of(world: &World) -> LogPoint {
    world.twin.end(PartitionId(0))
}

#[test]
fn a_term_that_began_in_the_lost_history_does_not_begin_again() {
    let mut world = begun(Guards::default());
    let copy = world.twin.clone();
    let (one, other) = pairs(&world);
    world.submit(0, add(one, "likes", 1));
    world.run_all();
    world.elect(PartitionId(0), 2);
    world.run(|pending| !matches!(pending, PendingTask::BeginTerm { .. }));
    let Some(PendingTask::BeginTerm { node, partition, term }) = world.take(|_| true) else {
        panic!("no term")
    };
    let lost = world.twin.begin_term(partition, term).unwrap();
    world.tell(node, Event::TermUnknown { partition, term });
    world.twin.restore(&copy);
    world.pass(Duration::from_millis(60));
    world.run_all();
    // A replica that has seen where the lost term began must not take the new history for the lost one.
    world.submit(2, add(other, "likes", 2));
    world.run_all();
    assert_eq!(end_of(&world).position, lost.position);
    assert!(lost.term < end_of(&world).term);
}

#[test]
fn the_places_of_a_commit_whose_answer_was_lost_are_not_used_again() {
    let mut world = begun(Guards::default());
    let copy = world.twin.clone();
    let (one, _) = pairs(&world);
    world.submit(0, add(one, "likes", 1));
    world.run(|pending| !matches!(pending, PendingTask::Commit { .. }));
    let Some(PendingTask::Commit { node, commit, batch }) = world.take(|_| true) else { panic!("no commit") };
    world.twin.commit(&batch).unwrap();
    let lost = end_of(&world);
    world.twin.restore(&copy);
    world.tell(node, Event::Committed { commit, result: CommitResult::Unknown });
    world.run_all();
    assert_eq!(end_of(&world).position, lost.position, "the write is repeated");
    assert!(lost.term < end_of(&world).term);
}

#[test]
fn a_leader_that_hears_of_an_older_copy_in_a_transaction_gives_up_its_term_after_it() {
    let mut world = begun(Guards::default());
    let (one, _) = pairs(&world);
    world.submit(0, add(one, "likes", 1));
    world.run(|pending| !matches!(pending, PendingTask::Load { .. }));
    let Some(PendingTask::Load { node, load, .. }) = world.take(|_| true) else { panic!("no load") };
    let before = world.nodes[0].end(PartitionId(0)).unwrap();
    world.tell(0, Event::Replaced { partition: PartitionId(0), before });
    assert!(world.nodes[0].end(PartitionId(0)).is_some());
    world.tell(node, Event::LoadFailed { load });
    assert!(world.nodes[0].end(PartitionId(0)).is_none());
}

/// Takes the next delivery. Returns the partitions that it comes from and goes to, and the delivery.
fn next_delivery(world: &mut World) -> (PartitionId, PartitionId, Delivery) {
    world.run(but_deliveries);
    match world.take(is_delivery) {
        Some(PendingTask::Deliver { from, to, delivery, .. }) => (from, to, delivery),
        other => panic!("no delivery, but {other:?}"),
    }
}

#[test]
fn a_delivery_of_a_lost_history_changes_nothing() {
    for (histories_match, is_right) in [(true, true), (false, false)] {
        let mut world = begun(Guards { histories_match, ..Guards::default() });
        let copy = world.twin.clone();
        let (one, _) = pairs(&world);
        world.submit(0, add(one, "friend", 1));
        let (from, _, delivery) = next_delivery(&mut world);
        world.twin.restore(&copy);
        world.deliver(1, 0, from, delivery);
        world.run(but_deliveries);
        world.heal();
        assert_eq!(
            world.twin.associations().is_empty(),
            is_right,
            "one end would have a row without the other"
        );
    }
}

#[test]
fn an_answer_to_a_delivery_of_a_lost_history_completes_nothing() {
    for (histories_match, is_right) in [(true, true), (false, false)] {
        let mut world = begun(Guards { histories_match, ..Guards::default() });
        let (one, _) = pairs(&world);
        let addition = world.submit(0, add(one, "friend", 1));
        let (from, _, delivery) = next_delivery(&mut world);
        let copy = world.twin.clone();
        world.deliver(1, 0, from, delivery);
        world.run(|pending| !matches!(pending, PendingTask::Event { event: Event::Delivered { .. }, .. }));
        world.twin.restore(&copy);
        world.run(but_deliveries);
        assert_eq!(world.verdict_now().is_empty(), is_right);
        // The leader of the other end does not know yet that its log is an older one.
        world.elect(PartitionId(1), 1);
        world.run_all();
        world.pass(Duration::from_secs(3));
        world.run_all();
        assert_eq!(world.client.operations[addition].state, State::Done(false));
        world.heal();
        assert_eq!(world.twin.associations().len() == 2, is_right);
    }
}

#[test]
fn a_floor_of_a_lost_history_completes_nothing() {
    for (histories_match, is_right) in [(true, true), (false, false)] {
        let mut world = begun(Guards { histories_match, ..Guards::default() });
        let (one, other) = pairs(&world);
        world.submit(0, add(one, "friend", 1));
        world.run(but_deliveries);
        // An intent is open in the copy. It is complete in the history that is lost.
        let copy = world.twin.clone();
        world.run_all();
        world.submit(0, add(other, "friend", 2));
        let (from, _, late) = next_delivery(&mut world);
        world.twin.restore(&copy);
        world.elect(PartitionId(1), 1);
        world.run(but_deliveries);
        world.deliver(1, 0, from, late);
        world.run(but_deliveries);
        world.heal();
        assert_eq!(world.verdict_now().is_empty(), is_right);
        assert_eq!(
            world.twin.associations().len(),
            2,
            "one pair has both rows, or two pairs have one row each"
        );
    }
}

#[test]
fn a_leader_whose_delivery_is_of_a_lost_history_gives_up_its_term() {
    let mut world = begun(Guards::default());
    let (one, _) = pairs(&world);
    world.submit(0, add(one, "friend", 1));
    world.run(but_deliveries);
    // The copy has the intent, but not the term that the leader has begun since. The leader learns this only from the other
    // end.
    let copy = world.twin.clone();
    let (_, other) = pairs(&world);
    world.submit(0, add(other, "likes", 2));
    world.run(|pending| !is_delivery(pending) && !matches!(pending, PendingTask::Commit { .. }));
    let is_commit = |pending: &PendingTask| matches!(pending, PendingTask::Commit { .. });
    let Some(PendingTask::Commit { node, commit, .. }) = world.take(is_commit) else { panic!("no commit") };
    world.tell(node, Event::Committed { commit, result: CommitResult::Unknown });
    world.run(|pending| matches!(pending, PendingTask::BeginTerm { .. }));
    let is_load = |pending: &PendingTask| matches!(pending, PendingTask::Load { .. });
    let Some(PendingTask::Load { node, load, .. }) = world.take(is_load) else { panic!("no load") };
    world.tell(node, Event::LoadFailed { load });
    let (from, _, _) = next_delivery(&mut world);
    world.twin.restore(&copy);
    world.pass(Duration::from_secs(2));
    world.run_all();
    assert_eq!(world.nodes[0].end(from), None);
    world.heal();
    assert_eq!(world.verdict_now(), [""; 0]);
    assert_eq!(world.twin.open_intents(), 0);
}
