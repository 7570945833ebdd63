//! The part of the contract about databases that are removed or replaced while they are open.

use crate::support::{P, Q, identity, lead, served::ServedDatabase, target, write};
use kith_database::testing::MariaDb;
use kith_database::{
    BeginTerm, CommitError, Database, DatabaseError, GraphIdentity, MysqlDatabase, MysqlOptions,
    SqliteDatabase, SqliteOptions,
};
use kith_types::{ErrorCode, Term};
use std::{fs, path::Path};

fn other_graph() -> GraphIdentity {
    GraphIdentity { graph: 7, ..identity() }
}

/// Returns the errors of the two calls that leaders and followers repeat regularly.
async fn reported(database: &dyn Database) -> [DatabaseError; 2] {
    let points = database.points(vec![P]).await.expect_err("the graph is gone");
    let begin = BeginTerm { partition: Q, term: Term(9), leader: 9 };
    match database.begin_term(begin).await.expect_err("the graph is gone") {
        CommitError::NotWritten(error) => [points, error],
        other => panic!("{other}"),
    }
}

/// Asserts that the open database reports the same error as opening it again does, and that the error has this code.
async fn assert_reports(
    database: &dyn Database,
    opened: Result<impl Database, DatabaseError>,
    code: ErrorCode,
) {
    let expected = opened.err().expect("the graph is gone");
    assert_eq!(expected.code(), code);
    assert_eq!(reported(database).await.map(|error| error.code()), [code; 2], "{expected}");
}

fn remove(file: &Path) {
    for end in ["", "-wal", "-shm"] {
        // The other files do not always exist.
        let _ = fs::remove_file(format!("{}{end}", file.display()));
    }
}

/// Tests a database that is open, perhaps in another process, with its graph in `file`.
async fn assert_notices_files(database: &dyn Database, file: &Path) {
    let options = SqliteOptions::default;
    let open = || SqliteDatabase::open(file, identity(), options());
    write(database, P, lead(database, P, 1).await, vec![]).await;
    remove(file);
    assert_reports(database, open(), ErrorCode::DatabaseEmpty).await;
    let other = SqliteDatabase::create(file, other_graph(), options()).expect("the name is free");
    lead(&other, P, 1).await;
    assert_reports(database, open(), ErrorCode::DatabaseOtherGraph).await;
    other.close().await;
    remove(file);
    SqliteDatabase::create(file, identity(), options()).expect("the name is free").close().await;
    // The new file holds the right graph, but writes to the open file would be lost.
    let errors = reported(database).await;
    assert!(errors.iter().all(|error| error.to_string().contains("was replaced while it was open")));
}

#[tokio::test]
async fn a_file_that_is_removed_or_replaced_is_noticed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("graph.sqlite");
    let database = SqliteDatabase::create(&file, identity(), SqliteOptions::default()).expect("a new file");
    assert_notices_files(&database, &file).await;

    let served = ServedDatabase::start(folder.path()).await;
    let database = served.create().await;
    assert_notices_files(&database, &folder.path().join("people.sqlite")).await;
    served.end().await;
}

#[tokio::test]
async fn a_database_on_a_server_that_is_dropped_or_replaced_is_noticed() {
    let server = MariaDb::shared().await;
    for statements_together in [true, false] {
        let options = || MysqlOptions { statements_together, ..MysqlOptions::default() };
        let name = server.database().await;
        let at = || target(&server.address(&name));
        let open = || MysqlDatabase::open(at(), identity(), options());
        let database =
            MysqlDatabase::create(at(), identity(), options()).await.expect("the database is empty");
        write(&database, P, lead(&database, P, 1).await, vec![]).await;

        server.execute(&format!("DROP DATABASE {name}")).await;
        assert_reports(&database, open().await, ErrorCode::DatabaseEmpty).await;
        server.execute(&format!("CREATE DATABASE {name}")).await;
        assert_reports(&database, open().await, ErrorCode::DatabaseEmpty).await;
        let other =
            MysqlDatabase::create(at(), other_graph(), options()).await.expect("the database is empty");
        write(&other, P, lead(&other, P, 1).await, vec![]).await;
        assert_reports(&database, open().await, ErrorCode::DatabaseOtherGraph).await;
        let kept = other.points(vec![Q]).await.expect("the database holds that graph");
        assert_eq!(kept, [kith_types::LogPoint::default()], "no term of the other graph has begun");
    }
}
