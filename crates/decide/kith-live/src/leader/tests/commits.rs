//! Tests of lost answers to commits (the model `cache.py`, "lost commit"), fenced partitions, group commit, handing over,
//! and limits.

use super::client::State;
use super::scenes::*;
use super::world::{PendingTask, World};
use super::*;
use crate::leader::limits::{FAILURES_HELD_MAX, WRITES_MAX};
use crate::leader::*;
use crate::{Batch, Guards, Mutation, Write};
use kith_types::{PartitionId, Term};
use std::time::Duration;

/// A term that another leader has.
const LATER: Term = Term(99 << 16);

/// Lets everything happen until the next commit of a node, and takes this commit.
fn next_commit(world: &mut World, node: usize) -> (CommitId, Batch) {
    let is_commit =
        |pending: &PendingTask| matches!(pending, PendingTask::Commit { node: own, .. } if *own == node);
    world.run(|pending| !is_commit(pending));
    match world.take(is_commit) {
        Some(PendingTask::Commit { commit, batch, .. }) => (commit, batch),
        other => panic!("no commit, but {other:?}"),
    }
}

fn unknown(world: &mut World, node: usize, commit: CommitId) {
    world.tell(node, Event::Committed { commit, result: CommitResult::Unknown });
}

fn end_without_faults(world: &mut World) {
    world.heal();
    assert_eq!(world.verdict(), [""; 0]);
}

#[test]
fn a_commit_that_took_effect_unheard_is_answered_as_done() {
    let mut world = begun(Guards::default());
    let (one, _) = pairs(&world);
    let addition = world.submit(0, add(one, "likes", 1));
    let (commit, batch) = next_commit(&mut world, 0);
    world.twin.commit(&batch).unwrap();
    unknown(&mut world, 0, commit);
    world.run_all();
    assert_eq!(world.client.operations[addition].state, State::Done(false));
    end_without_faults(&mut world);
}

#[test]
fn a_commit_that_is_late_gets_no_position_after_the_next_term_has_begun() {
    // `cache.py`, "lost commit: position read": the commit of the old connection is still running.
    for (unknown_settled, is_right) in [(true, true), (false, false)] {
        let mut world = begun(Guards { unknown_settled, ..Guards::default() });
        let (one, _) = pairs(&world);
        let addition = world.submit(0, named(add(one, "likes", 1), "a"));
        let (commit, batch) = next_commit(&mut world, 0);
        unknown(&mut world, 0, commit);
        world.pass(Duration::from_millis(60));
        world.run(|pending| !matches!(pending, PendingTask::Commit { .. } | PendingTask::BeginTerm { .. }));
        world.happen(PendingTask::LateCommit { batch: batch.clone() });
        world.run_all();
        world.happen(PendingTask::LateCommit { batch });
        let state = world.client.operations[addition].state;
        assert_eq!(state, if is_right { State::Done(false) } else { State::Failed });
        world.heal();
        assert_eq!(world.verdict().is_empty(), is_right);
    }
}

/// Takes the next term that a node requests. The term begins, but its answer is lost.
fn unheard_term(world: &mut World, node: usize) -> Term {
    let is_term =
        |pending: &PendingTask| matches!(pending, PendingTask::BeginTerm { node: own, .. } if *own == node);
    world.run(|pending| !is_term(pending));
    let Some(PendingTask::BeginTerm { partition, term, .. }) = world.take(is_term) else { panic!("no term") };
    world.twin.begin_term(partition, term).unwrap();
    world.tell(node, Event::TermUnknown { partition, term });
    world.pass(Duration::from_millis(200));
    term
}

