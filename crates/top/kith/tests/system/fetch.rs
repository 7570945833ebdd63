//! Fetches at a rate: one for all of a node, changed while a push waits for it.

use crate::support::{self, unruly};
use futures::future::join_all;
use kith_client::{BatchKeys, QueryOptions, Service};
use kith_engine::{KeyType, ValueType};
use kith_files::testing::S3;
use kith_session::{Session, SessionSettings};
use kith_topology::Topology;
use kith_wire::v1;
use serde_json::{Value, json};
use std::{
    fs,
    process::{Child, Stdio},
    sync::Arc,
};
use support::{
    cluster::{Cluster, signal},
    streams::connect,
    values,
};
use tokio::{runtime::Runtime, sync::watch};
use unruly::{LATE, Manner, UnrulyProxy};

const ROWS: u64 = 2_000;
const VALUE_BYTES: usize = 400;

/// Each node's `fetch-rate`, after a change if there is one.
fn rates(cluster: &Cluster, change: &[&str]) -> Vec<Value> {
    let output = cluster.must(&[&["cluster", "fetch-rate", "-o", "json"], change].concat());
    let answer: Value = serde_json::from_str(&output).expect("JSON");
    answer["nodes"].as_array().expect("a list").clone()
}

fn waits(node: &Value) -> bool {
    node["waiting"] == 1
}

fn fetched(node: &Value) -> u64 {
    node["bytes_fetched"].as_u64().expect("a number")
}

#[test]
fn a_change_of_the_rate_is_obeyed_by_fetches_that_wait_already() {
    // A version would take a week.
    let mut cluster =
        Cluster::start(&["--groups", "1", "--nodes", "2", "--partitions", "8", "--fetch-rate", "1"]);
    cluster.must(&["store", "create", "people", "--key", "id", "--value", "text"]);
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("rows.csv");
    let lines = (0..ROWS).map(|id| format!("{id},{id} {}\n", "x".repeat(VALUE_BYTES)));
    fs::write(&csv, format!("key,value\n{}", lines.collect::<String>())).unwrap();
    let push = ["store", "push", "people", csv.to_str().unwrap(), "-o", "json"];
    let mut push =
        cluster.kith(&push).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("kith runs");
    cluster.wait_until("both nodes wait", |cluster| rates(cluster, &[]).iter().all(waits));
    for node in rates(&cluster, &[]) {
        assert_eq!((&node["bytes_per_second"], fetched(&node)), (&json!(1), 0), "{node}");
    }

    // One alone goes on, and gets all of its half.
    let changed = rates(&cluster, &["off", "--node", "0"]);
    assert_eq!((changed.len(), &changed[0]["node"]), (1, &json!(0)));
    assert_eq!(changed[0]["bytes_per_second"], Value::Null);
    let half = ROWS * VALUE_BYTES as u64 / 2;
    cluster.wait_until("node 0 has its half", |cluster| {
        let nodes = rates(cluster, &[]);
        half * 9 / 10 < fetched(&nodes[0]) && !waits(&nodes[0])
    });
    let nodes = rates(&cluster, &[]);
    assert_eq!((fetched(&nodes[1]), waits(&nodes[1])), (0, true), "{nodes:?}");
    assert!(push.try_wait().expect("it can be waited for").is_none(), "node 1 has nothing yet");
    assert!(!cluster.kith(&["get", "people", "7"]).output().expect("kith runs").status.success());

    // A rate for all, instead of none and of one byte.
    rates(&cluster, &["1MiB/s"]);
    assert!(push.wait().expect("it ends").success());
    let nodes = rates(&cluster, &[]);
    assert!(nodes.iter().all(|node| node["bytes_per_second"] == 1 << 20 && half * 9 / 10 < fetched(node)));
    assert!(cluster.must(&["get", "people", "7"]).starts_with("7 xxx"));
}

#[test]
fn nothing_of_a_version_beyond_the_quota_is_pulled_whatever_its_pusher_says() {
    let cluster = Cluster::start(&["--groups", "1", "--nodes", "1", "--partitions", "8"]);
    let create = ["store", "create", "people", "--key", "id", "--value", "text", "--quota", "64KiB"];
    cluster.must(&create);
    let row = |id: u64| (id.to_le_bytes().to_vec(), format!("{id} {}", "x".repeat(VALUE_BYTES)).into_bytes());
    let push = |version, rows| {
        let rows = (0..rows).map(row);
        values::try_push(&cluster, "people", (KeyType::Id, ValueType::Text), version, rows)
    };
    push(1, 20).expect("it is small enough");
    let before = fetched(&rates(&cluster, &[])[0]);
    let error = push(2, ROWS).expect_err("it is too large").to_string();
    assert!(error.contains("quota"), "{error}");
    let manifest_bytes = fetched(&rates(&cluster, &[])[0]) - before;
    assert!(manifest_bytes < 64 << 10, "{manifest_bytes}");
    assert!(cluster.must(&["get", "people", "7"]).starts_with("7 xxx"), "the one before serves on");
    // What is served was brought into memory before it was.
    assert!(cluster.metric("kith_node_warmed_bytes_total").is_some_and(|bytes| 20.0 * 400.0 < bytes));
}

