//! A cache answers from memory only if every change that was committed `stale_max` ago or earlier is applied.

use super::dice::Dice;
use super::truth::{Op, Truth, cache, open, options, point};
use crate::live::guards::Guard;
use crate::live::query::{CacheReply, Need, Query, Readiness};
use crate::live::{LiveCaches, Nonce};
use kith_live::RowQuery;
use kith_types::{LogPoint, Timestamp};
use std::time::Duration;

const STALE_MAX: u64 = 2_000;

fn at(millis: u64) -> Timestamp {
    Timestamp(Duration::from_millis(millis))
}

fn caches(off: Option<Guard>) -> LiveCaches<char> {
    let mut caches = LiveCaches::new(options(1 << 20));
    open(&mut caches, point(1, 0), off);
    caches
}

fn is_fresh(caches: &mut LiveCaches<char>, now: u64) -> bool {
    cache(caches).readiness(LogPoint::default(), at(now)) != Readiness::NotFresh
}

#[test]
fn a_cache_that_is_not_fresh_answers_nothing_from_memory() {
    let (mut caches, truth) = (caches(None), Truth::new());
    let (row, query) = (RowQuery::Object(1), Query::Objects(vec![1]));
    let filled = cache(&mut caches).fill(truth.end, &row, &truth.read(truth.end, &row)).unwrap();
    assert_eq!(cache(&mut caches).ask(&query, Need::default(), at(0)), CacheReply::NotFresh);
    let need = Need { filled: &[filled], ..Need::default() };
    assert!(
        matches!(cache(&mut caches).ask(&query, need, at(0)), CacheReply::Answer(_)),
        "what was just read"
    );
    let nonce = cache(&mut caches).ask_freshness(at(0));
    cache(&mut caches).prove_freshness(nonce, truth.end, at(10));
    assert_eq!(cache(&mut caches).fresh_until(), at(STALE_MAX));
    assert!(matches!(cache(&mut caches).ask(&query, Need::default(), at(1_999)), CacheReply::Answer(_)));
    assert_eq!(cache(&mut caches).ask(&query, Need::default(), at(2_000)), CacheReply::NotFresh);
    cache(&mut caches).jump(truth.end);
    assert_eq!(cache(&mut caches).ask(&query, Need::default(), at(20)), CacheReply::NotFresh, "after a jump");
}

/// A leader is deposed at 0, and its successor commits a change at once. A delayed message of the old leader says that
/// there is no change.
#[test]
fn a_heartbeat_proves_nothing() {
    let fresh_at_3 = |off| {
        let mut caches = caches(off);
        cache(&mut caches).prove_freshness(Nonce(77), point(1, 0), at(1_500));
        is_fresh(&mut caches, 3_000)
    };
    assert!(!fresh_at_3(None));
    assert!(fresh_at_3(Some(Guard::OwnNonce)), "3 seconds after a change that it misses");
}

/// The leader reads the end at 0; a change is committed at 100; the reply arrives at 1,900.
#[test]
fn a_proof_holds_from_the_time_of_the_question() {
    let fresh_at_3 = |off| {
        let mut caches = caches(off);
        let nonce = cache(&mut caches).ask_freshness(at(0));
        cache(&mut caches).prove_freshness(nonce, point(1, 0), at(1_900));
        is_fresh(&mut caches, 3_000)
    };
    assert!(!fresh_at_3(None));
    assert!(fresh_at_3(Some(Guard::OwnClock)), "2.9 seconds after a change that it misses");
}

/// As [`a_heartbeat_proves_nothing`], but the deposed leader answers a question.
#[test]
fn a_leader_that_does_not_read_the_database_proves_nothing() {
    let fresh_at_1 = |reads_database: bool| {
        let mut caches = caches(None);
        let nonce = cache(&mut caches).ask_freshness(at(2_500));
        let end = if reads_database { point(2, 1) } else { point(1, 0) };
        cache(&mut caches).prove_freshness(nonce, end, at(2_600));
        is_fresh(&mut caches, 3_000)
    };
    assert!(!fresh_at_1(true), "the proof waits for the change");
    assert!(fresh_at_1(false));
}

#[test]
fn a_proof_of_a_new_term_waits_until_the_cache_is_in_it() {
    let mut caches = caches(None);
    let nonce = cache(&mut caches).ask_freshness(at(0));
    cache(&mut caches).prove_freshness(nonce, point(2, 0), at(10));
    assert!(!is_fresh(&mut caches, 10));
    assert_eq!(cache(&mut caches).begin_term(point(2, 0)), crate::live::Progress::Applied);
    assert!(is_fresh(&mut caches, 10));
}

#[test]
fn a_jump_forgets_proofs_that_wait_for_changes() {
    let mut caches = caches(None);
    let nonce = cache(&mut caches).ask_freshness(at(0));
    cache(&mut caches).prove_freshness(nonce, point(1, 9), at(10));
    cache(&mut caches).jump(point(2, 7));
    let _ = cache(&mut caches).apply(point(2, 8), &kith_live::Change::default(), at(20));
    assert!(!is_fresh(&mut caches, 20), "it was a proof about another history");
}

/// Runs with random delays of questions, replies and changes. Returns whether a change was missed for too long.
fn misses_a_change(seed: u64, off: Option<Guard>) -> bool {
    let mut dice = Dice(seed);
    let (mut caches, mut truth) = (caches(off), Truth::new());
    let (mut commits, mut questions, mut replies) = (vec![], vec![], vec![]);
    for now in (0..20_000).step_by(50) {
        match dice.below(8) {
            0 => {
                truth.write(Op::Object(1));
                commits.push(now);
            }
            1 | 2 => {
                let applied = cache(&mut caches).applied();
                if let Some((point, change)) = truth.after(applied).cloned() {
                    let _ = cache(&mut caches).apply(point, &change, at(now));
                }
            }
            3 => questions.push(cache(&mut caches).ask_freshness(at(now))),
            // The leader reads the end of the log to answer a question, or sends it to every follower unasked.
            4 | 5 if !questions.is_empty() => {
                let index = dice.below(questions.len() as u64) as usize;
                replies.push((questions.swap_remove(index), truth.end));
            }
            6 => replies.push((Nonce(u64::MAX), truth.end)),
            _ if !replies.is_empty() => {
                let index = dice.below(replies.len() as u64) as usize;
                let (nonce, end) = replies.swap_remove(index);
                cache(&mut caches).prove_freshness(nonce, end, at(now));
            }
            _ => {}
        }
        let applied = cache(&mut caches).applied().position.0 as usize;
        let missed = commits.get(applied).is_some_and(|commit| STALE_MAX <= now - commit);
        if missed && is_fresh(&mut caches, now) {
            return true;
        }
    }
    false
}

#[test]
fn whatever_is_delayed_no_change_is_missed_for_longer_than_allowed() {
    for seed in 0..1_000 {
        assert!(!misses_a_change(seed, None), "seed {seed}");
    }
    for guard in [Guard::OwnNonce, Guard::OwnClock] {
        assert!((0..1_000).any(|seed| misses_a_change(seed, Some(guard))), "no history needs {guard:?}");
    }
}
