//! Reads that wait: those of the same rows share one read of the database, and none keeps a turn that it does not use.

use super::replaced::{P, graph};
use crate::live::{graph::LiveGraph, rows::ReadNeed};
use futures::{FutureExt, future::BoxFuture};
use kith_cache::live::{Query, RowsAnswer, Start};
use kith_database::{
    AssociationPage, BeginTerm, CommitError, Database, DatabaseFuture, GraphIdentity, LogFuture, ObjectPage,
    PartitionQueries, SqliteDatabase, SqliteOptions, Trim, TrimResult,
};
use kith_live::{
    Association, AssociationKey, Batch, BatchPart, Change, ListKey, ListPlace, LoggedChange, ObjectFields,
    RowQuery, RowWrite, RowsAt, TypeId,
};
use kith_operators::{Operator, Value};
use kith_query::convert::operator_to_wire;
use kith_types::{ErrorCode, LogPoint, PartitionCount, PartitionId, Term};
use kith_wire::v1;
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::{
    sync::{Semaphore, watch},
    time::timeout,
};

const LIST: ListKey = ListKey { id1: 1, kind: TypeId(2) };
/// The length of a list, which is more than a cache keeps of it.
const LENGTH: u64 = 9_000;
/// A page far beyond the part of the list that the cache reads at first.
const DEEP: Query = deep(Start::After(ListPlace { time: 500, id2: 500 }));

const fn deep(start: Start) -> Query {
    Query::Range { list: LIST, start, limit: 10 }
}

/// How many statements that read or write rows the database carries out at a time.
const PROCESSORS: usize = 4;

/// A database that counts the reads of rows and those of pages, and holds reads of pages and of ends of logs back while it is
/// closed.
pub(super) struct GatedDatabase {
    inner: SqliteDatabase,
    processors: Semaphore,
    pub(super) reads: AtomicUsize,
    pages: AtomicUsize,
    ends: AtomicUsize,
    is_open: watch::Sender<bool>,
}

impl GatedDatabase {
    /// A database with one list. The association to each id has this id as its time.
    pub(super) async fn create(folder: &Path) -> Arc<Self> {
        let identity = GraphIdentity { graph: 7, partitions: PartitionCount::new(1).unwrap() };
        let file = folder.join("graph.sqlite");
        let inner = SqliteDatabase::create(&file, identity, SqliteOptions::default()).unwrap();
        let expected = inner.begin_term(BeginTerm { partition: P, term: Term(1), leader: 1 }).await.unwrap();
        let stamp = LogPoint { position: expected.position.next(), ..expected };
        let association = |id2| Association { id2, time: id2, stamp, data: Default::default() };
        let mut rows: Vec<_> =
            (1..=LENGTH).map(|id2| RowWrite::PutAssociation(LIST, association(id2))).collect();
        rows.push(RowWrite::SetCount(LIST, LENGTH));
        let changes = vec![LoggedChange { change: Change { effects: Vec::new() }, rows }];
        let parts = vec![BatchPart { partition: P, expected, changes }];
        inner.commit(Batch { parts, ..Default::default() }).await.unwrap();
        let [reads, pages, ends] = [(); 3].map(|()| AtomicUsize::default());
        let processors = Semaphore::new(PROCESSORS);
        Arc::new(Self { inner, processors, reads, pages, ends, is_open: watch::Sender::new(true) })
    }

    /// Adds an association to the list, as a node does that leads the partition. Returns the end of the log after it.
    async fn add(&self, id2: u64) -> LogPoint {
        let expected = self.inner.points(vec![P]).await.unwrap()[0];
        let stamp = LogPoint { position: expected.position.next(), ..expected };
        let association = Association { id2, time: id2, stamp, data: Default::default() };
        let rows = vec![RowWrite::PutAssociation(LIST, association)];
        let changes = vec![LoggedChange { change: Change { effects: Vec::new() }, rows }];
        let parts = vec![BatchPart { partition: P, expected, changes }];
        self.commit(Batch { parts, ..Default::default() }).await.unwrap();
        stamp
    }

    async fn pass(&self) {
        self.is_open.subscribe().wait_for(|is_open| *is_open).await.unwrap();
    }
}

impl Database for GatedDatabase {
    fn identity(&self) -> GraphIdentity {
        self.inner.identity()
    }

