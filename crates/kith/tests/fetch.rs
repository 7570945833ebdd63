//! Fetches at a rate: one for all of a node, changed while a push waits for it.

mod support;

use kith_engine::{KeyType, ValueType};
use serde_json::{Value, json};
use std::{fs, process::Stdio};
use support::{cluster::Cluster, values};

const ROWS: u64 = 2_000;
const VALUE_BYTES: usize = 400;

/// Each node's `fetch-rate`, after a change if there is one.
fn rates(cluster: &Cluster, change: &[&str]) -> Vec<Value> {
    let told = cluster.must(&[&["cluster", "fetch-rate", "-o", "json"], change].concat());
    let told: Value = serde_json::from_str(&told).expect("JSON");
    told["nodes"].as_array().expect("a list").clone()
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
    assert!(refused(&["0"]).contains("nothing would ever come"));
    assert!(refused(&["off", "--node", "9"]).contains("no node 9"));
    assert_eq!(rates(&cluster, &[])[0]["bytes_per_second"], Value::Null);
}
