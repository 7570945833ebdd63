//! Tests that each key has at most one read of the database under way, and that all reads together are limited (TAO
//! §4.4).

use super::truth::{Op, Truth, cache, list, open, options, point};
use crate::live::query::{CacheReply, Memory, Need, Query, RowsAnswer};
use crate::live::{LiveCacheOptions, LiveCaches, MissDecision};
use crate::{AfterFailure, Failure, FlightId};
use kith_live::{RowAnswer, RowQuery};
use kith_types::Timestamp;

const NOW: Timestamp = Timestamp::ZERO;

fn caches(fills_max: usize) -> LiveCaches<u32> {
    let mut caches = LiveCaches::new(LiveCacheOptions { fills_max, ..options(1 << 20) });
    open(&mut caches, point(1, 0), None);
    caches
}

fn fetch(caches: &mut LiveCaches<u32>, row: &RowQuery) -> FlightId {
    match cache(caches).begin(row) {
        MissDecision::Fetch(flight) => flight,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_thousand_misses_of_one_key_cause_one_read() {
    let mut caches = caches(8);
    let query = Query::Count(list(1));
    let need = Need { memory: Memory::Verified, ..Need::default() };
    let (mut reads, mut flights) = (0, vec![]);
    for waiter in 0..1_000 {
        let CacheReply::Missing(rows) = cache(&mut caches).ask(&query, need, NOW) else {
            panic!("it is empty")
        };
        match cache(&mut caches).begin(&rows[0]) {
            MissDecision::Fetch(flight) => {
                reads += 1;
                flights.push(flight);
            }
            MissDecision::Join(flight) => cache(&mut caches).join(flight, waiter).unwrap(),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((reads, caches.counters().flights), (1, 1));
    let landed =
        cache(&mut caches).land(flights[0], point(1, 0), &RowQuery::Count(list(1)), &RowAnswer::Count(3));
    assert_eq!(landed.waiters.len(), 999);
    let filled = [landed.filled.unwrap()];
    let need = Need { memory: Memory::Bypass, filled: &filled, ..Need::default() };
    let CacheReply::Answer(answered) = cache(&mut caches).ask(&query, need, NOW) else {
        panic!("it was read")
    };
    assert_eq!(answered.answer, RowsAnswer::Count(3));
    assert_eq!(cache(&mut caches).join(flights[0], 7), Err(7), "the flight is over");
}

#[test]
fn reads_of_one_list_are_one_read_whatever_their_length() {
    let mut caches = caches(8);
    let of = |limit| RowQuery::List { list: list(1), after: None, skip: 0, limit };
    let flight = fetch(&mut caches, &of(64));
    assert_eq!(cache(&mut caches).begin(&of(512)), MissDecision::Join(flight));
}

#[test]
fn a_partition_has_a_bounded_number_of_reads_under_way() {
    let mut caches = caches(2);
    let first = fetch(&mut caches, &RowQuery::Object(1));
    fetch(&mut caches, &RowQuery::Object(2));
    assert_eq!(cache(&mut caches).begin(&RowQuery::Object(3)), MissDecision::Busy);
    assert_eq!(cache(&mut caches).begin(&RowQuery::Intents), MissDecision::Uncached);
    let landing = cache(&mut caches).failed(first, &RowQuery::Object(1), Failure::Everyone);
    assert!(matches!(landing, AfterFailure::Wake(waiters) if waiters.is_empty()));
    fetch(&mut caches, &RowQuery::Object(3));
}

#[test]
fn a_reader_that_goes_hands_over() {
    let mut caches = caches(8);
    let row = RowQuery::Object(1);
    let flight = fetch(&mut caches, &row);
    cache(&mut caches).join(flight, 5).unwrap();
    assert!(matches!(cache(&mut caches).failed(flight, &row, Failure::Leader), AfterFailure::Promote(5)));
    assert_eq!(cache(&mut caches).begin(&row), MissDecision::Join(flight), "the flight goes on");
    assert!(matches!(cache(&mut caches).failed(flight, &row, Failure::Leader), AfterFailure::Wake(_)));
    fetch(&mut caches, &row);
}

#[test]
fn a_list_that_changes_all_the_time_is_filled() {
    let (mut caches, mut truth) = (caches(8), Truth::new());
    let row = RowQuery::List { list: list(1), after: None, skip: 0, limit: 64 };
    let flight = fetch(&mut caches, &row);
    truth.write(Op::Put(list(1), 1, 10));
    let (read_at, rows) = (truth.end, truth.read(truth.end, &row));
    for id2 in 2..6 {
        truth.write(Op::Put(list(1), id2, 10 + id2));
    }
    truth.write(Op::Remove(list(1), 1));
    for (point, change) in &truth.log {
        let _ = cache(&mut caches).apply(*point, change, NOW);
    }
    let landed = cache(&mut caches).land(flight, read_at, &row, &rows);
    let filled = [landed.filled.expect("the changes since were noted")];
    for memory in [Memory::Verified, Memory::Bypass] {
        let filled = if memory == Memory::Bypass { &filled[..] } else { &[] };
        let need = Need { memory, filled, ..Need::default() };
        let CacheReply::Answer(answered) = cache(&mut caches).ask(&Query::Count(list(1)), need, NOW) else {
            panic!("it was filled")
        };
        assert_eq!((answered.answer, answered.until), (RowsAnswer::Count(4), truth.end));
    }
}

#[test]
fn a_fill_that_too_many_changes_overtook_is_read_again() {
    let (mut caches, mut truth) = (caches(8), Truth::new());
    let row = RowQuery::Object(1);
    let flight = fetch(&mut caches, &row);
    let (read_at, rows) = (truth.end, truth.read(truth.end, &row));
    for _ in 0..100 {
        truth.write(Op::Object(1));
    }
    for (point, change) in &truth.log {
        let _ = cache(&mut caches).apply(*point, change, NOW);
    }
    assert!(cache(&mut caches).land(flight, read_at, &row, &rows).filled.is_none());
    assert_eq!(caches.counters().refused, 1);
}
