//! `kith top` over a real cluster that is read meanwhile: what it tells of nodes, groups and routers, of a node that stands
//! still, and of partial answers.

use crate::support;
use kith_client::{BatchKeys, QueryOptions, RouterClient, Service};
use kith_engine::{KeyType, ValueType};
use serde_json::Value;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};
use support::{
    cluster::{Cluster, signal},
    in_time,
    values::{create, push},
};

const PEOPLE: u64 = 2_000;

fn started(groups: &str) -> Cluster {
    let cluster = Cluster::start(&["--processes", "--nodes", "2", "--groups", groups]);
    create(&cluster, "people", KeyType::Id, ValueType::Text);
    let rows = (0..PEOPLE).map(|key| (key.to_le_bytes().to_vec(), format!("value of {key}").into_bytes()));
    push(&cluster, "people", (KeyType::Id, ValueType::Text), 1, rows);
    cluster
}

/// Reads all people again and again until it is dropped.
struct Load {
    stop: Arc<AtomicBool>,
    reader: Option<JoinHandle<u64>>,
}

impl Load {
    fn start(cluster: &Cluster, options: QueryOptions) -> Self {
        let addr = cluster.ready()["router"].as_str().expect("an address").to_owned();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let reader = thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().expect("a runtime");
            runtime.block_on(async {
                let router = RouterClient::connect(&[addr]).await.expect("the router answers");
                let keys = BatchKeys::Ids((0..PEOPLE).collect());
                let mut reads = 0;
                while !stopped.load(Ordering::Relaxed) {
                    router.multi_get("people", &keys, &options).await.expect("an answer");
                    reads += 1;
                }
                reads
            })
        });
        Self { stop, reader: Some(reader) }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(reader) = self.reader.take() {
            let reads = reader.join();
            assert!(thread::panicking() || reads.is_ok_and(|reads| 0 < reads), "the load read something");
        }
    }
}

fn look(cluster: &Cluster) -> Value {
    let line = cluster.must(&["top", "--once", "--interval", "0.5", "-o", "json"]);
    serde_json::from_str(&line).expect("one line of JSON")
}

/// Looks until `shows`.
fn look_until(cluster: &Cluster, what: &str, shows: impl Fn(&Value) -> bool) -> Value {
    let mut last = Value::Null;
    for () in in_time() {
        last = look(cluster);
        if shows(&last) {
            return last;
        }
    }
    panic!("it never showed {what}: {last}");
}

fn number(view: &Value, pointer: &str) -> f64 {
    view.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("{pointer} of {view}"))
}

fn positive(view: &Value, pointer: &str) -> bool {
    view.pointer(pointer).and_then(Value::as_f64).is_some_and(|number| 0.0 < number)
}