    fn begin_term(&self, request: BeginTerm) -> DatabaseFuture<'_, LogPoint, CommitError> {
        self.inner.begin_term(request)
    }

    fn commit(&self, batch: Batch) -> DatabaseFuture<'_, (), CommitError> {
        async move {
            let _processor = self.processors.acquire().await.unwrap();
            self.inner.commit(batch).await
        }
        .boxed()
    }

    fn read_many(&self, parts: Vec<PartitionQueries>) -> DatabaseFuture<'_, Vec<RowsAt>> {
        async move {
            let _processor = self.processors.acquire().await.unwrap();
            self.reads.fetch_add(1, SeqCst);
            let is_page = |query: &RowQuery| {
                matches!(query, RowQuery::List { after: Some(_), .. } | RowQuery::List { skip: 1.., .. })
            };
            if parts.iter().flat_map(|(_, queries)| queries).any(is_page) {
                self.pages.fetch_add(1, SeqCst);
                self.pass().await;
            }
            self.inner.read_many(parts).await
        }
        .boxed()
    }

    fn points(&self, partitions: Vec<PartitionId>) -> DatabaseFuture<'_, Vec<LogPoint>> {
        async move {
            self.ends.fetch_add(1, SeqCst);
            self.pass().await;
            self.inner.points(partitions).await
        }
        .boxed()
    }

    fn changes(&self, partition: PartitionId, after: LogPoint, bytes_max: usize) -> LogFuture<'_> {
        self.inner.changes(partition, after, bytes_max)
    }

    fn scan_objects(
        &self,
        partition: PartitionId,
        after: Option<u64>,
        limit: u32,
    ) -> DatabaseFuture<'_, ObjectPage> {
        self.inner.scan_objects(partition, after, limit)
    }

    fn scan_associations(
        &self,
        partition: PartitionId,
        after: Option<AssociationKey>,
        limit: u32,
    ) -> DatabaseFuture<'_, AssociationPage> {
        self.inner.scan_associations(partition, after, limit)
    }

    fn trim(&self, partition: PartitionId, trim: Trim) -> DatabaseFuture<'_, TrimResult> {
        self.inner.trim(partition, trim)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.inner.close()
    }
}

/// A graph over the database, whose cache is fresh and knows the newest part of the list.
async fn warm(database: &Arc<GatedDatabase>) -> Arc<LiveGraph> {
    let graph = Arc::new(graph(Arc::clone(database) as _));
    graph.freshener.freshen(vec![P]).await.unwrap();
    let newest = Query::Range { list: LIST, start: Start::Index(0), limit: 10 };
    graph.evaluator.elements.rows.read(P, newest, &ReadNeed::default()).await.unwrap();
    graph
}

/// Waits until a condition holds.
async fn until(condition: impl Fn() -> bool) {
    let holds = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), holds).await.expect("it holds in the end");
}

#[tokio::test]
async fn all_who_wait_for_one_page_share_one_read_and_keep_no_turn() {
    share(DEEP).await;
}

#[tokio::test]
async fn all_who_wait_for_one_page_by_its_index_share_one_read_and_keep_no_turn() {
    share(deep(Start::Index(8_501))).await;
}

