//! Tests which queries each kind of entry answers, and which rows are read for the others (TAO §4.2).

use super::truth::{Op, P, Truth, cache, list, open, options, point};
use crate::live::query::{CacheReply, Memory, Need, Query, Readiness, RowsAnswer, Start};
use crate::live::{LiveCaches, MissDecision, Progress};
use kith_live::{Association, Change, Data, Effect, ListPlace, RowAnswer, RowQuery};
use kith_types::{PartitionId, Timestamp};

const NOW: Timestamp = Timestamp::ZERO;
const NONE: [u64; 0] = [];

/// A list with associations to `1..=len`. The time of each is 10 times its id.
struct Example {
    truth: Truth,
    caches: LiveCaches<char>,
}

impl Example {
    fn new(len: u64) -> Self {
        let mut caches = LiveCaches::new(options(16 << 20));
        let truth = Truth::with_list(list(1), (1..=len).rev().map(|id2| (id2, 10 * id2)));
        open(&mut caches, truth.end, None);
        Self { truth, caches }
    }

    fn read(&mut self, row: &RowQuery) {
        let answer = self.truth.read(self.truth.end, row);
        assert!(cache(&mut self.caches).fill(self.truth.end, row, &answer).is_some());
    }

    fn read_prefix(&mut self, limit: u32) {
        self.read(&prefix(limit));
    }

    fn ask(&mut self, query: &Query) -> CacheReply {
        let need = Need { memory: Memory::Verified, ..Need::default() };
        cache(&mut self.caches).ask(query, need, NOW)
    }

    /// Asserts that the cache answers from memory, and correctly. Returns the ids in the answer.
    fn ids(&mut self, query: &Query) -> Vec<u64> {
        match self.ask(query) {
            CacheReply::Answer(answered) => {
                assert_eq!(answered.answer, self.truth.state(answered.until).answer(query));
                match answered.answer {
                    RowsAnswer::Associations(items) => items.iter().map(|item| item.id2).collect(),
                    other => panic!("{other:?}"),
                }
            }
            other => panic!("{query:?}: {other:?}"),
        }
    }

    fn missing(&mut self, query: &Query) -> Vec<RowQuery> {
        match self.ask(query) {
            CacheReply::Missing(rows) => rows,
            other => panic!("{query:?}: {other:?}"),
        }
    }
}

fn prefix(limit: u32) -> RowQuery {
    RowQuery::List { list: list(1), after: None, skip: 0, limit }
}

fn skipping(skip: u32, limit: u32) -> RowQuery {
    RowQuery::List { list: list(1), after: None, skip, limit }
}

fn page(time: u64, id2: u64, limit: u32) -> RowQuery {
    RowQuery::List { list: list(1), after: Some(ListPlace { time, id2 }), skip: 0, limit }
}

fn get(ids: &[u64], low: u64, high: u64) -> Query {
    Query::Get { list: list(1), ids: ids.to_vec(), high, low }
}

fn range(index: u32, limit: u32) -> Query {
    Query::Range { list: list(1), start: Start::Index(index), limit }
}

fn times(low: u64, high: u64, limit: u32) -> Query {
    Query::TimeRange { list: list(1), high, low, limit }
}

#[test]
fn a_length_of_zero_answers_every_query_of_the_list() {
    let mut example = Example::new(0);
    example.read(&RowQuery::Count(list(1)));
    for query in [get(&[1, 2], 0, u64::MAX), range(0, 50), times(3, 9, 50)] {
        assert_eq!(example.ids(&query), NONE);
    }
}

#[test]
fn a_prefix_answers_what_lies_inside_it() {
    let mut example = Example::new(9);
    example.read_prefix(4);
    assert_eq!(example.ids(&range(0, 4)), [9, 8, 7, 6]);
    assert_eq!(example.ids(&range(2, 2)), [7, 6]);
    assert_eq!(example.ids(&times(75, 85, 9)), [8]);
    assert_eq!(example.ids(&times(0, 85, 2)), [8, 7], "the limit is reached");
    assert_eq!(example.ids(&get(&[8, 6], 0, u64::MAX)), [8, 6]);
    assert_eq!(example.ids(&get(&[8, 6], 70, 200)), [8]);
    let after = Query::Range { list: list(1), start: Start::After(ListPlace { time: 80, id2: 8 }), limit: 2 };
    assert_eq!(example.ids(&after), [7, 6]);
    assert_eq!(example.missing(&Query::Count(list(1))), [RowQuery::Count(list(1))]);
}

