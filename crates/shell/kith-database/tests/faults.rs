//! Tests of processes that die, servers that restart, and answers that are lost. Acknowledged commits survive, and an
//! unknown outcome is reported as unknown.

mod support;

use kith_database::testing::MariaDb;
use kith_database::{
    CommitError, Database, DatabaseError, MysqlDatabase, MysqlOptions, SqliteDatabase, SqliteOptions,
};
use kith_live::{RowAnswer, RowQuery, RowWrite};
use kith_types::{ErrorCode, LogPoint};
use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};
use support::{
    P, batch, identity, lead, list, object, on,
    proxy::{Loss, Proxy},
    target, write,
};

/// The environment variable with the file that the child of [`a_killed_process_loses_no_acknowledged_commit`] writes
/// to.
const FILE: &str = "KITH_TEST_DATABASE_FILE";
/// The number of times that the child is killed.
const KILLS: u64 = 5;

/// In the child, writes until the process is killed: change `n` sets an object and a count to `n`.
#[tokio::test]
async fn writes_until_it_is_killed() {
    let Some(file) = std::env::var_os(FILE) else { return };
    let database = SqliteDatabase::open(Path::new(&file), identity(), SqliteOptions::default());
    let database = database.expect("the parent created it");
    let at = database.points(vec![P]).await.expect("the read succeeds")[0];
    let mut end = lead(&database, P, at.term.0 + 1).await;
    loop {
        let next = end.position.0 + 1;
        let rows = vec![RowWrite::PutObject(object(1, &next.to_string())), RowWrite::SetCount(list(1), next)];
        end = write(&database, P, end, rows).await;
        println!("\nacknowledged {next}");
    }
}

#[tokio::test]
async fn a_killed_process_loses_no_acknowledged_commit() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("graph.sqlite");
    let created = SqliteDatabase::create(&file, identity(), SqliteOptions::default());
    created.expect("a new file").close().await;
    let mut last = 0;
    for kill in 1..=KILLS {
        let mut child = Command::new(std::env::current_exe().expect("this test"))
            .args(["writes_until_it_is_killed", "--exact", "--nocapture"])
            .env(FILE, &file)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the child starts");
        let lines = BufReader::new(child.stdout.take().expect("the stream is piped")).lines();
        let mut acknowledged = lines.map_while(Result::ok).filter_map(|line| {
            line.strip_prefix("acknowledged ").and_then(|number| number.parse::<u64>().ok())
        });
        let enough = last + 40 + 7 * kill;
        let seen = acknowledged.find(|number| enough <= *number).expect("the child writes");
        child.kill().expect("the process can be killed");
        last = acknowledged.last().unwrap_or(seen);
        child.wait().expect("the process can be waited for");

        let database = SqliteDatabase::open(&file, identity(), SqliteOptions::default());
        let database = database.expect("the write-ahead log suffices for recovery");
        let found = database.read(P, vec![RowQuery::Object(1), RowQuery::Count(list(1))]).await;
        let found = found.expect("the read succeeds");
        let position = found.at.position.0;
        assert!(last <= position && position <= last + 1, "{last} was acknowledged, {position} is there");
        let expected = object(1, &position.to_string());
        assert_eq!(found.answers, [RowAnswer::Object(Some(expected)), RowAnswer::Count(position)]);
        let log = database.changes(P, LogPoint::default(), usize::MAX).await.expect("the log is complete");
        assert_eq!(log.changes.len() as u64, position);
        database.close().await;
        last = position;
    }
}

#[tokio::test]
async fn a_server_that_dies_loses_no_acknowledged_commit() {
    let mut server = MariaDb::start_to_be_killed().await;
    let database = on(&server, MysqlOptions::default()).await;
    let mut end = lead(&database, P, 1).await;
    for id in 1..=3 {
        end = write(&database, P, end, vec![RowWrite::PutObject(object(id, "here"))]).await;
        server.kill();
        let error = database.commit(batch(P, end, vec![])).await.expect_err("nobody answers");
        assert_eq!(error.code(), ErrorCode::DatabaseUnavailable, "{error}");
        let error = database.read(P, vec![]).await.expect_err("nobody answers");
        assert_eq!(error.code(), ErrorCode::DatabaseUnavailable, "{error}");
        server.restart().await;
        let found = database.read(P, vec![RowQuery::Object(id)]).await.expect("connections are replaced");
        assert_eq!((found.at, found.answers), (end, vec![RowAnswer::Object(Some(object(id, "here")))]));
    }
}

#[tokio::test]
async fn idle_connections_that_the_server_closed_are_replaced() {
    let server = MariaDb::start(&[]).await;
    let database = on(&server, MysqlOptions::default()).await;
    let mut end = lead(&database, P, 1).await;
    database.read(P, vec![]).await.expect("the read succeeds");
    for _ in 0..3 {
        server.end_connections().await;
        end = write(&database, P, end, vec![]).await;
        database.read(P, vec![]).await.expect("the read succeeds");
    }
}

