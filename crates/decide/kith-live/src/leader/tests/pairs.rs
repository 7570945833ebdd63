//! Tests of traces in which models of simpler protocols broke a promise (`pairs.py`, `pairs2.py`, `floor.py`). Here each
//! trace runs correctly, and breaks a promise if the rule that prevents this is switched off.

use super::client::State;
use super::scenes::*;
use super::world::{PendingTask, World};
use crate::Guards;
use kith_types::PartitionId;

/// Runs a scene with all rules, which must keep all promises, and with `guards`, which must break one.
fn only_with(guards: Guards, scene: impl Fn(&mut World)) {
    for (guards, is_right) in [(Guards::default(), true), (guards, false)] {
        let mut world = begun(guards);
        scene(&mut world);
        world.heal();
        let faults = world.verdict();
        assert_eq!(faults.is_empty(), is_right, "{guards:?}: {faults:?}");
    }
}

#[test]
fn a_late_duplicate_of_an_add_does_not_undo_a_delete() {
    // `pairs.py`, "fixed w/o tombstone". Another pair holds the floor down, as in `floor.py`, "tombstone dropped at once".
    let scene = |world: &mut World| {
        let (one, other) = pairs(world);
        world.submit(0, add(other, "friend", 9));
        world.run(but_deliveries);
        let held = world.take(is_delivery).unwrap();
        world.submit(0, add(one, "friend", 1));
        let late = late_copy(world);
        world.run_all();
        world.submit(0, delete(one, "friend"));
        world.run_all();
        world.happen(late);
        world.run_all();
        world.happen(held);
    };
    only_with(Guards { removed_rows_keep_stamps: false, ..Guards::default() }, scene);
    only_with(Guards { stamps_kept_until_floor: false, ..Guards::default() }, scene);
}

#[test]
fn a_stamp_that_the_floor_has_passed_is_refused_by_the_floor() {
    // `floor.py`, "tombstone dropped by floor, no floor guard".
    only_with(Guards { floor_refuses: false, ..Guards::default() }, |world| {
        let (one, other) = pairs(world);
        world.submit(0, add(one, "friend", 1));
        let late = late_copy(world);
        world.run_all();
        world.submit(0, delete(one, "friend"));
        world.run_all();
        assert_eq!(world.twin.pair_stamps(), 1);
        world.submit(0, add(other, "friend", 2));
        world.run_all();
        assert_eq!(world.twin.pair_stamps(), 0, "the floor has passed it");
        world.happen(late);
        world.run_all();
    });
}

#[test]
fn the_floor_stays_below_open_intents() {
    // `floor.py`, "floor = own position (wrong)".
    only_with(Guards { floor_below_intents: false, ..Guards::default() }, |world| {
        let (one, other) = pairs(world);
        world.submit(0, add(one, "friend", 1));
        world.run(but_deliveries);
        let held = world.take(is_delivery).unwrap();
        world.submit(0, add(other, "friend", 2));
        world.run_all();
        world.happen(held);
        world.run_all();
    });
}

#[test]
fn an_older_floor_that_arrives_later_does_not_lower_the_floor() {
    let mut world = begun(Guards::default());
    let [one, holds_down, slow, last] = four_pairs(&world);
    let submit = |world: &mut World, pair, time| {
        world.submit(0, add(pair, "friend", time));
        world.run(but_deliveries);
        world.take(is_delivery).unwrap()
    };
    let held = submit(&mut world, holds_down, 1);
    world.submit(0, add(one, "friend", 2));
    let late = late_copy(&mut world);
    world.run_all();
    world.submit(0, delete(one, "friend"));
    world.run_all();
    let with_old_floor = submit(&mut world, slow, 3);
    world.happen(held);
    world.run_all();
    world.submit(0, add(last, "friend", 4));
    world.run_all();
    assert_eq!(world.twin.pair_stamps(), 0, "the floor has passed the deletion");
    world.happen(with_old_floor);
    world.run_all();
    world.happen(late);
    world.run_all();
    world.heal();
    assert_eq!(world.verdict(), [""; 0]);
}

#[test]
fn a_forward_row_never_stands_alone() {
    // `pairs.py L`: the first transaction writes the forward row.
    only_with(Guards { forward_last: false, ..Guards::default() }, |world| {
        let (one, _) = pairs(world);
        world.submit(0, add(one, "friend", 1));
        world.run_all();
    });
    // With the inverse type, the forward row lies at the end that does not order the pair, and must be removed first.
    only_with(Guards { forward_last: false, ..Guards::default() }, |world| {
        let (one, _) = pairs(world);
        world.submit(0, add(one, "followed_by", 1));
        world.run_all();
        world.submit(0, delete(one, "followed_by"));
        world.run_all();
    });
}

#[test]
fn a_refusal_counts_for_attempts_that_arrive_later() {
    // `pairs.py`, "fixed w/o recording failures".
    only_with(Guards { refusals_recorded: false, ..Guards::default() }, |world| {
        let (one, _) = pairs(world);
        let deletion = world.submit(0, named(if_exists(delete(one, "friend"), true), "d"));
        let first = world.take(|_| true).unwrap();
        world.client.give_up(deletion);
        world.repeat(0, deletion);
        world.run_all();
        assert_eq!(world.client.operations[deletion].state, State::Refused("absent"));
        world.submit(0, add(one, "friend", 1));
        world.run_all();
        world.happen(first);
        world.run_all();
    });
}