#[test]
fn an_id_whose_times_lie_inside_the_prefix_is_absent() {
    let mut example = Example::new(9);
    example.read_prefix(4);
    assert_eq!(example.ids(&get(&[2, 77], 61, u64::MAX)), NONE);
    assert_eq!(example.ids(&get(&[2], 60, u64::MAX)), NONE, "of equal times the smaller id comes first");
    assert_eq!(example.missing(&get(&[2, 77], 60, u64::MAX)), [RowQuery::Association(list(1).to(77))]);
    assert_eq!(example.missing(&get(&[2], 0, u64::MAX)), [RowQuery::Association(list(1).to(2))]);
    example.read(&RowQuery::Association(list(1).to(2)));
    example.read(&RowQuery::Association(list(1).to(77)));
    assert_eq!(example.ids(&get(&[9, 2, 77], 0, u64::MAX)), [9, 2]);
}

#[test]
fn a_whole_list_answers_everything() {
    let mut example = Example::new(9);
    example.read_prefix(64);
    assert_eq!(example.ids(&range(7, 50)), [2, 1]);
    assert_eq!(example.ids(&range(50, 50)), NONE);
    assert_eq!(example.ids(&times(0, 25, 50)), [2, 1]);
    assert_eq!(example.ids(&get(&[1, 77], 0, u64::MAX)), [1]);
    let CacheReply::Answer(answered) = example.ask(&Query::Count(list(1))) else { panic!("it is known") };
    assert_eq!(answered.answer, RowsAnswer::Count(9));
}

#[test]
fn what_needs_no_rows_is_answered_by_an_empty_cache() {
    let mut example = Example::new(9);
    for query in [get(&[], 0, 9), get(&[1], 9, 8), range(3, 0), times(9, 8, 50)] {
        assert_eq!(example.ids(&query), NONE);
    }
}

#[test]
fn the_first_read_of_a_list_is_a_prefix_and_its_length() {
    let mut example = Example::new(0);
    assert_eq!(example.missing(&range(0, 10)), [prefix(64), RowQuery::Count(list(1))]);
    assert_eq!(example.missing(&range(100, 50)), [prefix(256), RowQuery::Count(list(1))]);
    assert_eq!(
        example.missing(&times(0, 30, 10)),
        [prefix(64), page(31, u64::MAX, 10), RowQuery::Count(list(1))]
    );
    assert_eq!(
        example.missing(&get(&[5], 0, u64::MAX)),
        [prefix(64), RowQuery::Count(list(1)), RowQuery::Association(list(1).to(5))]
    );
    let many: Vec<u64> = (0..50).collect();
    assert_eq!(example.missing(&get(&many, 0, u64::MAX)), [prefix(64), RowQuery::Count(list(1))]);
}

#[test]
fn a_prefix_grows_until_it_is_too_long_to_keep() {
    let mut example = Example::new(9_000);
    example.read_prefix(64);
    assert_eq!(example.missing(&range(60, 10)), [prefix(128)]);
    assert_eq!(example.missing(&range(0, 6_000)), [prefix(8_192)]);
    assert_eq!(example.missing(&times(0, 30, 10)), [page(31, u64::MAX, 10)], "far beyond the prefix");
    assert_eq!(example.missing(&times(0, 88_000, 9_000)), [page(88_001, u64::MAX, 9_000)]);
    assert_eq!(example.missing(&range(0, 9_000)), [prefix(9_000)]);
    assert_eq!(example.missing(&range(8_500, 10)), [skipping(8_500, 10)]);
    let row = skipping(8_500, 10);
    let (end, answer) = (example.truth.end, example.truth.read(example.truth.end, &row));
    let filled = [cache(&mut example.caches).fill(end, &row, &answer).unwrap()];
    let need = Need { memory: Memory::Verified, filled: &filled, ..Need::default() };
    let reply = cache(&mut example.caches).ask(&range(8_500, 10), need, NOW);
    assert!(matches!(reply, CacheReply::Answer(_)), "it was read, though it was not kept");
    assert!(matches!(example.ask(&range(8_500, 10)), CacheReply::Missing(_)));
}

#[test]
fn an_index_far_beyond_what_is_kept_reads_no_more_rows_than_are_wanted() {
    let mut example = Example::new(9_000);
    assert_eq!(example.missing(&range(8_500, 10)), [skipping(8_500, 10), RowQuery::Count(list(1))]);
    for known in [64, 8_192] {
        example.read_prefix(known);
        assert_eq!(example.missing(&range(8_500, 10)), [skipping(8_500, 10)]);
    }
    example.read(&RowQuery::Count(list(1)));
    assert_eq!(example.ids(&range(9_000, 10)), NONE, "the length says that there is nothing");
    assert_eq!(example.missing(&range(8_999, 10)), [skipping(8_999, 10)]);
}

