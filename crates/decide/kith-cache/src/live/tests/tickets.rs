//! Tests of tickets, which name places in a log. After a database was replaced by an older copy of itself, its log may
//! lack such a place.

use super::truth::{Op, Truth, cache, open, options, point};
use crate::live::guards::Guard;
use crate::live::query::Query;
use crate::live::reading::{LiveRead, LiveReadStep};
use crate::live::{FollowStep, LiveCaches, Search, TermCheck};
use kith_live::RowQuery;
use kith_types::{LogPoint, Timestamp};

const NOW: Timestamp = Timestamp::ZERO;

/// Returns a cache that has applied `at` and is fresh there.
fn follower(at: LogPoint, off: Option<Guard>) -> LiveCaches<char> {
    let mut caches = LiveCaches::new(options(1 << 20));
    open(&mut caches, at, off);
    freshen(&mut caches);
    caches
}

fn freshen(caches: &mut LiveCaches<char>) {
    let mut cache = cache(caches);
    let (nonce, applied) = (cache.ask_freshness(NOW), cache.applied());
    cache.prove_freshness(nonce, applied, NOW);
}

/// Returns a read of the object that the write of the ticket created.
fn reading(ticket: LogPoint) -> LiveRead {
    LiveRead::new(Query::Objects(vec![1]), ticket, None)
}

fn found(step: LiveReadStep) -> Option<Search> {
    if let LiveReadStep::Find(search) = step { Some(search) } else { None }
}

#[test]
fn a_ticket_of_an_earlier_term_is_looked_for_once() {
    let mut caches = follower(point(2, 9), None);
    let mut reading = reading(point(1, 7));
    let search = found(reading.next(&mut cache(&mut caches), NOW)).unwrap();
    assert_eq!(search.point(), point(1, 7));
    cache(&mut caches).found(search);
    assert!(matches!(reading.next(&mut cache(&mut caches), NOW), LiveReadStep::Fetch(_)));
    let mut shows = |ticket| cache(&mut caches).shows(ticket, point(2, 9));
    assert_eq!(shows(point(1, 6)), TermCheck::Yes, "what comes before it is in the log, too");
    assert!(matches!(shows(point(1, 8)), TermCheck::Unknown(_)));
}

#[test]
fn a_ticket_of_a_lost_history_is_not_honoured() {
    for (off, is_right) in [(None, true), (Some(Guard::FindTickets), false)] {
        // The log ended at (1, 5) when the database was replaced. The ticket is of a later write.
        let mut caches = follower(point(2, 9), off);
        let step = reading(point(1, 7)).next(&mut cache(&mut caches), NOW);
        assert_eq!(found(step).is_some(), is_right);
    }
}

#[test]
fn what_was_found_before_a_jump_is_looked_for_again() {
    let off = Some(Guard::FindAgainAfterJump);
    for (off, is_found_before, is_right) in
        [(None, true, true), (None, false, true), (off, true, false), (off, false, false)]
    {
        let mut caches = follower(point(2, 9), off);
        let shows = cache(&mut caches).shows(point(1, 7), point(2, 9));
        let TermCheck::Unknown(search) = shows else { panic!("it is not known: {shows:?}") };
        if is_found_before {
            cache(&mut caches).found(search);
        }
        cache(&mut caches).jump(point(3, 5));
        // The answer may also arrive after the jump, from the database as it was before.
        cache(&mut caches).found(search);
        freshen(&mut caches);
        let step = reading(point(1, 7)).next(&mut cache(&mut caches), NOW);
        assert_eq!(found(step).is_some(), is_right);
    }
}

#[test]
fn a_ticket_is_looked_for_again_if_the_cache_jumps_while_rows_are_read() {
    let mut truth = Truth::new();
    truth.write(Op::Object(1));
    let mut caches = follower(point(1, 1), None);
    let mut reading = reading(point(1, 1));
    assert!(matches!(reading.next(&mut cache(&mut caches), NOW), LiveReadStep::Fetch(_)));
    // The database loses the object. When the rows arrive, the next leader has written something else.
    truth.restore(0);
    let end = truth.write(Op::Nothing);
    cache(&mut caches).jump(end);
    freshen(&mut caches);
    let row = RowQuery::Object(1);
    let filled = cache(&mut caches).fill(end, &row, &truth.read(end, &row));
    reading.filled(filled.into_iter().collect());
    assert!(found(reading.next(&mut cache(&mut caches), NOW)).is_some());
}