#[test]
fn a_term_whose_answer_is_lost_is_followed_by_another_one() {
    for took_effect in [true, false] {
        let mut world = begun(Guards::default());
        let (one, _) = pairs(&world);
        let addition = world.submit(0, add(one, "likes", 1));
        let (commit, batch) = next_commit(&mut world, 0);
        if took_effect {
            world.twin.commit(&batch).unwrap();
        }
        unknown(&mut world, 0, commit);
        let before = unheard_term(&mut world, 0);
        assert!(before < unheard_term(&mut world, 0));
        world.run_all();
        assert_eq!(world.client.operations[addition].state, State::Done(false));
        let end = world.nodes[0].end(PartitionId(0)).unwrap();
        assert_eq!(end, world.twin.end(PartitionId(0)));
        assert_eq!(end.position.0, 1, "the write is there once, and nothing else");
        end_without_faults(&mut world);
    }
}

#[test]
fn a_leader_that_has_used_up_its_terms_needs_another_one_from_the_metadata() {
    let mut world = begun(Guards::default());
    world.elect(PartitionId(0), 2);
    let first = unheard_term(&mut world, 2);
    let mut last = first;
    while world.nodes[2].terms.takes_writes(PartitionId(0)) {
        world.pass(Duration::from_secs(3));
        let Some(PendingTask::BeginTerm { partition, term, .. }) = world.take(|_| true) else { continue };
        last = term;
        world.tell(2, Event::TermUnknown { partition, term });
    }
    assert_eq!((first.0 & 0xffff, last), (0, Term(first.0 | 0xffff)));
    world.elect(PartitionId(0), 2);
    world.run_all();
    assert!(world.nodes[2].end(PartitionId(0)).is_some());
    end_without_faults(&mut world);
}

#[test]
fn a_deposed_leader_answers_nothing() {
    for (answers_proven, is_right) in [(true, true), (false, false)] {
        let mut world = begun(Guards { answers_proven, ..Guards::default() });
        let (one, _) = pairs(&world);
        world.elect(PartitionId(0), 1);
        world.run_all();
        world.submit(1, add(one, "likes", 1));
        world.run_all();
        // Node 0 gets rows that are outdated.
        let deletion = world.submit(0, delete(one, "likes"));
        world.run(|pending| !matches!(pending, PendingTask::Load { .. }));
        let Some(PendingTask::Load { node, load, queries }) = world.take(|_| true) else { panic!("no load") };
        world.load_outdated(node, load, &queries);
        world.run_all();
        let state = world.client.operations[deletion].state;
        assert_eq!(state, if is_right { State::Failed } else { State::Done(false) });
        world.heal();
        assert_eq!(world.verdict().is_empty(), is_right);
    }
}

#[test]
fn what_waits_is_committed_together_and_a_fenced_partition_fails_alone() {
    let mut world = World::new(1, 2, Guards::default());
    world.run_all();
    let [here, there] = [0, 1].map(|it| ids_in(PartitionId(it), world.twin.count).next().unwrap());
    world.submit(0, add((here, there), "likes", 1));
    let (commit, first) = next_commit(&mut world, 0);
    let more: Vec<usize> = [(here, 77), (there, here), (there, 78), (here, 79)]
        .map(|edge| world.submit(0, add(edge, "likes", 2)))
        .to_vec();
    world.run_all();
    world.happen(PendingTask::Commit { node: 0, commit, batch: first });
    let (commit, batch) = next_commit(&mut world, 0);
    let lengths: Vec<usize> = batch.parts.iter().map(|part| part.changes.len()).collect();
    assert_eq!(lengths, [2, 2]);
    world.twin.begin_term(PartitionId(0), LATER).unwrap();
    world.happen(PendingTask::Commit { node: 0, commit, batch });
    world.run_all();
    let states: Vec<State> = more.iter().map(|it| world.client.operations[*it].state).collect();
    assert_eq!(states, [State::Failed, State::Done(false), State::Done(false), State::Failed]);
    assert_eq!(world.nodes[0].end(PartitionId(0)), None);
}

