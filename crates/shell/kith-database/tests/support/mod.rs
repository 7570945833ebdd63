//! Helpers that the tests of databases share: the graph, each kind of database, and small writes.

#![allow(dead_code, reason = "each test binary uses a part of it")]

pub mod proxy;
pub mod served;
pub mod twin;

use kith_database::{
    BeginTerm, Database, GraphIdentity, MysqlDatabase, MysqlOptions, MysqlTarget, SqliteDatabase,
    SqliteOptions, testing::MariaDb,
};
use kith_live::{
    Association, Batch, BatchPart, Change, Data, Effect, ListKey, LoggedChange, Object, RowWrite, TypeId,
};
use kith_types::{LogPoint, PartitionCount, PartitionId, Term};
use served::ServedDatabase;
use std::{future::Future, sync::Arc};
use twin::Twin;

/// The partition that most tests write to.
pub const P: PartitionId = PartitionId(2);
/// Another partition.
pub const Q: PartitionId = PartitionId(1);

/// A graph of four partitions, whose identity has its highest bit set.
pub fn identity() -> GraphIdentity {
    GraphIdentity {
        graph: 0xfeed_0000_0000_0001,
        partitions: PartitionCount::new(4).expect("the count is valid"),
    }
}

/// Runs a test against each implementation. The last MySQL database sends its statements one by one.
pub async fn each<F: Future<Output = ()>>(claim: impl Fn(Arc<dyn Database>) -> F) {
    eprintln!("the twin");
    claim(Arc::new(Twin::new(identity()))).await;
    eprintln!("SQLite");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("graph.sqlite");
    let created = SqliteDatabase::create(&file, identity(), SqliteOptions::default());
    claim(Arc::new(created.expect("a new file"))).await;
    eprintln!("a database process");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let served = ServedDatabase::start(folder.path()).await;
    claim(Arc::new(served.create().await)).await;
    served.end().await;
    let server = MariaDb::shared().await;
    for statements_together in [true, false] {
        eprintln!("MariaDB, statements together: {statements_together}");
        let options = MysqlOptions { statements_together, ..MysqlOptions::default() };
        claim(Arc::new(on(&server, options).await)).await;
    }
}

/// Creates a graph in a new database on a server.
pub async fn on(server: &MariaDb, options: MysqlOptions) -> MysqlDatabase {
    let target = target(&server.address(&server.database().await));
    MysqlDatabase::create(target, identity(), options).await.expect("an empty database")
}

pub fn target(address: &str) -> MysqlTarget {
    MysqlTarget::parse(address, None).expect("the address is valid")
}

/// Begins a term of a partition as its first leader.
pub async fn lead(database: &dyn Database, partition: PartitionId, term: u64) -> LogPoint {
    let request = BeginTerm { partition, term: Term(term), leader: term };
    database.begin_term(request).await.expect("the term is the latest one")
}

pub fn object(id: u64, text: &str) -> Object {
    let data = Data { schema: 3, bytes: text.as_bytes().into() };
    Object { id, kind: TypeId(7), stamp: LogPoint::new(1, 2), data }
}

pub fn list(id1: u64) -> ListKey {
    ListKey { id1, kind: TypeId(5) }
}

pub fn association(id2: u64, time: u64) -> Association {
    let data = Data { schema: 0, bytes: id2.to_le_bytes().into() };
    Association { id2, time, stamp: LogPoint::new(u64::MAX, 0), data }
}

/// A change with these rows. Its record lists the objects and associations that the rows put.
pub fn change(rows: Vec<RowWrite>) -> LoggedChange {
    let effect = |row: &RowWrite| match row {
        RowWrite::PutObject(object) => Some(Effect::Object(object.clone())),
        RowWrite::DeleteObject(id) => Some(Effect::NoObject(*id)),
        RowWrite::PutAssociation(list, it) => {
            Some(Effect::Association { list: *list, now: it.clone(), was: None, count: 1 })
        }
        _ => None,
    };
    let effects = rows.iter().filter_map(effect).collect();
    LoggedChange { change: Change { effects }, rows }
}

pub fn part(partition: PartitionId, expected: LogPoint, changes: Vec<LoggedChange>) -> BatchPart {
    BatchPart { partition, expected, changes }
}

/// A batch of one partition with one change.
pub fn batch(partition: PartitionId, expected: LogPoint, rows: Vec<RowWrite>) -> Batch {
    Batch { parts: vec![part(partition, expected, vec![change(rows)])], requires: Vec::new() }
}

/// Commits one change, and returns the new end of the log.
pub async fn write(
    database: &dyn Database,
    partition: PartitionId,
    expected: LogPoint,
    rows: Vec<RowWrite>,
) -> LogPoint {
    database.commit(batch(partition, expected, rows)).await.expect("nobody else writes");
    LogPoint { position: expected.position.next(), ..expected }
}
