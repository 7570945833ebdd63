//! For any sequence of requests, a database answers like its twin.

mod support;

use kith_database::testing::MariaDb;
use kith_database::{BeginTerm, Database, LogPart, MysqlOptions, SqliteDatabase, SqliteOptions, Trim};
use kith_live::{
    Batch, BatchPart, CompletedWrite, Edge, EdgeContent, IndexEntry, IndexId, Intent, ListPlace, Outcome,
    Pair, RecordedOutcome, RowQuery, RowWrite, TypeId, WriteId,
};
use kith_types::{LogPoint, PartitionId, Position, Term};
use proptest::{collection::vec, prelude::*, test_runner::TestRunner};
use std::fmt::Debug;
use support::{association, change, identity, lead, list, object, on, twin::Twin};

/// A request. Places in logs are relative to the ends of the logs, so that most commits take effect.
#[derive(Clone, Debug)]
enum Step {
    Begin { partition: u32, term: u64, leader: u64 },
    Commit(Vec<(u32, Aim, Vec<Vec<RowWrite>>)>),
    Trim { partition: u32, before: u64, outcomes_before_ms: u64 },
    Read { partition: u32, queries: Vec<RowQuery> },
    Changes { partition: u32, point: LogPoint, bytes_max: usize },
    Scan { partition: u32, after: Option<u64>, limit: u32 },
}

/// The end of the log that a part expects.
#[derive(Clone, Copy, Debug)]
enum Aim {
    Right,
    Position(u64),
    Term(u64),
}

/// A few ids at both ends of the range, so that they often collide.
fn id() -> impl Strategy<Value = u64> + Clone {
    prop_oneof![0u64..3, (u64::MAX - 1)..=u64::MAX, Just(1 << 63)]
}

fn point() -> impl Strategy<Value = LogPoint> {
    (0u64..6, 0u64..12).prop_map(|(term, position)| LogPoint::new(term, position))
}

fn pair() -> impl Strategy<Value = Pair> {
    (0u64..4, 1u64..4).prop_map(|(low, gap)| Pair::of(low, low + gap).expect("the ids differ"))
}

fn write_id() -> impl Strategy<Value = WriteId> {
    "[ab']{1,2}".prop_map(|text| text.parse().expect("the write id is valid"))
}

fn intent() -> impl Strategy<Value = Intent> {
    (pair(), point(), id()).prop_map(|(pair, stamp, id2)| Intent {
        pair,
        stamp,
        edges: vec![Edge {
            forward: list(pair.low()).to(id2),
            inverse: list(id2).to(pair.low()),
            content: Some(EdgeContent { time: id2, data: object(id2, "x").data }),
        }],
        done: CompletedWrite { id: 1, version: 2, existed: false },
        name: None,
    })
}

fn row() -> impl Strategy<Value = RowWrite> {
    let outcome = |at| RecordedOutcome {
        write: at,
        at,
        outcome: Outcome::Done(CompletedWrite { id: 1, version: at, existed: true }),
        elsewhere: None,
    };
    let partition = || (0u32..4).prop_map(PartitionId);
    prop_oneof![
        (id(), "[a-z']{0,3}").prop_map(|(id, text)| RowWrite::PutObject(object(id, &text))),
        id().prop_map(RowWrite::DeleteObject),
        (id(), id(), id())
            .prop_map(|(id1, id2, time)| { RowWrite::PutAssociation(list(id1), association(id2, time)) }),
        (0u64..2, 0u64..9, 0u64..3)
            .prop_map(|(id1, id2, time)| { RowWrite::PutAssociation(list(id1), association(id2, time)) }),
        (id(), id()).prop_map(|(id1, id2)| RowWrite::DeleteAssociation(list(id1).to(id2))),
        (id(), 0u64..3).prop_map(|(id1, length)| RowWrite::SetCount(list(id1), length)),
        intent().prop_map(RowWrite::PutIntent),
        point().prop_map(RowWrite::DeleteIntent),
        (pair(), point()).prop_map(|(pair, stamp)| RowWrite::PutPairStamp(pair, stamp)),
        (partition(), point()).prop_map(|(from, before)| RowWrite::DropPairStamps { from, before }),
        (partition(), point()).prop_map(|(from, before)| RowWrite::SetFloor { from, before }),
        (write_id(), 0u64..4).prop_map(move |(id, at)| RowWrite::PutOutcome(id, outcome(at))),
    ]
}

