//! The share of a cluster that one caller may take: bounds of a query, read quotas that are changed while they hold, overload, and nodes that
//! leave while they are read.

mod quotas;

use crate::support;
use kith_client::{TransportKind, security::Dialer};
use kith_operators::Operator;
use kith_query::convert::operator_to_wire;
use kith_schema::EdgeSelector;
use kith_types::Direction;
use kith_wire::v1;
use serde_json::{Value, json};
use std::fs;
use support::{
    cluster::{Cluster, is_alive, run_lines, signal, text},
    values::create,
    words::{WORDS, judge, mget, push_version},
};

const PEOPLE: u64 = 2_000;

/// A cluster with a store of texts by id, `people`.
fn started(arguments: &[&str]) -> Cluster {
    let cluster = Cluster::start(arguments);
    create(&cluster, "people", WORDS.0, WORDS.1);
    push_version(&cluster, "people", PEOPLE, 1);
    cluster
}

/// As [`started`], with a router of these settings.
fn configured(settings: &str) -> (Cluster, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("router.toml");
    fs::write(&file, settings).expect("written");
    let cluster = started(&["--nodes", "2", "--config", file.to_str().expect("UTF-8")]);
    (cluster, folder)
}

fn ids(count: u64) -> Value {
    mget("people", 0..count)
}

fn code(answer: &Value) -> &str {
    answer["error"]["code"].as_str().unwrap_or_else(|| panic!("an error was expected: {answer}"))
}

fn refused(cluster: &Cluster, reason: &str) -> f64 {
    let name = format!("kith_router_refused_total{{store=\"people\",reason=\"{reason}\"}}");
    cluster.metric(&name).unwrap_or_default()
}

#[test]
fn a_read_is_bounded_in_keys_and_bytes_before_anything_is_asked() {
    let (cluster, _folder) = configured("[session]\nkeys-max = 100\nanswer-bytes-max = 2000\n");
    let (answers, _) = cluster.run(&[ids(101), ids(100), ids(10)], 1);
    assert_eq!(code(&answers[0]), "out_of_range");
    let message = &answers[0]["error"]["message"];
    assert_eq!(message, "the number of keys is 101, but must be at most 100");
    assert_eq!(code(&answers[1]), "too_large");
    judge(&ids(10), &answers[2]).unwrap();
    assert_eq!((refused(&cluster, "batch_too_large"), refused(&cluster, "answer_too_large")), (1.0, 1.0));
    let read = cluster.metric("kith_router_read_keys_total{store=\"people\"}");
    assert_eq!(read, Some(110.0), "nothing of the first was read");
}

#[test]
fn bounds_that_bound_nothing_are_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("router.toml");
    for (settings, expected) in [
        ("[session]\nkeys-max = 0\n", "keys-max"),
        ("[session]\nkeys-max = 1000001\n", "1000000"),
        ("[admission]\nqueries-max = 0\n", "queries-max"),
        ("[admission]\nqueries = 1\n", "queries-max"),
    ] {
        fs::write(&file, settings).expect("written");
        let dev = support::cluster::dev(&["--config", file.to_str().expect("UTF-8")]).output();
        let dev = dev.expect("kith runs");
        assert!(!dev.status.success() && text(&dev).contains(expected), "{settings}: {}", text(&dev));
    }
}

#[test]
fn no_keys_are_an_empty_answer_and_repeats_are_answered_each() {
    let cluster = started(&["--nodes", "2"]);
    let repeated = mget("people", [7, 7, PEOPLE, 7].into_iter());
    let (answers, status) = cluster.run(&[ids(0), repeated], 1);
    assert_eq!((answers[0]["results"].as_array().map(Vec::len), status), (Some(0), 0));
    let results = answers[1]["results"].as_array().expect("a list");
    let states: Vec<&str> = results.iter().map(|result| result["state"].as_str().expect("text")).collect();
    assert_eq!(states, ["FOUND", "FOUND", "ABSENT", "FOUND"]);
    assert_eq!(results[0], results[3]);
    let read = cluster.metric("kith_router_read_keys_total{store=\"people\"}");
    assert_eq!(read, Some(4.0), "each of them counts");
}