#[test]
fn a_lost_answer_of_two_partitions_is_settled_by_the_one_that_is_still_led() {
    for took_effect in [true, false] {
        let mut world = World::new(1, 2, Guards::default());
        world.run_all();
        let [here, there] = [0, 1].map(|it| ids_in(PartitionId(it), world.twin.count).next().unwrap());
        let one = world.submit(0, add((here, 77), "likes", 1));
        let other = world.submit(0, add((there, 77), "likes", 1));
        let two = [(here, 78), (there, 78)].map(|edge| world.submit(0, add(edge, "likes", 2)));
        // The first commit has one write; the next has the others.
        let (commit, batch) = next_commit(&mut world, 0);
        world.happen(PendingTask::Commit { node: 0, commit, batch });
        let (commit, batch) = next_commit(&mut world, 0);
        assert_eq!(batch.parts.len(), 2);
        if took_effect {
            world.twin.commit(&batch).unwrap();
        }
        world.twin.begin_term(PartitionId(0), LATER).unwrap();
        unknown(&mut world, 0, commit);
        world.run_all();
        let states = [one, other, two[0], two[1]].map(|it| world.client.operations[it].state);
        let lost = if took_effect { State::Done(false) } else { State::Failed };
        assert_eq!(states, [State::Done(false), State::Done(false), lost, State::Done(false)]);
        end_without_faults(&mut world);
    }
}

#[test]
fn an_outcome_stays_unknown_only_if_leadership_is_lost() {
    let mut world = begun(Guards::default());
    let (one, _) = pairs(&world);
    let addition = world.submit(0, add(one, "likes", 1));
    let (commit, _) = next_commit(&mut world, 0);
    world.twin.begin_term(PartitionId(0), LATER).unwrap();
    unknown(&mut world, 0, commit);
    world.run_all();
    assert_eq!(world.client.operations[addition].state, State::Unknown);
    assert_eq!(world.nodes[0].end(PartitionId(0)), None);
}

#[test]
fn handing_over_fails_no_write_that_has_begun() {
    let mut world = begun(Guards::default());
    let (one, _) = pairs(&world);
    let begun = world.submit(0, add(one, "friend", 1));
    world.run(but_deliveries);
    let waiting = world.submit(0, delete(one, "friend"));
    world.run(but_deliveries);
    world.tell(0, Event::HandOver { partition: PartitionId(0) });
    let late = world.submit(0, add(one, "likes", 1));
    world.run(but_deliveries);
    let states = [begun, waiting, late].map(|it| world.client.operations[it].state);
    assert_eq!(states, [State::Running, State::Failed, State::Failed]);
    assert_eq!(world.released, []);
    world.run_all();
    assert_eq!(world.client.operations[begun].state, State::Done(false));
    assert_eq!(world.released, [PartitionId(0)]);
    end_without_faults(&mut world);
}

#[test]
fn handing_over_does_not_wait_for_ever() {
    let mut world = begun(Guards::default());
    let (one, _) = pairs(&world);
    let begun = world.submit(0, add(one, "friend", 1));
    world.run(but_deliveries);
    world.tell(0, Event::HandOver { partition: PartitionId(0) });
    world.pass(Duration::from_secs(11));
    assert_eq!(world.client.operations[begun].state, State::Unknown);
    assert_eq!(world.released, [PartitionId(0)]);
    end_without_faults(&mut world);
}

#[test]
fn two_partitions_that_are_handed_over_do_not_wait_for_each_other() {
    let mut world = begun(Guards::default());
    let (one, _) = pairs(&world);
    let low = ids_in(PartitionId(1), world.twin.count).next().unwrap();
    let high = ids_in(PartitionId(0), world.twin.count).find(|id| low < *id && *id != one.0).unwrap();
    let writes = [world.submit(0, add(one, "friend", 1)), world.submit(1, add((low, high), "friend", 1))];
    world.run(but_deliveries);
    for (node, partition) in [(0, PartitionId(0)), (1, PartitionId(1))] {
        world.tell(node, Event::HandOver { partition });
    }
    assert_eq!(world.released, []);
    world.run_all();
    assert_eq!(writes.map(|it| world.client.operations[it].state), [State::Done(false); 2]);
    world.released.sort();
    assert_eq!(world.released, [PartitionId(0), PartitionId(1)]);
    end_without_faults(&mut world);
}