/// Many callers ask for a page with the ids from 499 down.
async fn share(page: Query) {
    const CALLERS: usize = 300;
    let folder = tempfile::tempdir().unwrap();
    let database = GatedDatabase::create(folder.path()).await;
    let graph = warm(&database).await;
    database.is_open.send_replace(false);
    let begun = Arc::new(AtomicUsize::default());
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let (graph, begun, page) = (Arc::clone(&graph), Arc::clone(&begun), page.clone());
            tokio::spawn(async move {
                begun.fetch_add(1, SeqCst);
                graph.evaluator.elements.rows.read(P, page, &ReadNeed::default()).await
            })
        })
        .collect();
    until(|| begun.load(SeqCst) == CALLERS && database.pages.load(SeqCst) == 1).await;
    // All turns but that of the one read are free, so another read needs not wait.
    let other = Query::Objects(vec![1]);
    let other = tokio::time::timeout(Duration::from_secs(60), async {
        graph.evaluator.elements.rows.read(P, other, &ReadNeed::default()).await
    });
    assert!(matches!(other.await.expect("it needs not wait").unwrap().answer, RowsAnswer::Objects(_)));
    until(|| 31 <= free_turns(&graph)).await;
    database.is_open.send_replace(true);
    let expected: Vec<u64> = (490..500).rev().collect();
    for caller in callers {
        match caller.await.unwrap().expect("it is answered").answer {
            RowsAnswer::Associations(page) => {
                assert_eq!(page.iter().map(|it| it.id2).collect::<Vec<_>>(), expected);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(database.pages.load(SeqCst), 1);
    // The page is not kept: the next caller reads it.
    graph.evaluator.elements.rows.read(P, page, &ReadNeed::default()).await.unwrap();
    assert_eq!(database.pages.load(SeqCst), 2);
}

/// The number of further statements that could run now.
fn free_turns(graph: &LiveGraph) -> usize {
    std::iter::from_fn(|| graph.evaluator.elements.rows.turns.now(false)).collect::<Vec<_>>().len()
}

#[tokio::test]
async fn a_read_that_waits_for_something_else_gives_its_turn_back() {
    let folder = tempfile::tempdir().unwrap();
    let database = GatedDatabase::create(folder.path()).await;
    let graph = warm(&database).await;
    let mut turns: Vec<_> = std::iter::from_fn(|| graph.evaluator.elements.rows.turns.now(false)).collect();
    let reading = tokio::spawn({
        let graph = Arc::clone(&graph);
        async move { graph.evaluator.elements.rows.read(P, DEEP, &ReadNeed::default()).await }
    });
    // It waits for its turn. Meanwhile the cache loses its proof of freshness, so the read must get another one first.
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(!reading.is_finished());
    database.is_open.send_replace(false);
    let end = {
        let mut caches = graph.partitions.lock();
        let mut cache = caches.partition(P).expect("it is held");
        let end = cache.applied();
        cache.jump(end);
        end
    };
    let before = database.ends.load(SeqCst);
    turns.pop();
    until(|| before < database.ends.load(SeqCst)).await;
    assert_eq!(free_turns(&graph), 1, "the read does not keep the turn that it got");
    database.is_open.send_replace(true);
    let answered = reading.await.unwrap().expect("it is answered");
    assert!(end <= answered.until && database.pages.load(SeqCst) == 1);
}

/// A request for objects that nobody has read yet, with so much time.
fn cold(deadline: Duration) -> v1::EvaluateRequest {
    v1::EvaluateRequest {
        header: Some(v1::RequestHeader { deadline_us: deadline.as_micros() as u64, ..Default::default() }),
        keys: vec![70_001, 70_002],
        plan: Some(operator_to_wire(&Operator::Objects(ObjectFields::All))),
        ..Default::default()
    }
}

#[tokio::test]
async fn a_read_that_waits_for_its_turn_ends_at_its_deadline() {
    let folder = tempfile::tempdir().unwrap();
    let database = GatedDatabase::create(folder.path()).await;
    let graph = warm(&database).await;
    let turns: Vec<_> = std::iter::from_fn(|| graph.evaluator.elements.rows.turns.now(false)).collect();
    let late = graph.evaluate(&cold(Duration::from_millis(20))).await.err().expect("no turn comes");
    assert_eq!(kith_wire::code_of(&late), ErrorCode::DeadlineExceeded, "{late:?}");
    // Others wait on, and nothing of the read that gave up is left.
    let patient = tokio::spawn({
        let graph = Arc::clone(&graph);
        async move { graph.evaluate(&cold(Duration::from_secs(600))).await.map(|read| read.value) }
    });
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(!patient.is_finished());
    drop(turns);
    let value = patient.await.unwrap().expect("it is answered");
    assert!(matches!(value, Value::Objects(objects) if objects.len() == 2));
}

#[tokio::test]
async fn many_readers_far_into_a_list_leave_statements_to_others_and_writes_go_on() {
    const READERS: u32 = 16;
    let folder = tempfile::tempdir().unwrap();
    let database = GatedDatabase::create(folder.path()).await;
    let graph = warm(&database).await;
    database.is_open.send_replace(false);
    let readers: Vec<_> = (0..READERS)
        .map(|reader| {
            let graph = Arc::clone(&graph);
            let page = deep(Start::Index(8_501 + reader * 20));
            tokio::spawn(
                async move { graph.evaluator.elements.rows.read(P, page, &ReadNeed::default()).await },
            )
        })
        .collect();
    until(|| database.pages.load(SeqCst) == 2 && free_turns(&graph) == 30).await;
    // Another read finds a statement free.
    let other = graph.evaluate(&cold(Duration::from_secs(600))).await.expect("it is answered");
    assert!(matches!(other.value, Value::Objects(_)));
    let mut written = LogPoint::default();
    for id2 in LENGTH + 1..LENGTH + 21 {
        let adding = timeout(Duration::from_secs(60), database.add(id2));
        written = adding.await.expect("the readers leave the database to writes");
    }
    assert_eq!(database.inner.points(vec![P]).await.unwrap(), [written]);
    assert_eq!(database.pages.load(SeqCst), 2, "the other readers wait");
    database.is_open.send_replace(true);
    for reader in readers {
        reader.await.unwrap().expect("it is answered");
    }
}