#[test]
fn a_repeat_waits_for_the_open_intent_of_its_write() {
    // `pairs.py L`, "repeat of if_absent add": the repeat was refused although the write existed, or was executed twice.
    only_with(Guards { intents_block: false, ..Guards::default() }, |world| {
        let (one, _) = pairs(world);
        let addition = world.submit(0, named(if_exists(add(one, "friend", 1), false), "a"));
        world.run(but_deliveries);
        world.client.give_up(addition);
        world.repeat(0, addition);
        world.run(but_deliveries);
        world.run_all();
        assert_eq!(world.client.operations[addition].state, State::Done(false));
    });
}

#[test]
fn a_newer_write_to_a_pair_waits_for_the_open_intent() {
    // Without the rule, the deletion removes the inverse row last, although the addition has written it again in between.
    only_with(Guards { intents_block: false, ..Guards::default() }, |world| {
        let (one, _) = pairs(world);
        world.submit(0, add(one, "followed_by", 1));
        world.run_all();
        world.submit(0, delete(one, "followed_by"));
        world.run(but_deliveries);
        let deletion = world.take(is_delivery).unwrap();
        world.submit(0, add(one, "followed_by", 2));
        world.run_all();
        world.happen(deletion);
        world.run_all();
    });
}

#[test]
fn another_write_with_the_id_of_an_open_intent_waits_and_is_refused() {
    let mut world = begun(Guards::default());
    let (one, other) = pairs(&world);
    let first = world.submit(0, named(add(one, "friend", 1), "a"));
    world.run(but_deliveries);
    let second = world.submit(0, named(add(other, "friend", 2), "a"));
    world.run(but_deliveries);
    assert_eq!(world.client.operations[second].state, State::Running);
    world.run_all();
    let states = [first, second].map(|it| world.client.operations[it].state);
    assert_eq!(states, [State::Done(false), State::Failed]);
    world.heal();
    assert_eq!(world.verdict(), [""; 0]);
}

#[test]
fn the_error_of_a_repeat_proves_nothing() {
    // `pairs.py`, "transient error of a repeat reported as error". The caller must keep this rule.
    for (trusts, is_right) in [(false, true), (true, false)] {
        let mut world = begun(Guards::default());
        world.client.trusts_errors_of_repeats = trusts;
        let (one, _) = pairs(&world);
        let addition = world.submit(0, named(add(one, "friend", 1), "a"));
        world.run_all();
        // The answer was lost, and the caller repeats the write at a node that does not lead.
        world.client.operations[addition].state = State::Running;
        world.client.give_up(addition);
        world.repeat(1, addition);
        world.run_all();
        world.heal();
        assert_eq!(world.verdict().is_empty(), is_right);
    }
}

#[test]
fn a_new_leader_completes_what_it_finds_and_the_deposed_one_changes_nothing() {
    // `pairs.py L`, "add,del": the deposed leader's requests left half an edge behind. With changes of types, this is
    // `pairs2.py`.
    for kinds in
        [["friend", "rival"], ["friend", "follows"], ["follows", "followed_by"], ["hired_by", "friend"]]
    {
        let mut world = begun(Guards::default());
        let (one, _) = pairs(&world);
        world.submit(0, add(one, kinds[0], 1));
        world.run_all();
        let change = world.submit(0, named(change_type(one, kinds[0], kinds[1]), "c"));
        world.run(but_deliveries);
        let from_deposed = world.take(is_delivery).unwrap();
        world.elect(PartitionId(0), 1);
        world.run_all();
        assert_eq!(world.twin.open_intents(), 0, "the new leader has completed it");
        world.client.give_up(change);
        world.repeat(1, change);
        let deletion = world.submit(1, delete(one, kinds[1]));
        world.run_all();
        assert_eq!(world.client.operations[change].state, State::Done(true));
        assert_eq!(world.client.operations[deletion].state, State::Done(true));
        world.happen(from_deposed);
        world.run_all();
        world.heal();
        assert_eq!(world.verdict(), [""; 0]);
        assert_eq!(world.twin.associations().len(), 0);
    }
}

#[test]
fn the_deposed_leader_of_the_other_end_changes_nothing() {
    let mut world = begun(Guards::default());
    let (one, _) = pairs(&world);
    let addition = world.submit(0, add(one, "friend", 1));
    world.run(but_deliveries);
    // Node 1 has decided the delivery, but not committed it, when node 2 takes over.
    world.run(|pending| !matches!(pending, PendingTask::Commit { node: 1, .. }));
    world.elect(PartitionId(1), 2);
    world.run(|pending| !matches!(pending, PendingTask::Commit { node: 1, .. }));
    world.run_all();
    assert_eq!(world.client.operations[addition].state, State::Running);
    world.pass(std::time::Duration::from_secs(2));
    world.run_all();
    assert_eq!(world.client.operations[addition].state, State::Done(false));
    world.heal();
    assert_eq!(world.verdict(), [""; 0]);
}