#[test]
fn a_partition_that_is_not_led_is_released_at_once() {
    let mut world = begun(Guards::default());
    world.tell(2, Event::HandOver { partition: PartitionId(0) });
    assert_eq!(world.released, [PartitionId(0)]);
    world.run_all();
    end_without_faults(&mut world);
}

#[test]
fn a_delivery_is_sent_again_with_growing_pauses() {
    let mut world = begun(Guards::default());
    let (one, _) = pairs(&world);
    world.submit(0, add(one, "friend", 1));
    let mut times = Vec::new();
    let begun_at = world.now;
    while times.len() < 8 {
        world.run(but_deliveries);
        if let Some(PendingTask::Deliver { from, delivery, .. }) = world.take(is_delivery) {
            times.push((world.now - begun_at).as_millis());
            let (partition, stamp) = (from, delivery.intent.stamp);
            world.tell(0, Event::DeliveryFailed { partition, stamp });
        }
        world.pass(Duration::from_millis(50));
    }
    assert_eq!(times, [0, 50, 150, 350, 750, 1_550, 3_150, 5_150]);
}

#[test]
fn too_many_writes_are_refused_at_once() {
    let mut world = begun(Guards::default());
    let (one, _) = pairs(&world);
    let mut refused = 0;
    for number in 0..WRITES_MAX as u64 + 5 {
        let event = Event::Write { caller: CallerId(number), write: add((one.0, number), "likes", 1) };
        for action in world.nodes[0].on(event, ClockReading::default()) {
            refused +=
                u32::from(matches!(action, Action::Answer { answer: Err(WriteError::Overloaded), .. }));
        }
    }
    assert_eq!(refused, 5);
    let large = format!(r#"{{"a":1{}}}"#, " ".repeat(1 << 20));
    let mut leader = world.nodes[1].clone();
    let id = ids_in(PartitionId(1), world.twin.count).next().unwrap();
    let update = Mutation::UpdateObject { id, data: large };
    let write = Write { mutation: update, conditions: Default::default(), write_id: None };
    let overloaded = (0..65).filter(|_| {
        let event = Event::Write { caller: CallerId(0), write: write.clone() };
        let actions = leader.on(event, ClockReading::default());
        actions.iter().any(|it| matches!(it, Action::Answer { answer: Err(WriteError::Overloaded), .. }))
    });
    assert_eq!(
        overloaded.count(),
        2,
        "64 MiB and what describes them do not fit, so 2 of 65 writes are refused"
    );
}

#[test]
fn a_database_that_does_not_answer_fails_writes_and_is_asked_again_later() {
    let mut world = begun(Guards::default());
    let (one, _) = pairs(&world);
    let addition = world.submit(0, add(one, "likes", 1));
    world.run(|pending| !matches!(pending, PendingTask::Load { .. }));
    let Some(PendingTask::Load { node, load, .. }) = world.take(|_| true) else { panic!("no load") };
    world.tell(node, Event::LoadFailed { load });
    assert_eq!(world.client.operations[addition].state, State::Failed);
    let next = world.submit(0, add(one, "likes", 2));
    world.run_all();
    assert_eq!(world.client.operations[next].state, State::Running, "the write waits a while");
    world.pass(Duration::from_millis(50));
    world.run_all();
    assert_eq!(world.client.operations[next].state, State::Done(false));
    end_without_faults(&mut world);
}

/// Lets everything happen until a leader asks for a term, and does not tell it whether the term has begun. It has not.
fn refuse_term(world: &mut World) {
    world.run(|pending| !matches!(pending, PendingTask::BeginTerm { .. }));
    let Some(PendingTask::BeginTerm { node, partition, term }) = world.take(|_| true) else {
        panic!("no term")
    };
    world.tell(node, Event::TermUnknown { partition, term });
}

#[test]
fn writes_wait_for_the_term_to_begin() {
    let mut world = begun(Guards::default());
    let (one, _) = pairs(&world);
    world.elect(PartitionId(0), 2);
    let addition = world.submit(2, add(one, "likes", 1));
    refuse_term(&mut world);
    world.run_all();
    assert_eq!(world.client.operations[addition].state, State::Running);
    world.pass(Duration::from_millis(50));
    world.run_all();
    assert_eq!(world.client.operations[addition].state, State::Done(false));
    end_without_faults(&mut world);
}

#[test]
fn writes_do_not_wait_for_a_database_that_stays_away() {
    let mut world = begun(Guards::default());
    let (one, _) = pairs(&world);
    world.elect(PartitionId(0), 2);
    let addition = world.submit(2, add(one, "likes", 1));
    for failures in 1..=FAILURES_HELD_MAX + 1 {
        assert_eq!(world.client.operations[addition].state, State::Running, "{failures}");
        refuse_term(&mut world);
        world.pass(Duration::from_secs(1));
    }
    assert_eq!(world.client.operations[addition].state, State::Failed);
    world.run_all();
    let next = world.submit(2, add(one, "likes", 1));
    world.run_all();
    assert_eq!(world.client.operations[next].state, State::Done(false), "the first one wrote nothing");
    end_without_faults(&mut world);
}

/// Takes the next load of a node, and returns it with the rows that the database has for it now.
fn next_load(world: &mut World, node: usize) -> (LoadId, Vec<crate::RowsAt>) {
    let is_load =
        |pending: &PendingTask| matches!(pending, PendingTask::Load { node: own, .. } if *own == node);
    world.run(|pending| !is_load(pending));
    match world.take(is_load) {
        Some(PendingTask::Load { load, queries, .. }) => {
            let read = |(partition, queries): &(PartitionId, Vec<_>)| world.twin.read(*partition, queries);
            (load, queries.iter().map(read).collect())
        }
        other => panic!("no load, but {other:?}"),
    }
}

#[test]
fn rows_of_an_older_snapshot_decide_nothing() {
    let mut world = begun(Guards::default());
    let (one, _) = pairs(&world);
    world.submit(0, add(one, "likes", 1));
    world.run_all();
    let deletion = world.submit(0, delete(one, "likes"));
    let (load, mut rows) = next_load(&mut world, 0);
    rows[0].at.position.0 -= 1;
    world.tell(0, Event::Loaded { load, rows });
    world.run_all();
    assert_eq!(world.client.operations[deletion].state, State::Failed);
    assert_eq!(world.nodes[0].end(PartitionId(0)), None, "the database may have been replaced by a copy");
    // A snapshot from before the term decides nothing either.
    world.elect(PartitionId(0), 2);
    let (load, mut rows) = next_load(&mut world, 2);
    rows[0].at.term.0 -= 1;
    world.tell(2, Event::Loaded { load, rows });
    assert_eq!(world.nodes[2].end(PartitionId(0)), None);
    world.elect(PartitionId(0), 2);
    world.run_all();
    assert!(world.nodes[2].end(PartitionId(0)).is_some());
    end_without_faults(&mut world);
}

#[test]
fn rows_of_a_later_term_end_the_leadership() {
    let mut world = begun(Guards::default());
    let (one, _) = pairs(&world);
    let addition = world.submit(0, add(one, "likes", 1));
    world.run(|pending| !matches!(pending, PendingTask::Load { .. }));
    world.twin.begin_term(PartitionId(0), LATER).unwrap();
    world.run_all();
    assert_eq!(world.client.operations[addition].state, State::Failed);
    assert_eq!(world.nodes[0].end(PartitionId(0)), None);
}
