//! Tests that a read that makes progress finishes, however many rows it needs, and that others stop.

use super::truth::{Truth, cache, list, open, options, point};
use crate::live::query::{Query, RowsAnswer, Start};
use crate::live::reading::{LiveRead, LiveReadStep};
use crate::live::{LiveCaches, MissDecision};
use kith_live::RowQuery;
use kith_types::{LogPoint, Timestamp};

const NOW: Timestamp = Timestamp::ZERO;

#[test]
fn a_read_of_many_rows_that_are_not_kept_finishes() {
    let truth = Truth::new();
    // The cache has room for only a few of the rows.
    let mut caches: LiveCaches<u32> = LiveCaches::new(options(4_000));
    open(&mut caches, truth.end, None);
    let query = Query::Objects((0..60_000).collect());
    let mut reading = LiveRead::new(query, LogPoint::default(), Some(truth.end));
    let mut fetches = 0;
    let answered = loop {
        match reading.next(&mut cache(&mut caches), NOW) {
            LiveReadStep::Answer(answered) => break answered,
            LiveReadStep::Fetch(rows) => {
                fetches += 1;
                let fill = |row: &RowQuery| {
                    cache(&mut caches).fill(truth.end, row, &truth.read(truth.end, row)).unwrap()
                };
                let filled = rows.iter().map(fill).collect();
                reading.filled(filled);
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(answered.answer, RowsAnswer::Objects(vec![None; 60_000]));
    // More than a read makes that gets no further.
    assert!(20 < fetches && fetches < 80, "{fetches}");
}

#[test]
fn a_read_whose_rows_never_arrive_gives_up() {
    let mut caches: LiveCaches<u32> = LiveCaches::new(options(1 << 20));
    open(&mut caches, point(1, 0), None);
    let mut reading = LiveRead::new(Query::Objects(vec![1]), LogPoint::default(), Some(point(1, 0)));
    for _ in 0..100 {
        match reading.next(&mut cache(&mut caches), NOW) {
            LiveReadStep::Fetch(_) => reading.filled(Vec::new()),
            LiveReadStep::GiveUp => return,
            other => panic!("{other:?}"),
        }
    }
    panic!("it goes on for ever");
}

#[test]
fn a_read_that_waited_is_answered_from_the_rows_of_the_other_read() {
    let truth = Truth::with_list(list(1), (1..=9).rev().map(|id2| (id2, 10 * id2)));
    let mut caches: LiveCaches<u32> = LiveCaches::new(options(1 << 20));
    open(&mut caches, truth.end, None);
    let after = Start::After(kith_live::ListPlace { time: 40, id2: 4 });
    let query = Query::Range { list: list(1), start: after, limit: 2 };
    let of = |end| LiveRead::new(query.clone(), LogPoint::default(), Some(end));
    let (mut first, mut second) = (of(truth.end), of(truth.end));
    let LiveReadStep::Fetch(rows) = first.next(&mut cache(&mut caches), NOW) else { panic!("it is empty") };
    assert!(matches!(second.next(&mut cache(&mut caches), NOW), LiveReadStep::Fetch(same) if same == rows));
    let mut arrived = Vec::new();
    for row in &rows {
        let MissDecision::Fetch(flight) = cache(&mut caches).begin(row) else { panic!("nobody reads it") };
        assert_eq!(cache(&mut caches).begin(row), MissDecision::Join(flight));
        cache(&mut caches).join(flight, 7).unwrap();
        let landed = cache(&mut caches).land(flight, truth.end, row, &truth.read(truth.end, row));
        assert_eq!(landed.waiters, [7]);
        arrived.extend(landed.filled);
    }
    cache(&mut caches).empty();
    second.filled(arrived);
    assert!(matches!(second.next(&mut cache(&mut caches), NOW), LiveReadStep::Answer(_)));
}
