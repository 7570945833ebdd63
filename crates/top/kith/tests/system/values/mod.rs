//! Values by key against a real cluster: contract, transports, nodes that die, bytes that flip, versions that change.

mod damage;
mod slices;

use crate::support;
use kith_engine::{KeyType, ValueType};
use serde_json::{Value, json};
use std::{collections::BTreeSet, fs, io::Write, process::Stdio};
use support::{
    cluster::{Cluster, signal, text},
    values::{create, push},
};

const WORDS: (KeyType, ValueType) = (KeyType::String, ValueType::Text);
const PEOPLE: u64 = 10_000;

fn word(key: u64) -> String {
    format!("member {key}")
}

fn value(key: u64, version: u64) -> String {
    if key == 7 { String::new() } else { format!("value {key} of version {version}, {}", "x".repeat(100)) }
}

/// A store of texts by text.
fn push_words(cluster: &Cluster, version: u64) {
    let rows = (0..PEOPLE).map(|key| (word(key).into_bytes(), value(key, version).into_bytes()));
    push(cluster, "words", WORDS, version, rows);
}

fn started(arguments: &[&str]) -> Cluster {
    let cluster = Cluster::start(arguments);
    create(&cluster, "words", WORDS.0, WORDS.1);
    push_words(&cluster, 1);
    cluster
}

/// Each of `keys` in order, checked against what version `version` holds.
fn assert_words(answer: &Value, keys: impl Iterator<Item = u64>, version: u64) {
    let results = answer["results"].as_array().unwrap_or_else(|| panic!("{answer}"));
    let mut count = 0;
    for (key, result) in keys.zip(results) {
        let expected = match key < PEOPLE {
            true => json!({"key": word(key), "state": "FOUND", "value": value(key, version)}),
            false => json!({"key": word(key), "state": "ABSENT", "value": null}),
        };
        assert_eq!(result, &expected);
        count += 1;
    }
    assert_eq!(results.len(), count);
    assert_eq!(answer["footer"]["versions"], json!([version]));
}

fn mget(keys: impl Iterator<Item = u64>) -> Value {
    json!({"op": "mget", "store": "words", "keys": keys.map(word).collect::<Vec<_>>()})
}

/// The answers to lines of `kith run` with more arguments.
fn run_with(cluster: &Cluster, arguments: &[&str], requests: &[Value]) -> Vec<Value> {
    let mut command = cluster.kith(&["run", "--input", "-"]);
    command.args(arguments);
    support::cluster::run_lines(command, requests, usize::MAX, || ()).0
}

/// The only line that a request is answered with.
fn one(cluster: &Cluster, request: Value) -> Value {
    cluster.run(&[request], 1).0.remove(0)
}

