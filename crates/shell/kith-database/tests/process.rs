//! Tests of databases in another process. The process dies, moves, stalls or is missing, and callers learn the outcome
//! of their commits.

mod support;

use kith_database::{
    BeginTerm, CommitError, Database, DatabaseError, GraphIdentity, RemoteDatabase, RemoteOptions,
    RemoteTarget,
};
use kith_live::{RowAnswer, RowQuery, RowWrite};
use kith_types::{LogPoint, Term};
use kith_wire::frame::{PREFACE_BYTES, Preface};
use std::{
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering},
    },
    time::Duration,
};
use support::{
    P, batch, identity, lead, object,
    served::{ServedDatabase, frames, target, target_at},
    write,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// The environment variable with the folder that the child of [`a_killed_process_loses_no_acknowledged_commit`] serves.
const FOLDER: &str = "KITH_TEST_DATABASE_FOLDER";
/// The environment variable with the port of the child; 0 means any free port.
const PORT: &str = "KITH_TEST_DATABASE_PORT";
/// The number of times that the child is killed.
const KILLS: u64 = 5;
/// The time that the process may take to come back.
const TIMEOUT: Duration = Duration::from_secs(60);

/// In the child, serves until the process is killed.
#[tokio::test(flavor = "multi_thread")]
async fn serves_until_it_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let port = std::env::var(PORT).expect("the variable is set").parse().expect("a port");
    let served = ServedDatabase::start_at(Path::new(&folder), SocketAddr::from(([127, 0, 0, 1], port))).await;
    println!("\nserves at {}", served.addr.port());
    std::future::pending::<()>().await;
}

