//! Tests of unique values: which write of several that want a value is refused, and that all others take effect.

use super::client::State;
use super::explore::Explorer;
use super::ids_in;
use super::scenes::{begun, named};
use super::world::{PendingTask, World};
use crate::{Conditions, Guards, Mutation, Refusal, Write};
use kith_types::PartitionId;

/// The number of random runs.
const RUNS: u64 = 4_000;

fn write(mutation: Mutation) -> Write {
    Write { mutation, conditions: Conditions::default(), write_id: None }
}

fn add(id: u64, value: u64) -> Write {
    let (kind, data) = ("account".to_owned(), Some(format!("{{\"a\":5,\"b\":{value}}}")));
    write(Mutation::AddObject { kind, data, id: Some(id), near: None, text_id: None })
}

fn update(id: u64, value: &str) -> Write {
    write(Mutation::UpdateObject { id, data: format!("{{\"b\":{value}}}") })
}

fn delete(id: u64) -> Write {
    write(Mutation::DeleteObject { id })
}

/// Returns ids of partition 0, and ids of partition 1.
fn ids(world: &World) -> [Vec<u64>; 2] {
    [0, 1].map(|partition| ids_in(PartitionId(partition), world.twin.count).take(4).collect())
}

const TAKEN: State = State::Refused("unique taken");

/// Sends writes to the leaders of their partitions at the same time, and returns how they ended.
fn sent<const N: usize>(world: &mut World, writes: [Write; N]) -> [State; N] {
    let sent = writes.map(|write| {
        let partition = crate::ordering_partition(&write, &world.twin.types, world.twin.count).unwrap();
        let node = world.leaders[&partition].0;
        world.submit(node, write)
    });
    world.run_all();
    assert_eq!(world.verdict_now(), [""; 0]);
    sent.map(|operation| world.client.operations[operation].state)
}

#[test]
fn of_two_writes_in_two_partitions_one_is_refused_and_the_others_go_on() {
    let mut world = begun(Guards::default());
    let [here, there] = ids(&world);
    let ends = sent(&mut world, [add(here[0], 1), add(here[1], 2), add(there[0], 1), add(there[1], 3)]);
    assert_eq!(ends.iter().filter(|end| **end == TAKEN).count(), 1, "{ends:?}");
    assert!(ends[0] == TAKEN || ends[2] == TAKEN);
    assert_eq!(world.twin.objects().len(), 3);
}

#[test]
fn one_leader_of_two_partitions_refuses_one_of_two_writes_too() {
    let mut world = begun(Guards::default());
    world.elect(PartitionId(1), 0);
    world.run_all();
    let [here, there] = ids(&world);
    let ends = sent(&mut world, [add(here[0], 1), add(there[0], 1), add(here[1], 1), add(there[1], 2)]);
    assert_eq!(ends.map(|end| end == TAKEN), [false, true, true, false]);
}

#[test]
fn a_value_that_is_given_up_can_be_taken_by_another_object() {
    let mut world = begun(Guards::default());
    let [here, there] = ids(&world);
    assert_eq!(sent(&mut world, [add(here[0], 1)]), [State::Done(false)]);
    assert_eq!(sent(&mut world, [update(here[0], "1"), add(there[0], 1)]), [State::Done(true), TAKEN]);
    assert_eq!(sent(&mut world, [delete(here[0])]), [State::Done(true)]);
    assert_eq!(sent(&mut world, [add(there[0], 1)]), [State::Done(false)]);
    assert_eq!(sent(&mut world, [update(there[0], "null")]), [State::Done(true)]);
    assert_eq!(sent(&mut world, [add(here[0], 1)]), [State::Done(false)]);
    // In one transaction after the other, if the writes arrive together.
    let ends = sent(&mut world, [delete(here[0]), add(here[1], 1), delete(here[1]), add(here[2], 1)]);
    assert_eq!(ends[0], State::Done(true));
}

#[test]
fn a_refusal_names_the_field_the_value_and_the_object_and_is_recorded() {
    let mut world = begun(Guards::default());
    let [here, there] = ids(&world);
    sent(&mut world, [add(here[0], 77)]);
    let late = named(add(there[0], 77), "late");
    assert_eq!(sent(&mut world, [late.clone()]), [TAKEN]);
    assert_eq!(sent(&mut world, [delete(here[0])]), [State::Done(true)]);
    // A repeat gets the first outcome, although the value is free by now.
    assert_eq!(sent(&mut world, [late]), [TAKEN]);
    let refusal = Refusal::UniqueTaken { field: "b".to_owned(), value: "77".to_owned(), id: here[0] };
    assert_eq!(
        refusal.to_string(),
        format!("field \"b\" must be unique, and object {} has the value 77", here[0])
    );
    assert!(world.twin.outcomes().any(|outcome| outcome == crate::Outcome::Refused(refusal.clone())));
}

#[test]
fn a_write_with_a_taken_value_does_not_hold_up_the_others_of_its_transaction() {
    let mut world = begun(Guards::default());
    let [here, there] = ids(&world);
    sent(&mut world, [add(there[0], 1), add(there[1], 2)]);
    // All writes of node 0 wait for one transaction: the first one is under way.
    let writes = [add(here[0], 9), add(here[1], 1), add(here[2], 2), add(here[3], 3)];
    let sent = writes.map(|write| world.submit(0, write));
    world.run(|pending| matches!(pending, PendingTask::Event { .. }));
    let mut commits = 0;
    while let Some(pending) = world.take(|_| true) {
        commits += usize::from(matches!(pending, PendingTask::Commit { .. }));
        world.happen(pending);
    }
    let ends = sent.map(|operation| world.client.operations[operation].state);
    assert_eq!(ends, [State::Done(false), TAKEN, TAKEN, State::Done(false)]);
    assert!(commits <= 3, "{commits} transactions");
}

#[test]
fn no_run_gives_a_value_to_two_objects_or_refuses_a_write_without_a_reason() {
    let mut taken = 0;
    for seed in 0..RUNS {
        let mut explorer = Explorer::of_accounts(seed, Guards::default());
        assert_eq!(explorer.run(), [""; 0], "seed {seed}");
        let operations = &explorer.world.client.operations;
        taken += operations.iter().filter(|operation| operation.state == TAKEN).count() as u64;
    }
    assert!(RUNS / 20 < taken, "the runs show little: {taken} writes were refused");
}
