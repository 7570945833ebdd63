//! Replies in parts, and late requests.

use super::*;

fn so_far(request: u32, keys: u32, failed: &[u32]) -> Event {
    let failed = failed.iter().map(|key| (*key, FailureClass::Damaged)).collect();
    Event::ReplySoFar { request: RequestId(request), keys, failed }
}

#[test]
fn what_was_answered_before_a_failure_is_not_asked_again() {
    let mut fixture = Fixture::new(ExecutionOptions::default());
    fixture.next();
    assert_eq!(fixture.on(so_far(0, 1, &[])), [""; 0]);
    assert_eq!(fixture.fail(0, FailureClass::Connection), ["r2: n3[2]"]);
    assert_eq!(fixture.reply(2), [""; 0]);
    assert_eq!(fixture.on(so_far(1, 1, &[])), [""; 0]);
    assert_eq!(fixture.reply(1), ["Complete 4+0+0"], "the last part is the rest of it");
}

#[test]
fn a_key_that_a_part_lacks_is_asked_elsewhere_while_the_rest_comes() {
    let mut fixture = Fixture::new(ExecutionOptions::default());
    fixture.next();
    assert_eq!(fixture.on(so_far(0, 1, &[0])), ["r2: n2[0]"]);
    // A node can only report keys that it was asked for and has not reported before.
    let late = Event::ReplyInPart { request: RequestId(0), failed: vec![(0, FailureClass::Damaged)] };
    assert_eq!(fixture.on(late), [""; 0]);
    assert_eq!(fixture.reply(1), [""; 0]);
    assert_eq!(fixture.reply(2), ["Complete 4+0+0"]);
}

#[test]
fn a_late_request_is_hedged_for_what_it_still_owes() {
    let rule = HedgeRule::fixed(Duration::from_millis(10), Duration::ZERO);
    let mut fixture = Fixture::new(ExecutionOptions { hedging: Some(rule), ..ExecutionOptions::default() });
    fixture.next();
    fixture.on(so_far(0, 1, &[]));
    fixture.reply(1);
    let due = Event::HedgeDue { caught_up: Timestamp::ZERO };
    assert_eq!(fixture.execution.on(due, at(10)), Disposition::Accepted);
    assert_eq!(fixture.next(), ["r2: n3[2]"]);
    assert_eq!(fixture.reply(2), ["cancel r0", "Complete 4+0+0"]);
}

#[test]
fn parts_that_make_no_sense_are_ignored() {
    let mut fixture = Fixture::new(ExecutionOptions::default());
    fixture.next();
    for event in [so_far(0, 2, &[]), so_far(0, 3, &[]), so_far(9, 1, &[])] {
        assert_eq!(fixture.execution.on(event, at(1)), Disposition::Ignored, "the last part is a reply");
    }
    let together = ExecutionOptions { answers: Answers::Together, ..ExecutionOptions::default() };
    let mut sums = Fixture::new(together);
    sums.next();
    assert_eq!(sums.execution.on(so_far(0, 1, &[]), at(1)), Disposition::Ignored, "sums have no parts");
}

/// This works even for a client that asks so little that a tenth of its keys is less than one.
#[test]
fn a_group_that_is_late_as_a_whole_is_hedged_as_a_whole() {
    for budgets in [Budgets::unlimited(), Budgets::default()] {
        let mut group = Fixture::late(table_of(&[&[0, 1, 2], &[3, 4, 5]]));
        group.budgets = budgets;
        let late = Event::HedgeDue { caught_up: Timestamp::ZERO };
        assert_eq!(group.on(late), ["r3: n3[0]", "r4: n4[1]", "r5: n5[2]"]);
        assert_eq!((group.reply(3), group.reply(4)), (vec!["cancel r0".into()], vec!["cancel r1".into()]));
        assert_eq!(group.reply(5), ["cancel r2", "Complete 3+0+0"], "nobody waits for the group");
    }
}

#[test]
fn nodes_that_are_late_in_a_third_group_are_waited_for() {
    let mut spread = Fixture::late(table_of(&[&[0, 0, 0], &[1, 1, 1], &[2, 2, 2], &[3, 3, 3]]));
    let late = Event::HedgeDue { caught_up: Timestamp::ZERO };
    assert_eq!(spread.on(late), ["r3: n3[0]", "r4: n3[1]"]);
    assert_eq!(spread.execution.requests.counts.aborted(HedgeAbort::MaxRoute), 1);
}