/// Creates a database behind a proxy.
async fn behind_proxy(server: &MariaDb) -> (MysqlDatabase, Proxy) {
    let proxy = Proxy::start(server.port()).await;
    let name = server.database().await;
    let target = target(&format!("mysql://root@127.0.0.1:{}/{name}", proxy.port()));
    let options = MysqlOptions { statement_timeout: Duration::from_secs(60), ..MysqlOptions::default() };
    (MysqlDatabase::create(target, identity(), options).await.expect("an empty database"), proxy)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_change_settles_a_commit_whose_answer_was_lost() {
    let server = MariaDb::shared().await;
    let (database, proxy) = behind_proxy(&server).await;
    let mut end = lead(&database, P, 1).await;
    for (loss, is_written) in [(Loss::Answer, true), (Loss::Request, false), (Loss::Answer, true)] {
        proxy.lose(loss);
        let id = end.position.0 + 1;
        let put = vec![RowWrite::PutObject(object(id, "here"))];
        let unknown = database.commit(batch(P, end, put)).await.expect_err("the connection was lost");
        assert!(matches!(unknown, CommitError::Unknown { .. }), "{loss:?}: {unknown}");
        assert_eq!(unknown.code(), ErrorCode::OutcomeUnknown);
        let settled = database.commit(batch(P, end, vec![])).await;
        let next = LogPoint { position: end.position.next(), ..end };
        if is_written {
            assert_eq!(settled, Err(CommitError::Moved { partition: P, found: next }), "{loss:?}");
        } else {
            assert_eq!(settled, Ok(()), "{loss:?}");
        }
        let found = database.read(P, vec![RowQuery::Object(id)]).await.expect("the read succeeds");
        assert_eq!(found.at, next);
        assert_eq!(found.answers == [RowAnswer::Object(Some(object(id, "here")))], is_written, "{loss:?}");
        end = next;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_whose_take_over_was_not_answered_asks_again() {
    let server = MariaDb::shared().await;
    let (database, proxy) = behind_proxy(&server).await;
    for (term, loss) in [(1, Loss::Answer), (2, Loss::Request)] {
        proxy.lose(loss);
        let request = kith_database::BeginTerm { partition: P, term: kith_types::Term(term), leader: 42 };
        let unknown = database.begin_term(request).await.expect_err("the connection was lost");
        assert!(matches!(unknown, CommitError::Unknown { .. }), "{loss:?}: {unknown}");
        assert_eq!(database.begin_term(request).await, Ok(LogPoint::new(term, 0)), "{loss:?}");
    }
}

#[tokio::test]
async fn a_server_that_stands_still_is_not_waited_for() {
    let server = MariaDb::start(&[]).await;
    // On a busy machine, everything before the pause may take longer than 300 ms. Therefore only the commit has this
    // timeout.
    let options = MysqlOptions {
        statement_timeout: Duration::from_millis(300),
        connect_timeout: Duration::from_secs(60),
        ..MysqlOptions::default()
    };
    let name = server.database().await;
    let target = target(&server.address(&name));
    let patient = MysqlDatabase::create(target.clone(), identity(), MysqlOptions::default()).await;
    let end = lead(&patient.expect("the database is empty"), P, 1).await;
    let database = loop {
        match MysqlDatabase::open(target.clone(), identity(), options.clone()).await {
            Err(DatabaseError::Unavailable { .. }) => {}
            opened => break opened.expect("the graph was created"),
        }
    };
    server.signal("-STOP");
    let error = database.commit(batch(P, end, vec![])).await.expect_err("the server is paused");
    server.signal("-CONT");
    let expected = DatabaseError::Unavailable { reason: "it did not answer within 300ms".to_owned() };
    assert_eq!(error, CommitError::NotWritten(expected));
}

#[tokio::test]
async fn a_database_that_was_replaced_by_an_older_copy_says_so() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name);
    let create = SqliteDatabase::create(&path("graph"), identity(), SqliteOptions::default());
    let database = create.expect("a new file");
    let mut end = lead(&database, P, 1).await;
    for _ in 0..3 {
        end = write(&database, P, end, vec![]).await;
    }
    database.close().await;
    std::fs::copy(path("graph"), path("copy")).expect("the database was closed, so it is one file");
    let open = |name| SqliteDatabase::open(&path(name), identity(), SqliteOptions::default());
    let database = open("graph").expect("the graph was created");
    write(&database, P, end, vec![]).await;
    let lost = write(&database, P, lead(&database, P, 2).await, vec![]).await;
    database.close().await;

    let copy = open("copy").expect("the copy is a database");
    let changes = |after| copy.changes(P, after, usize::MAX);
    assert!(changes(end).await.is_ok());
    let next = LogPoint { position: end.position.next(), ..end };
    assert_eq!(changes(next).await.expect_err("the copy lacks it").code(), ErrorCode::HistoryLost);
    assert_eq!(changes(lost).await.expect_err("the copy lacks it").code(), ErrorCode::HistoryLost);
    // The next leader uses the same positions again, in a new term.
    write(&copy, P, lead(&copy, P, 3).await, vec![]).await;
    assert_eq!(changes(end).await.map(|part| part.changes.len()), Ok(1));
    assert_eq!(changes(next).await.expect_err("the change is another one").code(), ErrorCode::HistoryLost);
    assert_eq!(changes(lost).await.expect_err("the term was lost").code(), ErrorCode::HistoryLost);
}
