//! The violations that the models in `cache.py` of the design found, each as a script for the real code. The answers
//! are correct with all rules, and wrong without the rule that prevents the violation.

use super::truth::{Op, Truth, cache, list, open, options, point};
use crate::live::guards::Guard;
use crate::live::query::{CacheReply, Memory, Need, Query};
use crate::live::{LiveCaches, Progress, Verifier};
use kith_live::{RowAnswer, RowQuery};
use kith_types::{LogPoint, Timestamp};

const NOW: Timestamp = Timestamp::ZERO;
const OBJECT: RowQuery = RowQuery::Object(1);

/// A follower at the start of a log, and its database.
struct Trace {
    truth: Truth,
    caches: LiveCaches<char>,
}

impl Trace {
    fn new(off: Option<Guard>) -> Self {
        let mut caches = LiveCaches::new(options(1 << 20));
        open(&mut caches, LogPoint::new(1, 0), off);
        Self { truth: Truth::new(), caches }
    }

    fn write(&mut self, op: Op) {
        self.truth.write(op);
    }

    /// Applies the log up to a position.
    fn apply_to(&mut self, position: u64) {
        while cache(&mut self.caches).applied().position.0 < position {
            let applied = cache(&mut self.caches).applied();
            let (point, change) = self.truth.after(applied).unwrap().clone();
            assert_eq!(cache(&mut self.caches).apply(point, &change, NOW), Progress::Applied);
        }
    }

    fn read(&self, at: LogPoint) -> RowAnswer {
        self.truth.read(at, &OBJECT)
    }

    fn fill(&mut self, at: LogPoint, answer: &RowAnswer) -> bool {
        cache(&mut self.caches).fill(at, &OBJECT, answer).is_some()
    }

    /// Whether the cache gives no answer or the correct one.
    fn is_right(&mut self) -> bool {
        let query = Query::Objects(vec![1]);
        let need = Need { memory: Memory::Verified, ..Need::default() };
        match cache(&mut self.caches).ask(&query, need, NOW) {
            CacheReply::Answer(answered) => {
                answered.answer == self.truth.state(answered.until).answer(&query)
            }
            _ => true,
        }
    }
}

/// Runs a script with all rules, and without one of them.
fn needs(guard: Guard, script: impl Fn(&mut Trace) -> bool) {
    assert!(script(&mut Trace::new(None)), "with all rules");
    assert!(!script(&mut Trace::new(Some(guard))), "without {guard:?}");
}

#[test]
fn a_fill_that_is_ahead_is_not_changed_again() {
    needs(Guard::IgnoreOlderChanges, |trace| {
        trace.write(Op::Object(1));
        trace.write(Op::NoObject(1));
        let answer = trace.read(point(1, 2));
        assert!(trace.fill(point(1, 2), &answer) && trace.is_right());
        trace.apply_to(1);
        trace.is_right()
    });
}

#[test]
fn a_late_fill_does_not_bring_back_what_was_evicted() {
    needs(Guard::RefuseChanged, |trace| {
        trace.write(Op::Object(1));
        let late = trace.read(point(1, 1));
        trace.write(Op::Object(1));
        trace.apply_to(2);
        // Nothing in the cache shows the second write, because there was no entry that it could change.
        trace.fill(point(1, 1), &late);
        trace.is_right()
    });
}

#[test]
fn a_page_of_a_list_that_has_changed_is_refused() {
    let row = RowQuery::List { list: list(1), after: None, skip: 0, limit: 3 };
    let page = RowQuery::List {
        list: list(1),
        after: Some(kith_live::ListPlace { time: 9, id2: 0 }),
        skip: 0,
        limit: 3,
    };
    for row in [row, page] {
        needs(Guard::RefuseChanged, |trace| {
            trace.write(Op::Put(list(1), 5, 7));
            let late = trace.truth.read(point(1, 1), &row);
            trace.write(Op::Put(list(1), 6, 8));
            trace.apply_to(2);
            cache(&mut trace.caches).fill(point(1, 1), &row, &late).is_none()
        });
    }
}

#[test]
fn a_fill_from_before_a_jump_is_refused() {
    needs(Guard::MemoryBeginsAtJump, |trace| {
        trace.write(Op::Object(1));
        let late = trace.read(point(1, 1));
        trace.write(Op::Object(1));
        trace.write(Op::Nothing);
        // The log was trimmed up to here, so the cache never saw the second write.
        cache(&mut trace.caches).jump(point(1, 3));
        trace.fill(point(1, 1), &late);
        trace.is_right()
    });
}

#[test]
fn a_fill_from_before_a_restart_is_refused() {
    needs(Guard::RefuseBeforeMemory, |trace| {
        trace.write(Op::Object(1));
        let late = trace.read(point(1, 1));
        trace.write(Op::Object(1));
        let off = cache(&mut trace.caches).partition.guards.off;
        open(&mut trace.caches, point(1, 2), off);
        trace.fill(point(1, 1), &late);
        trace.is_right()
    });
}