fn mget_lines(cluster: &Cluster, arguments: &[&str], keys: &str) -> (Vec<Value>, Option<i32>) {
    let mut command = cluster.kith(&["mget"]);
    let command = command.args(arguments).args(["--keys-from", "-", "-o", "json"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("kith runs");
    let mut stdin = child.stdin.take().expect("its input is piped");
    stdin.write_all(keys.as_bytes()).expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let lines = String::from_utf8(output.stdout).expect("UTF-8");
    (lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect(), output.status.code())
}

#[test]
fn values_are_read_on_every_way_in() {
    let cluster = started(&["--nodes", "2", "--groups", "2"]);
    // Found, absent, empty, repeated.
    let keys = || [3, 7, PEOPLE, 3, PEOPLE + 1, PEOPLE - 1].into_iter();
    let all = || 0..PEOPLE + 10;
    for way in [&[][..], &["--transport", "grpc"], &["--direct"], &["--direct", "--transport", "grpc"]] {
        let answers = run_with(&cluster, way, &[mget(keys()), mget(all())]);
        assert_words(&answers[0], keys(), 1);
        assert_words(&answers[1], all(), 1);
        assert_eq!(answers[1]["footer"]["absent"], 10);
    }
    let none = one(&cluster, mget(0..0));
    assert_eq!(
        none,
        json!({"results": [], "footer": {"found": 0, "absent": 0, "error": 0, "unanswered": 0, "versions": [1]}})
    );
    let profiled =
        one(&cluster, json!({"op": "mget", "store": "words", "keys": ["member 1"], "profile": true}));
    assert_eq!(profiled["profile"]["requests"], 1, "{profiled}");

    assert_eq!(cluster.must(&["get", "words", "member 3"]), value(3, 1) + "\n");
    assert_eq!(cluster.must(&["get", "words", "member 7"]), "\n");
    let shown: Value = serde_json::from_str(&cluster.must(&[
        "get",
        "words",
        "bWVtYmVyIDM=",
        "--key-encoding",
        "base64",
        "-o",
        "json",
    ]))
    .expect("JSON");
    assert_eq!(shown, json!({"key": "bWVtYmVyIDM=", "state": "FOUND", "value": value(3, 1)}));
    let (lines, code) = mget_lines(&cluster, &["words"], "member 3\nmember x\r\n");
    let footer = json!({"footer": {"found": 1, "absent": 1, "error": 0, "unanswered": 0, "versions": [1]}});
    assert_eq!(
        (&lines[1], &lines[2]),
        (&json!({"key": "member x", "state": "ABSENT", "value": null}), &footer)
    );
    assert_eq!((lines.len(), code), (3, Some(0)));
}

#[test]
fn ids_are_exact_and_bytes_are_base64() {
    let cluster = Cluster::start(&["--nodes", "2"]);
    let types = (KeyType::Id, ValueType::Json);
    create(&cluster, "scores", types.0, types.1);
    let ids = [0, 1, u64::MAX - 1, u64::MAX];
    push(
        &cluster,
        "scores",
        types,
        5,
        ids.map(|id| (id.to_le_bytes().to_vec(), format!("[{id}]").into_bytes())),
    );
    let answer =
        one(&cluster, json!({"op": "mget", "store": "scores", "keys": [u64::MAX, 2, u64::MAX - 1, "0"]}));
    let found = |id: u64| json!({"key": id, "state": "FOUND", "value": format!("[{id}]")});
    let absent = json!({"key": 2, "state": "ABSENT", "value": null});
    assert_eq!(answer["results"], json!([found(u64::MAX), absent, found(u64::MAX - 1), found(0)]));
    assert_eq!(cluster.must(&["get", "scores", "18446744073709551615"]), "[18446744073709551615]\n");

    let types = (KeyType::Bytes, ValueType::Bytes);
    create(&cluster, "raw", types.0, types.1);
    push(&cluster, "raw", types, 1, [(vec![0, 255], vec![255, 0]), (vec![], vec![1])]);
    let (lines, code) = mget_lines(&cluster, &["raw"], "AP8=\n\nAA==\n");
    assert_eq!(lines[0], json!({"key": "AP8=", "state": "FOUND", "value": null, "value_base64": "/wA="}));
    assert_eq!(lines[1], json!({"key": "", "state": "FOUND", "value": null, "value_base64": "AQ=="}));
    assert_eq!(lines[2], json!({"key": "AA==", "state": "ABSENT", "value": null, "value_base64": null}));
    assert_eq!(code, Some(0));
    let output = cluster.kith(&["get", "raw", "AP8="]).output().expect("kith runs");
    assert_eq!(output.stdout, [255, 0, b'\n'], "{}", text(&output));
}

#[test]
fn what_makes_no_sense_is_reported() {
    let cluster = started(&["--nodes", "1"]);
    create(&cluster, "empty", WORDS.0, WORDS.1);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let edges = folder.path().join("edges.csv");
    fs::write(&edges, "src,dst\n1,2\n").expect("written");
    cluster.must(&["load", "graph", edges.to_str().expect("UTF-8"), "--graph", "star"]);
    let long = "k".repeat(64 * 1024 + 1);
    let many = vec!["k"; 100_001];
    let ask = |store: &str, keys: Value| json!({"op": "mget", "store": store, "keys": keys});
    let requests = [
        (ask("nowhere", json!(["a"])), "unknown_store"),
        (ask("star", json!([1])), "not_values"),
        (ask("empty", json!(["a"])), "no_version"),
        (ask("words", json!([1])), "wrong_key_type"),
        (ask("words", json!([null])), "wrong_key_type"),
        (ask("words", json!([long])), "out_of_range"),
        (ask("words", json!(many)), "out_of_range"),
        (ask("words", json!("member 1")), "bad_request"),
        (json!({"op": "mget", "keys": ["a"]}), "bad_request"),
        (json!({"op": "mget", "store": "words", "keys": ["a"], "policy": "best"}), "unknown_policy"),
        (json!({"op": "connections", "graph": "words", "id": 1}), "unknown_graph"),
    ];
    let lines: Vec<Value> = requests.iter().map(|(request, _)| request.clone()).collect();
    for way in [&[][..], &["--transport", "grpc"], &["--direct"]] {
        for (answer, (request, code)) in run_with(&cluster, way, &lines).iter().zip(&requests) {
            let shown: String = request.to_string().chars().take(100).collect();
            assert_eq!(answer["error"]["code"], *code, "{shown}: {answer}");
            assert!(answer["error"]["help"].as_str().is_some_and(|help| !help.is_empty()), "{answer}");
        }
    }
    let output = cluster.kith(&["get", "words", "nobody", "-o", "json"]).output().expect("kith runs");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&report["error"]["code"], output.status.code()), (&json!("key_not_found"), Some(1)));
}

