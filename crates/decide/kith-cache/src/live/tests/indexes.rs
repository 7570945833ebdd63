//! Tests how entries of indexes follow changes of objects, and which reads of them are refused.

use super::truth::{Op, Truth, cache, index_key, open, options, point, types};
use crate::live::query::{CacheReply, Memory, Need, Query, RowsAnswer};
use crate::live::{LiveCaches, Progress};
use kith_live::{RowAnswer, RowQuery};
use kith_types::{LogPoint, PartitionId, Timestamp};

const NOW: Timestamp = Timestamp::ZERO;

struct Example {
    truth: Truth,
    caches: LiveCaches<char>,
}

impl Example {
    /// A partition whose node knows types of this revision, if any.
    fn new(revision: Option<usize>) -> Self {
        let mut caches = LiveCaches::new(options(16 << 20));
        if let Some(revision) = revision {
            caches.set_types(types(revision));
        }
        let truth = Truth::new();
        open(&mut caches, truth.end, None);
        Self { truth, caches }
    }

    /// Writes, and applies the change.
    fn write(&mut self, op: Op) -> LogPoint {
        let end = self.truth.write(op);
        let change = self.truth.log.last().unwrap().1.clone();
        assert_eq!(cache(&mut self.caches).apply(end, &change, NOW), Progress::Applied);
        end
    }

    /// Reads the entry of the first index that has this value, as of a point.
    fn fill(&mut self, at: LogPoint, value: u64) -> bool {
        let row = row(value, None, 100);
        let answer = self.truth.read(at, &row);
        cache(&mut self.caches).fill(at, &row, &answer).is_some()
    }

    /// The ids in memory, which must be right; `None` if there are none in memory.
    fn known(&mut self, value: u64, after: Option<u64>, limit: u32) -> Option<Vec<u64>> {
        let (index, key) = index_key(1, value);
        let query = Query::Entries { index, key, after, limit };
        let need = Need { memory: Memory::Verified, ..Need::default() };
        match cache(&mut self.caches).ask(&query, need, NOW) {
            CacheReply::Answer(answered) => {
                assert_eq!(answered.answer, self.truth.state(answered.until).answer(&query));
                let RowsAnswer::Ids(ids) = answered.answer else { panic!("an index has ids") };
                Some(ids)
            }
            CacheReply::Missing(rows) => {
                assert_eq!(rows, [row(value, after, if after.is_none() { limit.max(64) } else { limit })]);
                None
            }
            other => panic!("{other:?}"),
        }
    }

    fn all(&mut self, value: u64) -> Option<Vec<u64>> {
        self.known(value, None, 100)
    }
}

fn row(value: u64, after: Option<u64>, limit: u32) -> RowQuery {
    let (index, key) = index_key(1, value);
    RowQuery::Entries { index, key, after, limit }
}

#[test]
fn an_object_moves_between_entries_without_a_read() {
    let mut example = Example::new(Some(1));
    for id in 1..=5 {
        example.write(Op::Indexed(id, [0, 7]));
    }
    let end = example.truth.end;
    assert!(example.fill(end, 0) && example.fill(end, 1));
    example.write(Op::Indexed(3, [1, 7]));
    example.write(Op::Indexed(2, [9, 7]));
    example.write(Op::Indexed(5, [0, 8]));
    example.write(Op::NoObject(4));
    assert_eq!((example.all(0), example.all(1), example.all(9)), (Some(vec![1, 5]), Some(vec![3]), None));
    example.write(Op::Object(1));
    example.write(Op::Indexed(2, [0, 7]));
    assert_eq!(example.all(0), Some(vec![2, 5]));
}

#[test]
fn any_page_comes_from_an_entry() {
    let mut example = Example::new(Some(1));
    for id in 1..=5 {
        example.write(Op::Indexed(id, [0, 7]));
    }
    assert_eq!((example.known(0, None, 2), example.known(0, Some(2), 2)), (None, None));
    let end = example.truth.end;
    assert!(example.fill(end, 0));
    assert_eq!(example.known(0, Some(2), 2), Some(vec![3, 4]));
    assert_eq!(example.known(0, Some(5), 2), Some(vec![]));
    assert_eq!(example.known(0, None, 2), Some(vec![1, 2]));
}