#[test]
fn a_ticket_is_looked_for_if_rows_come_from_a_later_history_than_the_cache_has_applied() {
    let mut truth = Truth::new();
    truth.write(Op::Object(1));
    let mut caches = follower(point(1, 1), None);
    let mut reading = reading(point(1, 1));
    assert!(matches!(reading.next(&mut cache(&mut caches), NOW), LiveReadStep::Fetch(_)));
    truth.restore(0);
    let row = RowQuery::Object(1);
    let filled = cache(&mut caches).fill(truth.end, &row, &truth.read(truth.end, &row));
    reading.filled(filled.into_iter().collect());
    assert_eq!(reading.next(&mut cache(&mut caches), NOW), LiveReadStep::CatchUp(truth.end));
    cache(&mut caches).jump(truth.end);
    assert!(found(reading.next(&mut cache(&mut caches), NOW)).is_some());
}

#[test]
fn what_was_found_in_one_log_is_looked_for_again_in_rows_of_another_one() {
    for (off, is_right) in [(None, true), (Some(Guard::FindInOwnLog), false)] {
        let mut truth = Truth::new();
        let ticket = truth.write(Op::Object(1));
        let applied = truth.begin_term();
        let mut caches = follower(applied, off);
        let mut reading = reading(ticket);
        let search = found(reading.next(&mut cache(&mut caches), NOW)).unwrap();
        cache(&mut caches).found(search);
        assert!(matches!(reading.next(&mut cache(&mut caches), NOW), LiveReadStep::Fetch(_)));
        // The rows come from a database that has lost the ticket's write, and whose log the cache does not follow yet.
        truth.restore(0);
        let row = RowQuery::Object(1);
        let end = truth.end;
        let filled = cache(&mut caches).fill(end, &row, &truth.read(end, &row));
        reading.filled(filled.into_iter().collect());
        let step = reading.next(&mut cache(&mut caches), NOW);
        assert_eq!(step == LiveReadStep::CatchUp(end), is_right, "{step:?}");
    }
}

#[test]
fn lists_that_are_behind_the_cache_are_of_another_term() {
    let mut caches = follower(point(2, 9), None);
    assert_eq!(
        cache(&mut caches).shows(point(1, 7), point(1, 8)),
        TermCheck::Yes,
        "of the term of the ticket"
    );
    assert_eq!(cache(&mut caches).shows(point(1, 7), point(3, 9)), TermCheck::OtherTerm);
    cache(&mut caches).jump(point(4, 9));
    assert_eq!(cache(&mut caches).shows(point(1, 7), point(3, 9)), TermCheck::OtherTerm);
}

#[test]
fn a_log_that_ends_before_a_place_lacks_it() {
    let mut caches = follower(point(1, 4), None);
    assert_eq!(cache(&mut caches).toward(point(1, 4)), FollowStep::Reached);
    assert_eq!(cache(&mut caches).toward(point(1, 6)), FollowStep::Changes { after: point(1, 4) });
    assert!(cache(&mut caches).lacks(point(1, 6), point(1, 4)));
    assert!(!cache(&mut caches).lacks(point(1, 6), point(1, 8)), "there is more to read");
    open(&mut caches, LogPoint::default(), None);
    assert_eq!(cache(&mut caches).toward(point(1, 6)), FollowStep::End);
}

#[test]
fn a_log_that_ends_before_a_place_that_its_leader_saw_was_replaced() {
    let mut caches = follower(point(1, 4), None);
    assert!(cache(&mut caches).was_replaced(point(1, 4), point(1, 3)));
    // The leader has begun a term of which the cache does not know.
    cache(&mut caches).saw(point(2, 4));
    assert_eq!((cache(&mut caches).seen(), cache(&mut caches).applied()), (point(2, 4), point(1, 4)));
    assert!(cache(&mut caches).was_replaced(point(2, 4), point(1, 4)));
    assert!(!cache(&mut caches).was_replaced(point(1, 4), point(1, 4)), "that was asked before");
    assert_eq!(cache(&mut caches).replaced(point(1, 3)), point(2, 4), "the leader must hear of its own term");
    assert_eq!(cache(&mut caches).seen(), point(1, 3));
    // This place is in the new history, but the applied place is not.
    cache(&mut caches).saw(point(3, 4));
    assert_eq!(cache(&mut caches).replaced(point(3, 4)), point(1, 3));
}
