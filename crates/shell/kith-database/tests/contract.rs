//! The contract of all databases. The same tests run against a twin in memory, a SQLite file, and a real MariaDB.

mod support;

mod contract {
    mod indexes;
    mod logs;
    mod replaced;
}

use kith_database::{BeginTerm, CommitError, Database, DatabaseError};
use kith_live::{
    Batch, CompletedWrite, Data, Intent, Object, Outcome, Pair, RecordedOutcome, RowAnswer, RowQuery,
    RowWrite,
};
use kith_types::{ErrorCode, LogPoint, PartitionId, Term};
use std::sync::Arc;
use support::{P, Q, association, batch, change, each, lead, list, object, part, write};

async fn read(database: &dyn Database, queries: Vec<RowQuery>) -> Vec<RowAnswer> {
    database.read(P, queries).await.expect("the read succeeds").answers
}

async fn point(database: &dyn Database, partition: PartitionId) -> LogPoint {
    database.points(vec![partition]).await.expect("the read succeeds")[0]
}

fn pair(one: u64, other: u64) -> Pair {
    Pair::of(one, other).expect("the ids differ")
}

#[tokio::test]
async fn a_batch_takes_effect_whole_or_not_at_all() {
    each(|database| async move {
        let (p, q) = (lead(&*database, P, 1).await, lead(&*database, Q, 1).await);
        let put = |id| change(vec![RowWrite::PutObject(object(id, "here"))]);
        let parts = |q| vec![part(P, p, vec![put(1), put(2)]), part(Q, q, vec![put(3)])];
        let both = |q| Batch { parts: parts(q), requires: Vec::new() };
        let refused =
            database.commit(both(LogPoint::new(1, 7))).await.expect_err("the log of Q is elsewhere");
        assert_eq!(refused, CommitError::Moved { partition: Q, found: q });
        assert_eq!(refused.code(), ErrorCode::LogMoved);
        assert_eq!(database.points(vec![Q, P, Q]).await.expect("the read succeeds"), [q, p, q]);
        assert_eq!(read(&*database, vec![RowQuery::Object(1)]).await, [RowAnswer::Object(None)]);

        database.commit(both(q)).await.expect("both logs exist");
        let ends = [LogPoint::new(1, 2), LogPoint::new(1, 1)];
        assert_eq!(database.points(vec![P, Q]).await.expect("the read succeeds"), ends);
        let rows = database.read(Q, vec![RowQuery::Object(3), RowQuery::Object(1)]).await;
        let rows = rows.expect("the read succeeds");
        assert_eq!(rows.at, ends[1]);
        assert_eq!(rows.answers[0], RowAnswer::Object(Some(object(3, "here"))));
        assert_eq!(rows.answers[1], RowAnswer::Object(None), "object 1 is in another partition");
        let two = vec![RowQuery::Object(2), RowQuery::Object(9)];
        let parts = vec![(Q, vec![]), (P, two), (Q, vec![RowQuery::Object(3)])];
        let rows = database.read_many(parts).await.expect("the read succeeds");
        assert_eq!(rows.iter().map(|rows| rows.at).collect::<Vec<_>>(), [ends[1], ends[0], ends[1]]);
        let found = |id| RowAnswer::Object(Some(object(id, "here")));
        let answers: Vec<_> = rows.into_iter().map(|rows| rows.answers).collect();
        assert_eq!(answers, [vec![], vec![found(2), RowAnswer::Object(None)], vec![found(3)]]);
        assert_eq!(database.read_many(vec![]).await.expect("nothing is read"), []);
        let none = database.read_many(vec![(P, vec![]), (PartitionId(99), vec![])]).await;
        assert!(matches!(none, Err(DatabaseError::Invalid { .. })), "{none:?}");

        let repeated = database.commit(both(q)).await.expect_err("the logs have moved");
        assert!(matches!(repeated, CommitError::Moved { .. }), "{repeated}");
    })
    .await;
}

#[tokio::test]
async fn only_the_leader_of_the_latest_term_writes() {
    each(|database| async move {
        let first = write(&*database, P, lead(&*database, P, 3).await, vec![]).await;
        assert_eq!(lead(&*database, P, 5).await, LogPoint::new(5, 1), "the position goes on");
        let refused = database.commit(batch(P, first, vec![])).await.expect_err("the term has ended");
        let found = LogPoint::new(5, 1);
        assert_eq!(refused, CommitError::Fenced { partition: P, found });
        assert_eq!(refused.code(), ErrorCode::Fenced);
        write(&*database, P, found, vec![]).await;
        let early = database.commit(batch(Q, LogPoint::new(1, 0), vec![])).await.expect_err("no term began");
        assert_eq!(early, CommitError::Fenced { partition: Q, found: LogPoint::default() });
    })
    .await;
}