#[test]
fn a_page_by_index_that_a_change_has_moved_is_read_again() {
    let mut example = Example::new(9_000);
    let row = skipping(8_990, 10);
    let MissDecision::Fetch(flight) = cache(&mut example.caches).begin(&row) else {
        panic!("nobody reads it")
    };
    let (at, before) = (example.truth.end, example.truth.read(example.truth.end, &row));
    // A new association moves all others to the next index.
    example.truth.write(Op::Put(list(1), 10_000, 1_000_000));
    for (point, change) in &example.truth.log {
        let _ = cache(&mut example.caches).apply(*point, change, NOW);
    }
    assert!(cache(&mut example.caches).land(flight, at, &row, &before).filled.is_none());
    let (at, now) = (example.truth.end, example.truth.read(example.truth.end, &row));
    let filled = [cache(&mut example.caches).fill(at, &row, &now).expect("it is current")];
    let need = Need { memory: Memory::Verified, filled: &filled, ..Need::default() };
    let CacheReply::Answer(answered) = cache(&mut example.caches).ask(&range(8_990, 10), need, NOW) else {
        panic!("it was read")
    };
    assert_eq!(answered.answer, example.truth.state(answered.until).answer(&range(8_990, 10)));
}

#[test]
fn a_shorter_read_does_not_take_the_place_of_a_longer_one() {
    let mut example = Example::new(9);
    example.read_prefix(8);
    example.read_prefix(2);
    assert_eq!(example.ids(&range(0, 8)).len(), 8);
}

#[test]
fn an_entry_that_is_ahead_stays_when_older_rows_arrive() {
    let mut example = Example::new(0);
    let row = RowQuery::Object(1);
    let late = (example.truth.end, example.truth.read(example.truth.end, &row));
    example.truth.write(Op::Object(1));
    example.read(&row);
    assert!(cache(&mut example.caches).fill(late.0, &row, &late.1).is_some(), "they are valid, too");
    let CacheReply::Answer(answered) = example.ask(&Query::Objects(vec![1])) else { panic!("it is known") };
    assert_eq!(answered.until, example.truth.end);
}

#[test]
fn rows_that_have_not_reached_the_required_place_are_not_used() {
    let mut example = Example::new(0);
    let row = RowQuery::Object(1);
    let answer = example.truth.read(example.truth.end, &row);
    let filled = [cache(&mut example.caches).fill(example.truth.end, &row, &answer).unwrap()];
    let need = Need { after: point(1, 1), memory: Memory::Bypass, filled: &filled };
    let reply = cache(&mut example.caches).ask(&Query::Objects(vec![1]), need, NOW);
    assert_eq!(reply, CacheReply::Missing(vec![row]));
}

#[test]
fn changes_keep_prefixes_lengths_and_proofs_up_to_date() {
    let mut example = Example::new(9);
    example.read_prefix(4);
    example.read(&RowQuery::Count(list(1)));
    example.read(&RowQuery::Association(list(1).to(77)));
    for op in [Op::Put(list(1), 77, 65), Op::Put(list(1), 9, 1), Op::Remove(list(1), 8)] {
        let (end, change) = (example.truth.write(op), example.truth.log.last().unwrap().1.clone());
        assert_eq!(cache(&mut example.caches).apply(end, &change, NOW), Progress::Applied);
    }
    assert_eq!(example.ids(&range(0, 3)), [7, 77, 6]);
    assert_eq!(example.ids(&get(&[77], 0, u64::MAX)), [77]);
    let CacheReply::Answer(answered) = example.ask(&Query::Count(list(1))) else { panic!("it is known") };
    assert_eq!((answered.answer, answered.until), (RowsAnswer::Count(9), example.truth.end));
}

#[test]
fn changes_that_do_not_follow_are_reported() {
    let mut example = Example::new(0);
    let mut apply = |at| cache(&mut example.caches).apply(at, &Change::default(), NOW);
    assert_eq!(apply(point(1, 2)), Progress::Gap { after: point(1, 0) });
    assert_eq!(apply(point(1, 1)), Progress::Applied);
    assert_eq!(apply(point(1, 1)), Progress::Known);
    assert_eq!(apply(point(3, 2)), Progress::Applied, "the first change of a later term");
    assert_eq!(apply(point(2, 3)), Progress::Known, "of a leader that was deposed");
    assert_eq!(apply(point(4, 2)), Progress::Gap { after: point(3, 2) }, "the database lost position 2");
    let mut begin = |at| cache(&mut example.caches).begin_term(at);
    assert_eq!(begin(point(3, 2)), Progress::Known);
    assert_eq!(begin(point(4, 1)), Progress::Gap { after: point(3, 2) });
    assert_eq!(begin(point(4, 2)), Progress::Applied);
}

#[test]
fn a_large_object_is_read_again() {
    let mut example = Example::new(0);
    example.read(&RowQuery::Object(5));
    let end = example.truth.write(Op::LargeObject(5));
    let change = example.truth.log.last().unwrap().1.clone();
    assert_eq!(cache(&mut example.caches).apply(end, &change, NOW), Progress::Applied);
    assert_eq!(example.missing(&Query::Objects(vec![5])), [RowQuery::Object(5)]);
}