#[test]
fn what_a_store_keeps_and_takes_is_changed_while_it_serves() {
    let cluster = started(&["--nodes", "1", "--groups", "1"]);
    for version in 2..5 {
        push_version(&cluster, "people", PEOPLE, version);
    }
    let asked = |arguments: &[&str]| -> Value {
        let arguments = [&["store"], arguments, &["-o", "json"]].concat();
        serde_json::from_str(&cluster.must(&arguments)).expect("JSON")
    };
    let refused = |arguments: &[&str], expected: &str| {
        let output = cluster.kith(arguments).output().expect("kith runs");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && stderr.contains(expected), "{arguments:?}: {stderr}");
    };
    let kept = || asked(&["versions", "people"]).as_array().expect("a list").len();
    assert_eq!(kept(), 3, "two beside the current one");
    let guards = ["--records-min", "9999999", "--drop-max", "10", "--owner", "nobody-here"];
    let altered = asked(&[&["alter", "people", "--retain", "1", "--quota", "1GiB"][..], &guards].concat());
    assert_eq!((&altered["retain"], &altered["quota_bytes"]), (&json!(1), &json!(1_u64 << 30)), "{altered}");
    assert_eq!((&altered["owner"], &altered["records_min"]), (&json!("nobody-here"), &json!(9_999_999)));
    assert_eq!(kept(), 2);
    judge(&ids(5), &cluster.run(&[ids(5)], 1).0[0]).expect("it goes on serving");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let rows = folder.path().join("rows.jsonl");
    fs::write(&rows, "{\"key\":1,\"value\":\"eA==\"}\n").expect("written");
    let push = ["store", "push", "people", rows.to_str().expect("UTF-8")];
    refused(&push, "store_owner");
    asked(&["alter", "people", "--owner", "off"]);
    refused(&push, "too_few_records");
    asked(&["alter", "people", "--records-min", "0"]);
    refused(&push, "records_dropped");
    let altered = asked(&["alter", "people", "--drop-max", "off", "--quota", "off"]);
    assert!(altered.get("quota_bytes").is_none_or(Value::is_null), "{altered}");
    cluster.must(&push);
    refused(&["store", "alter", "people", "--retain", "101"], "keep at most 100");
    refused(&["store", "alter", "people"], "required");
}

#[test]
fn a_router_that_is_full_says_so_at_once() {
    let (cluster, _folder) = configured("[admission]\nqueries-max = 1\n");
    // Many large reads at a time: while one is under way, the others are turned away.
    let reads = vec![ids(PEOPLE); 200];
    let (answers, _) = cluster.run(&reads, 32);
    let turned_away = answers.iter().filter(|answer| answer.get("error").is_some());
    let turned_away: Vec<&str> = turned_away.map(code).collect();
    assert!(turned_away.iter().all(|code| *code == "overloaded"), "{turned_away:?}");
    assert!(!turned_away.is_empty() && turned_away.len() < reads.len());
    assert_eq!(refused(&cluster, "overloaded"), turned_away.len() as f64);
}

/// How a request to the cluster's node ends, in frames and over gRPC: with the code of an error, or `OK`.
fn evaluated(cluster: &Cluster, request: v1::EvaluateRequest) -> String {
    let node = cluster.ready()["nodes"][0]["addr"].as_str().expect("an address").to_owned();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let code = |kind: TransportKind| {
        let transport = kind.build(&Dialer::default());
        match runtime.block_on(async { transport.evaluate(&node, request.clone()).await }) {
            Ok(_) => "OK".to_owned(),
            Err(status) => {
                assert!(status.message().len() <= 1_024, "{} bytes", status.message().len());
                let detail = kith_wire::detail_of(&status);
                assert!(!detail.help.is_empty() && detail.help.len() <= 1_024, "{status:?}");
                detail.code
            }
        }
    };
    let codes = [TransportKind::Framed, TransportKind::Grpc].map(code);
    assert_eq!(codes[0], codes[1]);
    codes[0].clone()
}

