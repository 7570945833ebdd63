//! The databases of live graphs as processes: with `kith dev`, and on their own.

use crate::support;
use kith_database::{
    BeginTerm, Database, DatabaseError, DatabaseProcesses, GraphIdentity, RemoteDatabase, RemoteOptions,
    RemoteTarget,
};
use kith_live::{Batch, BatchPart, LoggedChange};
use kith_net::{frames::Frames, security::Dialer, testing::free_addresses};
use kith_types::{LogPoint, PartitionCount, PartitionId, Term};
use std::{fs, net::TcpStream, process::Stdio, sync::Arc, time::Duration};
use support::cluster::{Cluster, http_get, kith, signal};
use tokio::runtime::Runtime;

const P: PartitionId = PartitionId(1);

const TYPES: &str = "[object.person]\nfields = { name = \"text\" }\n[association.friend]\nsymmetric = true\n";

fn identity() -> GraphIdentity {
    GraphIdentity { graph: 7, partitions: PartitionCount::new(4).expect("it is one") }
}

/// A graph that no node knows, so that this test leads it.
fn graph_at(addr: &str) -> RemoteTarget {
    let addr = addr.to_owned();
    let locate = Arc::new(move |_| Some(addr.clone()));
    let frames = Arc::new(Frames::new(Dialer::default(), true));
    RemoteTarget {
        database: 0,
        graph: "test".to_owned(),
        processes: Arc::new(DatabaseProcesses::new(locate, frames)),
        options: RemoteOptions::default(),
    }
}

async fn lead(database: &RemoteDatabase, term: u64) -> LogPoint {
    let begin = BeginTerm { partition: P, term: Term(term), leader: term };
    database.begin_term(begin).await.expect("it is the latest term")
}

/// Commits so many empty changes.
async fn write(database: &RemoteDatabase, mut end: LogPoint, count: u64) -> LogPoint {
    for _ in 0..count {
        let part = BatchPart { partition: P, expected: end, changes: vec![LoggedChange::default()] };
        database.commit(Batch { parts: vec![part], requires: Vec::new() }).await.expect("nobody else leads");
        end = part_end(end);
    }
    end
}

fn part_end(end: LogPoint) -> LogPoint {
    LogPoint { position: end.position.next(), ..end }
}

fn database_of(cluster: &Cluster) -> (String, u32) {
    let ready = cluster.ready();
    let databases = ready["databases"].as_array().expect("a list");
    assert_eq!((databases.len(), &databases[0]["database"]), (1, &serde_json::json!(0)));
    let pid = databases[0]["pid"].as_u64().expect("a process id");
    (databases[0]["addr"].as_str().expect("an address").to_owned(), pid as u32)
}

/// Creates a live graph by its types.
fn apply(cluster: &Cluster, graph: &str) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let types = folder.path().join("types.toml");
    fs::write(&types, TYPES).expect("written");
    let output = cluster.must(&["schema", "apply", types.to_str().expect("UTF-8"), "--graph", graph]);
    assert!(output.contains("database:0"), "{output}");
}

#[test]
fn a_killed_database_comes_back_where_it_was_with_its_graphs() {
    let shape = ["--processes", "--groups", "1", "--nodes", "2", "--partitions", "4"];
    let mut cluster = Cluster::start(&shape);
    let (addr, pid) = database_of(&cluster);
    apply(&cluster, "people");
    let runtime = Runtime::new().expect("a runtime");
    let database = runtime.block_on(RemoteDatabase::create(graph_at(&addr), identity()));
    let database = database.expect("the name is free");
    let end = runtime.block_on(async { write(&database, lead(&database, 1).await, 20).await });
    signal(pid, "KILL");
    cluster.wait_until("it is back", |cluster| database_of(cluster).1 != pid);
    assert_eq!(database_of(&cluster).0, addr);
    runtime.block_on(async {
        assert_eq!(database.points(vec![P]).await.expect("it can be read"), [end]);
        write(&database, end, 1).await;
    });
    apply(&cluster, "pages");
    let graphs = |name: &str| cluster.data().join(format!("database-000/{name}.sqlite")).exists();
    assert!(["people", "pages", "test"].map(graphs).iter().all(|there| *there));
}

#[test]
fn a_database_in_the_process_of_its_cluster_keeps_its_graphs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = folder.path().join("data");
    let data = data.to_str().expect("UTF-8");
    let shape = ["--groups", "1", "--nodes", "1", "--partitions", "4", "--data", data];
    let runtime = Runtime::new().expect("a runtime");
    let end = {
        let cluster = Cluster::start(&shape);
        let (addr, pid) = database_of(&cluster);
        assert_eq!(pid, cluster.pid());
        let database = runtime.block_on(RemoteDatabase::create(graph_at(&addr), identity()));
        let database = database.expect("the name is free");
        runtime.block_on(async { write(&database, lead(&database, 1).await, 3).await })
    };
    let cluster = Cluster::start(&shape);
    let (addr, _) = database_of(&cluster);
    runtime.block_on(async {
        let database = RemoteDatabase::open(graph_at(&addr), identity()).await.expect("it is there");
        assert_eq!(database.points(vec![P]).await.expect("it can be read"), [end]);
    });
}

#[test]
fn a_database_on_its_own_registers_says_what_it_is_and_ends_in_order() {
    let cluster = Cluster::start(&["--groups", "1", "--nodes", "1", "--partitions", "4"]);
    let metadata = fs::read_to_string(cluster.data().join("metadata-address")).expect("it is written");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = folder.path().join("database-7");
    let free = free_addresses(2);
    let (listen, http) = (free[0].to_string(), free[1].to_string());
    let mut command = kith(&["database", "--id", "7", "--listen", &listen, "--http", &http]);
    command.args(["--metadata", metadata.trim(), "--data", data.to_str().expect("UTF-8")]);
    let mut child = command.stderr(Stdio::null()).spawn().expect("it starts");
    support::wait_until("it serves", || TcpStream::connect(&http).is_ok());
    support::wait_until("it is ready", || http_get(&http, "/readyz").contains("200 OK"));
    assert!(http_get(&http, "/").contains("database 7. It keeps the rows of live graphs."));
    assert!(http_get(&http, "/metrics").contains("kith_server_connections_total"));
    let runtime = Runtime::new().expect("a runtime");
    let database = runtime.block_on(RemoteDatabase::create(graph_at(&listen), identity()));
    let database = database.expect("it serves");
    let end = runtime.block_on(async { write(&database, lead(&database, 1).await, 3).await });
    signal(child.id(), "TERM");
    let mut status = None;
    support::wait_until("it ends", || {
        status = child.try_wait().expect("it can be waited for");
        status.is_some()
    });
    assert!(status.expect("it has ended").success());
    let away = runtime.block_on(database.points(vec![P])).expect_err("it has ended");
    assert!(matches!(away, DatabaseError::Unavailable { .. }), "{away}");
    assert!(!data.join("test.sqlite-wal").exists(), "its files were closed");
    let options = kith_database::SqliteOptions { readers_max: 1, lock_wait: Duration::from_secs(5) };
    let file = kith_database::SqliteDatabase::open(&data.join("test.sqlite"), identity(), options);
    let file = file.expect("it was closed");
    assert_eq!(runtime.block_on(file.points(vec![P])).expect("it can be read"), [end]);
}