#[tokio::test]
async fn a_term_begins_once_but_its_leader_may_ask_again() {
    each(|database| async move {
        let ask = |term, leader| database.begin_term(BeginTerm { partition: P, term: Term(term), leader });
        assert_eq!(ask(4, u64::MAX).await, Ok(LogPoint::new(4, 0)));
        write(&*database, P, LogPoint::new(4, 0), vec![]).await;
        let found = LogPoint::new(4, 1);
        assert_eq!(ask(4, u64::MAX).await, Ok(found), "the answer may have been lost");
        for (term, leader) in [(4, 1), (3, u64::MAX), (0, u64::MAX)] {
            let refused = ask(term, leader).await.expect_err("another leader was first");
            assert_eq!(refused, CommitError::Fenced { partition: P, found }, "term {term} of {leader}");
        }
        assert_eq!(ask(u64::MAX, 0).await, Ok(LogPoint::new(u64::MAX, 1)));
    })
    .await;
}

#[tokio::test]
async fn rows_are_read_as_they_were_written() {
    each(|database| async move {
        let large = Data { schema: u16::MAX, bytes: vec![0x5a; 1 << 20].into() };
        let objects = [
            Object { id: u64::MAX, stamp: LogPoint::new(u64::MAX, u64::MAX), ..object(0, "") },
            Object { id: 0, data: Data::default(), ..object(0, "") },
            Object { data: large.clone(), ..object(1 << 63, "") },
            Object { data: large, ..object(9, "") },
        ];
        let it = association(u64::MAX, u64::MAX);
        let mut rows: Vec<_> = objects.iter().cloned().map(RowWrite::PutObject).collect();
        rows.push(RowWrite::PutAssociation(list(1 << 63), it.clone()));
        rows.push(RowWrite::SetCount(list(1 << 63), u64::MAX));
        let end = write(&*database, P, lead(&*database, P, 1).await, rows).await;
        let mut queries: Vec<_> = objects.iter().map(|object| RowQuery::Object(object.id)).collect();
        queries.extend([
            RowQuery::Association(list(1 << 63).to(u64::MAX)),
            RowQuery::Count(list(1 << 63)),
            RowQuery::Object(0),
            RowQuery::Object(5),
            RowQuery::Association(list(5).to(u64::MAX)),
            RowQuery::Count(list(5)),
        ]);
        let mut expected: Vec<_> = objects.iter().cloned().map(|it| RowAnswer::Object(Some(it))).collect();
        expected.extend([
            RowAnswer::Association(Some(it)),
            RowAnswer::Count(u64::MAX),
            RowAnswer::Object(Some(objects[1].clone())),
            RowAnswer::Object(None),
            RowAnswer::Association(None),
            RowAnswer::Count(0),
        ]);
        assert_eq!(read(&*database, queries.clone()).await, expected);

        // A later state replaces an earlier one, even within one change.
        let again = vec![
            RowWrite::PutObject(object(0, "first")),
            RowWrite::PutObject(object(0, "second")),
            RowWrite::PutObject(object(5, "gone at once")),
            RowWrite::DeleteObject(5),
            RowWrite::DeleteObject(u64::MAX),
            RowWrite::DeleteAssociation(list(1 << 63).to(u64::MAX)),
            RowWrite::SetCount(list(1 << 63), 0),
        ];
        write(&*database, P, end, again).await;
        expected[0] = RowAnswer::Object(None);
        expected[1] = RowAnswer::Object(Some(object(0, "second")));
        expected[4] = RowAnswer::Association(None);
        expected[5] = RowAnswer::Count(0);
        expected[6] = expected[1].clone();
        assert_eq!(read(&*database, queries).await, expected);
    })
    .await;
}