#[test]
fn a_rollback_changes_the_answers_and_no_batch_mixes_versions() {
    let cluster = started(&["--nodes", "2"]);
    let requests: Vec<Value> = (0..300).map(|_| mget(0..200)).collect();
    let (answers, exit) = cluster.run_and_then(&requests, 4, 20, || {
        push_words(&cluster, 2);
        cluster.must(&["store", "rollback", "words"]);
    });
    assert_eq!(exit, 0);
    for answer in &answers {
        let version = answer["footer"]["versions"][0].as_u64().expect("a version");
        assert_words(answer, 0..200, version);
    }
    assert_words(&one(&cluster, mget(0..200)), 0..200, 1);
    cluster.must(&["store", "swap", "words", "2", "--force"]);
    assert_words(&one(&cluster, mget(0..200)), 0..200, 2);
}

#[test]
fn a_node_that_is_killed_fails_no_read() {
    let cluster = started(&["--processes", "--nodes", "2", "--groups", "2"]);
    let victim = cluster.node_pids(0)[0];
    let requests: Vec<Value> = (0..400).map(|at| mget(at * 20..at * 20 + 300)).collect();
    let (answers, exit) = cluster.run_and_then(&requests, 8, 40, || signal(victim, "KILL"));
    assert_eq!(exit, 0);
    for (at, answer) in (0..).zip(&answers) {
        assert_words(answer, at * 20..at * 20 + 300, 1);
    }
}

/// The groups that a profiled answer asked in its first round; in its second, others were asked for the same keys.
fn groups_asked_first(answer: &Value, keys: u64) -> Vec<u64> {
    let rounds = answer["profile"]["rounds"].as_array().expect("rounds");
    let groups = |round: &Value| -> Vec<u64> {
        let requests = round["requests"].as_array().expect("requests").iter();
        requests.map(|request| request["group"].as_u64().expect("a group")).collect()
    };
    let [one, two] = rounds.as_slice() else { panic!("{answer}") };
    let asked: u64 = rounds.iter().map(|round| round["keys"].as_u64().expect("a count")).sum();
    assert_eq!(asked, 2 * keys);
    // A group has one node, which has every key: no group is in both.
    assert!(groups(one).iter().all(|group| !groups(two).contains(group)), "{answer}");
    groups(one)
}

#[test]
fn where_answers_must_agree_each_key_is_asked_at_as_many_replicas() {
    let mut cluster = Cluster::start(&["--processes", "--nodes", "1", "--groups", "3"]);
    cluster.must(&["store", "create", "words", "--required-reads", "2"]);
    push_words(&cluster, 1);
    let keys = || (0..200).chain(PEOPLE..PEOPLE + 3);
    let ask = |cluster: &Cluster, profile: bool| {
        let mut request = mget(keys());
        request["profile"] = json!(profile);
        one(cluster, request)
    };
    let mut asked_first = BTreeSet::new();
    // Who is asked is drawn by lot.
    cluster.wait_until("each group was asked first", |cluster| {
        let answer = ask(cluster, true);
        assert_words(&answer, keys(), 1);
        asked_first.extend(groups_asked_first(&answer, keys().count() as u64));
        asked_first.len() == 3
    });
    // Two of three are enough, one is not: the store wants two.
    signal(cluster.node_pids(1)[0], "STOP");
    cluster.wait_until("reads agree without the group", |cluster| ask(cluster, false).get("error").is_none());
    assert_words(&ask(&cluster, false), keys(), 1);
    signal(cluster.node_pids(2)[0], "STOP");
    let mut short = mget(keys());
    short["deadline_ms"] = json!(2_000);
    let refused = one(&cluster, short.clone());
    assert!(refused["error"]["code"].is_string(), "{refused}");
    short["partial"] = json!(true);
    let partial = one(&cluster, short);
    assert_eq!(partial["footer"]["unanswered"], keys().count(), "{partial}");
    for group in [1, 2] {
        signal(cluster.node_pids(group)[0], "CONT");
    }
    cluster.wait_until("reads agree again", |cluster| ask(cluster, false).get("error").is_none());
}