/// Reads of so many keys each, through `kith run`.
fn read(cluster: &Cluster, reads: u64, keys: u64) {
    let of = |read: u64| (0..keys).map(|key| json!((read + key) % ROWS)).collect::<Vec<Value>>();
    let reads: Vec<Value> = (0..reads)
        .map(|read| json!({"op": "mget", "store": "people", "keys": of(read), "deadline_ms": 60_000}))
        .collect();
    let (answers, code) = cluster.run(&reads, 1);
    assert_eq!(code, 0, "{}", answers[0]);
}

fn held_back(cluster: &Cluster) -> Option<u64> {
    let status = cluster.must(&["cluster", "status", "-o", "json"]);
    serde_json::from_str::<Value>(&status).expect("JSON")["nodes"][0]["fetch_held_back"].as_u64()
}

/// One node that serves `people`, and a version of `others` in a bucket.
fn ready_to_fetch() -> (Cluster, S3) {
    let server = S3::start();
    let shape =
        ["--groups", "1", "--nodes", "1", "--partitions", "8", "--read-from", "others=s3://bucket/built"];
    let cluster = Cluster::start_in(&shape, &server.settings());
    values::create(&cluster, "people", KeyType::Id, ValueType::Text);
    let row = |id: u64| (id.to_le_bytes().to_vec(), "x".repeat(4_000).into_bytes());
    values::push(&cluster, "people", (KeyType::Id, ValueType::Text), 1, (0..ROWS).map(row));
    cluster.must(&["store", "create", "others", "--key", "id", "--value", "text"]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let csv = folder.path().join("rows.csv");
    let lines = (0..ROWS).map(|id| format!("{id},{}\n", "x".repeat(VALUE_BYTES)));
    fs::write(&csv, format!("key,value\n{}", lines.collect::<String>())).expect("written");
    cluster.must(&[
        "store",
        "build",
        "others",
        csv.to_str().expect("UTF-8"),
        "--out",
        "s3://bucket/built",
        "--version",
        "1",
    ]);
    (cluster, server)
}

/// A push of `others` whose fetch has begun, and goes on when the bucket does.
fn fetch_held(cluster: &mut Cluster, server: &S3) -> Child {
    server.hold_after(100_000);
    let push = ["store", "push", "others", "s3://bucket/built/1"];
    let push = cluster.kith(&push).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("kith runs");
    cluster.wait_until("the fetch is held", |_| server.holds());
    push
}

#[test]
fn fetches_give_way_to_reads() {
    let (mut cluster, server) = ready_to_fetch();
    // What reads take without a fetch: one key each.
    cluster.wait_until("it is known what reads take", |cluster| {
        read(cluster, 600, 1);
        cluster.metric("kith_node_read_p99_steady_seconds").is_some_and(|seconds| 0.0 < seconds)
    });
    assert_eq!(held_back(&cluster), None);
    // A fetch that lasts as long as it has to, beside reads that are slow: of many keys each.
    let mut push = fetch_held(&mut cluster, &server);
    cluster.wait_until("fetches are held back", |cluster| {
        read(cluster, 20, ROWS / 4);
        held_back(cluster).is_some()
    });
    assert!(push.try_wait().expect("it can be waited for").is_none());
    let rate = held_back(&cluster).expect("it is held back");
    assert!(4 << 20 <= rate, "never below the floor: {rate}");
    assert_eq!(rates(&cluster, &[])[0]["held_back"], rate);
    assert!(cluster.must(&["cluster", "status"]).contains("node 0 holds its fetches back to"));
    let counted = |name: &str| cluster.metric(name).is_some_and(|value| 0.0 < value);
    assert!(counted("kith_node_reads_beside_fetch_total") && counted("kith_node_fetch_held_back_total"));
    assert!(counted("kith_node_fetch_held_back_bytes_per_second"));

    server.go_on();
    assert!(push.wait().expect("it ends").success());
    cluster.wait_until("it is over", |cluster| held_back(cluster).is_none());
    assert!(cluster.must(&["get", "others", "7"]).starts_with("xxx"));
}

/// A router of a cluster of one node, as far as reads are concerned, and who stands between the two.
struct Router {
    session: Session,
    unruly: UnrulyProxy,
    _topology: watch::Sender<Arc<Topology>>,
}

impl Router {
    async fn new(cluster: &Cluster) -> Self {
        let router = connect(cluster).await;
        let mut document = router.topology().await.expect("the router knows its topology");
        let unruly = UnrulyProxy::before(document.nodes[0].addr.clone()).await;
        document.nodes[0].addr.clone_from(&unruly.addr);
        let topology = Topology::from_document(Arc::new(document)).expect("it makes sense");
        let (sender, topology) = watch::channel(Arc::new(topology));
        let settings = SessionSettings { tells_waits: true, ..SessionSettings::default() };
        let session = Session::new(topology, settings, Vec::new()).expect("settings that make sense");
        session.warm().await;
        Self { session, unruly, _topology: sender }
    }

    /// So many reads of a key each, all at once.
    async fn read(&self, reads: u64) {
        let options = QueryOptions::default();
        let read = |key: u64| {
            let options = &options;
            async move {
                let keys = BatchKeys::Ids(vec![key % ROWS]);
                self.session.multi_get("people", &keys, options).await.expect("an answer")
            }
        };
        join_all((0..reads).map(read)).await;
    }
}

#[test]
fn fetches_give_way_to_reads_that_are_slow_at_routers_alone() {
    let (mut cluster, server) = ready_to_fetch();
    let runtime = Runtime::new().expect("a runtime");
    let router = runtime.block_on(Router::new(&cluster));
    let at_routers = |cluster: &Cluster, what: &str| {
        cluster.metric(&format!("kith_node_wait_p99_{what}_seconds")).filter(|seconds| 0.0 < *seconds)
    };
    cluster.wait_until("it is known how long routers wait", |cluster| {
        runtime.block_on(router.read(100));
        at_routers(cluster, "steady").is_some()
    });
    assert_eq!(held_back(&cluster), None);

    // The node works on reads as fast as before; the router has to wait for them.
    let mut push = fetch_held(&mut cluster, &server);
    router.unruly.turn(Manner::Slow);
    cluster.wait_until("fetches are held back for routers", |cluster| {
        runtime.block_on(router.read(200));
        let waits = at_routers(cluster, "fetching").is_some_and(|seconds| LATE.as_secs_f64() <= seconds);
        waits && held_back(cluster).is_some()
    });
    assert!(4 << 20 <= held_back(&cluster).expect("it is held back"), "never below the floor");
    let reported_waits =
        |believed: &str| cluster.metric(&format!("kith_node_waits_told_total{{believed=\"{believed}\"}}"));
    assert!(reported_waits("true").is_some_and(|count| 0.0 < count));

    // Nobody is believed who tells of more reads than there were.
    let node = router.session.topology().table.nodes()[0].address.clone();
    let before = reported_waits("false").unwrap_or_default();
    let made_up = v1::PingRequest { waits: vec![u64::MAX], ..Default::default() };
    let transport = router.session.executor().fleet().transport();
    runtime.block_on(transport.ping(&node, made_up)).expect("a ping is answered, whatever it says");
    assert!(reported_waits("false").is_some_and(|after| before < after));

    router.unruly.turn(Manner::Orderly);
    server.go_on();
    assert!(push.wait().expect("it ends").success());
    cluster.wait_until("it is over", |cluster| held_back(cluster).is_none());
}

#[test]
fn a_rate_is_a_rate_and_a_node_a_node() {
    let cluster = Cluster::start(&["--groups", "1", "--nodes", "1"]);
    let refused = |arguments: &[&str]| {
        let all = [&["cluster", "fetch-rate", "-o", "json"], arguments].concat();
        let output = cluster.kith(&all).output().expect("kith runs");
        assert!(!output.status.success(), "{arguments:?}");
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    assert!(refused(&["fast"]).contains("10MiB/s"));
    assert!(refused(&["0"]).contains("more than 0"));
    assert!(refused(&["off", "--node", "9"]).contains("no node 9"));
    assert_eq!(rates(&cluster, &[])[0]["bytes_per_second"], Value::Null);
}

#[test]
fn a_look_at_the_rates_passes_over_a_node_that_is_down_and_a_change_does_not() {
    let cluster = Cluster::start(&["--processes", "--groups", "2", "--nodes", "1"]);
    let pid = cluster.node_pids(1)[0];
    signal(pid, "STOP");
    let looked = rates(&cluster, &[]);
    let changed =
        cluster.kith(&["cluster", "fetch-rate", "1MiB/s", "-o", "json"]).output().expect("kith runs");
    signal(pid, "CONT");
    let errors: Vec<bool> = looked.iter().map(|node| node["error"].is_string()).collect();
    assert_eq!(errors, [false, true], "{looked:?}");
    assert!(!changed.status.success(), "{}", String::from_utf8_lossy(&changed.stdout));
}