#[test]
fn a_read_that_an_object_has_left_or_joined_since_is_refused() {
    let mut example = Example::new(Some(1));
    let before = example.write(Op::Indexed(1, [0, 7]));
    example.write(Op::Indexed(1, [1, 7]));
    assert!(!example.fill(before, 0), "it has left");
    assert!(!example.fill(before, 1), "it has joined");
    assert!(example.fill(before, 2), "another value");
    let end = example.truth.end;
    assert!(example.fill(end, 0) && example.fill(end, 1));
    assert_eq!((example.all(0), example.all(1)), (Some(vec![]), Some(vec![1])));
}

#[test]
fn an_object_whose_keys_are_unknown_empties_the_entries_of_its_partition() {
    for (revision, op) in
        [(Some(1), Op::LargeObject(2)), (Some(0), Op::NewType(2, 0)), (None, Op::Indexed(2, [1, 7]))]
    {
        let mut example = Example::new(revision);
        let before = example.truth.end;
        assert!(example.fill(before, 0));
        let end = example.truth.end;
        let other = PartitionId(8);
        let read = row(0, None, 9);
        example.caches.open(other, end).fill(end, &read, &RowAnswer::Ids(vec![]));
        example.write(op);
        assert_eq!(example.all(0), None, "{op:?}");
        assert!(!example.fill(before, 0), "{op:?}");
        let end = example.truth.end;
        assert!(example.fill(end, 0) && example.all(0).is_some(), "{op:?}");
        let epoch = example.caches.partitions[&other].epoch;
        let kept = crate::live::key::Key::of_entries(index_key(1, 0).0, &index_key(1, 0).1);
        assert!(example.caches.store.get((other, kept), epoch).is_some(), "{op:?}");
    }
}

#[test]
fn an_entry_that_was_read_ahead_ignores_the_changes_that_it_has() {
    let mut example = Example::new(Some(1));
    let first = example.truth.write(Op::Indexed(1, [0, 7]));
    let second = example.truth.write(Op::Indexed(1, [1, 7]));
    assert!(example.fill(second, 0) && example.fill(second, 1));
    for at in [first, second] {
        let change = example.truth.log[at.position.0 as usize - 1].1.clone();
        assert_eq!(cache(&mut example.caches).apply(at, &change, NOW), Progress::Applied);
        assert_eq!((example.all(0), example.all(1)), (Some(vec![]), Some(vec![1])));
    }
}

#[test]
fn a_value_of_too_many_objects_is_not_kept() {
    let mut example = Example::new(Some(1));
    let many: Vec<u64> = (0..4_097).collect();
    let at = point(1, 0);
    let read = row(0, None, u32::MAX);
    let mut fill =
        |ids: &[u64]| cache(&mut example.caches).fill(at, &read, &RowAnswer::Ids(ids.to_vec())).is_some();
    assert!(!fill(&many) && fill(&many[1..]));
    example.write(Op::Indexed(0, [0, 7]));
    assert_eq!(example.all(0), None, "it has one too many by then");
    assert_eq!(example.caches.store.reference_count(), 0);
}

#[test]
fn references_to_entries_go_with_them() {
    let mut example = Example::new(Some(1));
    for id in 0..8 {
        example.write(Op::Indexed(id, [id % 2, 7]));
    }
    let end = example.truth.end;
    assert!(example.fill(end, 0) && example.fill(end, 1));
    assert_eq!(example.caches.store.reference_count(), 8);
    example.write(Op::Indexed(0, [5, 7]));
    example.write(Op::Indexed(1, [0, 7]));
    assert_eq!(example.caches.store.reference_count(), 7);
    let end = example.truth.end;
    assert!(example.fill(end, 1));
    assert_eq!(example.caches.store.reference_count(), 7, "it was read again");
    let mut other = example.caches.open(PartitionId(8), end);
    for id in 0..200_000 {
        other.fill(end, &RowQuery::Object(id), &RowAnswer::Object(None));
    }
    assert_eq!((example.all(0), example.all(1)), (None, Some(vec![3, 5, 7])), "one was evicted");
    assert_eq!(example.caches.store.reference_count(), 3);
}