#[test]
fn a_change_that_contradicts_an_entry_drops_it() {
    let mut example = Example::new(3);
    example.read_prefix(64);
    let now = Association { id2: 5, time: 5, stamp: point(1, 1), data: Data::default() };
    let change = Change { effects: vec![Effect::Association { list: list(1), now, was: None, count: 7 }] };
    assert_eq!(cache(&mut example.caches).apply(point(1, 1), &change, NOW), Progress::Applied);
    assert!(matches!(example.ask(&range(0, 2)), CacheReply::Missing(_)));
}

#[test]
fn emptying_is_one_step_and_leaves_other_partitions_alone() {
    let mut example = Example::new(0);
    for id in 0..500 {
        example.read(&RowQuery::Object(id));
    }
    let end = example.truth.end;
    example.caches.open(PartitionId(8), end).fill(end, &RowQuery::Object(1), &RowAnswer::Object(None));
    cache(&mut example.caches).empty();
    assert_eq!(example.caches.counters().entries, 501, "they make room later");
    assert_eq!(example.missing(&Query::Objects(vec![499])), [RowQuery::Object(499)]);
    let need = Need { memory: Memory::Verified, ..Need::default() };
    let mut other = example.caches.partition(PartitionId(8)).unwrap();
    assert!(matches!(other.ask(&Query::Objects(vec![1]), need, NOW), CacheReply::Answer(_)));
    let end = example.truth.write(Op::Object(3));
    let change = example.truth.log.last().unwrap().1.clone();
    assert_eq!(cache(&mut example.caches).apply(end, &change, NOW), Progress::Applied);
    assert_eq!(example.caches.counters().entries, 500, "a change finds one of them");
    example.read(&RowQuery::Object(499));
    assert!(matches!(example.ask(&Query::Objects(vec![499])), CacheReply::Answer(_)));
}

#[test]
fn a_partition_that_comes_back_does_not_find_its_old_entries() {
    let mut example = Example::new(0);
    example.read(&RowQuery::Object(5));
    example.caches.close(P);
    assert!(example.caches.partition(P).is_none());
    open(&mut example.caches, point(1, 0), None);
    assert_eq!(example.missing(&Query::Objects(vec![5])), [RowQuery::Object(5)]);
}

#[test]
fn a_read_with_a_ticket_waits_until_its_place_is_applied_unless_its_rows_have_reached_it() {
    let mut example = Example::new(2);
    let nonce = cache(&mut example.caches).ask_freshness(NOW);
    assert_eq!(cache(&mut example.caches).readiness(point(1, 1), NOW), Readiness::NotFresh);
    cache(&mut example.caches).prove_freshness(nonce, point(1, 0), NOW);
    assert_eq!(cache(&mut example.caches).readiness(point(1, 0), NOW), Readiness::Now);
    assert_eq!(cache(&mut example.caches).readiness(point(1, 1), NOW), Readiness::Wait);
    example.read_prefix(64);
    let need = |after| Need { after, ..Need::default() };
    let ask = |example: &mut Example, after| cache(&mut example.caches).ask(&range(0, 9), need(after), NOW);
    assert!(matches!(ask(&mut example, point(1, 0)), CacheReply::Answer(_)));
    assert_eq!(ask(&mut example, point(1, 1)), CacheReply::Wait);
    let end = example.truth.write(Op::Put(list(1), 7, 7));
    example.read_prefix(64);
    let CacheReply::Answer(answered) = ask(&mut example, end) else { panic!("the rows have reached it") };
    assert_eq!((answered.from, answered.until), (end, end));
    assert_eq!(ask(&mut example, point(2, 1)), CacheReply::Wait, "a later term at the same position");
    assert_eq!(cache(&mut example.caches).begin_term(point(2, 1)), Progress::Gap { after: point(1, 0) });
}

#[test]
fn an_entry_that_is_too_heavy_is_shortened_or_not_kept() {
    let mut caches: LiveCaches<char> = LiveCaches::new(options(64 << 10));
    let mut truth = Truth::new();
    for id2 in 0..200 {
        truth.write(Op::Put(list(1), id2, id2));
    }
    open(&mut caches, truth.end, None);
    let answer = truth.read(truth.end, &prefix(256));
    assert!(cache(&mut caches).fill(truth.end, &prefix(256), &answer).is_some());
    let need = Need { memory: Memory::Verified, ..Need::default() };
    assert!(
        matches!(cache(&mut caches).ask(&range(0, 10), need, NOW), CacheReply::Answer(_)),
        "its newest part"
    );
    assert!(matches!(cache(&mut caches).ask(&range(0, 199), need, NOW), CacheReply::Missing(_)));
    assert!(caches.counters().bytes < 8 << 10);
}