#[tokio::test]
async fn lists_are_read_from_any_place_newest_first_with_ties_by_id() {
    each(|database| async move {
        let members = [(4, 10), (1, 10), (u64::MAX, 10), (2, 11), (3, 0), (5, u64::MAX), (6, 1 << 63)];
        let mut rows: Vec<_> = members
            .iter()
            .map(|(id2, time)| RowWrite::PutAssociation(list(1), association(*id2, *time)))
            .collect();
        rows.push(RowWrite::PutAssociation(list(2), association(1, 10)));
        let end = write(&*database, P, lead(&*database, P, 1).await, rows).await;
        // A later time moves an association to another place of its list.
        let moved = RowWrite::PutAssociation(list(1), association(3, 12));
        write(&*database, P, end, vec![moved]).await;
        let ids = |after, skip, limit| {
            let database = database.clone();
            async move {
                let query = RowQuery::List { list: list(1), after, skip, limit };
                match read(&*database, vec![query]).await.pop() {
                    Some(RowAnswer::List(found)) => found,
                    other => panic!("{other:?}"),
                }
            }
        };
        let all = ids(None, 0, 99).await;
        assert_eq!(all.iter().map(|it| it.id2).collect::<Vec<_>>(), [5, 6, 3, 2, 1, 4, u64::MAX]);
        for index in 0..all.len() {
            for limit in [0, 1, 2, 3, 99] {
                let expected: Vec<_> = all.iter().skip(index + 1).take(limit).cloned().collect();
                let limit = u32::try_from(limit).expect("the limit is small");
                let position = Some(all[index].place());
                assert_eq!(ids(position, 0, limit).await, expected, "{limit} after {index}");
                let skip = u32::try_from(index + 1).expect("the list is short");
                assert_eq!(ids(None, skip, limit).await, expected, "{limit} without the first {skip}");
                assert_eq!(ids(Some(all[0].place()), skip - 1, limit).await, expected, "both");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn what_pairs_need_is_kept_and_dropped() {
    each(|database| async move {
        let partitions = database.identity().partitions;
        let ordered_by = |pair: Pair| pair.partitions(partitions).0;
        let (one, two) = (pair(1, 900), pair(1, 901));
        let from = ordered_by(one);
        let other =
            (2..).map(|id| pair(id, 900)).find(|it| ordered_by(*it) != from).expect("such a pair exists");
        let stamp = |position| LogPoint::new(2, position);
        let rows = vec![
            RowWrite::PutPairStamp(one, stamp(4)),
            RowWrite::PutPairStamp(two, stamp(6)),
            RowWrite::PutPairStamp(other, stamp(1)),
            RowWrite::SetFloor { from, before: stamp(3) },
        ];
        let end = write(&*database, P, lead(&*database, P, 1).await, rows).await;
        let queries = || {
            let pairs = [one, two, other].map(RowQuery::PairStamp);
            [&pairs[..], &[RowQuery::Floor(from), RowQuery::Floor(ordered_by(other))]].concat()
        };
        let points = |points: [LogPoint; 5]| points.map(RowAnswer::Point).to_vec();
        let start = LogPoint::default();
        let expected = points([stamp(4), stamp(6), stamp(1), stamp(3), start]);
        assert_eq!(read(&*database, queries()).await, expected);
        let rows = vec![
            RowWrite::DropPairStamps { from, before: stamp(6) },
            RowWrite::SetFloor { from, before: stamp(6) },
        ];
        let end = write(&*database, P, end, rows).await;
        assert_eq!(read(&*database, queries()).await, points([start, stamp(6), stamp(1), stamp(6), start]));
        // Within one change, a drop removes the stamps that were put before it, but not those that are put after it.
        let rows = vec![
            RowWrite::PutPairStamp(two, stamp(8)),
            RowWrite::DropPairStamps { from, before: LogPoint::new(3, 0) },
            RowWrite::PutPairStamp(one, stamp(5)),
        ];
        write(&*database, P, end, rows).await;
        assert_eq!(read(&*database, queries()).await, points([stamp(5), start, stamp(1), stamp(6), start]));
    })
    .await;
}

#[tokio::test]
async fn intents_and_outcomes_are_kept_until_they_are_removed() {
    each(|database| async move {
        let done = CompletedWrite { id: 1, version: 9, existed: true };
        let intent = |term, position| Intent {
            pair: pair(1, 2),
            stamp: LogPoint::new(term, position),
            edges: vec![],
            done,
            name: None,
        };
        let outcome = |at| RecordedOutcome { write: 7, at, outcome: Outcome::Done(done), elsewhere: None };
        let id = |text: &str| text.parse().expect("the write id is valid");
        let rows = vec![
            RowWrite::PutIntent(intent(2, 1)),
            RowWrite::PutIntent(intent(1, u64::MAX)),
            RowWrite::PutIntent(intent(1, 5)),
            RowWrite::PutOutcome(id("a"), outcome(1_000)),
            RowWrite::PutOutcome(id("it's;--"), outcome(2_000)),
        ];
        let end = write(&*database, P, lead(&*database, P, 1).await, rows).await;
        let queries =
            || vec![RowQuery::Intents, RowQuery::Outcome(id("a")), RowQuery::Outcome(id("it's;--"))];
        assert_eq!(
            read(&*database, queries()).await,
            [
                RowAnswer::Intents(vec![intent(1, 5), intent(1, u64::MAX), intent(2, 1)]),
                RowAnswer::Outcome(Some(outcome(1_000))),
                RowAnswer::Outcome(Some(outcome(2_000))),
            ]
        );
        write(&*database, P, end, vec![RowWrite::DeleteIntent(LogPoint::new(1, 5))]).await;
        let trim = kith_database::Trim { outcomes_before_ms: 2_000, ..Default::default() };
        assert_eq!(database.trim(P, trim).await.map(|it| (it.changes, it.outcomes)), Ok((0, 1)));
        assert_eq!(
            read(&*database, queries()).await,
            [
                RowAnswer::Intents(vec![intent(1, u64::MAX), intent(2, 1)]),
                RowAnswer::Outcome(None),
                RowAnswer::Outcome(Some(outcome(2_000))),
            ]
        );
    })
    .await;
}

#[tokio::test]
async fn impossible_requests_are_refused() {
    each(|database| async move {
        let none = PartitionId(4);
        let start = lead(&*database, P, 1).await;
        let twice =
            Batch { parts: vec![part(P, start, vec![]), part(P, start, vec![])], requires: Vec::new() };
        for refused in [
            database.commit(batch(none, start, vec![])).await,
            database.commit(twice).await,
            database.begin_term(BeginTerm { partition: none, term: Term(1), leader: 0 }).await.map(|_| ()),
            database.read(none, vec![]).await.map(|_| ()).map_err(CommitError::from),
            database.points(vec![P, none]).await.map(|_| ()).map_err(CommitError::from),
        ] {
            let invalid = matches!(refused, Err(CommitError::NotWritten(DatabaseError::Invalid { .. })));
            assert!(invalid, "{refused:?}");
        }
        assert_eq!(database.commit(Batch::default()).await, Ok(()), "nothing is written");
        assert_eq!(database.points(vec![]).await, Ok(vec![]));
        let condition = |at| Batch { parts: vec![part(P, at, vec![])], requires: Vec::new() };
        assert_eq!(database.commit(condition(start)).await, Ok(()), "a part without changes is a condition");
        let found = start;
        let moved = database.commit(condition(LogPoint::new(1, 1))).await;
        assert_eq!(moved, Err(CommitError::Moved { partition: P, found }));
    })
    .await;
}

/// Writes `count` changes. Before each, tries to write one at a wrong place.
async fn hammer(database: Arc<dyn Database>, partition: PartitionId, count: u64) {
    let mut end = lead(&*database, partition, 1).await;
    for id in 0..count {
        let wrong = LogPoint { position: end.position.next(), ..end };
        let (refused, written) = tokio::join!(
            database.commit(batch(partition, wrong, vec![RowWrite::DeleteObject(id)])),
            database.begin_term(BeginTerm { partition, term: Term(1), leader: 2 }),
        );
        assert_eq!(refused, Err(CommitError::Moved { partition, found: end }));
        assert!(matches!(written, Err(CommitError::Fenced { .. })));
        end = write(&*database, partition, end, vec![RowWrite::PutObject(object(id, "here"))]).await;
        assert_eq!(point(&*database, partition).await, end);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn leaders_do_not_disturb_each_other() {
    each(|database| async move {
        let hammers = (0..4).map(|it| tokio::spawn(hammer(database.clone(), PartitionId(it), 20)));
        futures::future::try_join_all(hammers).await.expect("no claim fails");
        for partition in (0..4).map(PartitionId) {
            let page = database.scan_objects(partition, None, 99).await.expect("the read succeeds");
            assert_eq!((page.at, page.objects.len()), (LogPoint::new(1, 20), 20));
        }
    })
    .await;
}