#[test]
fn a_fill_from_before_the_cache_was_emptied_is_refused() {
    needs(Guard::RefuseBeforeMemory, |trace| {
        trace.write(Op::Object(1));
        let late = trace.read(point(1, 1));
        trace.write(Op::Object(1));
        trace.apply_to(2);
        cache(&mut trace.caches).empty();
        trace.fill(point(1, 1), &late);
        trace.is_right()
    });
}

#[test]
fn rows_and_position_are_of_one_snapshot() {
    let script = |one_snapshot: bool| {
        let mut trace = Trace::new(None);
        trace.write(Op::Object(1));
        let rows = trace.read(point(1, 1));
        trace.write(Op::Object(1));
        let position = if one_snapshot { point(1, 1) } else { trace.truth.end };
        trace.fill(position, &rows);
        trace.apply_to(2);
        trace.is_right()
    };
    assert!(script(true));
    assert!(!script(false), "a database that reads the position after the rows");
}

#[test]
fn what_was_read_of_a_lost_history_goes_when_the_next_term_begins() {
    for follows_change in [true, false] {
        needs(Guard::LostHistory, |trace| {
            trace.write(Op::Nothing);
            trace.apply_to(1);
            trace.write(Op::Object(1));
            let answer = trace.read(point(1, 2));
            assert!(trace.fill(point(1, 2), &answer), "ahead of what was applied");
            trace.truth.restore(1);
            if !follows_change {
                let begun = trace.truth.end;
                assert_eq!(cache(&mut trace.caches).begin_term(begun), Progress::Applied);
            }
            trace.write(Op::Nothing);
            trace.apply_to(2);
            trace.is_right()
        });
    }
}

#[test]
fn a_change_that_is_sent_by_the_leader_of_another_history_is_a_gap() {
    needs(Guard::SameLog, |trace| {
        trace.write(Op::Object(1));
        let answer = trace.read(point(1, 1));
        assert!(trace.fill(point(1, 1), &answer));
        trace.apply_to(1);
        // The database loses the object, and its next leader uses position 1 again.
        trace.truth.restore(0);
        trace.write(Op::Nothing);
        trace.write(Op::Nothing);
        let change = trace.truth.log[1].1.clone();
        let _ = cache(&mut trace.caches).apply_after(point(2, 1), point(2, 2), &change, NOW);
        trace.is_right()
    });
}

#[test]
fn a_late_fill_of_a_lost_history_is_refused() {
    needs(Guard::LostHistory, |trace| {
        trace.write(Op::Nothing);
        trace.apply_to(1);
        trace.write(Op::Object(1));
        let late = trace.read(point(1, 2));
        trace.truth.restore(1);
        trace.write(Op::Nothing);
        trace.apply_to(2);
        trace.fill(point(1, 2), &late);
        trace.is_right()
    });
}

/// The leader has committed a change that it has not applied yet, because it lost the answer to its commit. Another
/// client has read the change from the database, so a critical read that starts later must see it.
fn critical(off: Option<Guard>, after: impl Fn(&Trace) -> LogPoint) -> bool {
    let mut trace = Trace::new(off);
    let nothing = trace.read(point(1, 0));
    assert!(trace.fill(point(1, 0), &nothing));
    trace.write(Op::Object(1));
    let need = Need { after: after(&trace), memory: Memory::Verified, filled: &[] };
    let query = Query::Objects(vec![1]);
    match cache(&mut trace.caches).ask(&query, need, NOW) {
        CacheReply::Answer(answered) => answered.answer == trace.truth.state(trace.truth.end).answer(&query),
        CacheReply::Wait => {
            trace.apply_to(1);
            let reply = cache(&mut trace.caches).ask(&query, need, NOW);
            assert!(matches!(reply, CacheReply::Answer(_)), "{reply:?}");
            true
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_critical_read_waits_until_the_verified_place_is_applied() {
    assert!(critical(None, |trace| trace.truth.end));
    assert!(!critical(Some(Guard::WaitApplied), |trace| trace.truth.end));
    assert!(
        !critical(None, |_| point(1, 0)),
        "a leader that verifies its term alone, or after it has read its cache"
    );
}

#[test]
fn a_verification_that_began_before_a_critical_read_does_not_count_for_it() {
    let script = |off: Option<Guard>| {
        let mut verifier = Verifier::new();
        verifier.guards.off = off;
        assert!(verifier.arrive("an earlier request"));
        // The verifier reads position 0. Then the change is committed, another client sees it, and the critical read
        // arrives.
        assert!(!verifier.arrive("a critical read"));
        let verified = verifier.ended();
        let end = if verified.waiters.contains(&"a critical read") { point(1, 0) } else { point(1, 1) };
        critical(None, |_| end)
    };
    assert!(script(None));
    assert!(!script(Some(Guard::VerifyAfterArrival)));
}