/// Rows of pairs only. Their result depends on their order.
fn pair_row() -> impl Strategy<Value = RowWrite> {
    let low = |low| Pair::of(low, low + 1).expect("the ids differ");
    let partitions = identity().partitions;
    prop_oneof![
        (0u64..2, point()).prop_map(move |(id, stamp)| RowWrite::PutPairStamp(low(id), stamp)),
        (0u64..2, point()).prop_map(move |(id, before)| RowWrite::DropPairStamps {
            from: low(id).partitions(partitions).0,
            before
        }),
    ]
}

/// Associations of a single list, with few different times.
fn list_row() -> impl Strategy<Value = RowWrite> {
    (0u64..9, 0u64..3).prop_map(|(id2, time)| RowWrite::PutAssociation(list(0), association(id2, time)))
}

/// An entry of one of two indexes. The values of the second one are unique.
fn entry() -> impl Strategy<Value = IndexEntry> {
    (1u32..3, "[ab']{0,1}", id()).prop_map(|(index, key, id)| IndexEntry {
        index: IndexId(index),
        key: key.as_bytes().into(),
        id,
        unique: index == 2,
    })
}

fn entry_row() -> impl Strategy<Value = RowWrite> {
    prop_oneof![entry().prop_map(RowWrite::PutEntry), entry().prop_map(RowWrite::DeleteEntry)]
}

fn rows() -> impl Strategy<Value = Vec<RowWrite>> {
    prop_oneof![
        3 => vec(row(), 0..6),
        1 => vec(pair_row(), 1..6),
        1 => vec(list_row(), 1..6),
        1 => vec(entry_row(), 1..3),
    ]
}

/// The type of all rows, and one that no row has.
fn kinds() -> impl Strategy<Value = Vec<TypeId>> {
    proptest::sample::subsequence(vec![object(1, "").kind, list(1).kind, TypeId(999)], 0..=3)
}

fn query() -> impl Strategy<Value = RowQuery> {
    let position = (0u64..3, 0u64..9).prop_map(|(time, id2)| ListPlace { time, id2 });
    prop_oneof![
        id().prop_map(RowQuery::Object),
        (id(), id()).prop_map(|(id1, id2)| RowQuery::Association(list(id1).to(id2))),
        id().prop_map(|id1| RowQuery::Count(list(id1))),
        (0u64..3, proptest::option::of(position), 0u32..4, 0u32..5)
            .prop_map(|(id1, after, skip, limit)| { RowQuery::List { list: list(id1), after, skip, limit } }),
        Just(RowQuery::Intents),
        pair().prop_map(RowQuery::PairStamp),
        (0u32..4).prop_map(|from| RowQuery::Floor(PartitionId(from))),
        write_id().prop_map(RowQuery::Outcome),
        (entry(), proptest::option::of(id()), 0u32..4).prop_map(|(entry, after, limit)| {
            RowQuery::Entries { index: entry.index, key: entry.key, after, limit }
        }),
        kinds().prop_map(RowQuery::ObjectCount),
        (kinds(), any::<bool>())
            .prop_map(|(kinds, ascending)| RowQuery::AssociationCount { kinds, ascending }),
    ]
}

/// Usually one of the first two partitions, which are compared as a whole at the end.
fn some_partition() -> impl Strategy<Value = u32> {
    prop_oneof![6 => 0u32..2, 1 => 2u32..4]
}

fn step() -> impl Strategy<Value = Step> {
    let aim = prop_oneof![
        9 => Just(Aim::Right),
        1 => (0u64..12).prop_map(Aim::Position),
        1 => (0u64..6).prop_map(Aim::Term),
    ];
    let part = (some_partition(), aim, vec(rows(), 0..3));
    prop_oneof![
        2 => (some_partition(), 0u64..6, 0u64..2)
            .prop_map(|(partition, term, leader)| Step::Begin { partition, term, leader }),
        6 => vec(part, 1..4).prop_map(Step::Commit),
        1 => (0u32..4, 0u64..12, 0u64..4).prop_map(|(partition, before, outcomes_before_ms)| {
            Step::Trim { partition, before, outcomes_before_ms }
        }),
        3 => (0u32..4, vec(query(), 0..9)).prop_map(|(partition, queries)| Step::Read { partition, queries }),
        3 => (0u32..4, point(), 0usize..200)
            .prop_map(|(partition, point, bytes_max)| Step::Changes { partition, point, bytes_max }),
        2 => (0u32..4, proptest::option::of(id()), 0u32..4)
            .prop_map(|(partition, after, limit)| Step::Scan { partition, after, limit }),
    ]
}