/// Starts a process that serves the graphs of `folder`. Returns the process and its port.
fn serve(folder: &Path, port: u16) -> (Child, u16) {
    let mut child = Command::new(std::env::current_exe().expect("this test"))
        .args(["serves_until_it_is_killed", "--exact", "--nocapture"])
        .env(FOLDER, folder)
        .env(PORT, port.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the child starts");
    let lines = BufReader::new(child.stdout.take().expect("the stream is piped")).lines();
    let mut ports = lines
        .map_while(Result::ok)
        .filter_map(|line| line.strip_prefix("serves at ").and_then(|number| number.parse().ok()));
    let port = ports.next().expect("the child serves");
    (child, port)
}

/// Writes an empty change at `end` to find out whether an earlier commit there was written. Returns whether it was, and
/// the end of the log.
async fn settle(database: &RemoteDatabase, end: LogPoint) -> (bool, LogPoint) {
    let settled = async {
        loop {
            match database.commit(batch(P, end, vec![])).await {
                Ok(()) => return (false, LogPoint { position: end.position.next(), ..end }),
                // The write may be an earlier empty change of this function, whose answer was lost.
                Err(CommitError::Moved { found, .. }) => return (true, found),
                Err(CommitError::Unknown { .. } | CommitError::NotWritten(_)) => {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                Err(error) => panic!("nobody else leads: {error}"),
            }
        }
    };
    tokio::time::timeout(TIMEOUT, settled).await.expect("the process is back")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_process_loses_no_acknowledged_commit() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (mut child, port) = serve(folder.path(), 0);
    let database = RemoteDatabase::create(target(port), identity()).await.expect("a new file");
    let mut end = lead(&database, P, 1).await;
    let mut unknown = 0;
    let mut written = Vec::new();
    for kill in 1..=KILLS {
        let pid = child.id();
        let killer = tokio::task::spawn_blocking(move || {
            std::thread::sleep(Duration::from_millis(40 + 13 * kill));
            child.kill().expect("the process can be killed");
            child.wait().expect("the process can be waited for");
        });
        let failed = loop {
            let id = end.position.0 + 1;
            match database.commit(batch(P, end, vec![RowWrite::PutObject(object(id, "here"))])).await {
                Ok(()) => {
                    written.push(id);
                    end = LogPoint { position: end.position.next(), ..end };
                }
                Err(error) => break error,
            }
        };
        killer.await.expect("the task does not panic");
        (child, _) = serve(folder.path(), port);
        assert_ne!(child.id(), pid);
        match failed {
            CommitError::Unknown { .. } => {
                unknown += 1;
                let id = end.position.0 + 1;
                let (is_written, now) = settle(&database, end).await;
                end = now;
                let found = database.read(P, vec![RowQuery::Object(id)]).await.expect("the read succeeds");
                assert_eq!(found.at, end);
                assert_eq!(found.answers == [RowAnswer::Object(Some(object(id, "here")))], is_written);
                written.extend(is_written.then_some(id));
            }
            CommitError::NotWritten(DatabaseError::Unavailable { .. }) => {
                assert!(!settle(&database, end).await.0, "no connection was opened");
                end = LogPoint { position: end.position.next(), ..end };
            }
            other => panic!("the process was killed: {other}"),
        }
    }
    let queries = written.iter().copied().map(RowQuery::Object).collect();
    let found = database.read(P, queries).await.expect("the read succeeds");
    let expected = written.iter().map(|id| RowAnswer::Object(Some(object(*id, "here"))));
    assert_eq!(found.answers, expected.collect::<Vec<_>>());
    assert!(0 < unknown, "commits were under way");
    child.kill().expect("the process can be killed");
    child.wait().expect("the process can be waited for");
}

#[tokio::test]
async fn without_a_connection_nothing_is_written() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let served = ServedDatabase::start(folder.path()).await;
    let port = Arc::new(AtomicU16::new(served.addr.port()));
    let frames = frames();
    let target = target_at(Arc::clone(&port), Arc::clone(&frames));
    let database = RemoteDatabase::create(target, identity()).await.expect("a new file");
    let end = lead(&database, P, 1).await;
    served.end().await;
    let noticed = async {
        while frames.take_cut().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, noticed).await.expect("the connection is lost");
    let not_there = || async {
        let commit = database.commit(batch(P, end, vec![])).await.expect_err("nobody listens");
        assert!(matches!(commit, CommitError::NotWritten(DatabaseError::Unavailable { .. })), "{commit}");
        let begin = BeginTerm { partition: P, term: Term(2), leader: 2 };
        let begin = database.begin_term(begin).await.expect_err("nobody listens");
        assert!(matches!(begin, CommitError::NotWritten(DatabaseError::Unavailable { .. })), "{begin}");
        let read = database.read(P, vec![]).await.expect_err("nobody listens");
        assert!(matches!(read, DatabaseError::Unavailable { .. }), "{read}");
    };
    not_there().await;
    port.store(0, Ordering::Relaxed);
    not_there().await;

    let moved = ServedDatabase::start(folder.path()).await;
    port.store(moved.addr.port(), Ordering::Relaxed);
    write(&database, P, end, vec![]).await;
    assert_eq!(frames.addresses(), 1, "the connection to the previous address was released");
    database.close().await;
    let closed = database.commit(batch(P, end, vec![])).await.expect_err("the database was closed");
    assert!(matches!(closed, CommitError::NotWritten(DatabaseError::Unavailable { .. })), "{closed}");
    moved.end().await;
}

/// Accepts a connection as a database process does, and waits for the beginning of a request.
async fn request_at(listener: &TcpListener) -> TcpStream {
    let (mut stream, _) = listener.accept().await.expect("the client connects");
    let mut preface = [0; PREFACE_BYTES];
    stream.read_exact(&mut preface).await.expect("the client sends its preface");
    stream.write_all(&Preface::OWN.encode()).await.expect("the connection is open");
    stream.read_u8().await.expect("the client sends a request");
    stream
}

#[tokio::test]
async fn a_connection_that_ends_before_the_reply_leaves_a_commit_unknown() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let served = ServedDatabase::start(folder.path()).await;
    let port = Arc::new(AtomicU16::new(served.addr.port()));
    let short = RemoteOptions { timeout: Duration::from_millis(300), ..RemoteOptions::default() };
    let target = RemoteTarget { options: short, ..target_at(Arc::clone(&port), frames()) };
    let database = RemoteDatabase::create(target, identity()).await.expect("a new file");
    let end = lead(&database, P, 1).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    port.store(listener.local_addr().expect("an address").port(), Ordering::Relaxed);

    let cut = async { drop(request_at(&listener).await) };
    let (lost, ()) = tokio::join!(database.commit(batch(P, end, vec![])), cut);
    assert!(matches!(lost, Err(CommitError::Unknown { .. })), "{lost:?}");

    let (late, _silent) = tokio::join!(database.commit(batch(P, end, vec![])), request_at(&listener));
    assert!(matches!(late, Err(CommitError::Unknown { .. })), "{late:?}");

    // No request is sent to a peer that does not answer the preface.
    let mute = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    port.store(mute.local_addr().expect("an address").port(), Ordering::Relaxed);
    let (unsent, _silent) = tokio::join!(database.commit(batch(P, end, vec![])), mute.accept());
    let is_unsent = matches!(unsent, Err(CommitError::NotWritten(DatabaseError::Unavailable { .. })));
    assert!(is_unsent, "{unsent:?}");

    port.store(served.addr.port(), Ordering::Relaxed);
    write(&database, P, end, vec![]).await;
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_ends_in_order_finishes_transactions() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let served = ServedDatabase::start(folder.path()).await;
    let database = Arc::new(served.create().await);
    let first = lead(&*database, P, 1).await;
    let writer = Arc::clone(&database);
    let writes = tokio::spawn(async move {
        let mut end = first;
        loop {
            match writer.commit(batch(P, end, vec![])).await {
                Ok(()) => end = LogPoint { position: end.position.next(), ..end },
                Err(error) => return (end, error),
            }
        }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    served.end().await;
    let (end, _) = writes.await.expect("the task does not panic");
    let again = ServedDatabase::start(folder.path()).await;
    let opened = RemoteDatabase::open(target(again.addr.port()), identity()).await.expect("the graph exists");
    let found = opened.points(vec![P]).await.expect("the read succeeds")[0];
    assert!(
        found == end || found == LogPoint { position: end.position.next(), ..end },
        "{found} after {end}"
    );
    again.end().await;
}

#[tokio::test]
async fn a_graph_is_opened_and_removed_by_its_name_and_identity() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let served = ServedDatabase::start(folder.path()).await;
    let here = || target(served.addr.port());
    let other = GraphIdentity { graph: 7, ..identity() };
    let absent = RemoteDatabase::open(here(), identity()).await.err();
    assert!(matches!(absent, Some(DatabaseError::NoGraph { .. })), "{absent:?}");
    served.create().await;
    served.create().await;
    assert!(RemoteDatabase::open(here(), identity()).await.is_ok());
    let refused = Some(DatabaseError::OtherGraph { found: identity().graph, expected: 7 });
    assert_eq!(RemoteDatabase::open(here(), other).await.err(), refused);
    assert_eq!(RemoteDatabase::remove(here(), other).await.err(), refused);
    RemoteDatabase::remove(here(), identity()).await.expect("the identity matches");
    RemoteDatabase::remove(here(), identity()).await.expect("removing it again succeeds");
    RemoteDatabase::create(here(), other).await.expect("the name is free");
    let named = RemoteTarget { graph: "../people".to_owned(), ..here() };
    let refused = RemoteDatabase::create(named, identity()).await.err();
    assert!(matches!(refused, Some(DatabaseError::Invalid { .. })), "{refused:?}");
    served.end().await;
}
