//! Values by key against a real cluster: contract, transports, nodes that die, bytes that flip, versions that change.

mod support;

use kith_api::convert::{operator_to_wire, value_of_reply};
use kith_client::{RouterClient, TransportKind, security::Dialer};
use kith_engine::{KeyType, ValueType};
use kith_ops::{Operator, Record};
use kith_types::ByteKeys;
use kith_wire::{body::encode_keys, v1};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::Stdio,
};
use support::{
    cluster::{Cluster, metric_at, signal, text},
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
fn what_makes_no_sense_is_told() {
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
    let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&told["error"]["code"], output.status.code()), (&json!("key_not_found"), Some(1)));
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

/// The packs of a node's copy of a version.
fn packs(cluster: &Cluster, node: u64) -> Vec<PathBuf> {
    let data = cluster.ready_file.parent().expect("a folder").join("data");
    let mut found = Vec::new();
    find(&data, &format!("/node-{node:03}/"), &mut found);
    assert!(!found.is_empty(), "node {node} has packs in {}", data.display());
    found
}

fn find(folder: &Path, node: &str, found: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).expect("readable").flatten().map(|entry| entry.path()) {
        let name = path.to_string_lossy().into_owned();
        if path.is_dir() {
            find(&path, node, found);
        } else if name.contains(node) && name.contains("/words/") && name.ends_with(".pack") {
            found.push(path);
        }
    }
}

/// Flips bytes in the middle of each file: in mapped pages, where a node reads them.
fn flip(files: &[PathBuf]) {
    use std::os::unix::fs::FileExt;
    for path in files {
        let file = fs::File::options().read(true).write(true).open(path).expect("it opens");
        let length = file.metadata().expect("it has a length").len();
        for at in (length / 10..length / 10 * 9).step_by(512) {
            let mut byte = [0];
            file.read_exact_at(&mut byte, at).expect("read");
            file.write_all_at(&[!byte[0]], at).expect("written");
        }
    }
}

#[test]
fn damaged_records_are_answered_by_a_replica() {
    let mut cluster = started(&["--nodes", "1", "--groups", "2"]);
    let all = || 0..PEOPLE + 10;
    flip(&packs(&cluster, 0));
    // Which replica is asked is drawn by lot.
    cluster.wait_until("a read met the damage", |cluster| {
        assert_words(&one(cluster, mget(all())), all(), 1);
        cluster.metric("kith_node_damaged_reads_total").is_some_and(|reads| 0.0 < reads)
    });
}

#[test]
fn records_that_are_damaged_everywhere_are_errors() {
    let cluster = started(&["--nodes", "1", "--groups", "2", "--scrub-rate", "off"]);
    let all = || 0..PEOPLE + 10;
    // Nothing to repair from: neither the built version nor another replica.
    let data = cluster.ready_file.parent().expect("a folder").join("data");
    fs::rename(data.join("objects/words"), data.join("objects/away")).expect("moved");
    [0, 1].iter().for_each(|node| flip(&packs(&cluster, *node)));
    let refused = one(&cluster, mget(all()));
    assert_eq!(refused["error"]["code"], "damaged", "{refused}");
    let mut partial = mget(all());
    partial["partial"] = json!(true);
    let (answers, exit) = cluster.run(&[partial], 1);
    let (results, footer) = (answers[0]["results"].as_array().expect("a list"), &answers[0]["footer"]);
    assert_eq!(exit, 3);
    assert!(footer["error"].as_u64().is_some_and(|count| 0 < count), "{footer}");
    for (key, result) in all().zip(results) {
        match (result["state"].as_str().expect("text"), key < PEOPLE) {
            ("FOUND", true) => assert_eq!(result["value"], value(key, 1)),
            ("ABSENT", false) => {}
            ("ERROR", _) => assert_eq!(result["error"]["code"], "damaged"),
            _ => panic!("member {key}: {result}"),
        }
    }
    let sum = ["found", "absent", "error", "unanswered"].map(|name| footer[name].as_u64().expect("a count"));
    assert_eq!(sum.iter().sum::<u64>(), PEOPLE + 10);
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
        let rounds = answer["profile"]["rounds"].as_array().expect("rounds");
        let groups = |round: &Value| -> Vec<u64> {
            let requests = round["requests"].as_array().expect("requests").iter();
            requests.map(|request| request["group"].as_u64().expect("a group")).collect()
        };
        let [one, two] = rounds.as_slice() else { panic!("{answer}") };
        let asked: u64 = rounds.iter().map(|round| round["keys"].as_u64().expect("a count")).sum();
        assert_eq!(asked, 2 * keys().count() as u64);
        // A group has one node, which has every key: no group is in both.
        assert!(groups(one).iter().all(|group| !groups(two).contains(group)), "{answer}");
        asked_first.extend(groups(one));
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

#[test]
fn a_warm_node_answers_a_long_read_in_slices_and_a_short_one_whole() {
    let cluster = started(&["--processes", "--groups", "1", "--nodes", "1"]);
    let router = cluster.ready()["router"].as_str().expect("an address").to_owned();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let node = runtime.block_on(async {
        let router = RouterClient::connect(&[router]).await.expect("the router is up");
        router.topology().await.expect("it knows the nodes").nodes[0].clone()
    });
    let shared_bytes = || metric_at(&node.http, "kith_server_shared_bytes_total").unwrap_or_default();
    // About a tenth is nobody's.
    let asked = |count: u64| (0..count).map(|index| index * 10 % (PEOPLE + PEOPLE / 10));
    let evaluate = |kind: TransportKind, count: u64, in_slices: bool| {
        let mut keys = ByteKeys::default();
        asked(count).for_each(|key| keys.push(word(key).as_bytes()));
        let request = v1::EvaluateRequest {
            name: "words".to_owned(),
            version: 1,
            byte_keys: encode_keys(&keys),
            plan: Some(operator_to_wire(&Operator::Lookup)),
            in_slices,
            ..Default::default()
        };
        let transport = kind.build(&Dialer::default());
        runtime.block_on(async { transport.evaluate(&node.addr, request).await }).expect("an answer")
    };
    for (kind, count, in_slices, is_sliced) in [
        (TransportKind::Framed, 5_000, true, true),
        (TransportKind::FramedTcp, 5_000, true, true),
        (TransportKind::Framed, 5_000, false, false),
        (TransportKind::Framed, 64, true, false),
        (TransportKind::Grpc, 5_000, true, false),
    ] {
        let before = shared_bytes();
        let mut reply = evaluate(kind, count, in_slices);
        let is_shared = matches!(kind, TransportKind::Framed) && 64 < count;
        assert_eq!(before < shared_bytes(), is_shared, "{kind:?}, {count} keys");
        assert_eq!(
            1 < reply.slices.len(),
            is_sliced,
            "{kind:?}, {count} keys: {} slices",
            reply.slices.len()
        );
        assert!(reply.served.len() == 1 && reply.load.is_some(), "{reply:?}");
        let kith_ops::Value::Records(records) = value_of_reply(&mut reply, count as usize).expect("a value")
        else {
            panic!("records")
        };
        assert_eq!(records.len() as u64, count);
        for (key, record) in asked(count).zip(records.iter()) {
            let expected = value(key, 1);
            match record {
                Record::Found(found) => assert!(key < PEOPLE && found == expected.as_bytes(), "{key}"),
                other => assert!(other == Record::Absent && PEOPLE <= key, "{key}: {other:?}"),
            }
        }
    }
}