/// Returns the result without the parts that the twin does not know: the time of day, and the texts of messages.
fn plain<T: Debug, E: Debug>(result: Result<T, E>) -> String {
    let text = format!("{result:?}");
    text.split("Invalid { detail").next().unwrap_or_default().to_owned()
}

async fn take(database: &dyn Database, step: Step) -> String {
    match step {
        Step::Begin { partition, term, leader } => {
            let request = BeginTerm { partition: PartitionId(partition), term: Term(term), leader };
            plain(database.begin_term(request).await)
        }
        Step::Commit(parts) => {
            let all = (0..4).map(PartitionId).collect();
            let ends = database.points(all).await.expect("the read succeeds");
            let part = |(partition, aim, changes): (u32, Aim, Vec<Vec<RowWrite>>)| {
                let mut expected = ends[partition as usize];
                match aim {
                    Aim::Right => {}
                    Aim::Position(position) => expected.position = Position(position),
                    Aim::Term(term) => expected.term = Term(term),
                }
                let changes = changes.into_iter().map(change).collect();
                BatchPart { partition: PartitionId(partition), expected, changes }
            };
            plain(
                database
                    .commit(Batch { parts: parts.into_iter().map(part).collect(), requires: Vec::new() })
                    .await,
            )
        }
        Step::Trim { partition, before, outcomes_before_ms } => {
            let trim = Trim {
                changes_before: Position(before),
                changes_written_before_ms: u64::MAX,
                outcomes_before_ms,
            };
            plain(database.trim(PartitionId(partition), trim).await)
        }
        Step::Read { partition, queries } => plain(database.read(PartitionId(partition), queries).await),
        Step::Changes { partition, point, bytes_max } => {
            let part = database.changes(PartitionId(partition), point, bytes_max).await;
            plain(part.map(|LogPart { mut changes, end }| {
                changes.iter_mut().for_each(|entry| entry.written_ms = 0);
                LogPart { changes, end }
            }))
        }
        Step::Scan { partition, after, limit } => {
            let partition = PartitionId(partition);
            let objects = database.scan_objects(partition, after, limit).await;
            let after = after.map(|id| list(id).to(id));
            let associations = database.scan_associations(partition, after, limit).await;
            format!("{} {}", plain(objects), plain(associations))
        }
    }
}

/// Compares a new database with a new twin after each step.
async fn compare(database: &dyn Database, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let twin = Twin::new(identity());
    for partition in 0..3 {
        // Nothing can be written without a leader. The last partition has none at first.
        lead(&twin, PartitionId(partition), 1).await;
        lead(database, PartitionId(partition), 1).await;
    }
    for step in steps {
        let expected = take(&twin, step.clone()).await;
        let got = take(database, step.clone()).await;
        prop_assert_eq!(got, expected, "{:?}", step);
    }
    for partition in 0..2 {
        let places = (0..3).flat_map(|time| (0..9).map(move |id2| Some(ListPlace { time, id2 })));
        let part = |after, skip| RowQuery::List { list: list(0), after, skip, limit: 4 };
        let mut queries: Vec<_> = places.map(|index| part(index, 0)).collect();
        queries.extend((0..9).map(|skip| part(None, skip)));
        queries.extend((0..2).filter_map(|low| Pair::of(low, low + 1)).map(RowQuery::PairStamp));
        let mut steps = vec![Step::Read { partition, queries }];
        for (term, position) in (0..6).flat_map(|term| (0..9).map(move |position| (term, position))) {
            let point = LogPoint::new(term, position);
            steps.push(Step::Changes { partition, point, bytes_max: 9 });
        }
        for step in steps {
            let expected = take(&twin, step.clone()).await;
            prop_assert_eq!(take(database, step.clone()).await, expected, "{:?}", step);
        }
    }
    Ok(())
}

fn runner(cases: u32) -> TestRunner {
    TestRunner::new(ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() })
}

#[test]
fn sqlite_answers_as_its_twin_does() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let claim = |steps| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("graph.sqlite");
        let database = SqliteDatabase::create(&file, identity(), SqliteOptions::default());
        let database = database.expect("a new file");
        runtime.block_on(compare(&database, steps))
    };
    runner(96).run(&vec(step(), 1..60), claim).expect("the database agrees with its twin");
}

#[test]
fn mariadb_answers_as_its_twin_does() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let server = runtime.block_on(MariaDb::shared());
    let claim = |steps| {
        runtime.block_on(async {
            let database = on(&server, MysqlOptions::default()).await;
            compare(&database, steps).await
        })
    };
    runner(32).run(&vec(step(), 1..60), claim).expect("the database agrees with its twin");
}