#[test]
fn a_look_tells_of_every_node_group_and_router() {
    let cluster = started("2");
    let idle = look(&cluster);
    assert_eq!((number(&idle, "/cluster/keys_per_second"), &idle["cluster"]["p99_us"]), (0.0, &Value::Null));
    let load = Load::start(&cluster, QueryOptions::default());
    let view = look_until(&cluster, "reads on both groups", |view| {
        positive(view, "/groups/0/keys_per_second") && positive(view, "/groups/1/keys_per_second")
    });
    let fields = |pointer: &str| -> Vec<&String> {
        view.pointer(pointer).and_then(Value::as_object).expect("an object").keys().collect()
    };
    let all = ["cluster", "databases", "groups", "interval_s", "live_graphs", "nodes", "routers"];
    assert_eq!(fields(""), all);
    let rates = fields("/cluster").len();
    assert_eq!((fields("/groups/0").len(), fields("/nodes/0").len()), (rates + 3, rates + 4));
    let nodes = view["nodes"].as_array().expect("a list");
    let places: Vec<_> = nodes.iter().map(|node| (&node["group"], &node["node"], &node["state"])).collect();
    assert_eq!(places.len(), 4);
    assert!(places.iter().all(|row| row.2 == "up"), "{view}");
    // Every number is rounded to a tenth, the sum as well as its parts.
    let rounding = 0.05 * (nodes.len() + 1) as f64 + 1e-6;
    for total in ["requests_per_second", "keys_per_second", "keys_pending", "in_flight"] {
        let sum: f64 = nodes.iter().map(|node| node[total].as_f64().expect("known")).sum();
        let whole = number(&view, &format!("/cluster/{total}"));
        assert!((sum - whole).abs() <= rounding, "{total}: {sum} of {whole}");
    }
    assert!(number(&view, "/cluster/p50_us") <= number(&view, "/cluster/p99_us"));
    // Every key of every query was asked of a node once, hedges aside.
    let (queries, keys) =
        (number(&view, "/routers/0/queries_per_second"), number(&view, "/cluster/keys_per_second"));
    assert!(0.0 < queries && queries * PEOPLE as f64 * 0.2 < keys, "{queries} queries, {keys} keys a second");
    assert_eq!(
        (&view["routers"][0]["state"], number(&view, "/routers/0/partial_per_second")),
        (&"up".into(), 0.0)
    );
    let table = cluster.must(&["top", "--once", "--interval", "0.1"]);
    assert!(table.starts_with("2 groups, 4 of 4 nodes up, 1 router; over 0."), "{table}");
    for heading in ["requests/s", "p99", "pending keys", "hedges/s", "partial/s"] {
        assert!(table.contains(heading), "{heading}: {table}");
    }
    drop(load);
}

#[test]
fn a_node_that_stands_still_and_partial_answers_show() {
    let cluster = started("1");
    let frozen = cluster.node_pids(0)[0];
    let options =
        QueryOptions { partial: true, deadline: Some(Duration::from_millis(200)), ..QueryOptions::default() };
    let load = Load::start(&cluster, options);
    look_until(&cluster, "reads", |view| positive(view, "/cluster/keys_per_second"));
    signal(frozen, "STOP");
    let view = look_until(&cluster, "partial answers and failed requests", |view| {
        positive(view, "/routers/0/partial_per_second") && positive(view, "/groups/0/failed_per_second")
    });
    signal(frozen, "CONT");
    drop(load);
    let states: Vec<&Value> =
        view["nodes"].as_array().expect("a list").iter().map(|node| &node["state"]).collect();
    assert_eq!(states.iter().filter(|state| **state == "down").count(), 1, "{view}");
    assert_eq!(view["groups"][0]["nodes_up"], 1);
    let down = view["nodes"].as_array().expect("a list").iter().find(|node| node["state"] == "down");
    let down = down.expect("one is down");
    assert_eq!((&down["requests_per_second"], &down["p99_us"]), (&Value::Null, &Value::Null));
}

/// A read that its caller gives up is no longer pending: else its nodes would count as loaded for ever.
#[test]
fn what_nobody_waits_for_is_not_pending() {
    let cluster = started("1");
    let addr = cluster.ready()["router"].as_str().expect("an address").to_owned();
    let frozen = cluster.node_pids(0)[0];
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let keys = BatchKeys::Ids((0..PEOPLE).collect());
    let options = QueryOptions::default();
    let router = runtime.block_on(RouterClient::connect(&[addr])).expect("the router answers");
    runtime.block_on(router.multi_get("people", &keys, &options)).expect("all nodes answer");
    // Given up long before the router takes the node for down: from then on it would ask nothing of it.
    signal(frozen, "STOP");
    let given_up = runtime.block_on(async {
        tokio::time::timeout(Duration::from_millis(300), router.multi_get("people", &keys, &options)).await
    });
    assert!(given_up.is_err(), "the read waited for the node that stands still: {given_up:?}");
    look_until(&cluster, "that nothing is pending", |view| number(view, "/cluster/keys_pending") == 0.0);
    signal(frozen, "CONT");
}

#[test]
fn intervals_that_make_no_sense_are_refused() {
    for interval in ["0", "-1", "abc", "1e9"] {
        let output = support::cluster::kith(&["top", "--interval", interval]).output().expect("kith runs");
        assert_eq!(output.status.code(), Some(2), "{interval}");
    }
}