#[test]
fn what_a_node_does_for_a_request_is_bounded_by_what_there_is_not_by_what_it_repeats() {
    let cluster = started(&["--nodes", "1"]);
    let edges = support::root().join("testdata/kith-village/edges.csv.gz");
    cluster.must(&["load", "graph", edges.to_str().expect("UTF-8"), "--graph", "village"]);
    let described: Value =
        serde_json::from_str(&cluster.must(&["store", "describe", "village", "-o", "json"])).expect("JSON");
    let version = described["version"].as_u64().expect("a version");
    let edge = EdgeSelector { kind: "connection".into(), direction: Direction::Both, filter: None };
    let expand = Box::new(Operator::Expand { input: Box::new(Operator::Keys), edge, longest: u64::MAX });
    let ask = |plan: &Operator, keys: Vec<u64>, partitions: Vec<u32>| {
        let plan = Some(operator_to_wire(plan));
        let graph = "village".to_owned();
        let request =
            v1::EvaluateRequest { name: graph, version, keys, partitions, plan, ..Default::default() };
        evaluated(&cluster, request)
    };
    assert_eq!(ask(&Operator::ALL_MEMBERS, vec![], vec![0, 1]), "OK");
    assert_eq!(ask(&expand, vec![9043, 1005], vec![]), "OK");
    assert_eq!(ask(&Operator::ALL_MEMBERS, vec![], vec![0, 1, 0]), "bad_request");
    assert_eq!(ask(&Operator::ALL_MEMBERS, vec![], vec![0; 100_000]), "bad_request");
    assert_eq!(ask(&Operator::ALL_MEMBERS, vec![], vec![1_000_000]), "bad_request");
    for plan in [*expand.clone(), Operator::Tally(expand.clone()), Operator::Union(expand.clone())] {
        assert_eq!(ask(&plan, vec![9043; 1_000], vec![]), "bad_request");
    }
    assert_eq!(ask(&Operator::Intersect(vec![Operator::Keys; 1_000]), vec![1], vec![]), "bad_request");
    let read = |keys: Vec<u64>, partitions: Vec<u32>| {
        let plan = Some(operator_to_wire(&Operator::Lookup));
        let graph = "people".to_owned();
        let request =
            v1::EvaluateRequest { name: graph, version: 1, keys, partitions, plan, ..Default::default() };
        evaluated(&cluster, request)
    };
    assert_eq!(read(vec![7; 1_000], vec![]), "OK", "keys of values may be repeated");
    assert_eq!(read(vec![PEOPLE; 1_000_001], vec![]), "bad_request");
    assert_eq!(read(vec![7], vec![0]), "bad_request");
    let stranger = v1::EvaluateRequest {
        name: "ü".repeat(1 << 20),
        version: 1,
        plan: Some(operator_to_wire(&Operator::Lookup)),
        ..Default::default()
    };
    assert_eq!(evaluated(&cluster, stranger), "version_unavailable");
}

#[test]
fn a_node_that_is_asked_to_end_leaves_without_a_failed_read() {
    let mut cluster = started(&["--processes", "--nodes", "2", "--groups", "2"]);
    let leaving = cluster.node_pids(0)[0];
    let reads: Vec<Value> = (0..2_000).map(|at| mget("people", (0..50).map(|key| at % 40 + key))).collect();
    let (answers, status) = cluster.run_and_then(&reads, 8, 200, || signal(leaving, "TERM"));
    assert_eq!(status, 0);
    for (read, answer) in reads.iter().zip(&answers) {
        judge(read, answer).unwrap();
    }
    // It ended, and by itself: whoever looks after it starts it again under another id.
    cluster.wait_until("the node has left", |_| !is_alive(leaving));
    cluster.wait_until("it is back", |cluster| !cluster.node_pids(0).contains(&leaving));
    let log = fs::read_to_string(cluster.data().join("node-000.log")).expect("its log");
    assert!(log.contains("node leaves"), "{log}");
}

#[test]
fn a_router_that_is_asked_to_end_answers_what_it_has() {
    let cluster = started(&["--processes", "--nodes", "2", "--routers", "2"]);
    let ready = cluster.ready();
    let pid = ready["routers"][0]["pid"].as_u64().expect("a pid") as u32;
    let reads: Vec<Value> = (0..400).map(|_| ids(200)).collect();
    let command = cluster.kith(&["run", "--input", "-", "--concurrency", "4"]);
    let (answers, status) = run_lines(command, &reads, 40, || signal(pid, "TERM"));
    assert_eq!(status, 0);
    for (read, answer) in reads.iter().zip(&answers) {
        judge(read, answer).unwrap();
    }
}
