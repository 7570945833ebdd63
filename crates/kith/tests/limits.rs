//! What one caller may take from a cluster: bounds of a query, read quotas that are changed while they hold, overload, and nodes that
//! leave while they are read.

mod support;

use futures::FutureExt;
use kith_api::convert::operator_to_wire;
use kith_client::{TransportKind, inspect::Inspector, security::Dialer};
use kith_ops::{EdgeSelector, Operator};
use kith_types::Direction;
use kith_wire::v1;
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader, Write},
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use support::{
    cluster::{Cluster, is_alive, run_lines, signal, text},
    redis::Redis,
    streams::connect,
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
    let told = &answers[0]["error"]["message"];
    assert_eq!(told, "the number of keys is 101, but must be at most 100");
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
    for (settings, told) in [
        ("[session]\nkeys-max = 0\n", "keys-max"),
        ("[session]\nkeys-max = 1000001\n", "1000000"),
        ("[admission]\nqueries-max = 0\n", "queries-max"),
        ("[admission]\nqueries = 1\n", "queries-max"),
    ] {
        fs::write(&file, settings).expect("written");
        let dev = support::cluster::dev(&["--config", file.to_str().expect("UTF-8")]).output();
        let dev = dev.expect("kith runs");
        assert!(!dev.status.success() && text(&dev).contains(told), "{settings}: {}", text(&dev));
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
fn a_quota_refuses_at_once_says_when_and_is_changed_while_it_holds() {
    let cluster = started(&["--nodes", "2"]);
    let described = |arguments: &[&str]| -> Value {
        let arguments: Vec<&str> = arguments.iter().copied().chain(["-o", "json"]).collect();
        serde_json::from_str(&cluster.must(&arguments)).expect("JSON")
    };
    // One key a minute, or nearly: what is refused stays so, however slow this machine is.
    let altered = described(&["store", "alter", "people", "--read-quota-keys", "1"]);
    assert_eq!(altered["read_quota_keys"], 1);
    let (answers, _) = cluster.run(&[ids(600), ids(1), ids(0)], 1);
    judge(&ids(600), &answers[0]).expect("a read larger than the bucket passes when that is full");
    assert_eq!(code(&answers[1]), "quota_exceeded");
    let help = answers[1]["error"]["help"].as_str().expect("text");
    assert!(help.starts_with("ask again in ") && help.contains("kith store alter people"), "{help}");
    assert_eq!(answers[2]["results"], json!([]), "no keys cost nothing");
    for op in [
        json!({"op": "compute", "store": "people", "keys": [1], "project": ["x"]}),
        json!({"op": "aggregate", "store": "people", "keys": [1], "count_by_value": {"field": "x", "top": 1}}),
    ] {
        let (answers, _) = cluster.run(&[op], 1);
        assert_eq!(code(&answers[0]), "quota_exceeded", "one quota for all ways to read");
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let keys = folder.path().join("keys");
    fs::write(&keys, "1\n").expect("written");
    for way in [&[][..], &["--transport", "grpc"]] {
        let keys = keys.to_str().expect("UTF-8");
        let arguments = [&["mget", "people", "--keys-from", keys, "--stream", "-o", "json"], way].concat();
        let output = cluster.kith(&arguments).output().expect("kith runs");
        let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!((code(&told), output.status.code()), ("quota_exceeded", Some(1)), "{way:?}");
    }
    assert_eq!(refused(&cluster, "quota_keys"), 5.0);

    described(&["store", "alter", "people", "--read-quota-keys", "off", "--read-quota-bytes", "1"]);
    let (answers, _) = cluster.run(&[ids(10), ids(1)], 1);
    judge(&ids(10), &answers[0]).expect("the new definition holds at once");
    assert_eq!(code(&answers[1]), "quota_exceeded", "its bytes were more than one");
    assert_eq!(refused(&cluster, "quota_bytes"), 1.0);

    let altered = described(&["store", "alter", "people", "--read-quota-bytes", "off"]);
    assert!(altered.get("read_quota_keys").is_none() && altered.get("read_quota_bytes").is_none());
    let (answers, _) = cluster.run(&[ids(1)], 1);
    judge(&ids(1), &answers[0]).unwrap();
    let history = described(&["store", "history", "people"]);
    let defined = history.as_array().expect("a list").iter().filter(|entry| entry["action"] == "define");
    assert_eq!(defined.count(), 3, "{history}");
}

/// Reads straight from nodes, one after the other.
fn direct(cluster: &Cluster, reads: &[Value]) -> Vec<Value> {
    let command = cluster.kith(&["run", "--direct", "--input", "-", "--concurrency", "1"]);
    run_lines(command, reads, usize::MAX, || ()).0
}

/// QU-1: nodes keep their share of a quota, so that no way in goes around it; what a router has let in, no node refuses.
#[test]
fn quotas_hold_for_whoever_asks_nodes_themselves() {
    // Of one group, so that every read asks the same nodes.
    let mut cluster = started(&["--nodes", "2", "--groups", "1"]);
    let refused_at_nodes = |cluster: &Cluster, reason: &str| {
        let name = format!("kith_node_refused_total{{store=\"people\",reason=\"{reason}\"}}");
        cluster.metric(&name).unwrap_or_default()
    };
    for (quota, reason) in [("--read-quota-keys", "quota_keys"), ("--read-quota-bytes", "quota_bytes")] {
        cluster.must(&["store", "alter", "people", quota, "4"]);
        let mut told = Value::Null;
        // Nodes hear of it a moment after the router.
        cluster.wait_until("nodes refuse", |cluster| {
            told = direct(cluster, &[ids(600)]).remove(0);
            told.get("error").is_some()
        });
        assert_eq!(code(&told), "quota_exceeded");
        let message = told["error"]["message"].as_str().expect("text");
        assert!(message.contains("used up: 2 ") && message.contains("a second at node "), "{message}");
        let help = told["error"]["help"].as_str().expect("text");
        assert!(help.starts_with("ask again in ") && help.contains("kith store alter people"), "{help}");
        let told = direct(&cluster, &[ids(0), ids(600)]);
        assert_eq!((&told[0]["results"], code(&told[1])), (&json!([]), "quota_exceeded"));
        let told = Redis::of_node(&cluster.ready(), 0).cli(&["mget", "people:1", "people:2"]);
        assert!(
            told.starts_with("ERR quota_exceeded: the read quota of store \"people\" is used up"),
            "{told}"
        );
        assert!(3.0 <= refused_at_nodes(&cluster, reason), "{reason}");
        // The router has its own share, of which nothing was read.
        let (answers, _) = cluster.run(&[ids(600)], 1);
        judge(&ids(600), &answers[0]).expect("what a router lets in, no node refuses");

        cluster.must(&["store", "alter", "people", quota, "off"]);
        cluster.wait_until("nodes let all in again", |cluster| {
            judge(&ids(600), &direct(cluster, &[ids(600)])[0]).is_ok()
        });
    }
}

/// Reads straight from nodes, a hundred keys each: again and again, each as soon as the one before is answered or refused or, with a `pause`,
/// that long after it. How many were answered in each second, by when their answers came.
fn answered_by_second(cluster: &Cluster, seconds: usize, pause: Option<Duration>) -> Vec<usize> {
    let mut command = cluster.kith(&["run", "--direct", "--input", "-", "--concurrency", "4"]);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("kith run starts");
    let mut stdin = child.stdin.take().expect("its input is piped");
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let writer = thread::spawn(move || {
        let line = format!("{}\n", ids(100));
        while !stopped.load(Ordering::Relaxed) && stdin.write_all(line.as_bytes()).is_ok() {
            if let Some(pause) = pause {
                thread::sleep(pause);
            }
        }
    });
    let mut answered = vec![0; seconds];
    let mut first = None;
    for line in BufReader::new(child.stdout.take().expect("its output is piped")).lines() {
        let answer: Value = serde_json::from_str(&line.expect("text")).expect("JSON");
        let since = first.get_or_insert_with(Instant::now).elapsed().as_secs() as usize;
        match answered.get_mut(since) {
            Some(count) if answer.get("error").is_none() => {
                judge(&ids(100), &answer).expect("the right answer");
                *count += 1;
            }
            Some(_) => assert_eq!(code(&answer), "quota_exceeded"),
            None => stop.store(true, Ordering::Relaxed),
        }
    }
    writer.join().expect("the writer ends");
    assert!(child.wait().is_ok_and(|status| status.code().is_some()), "kith run ends by itself");
    answered
}

/// Six nodes share a quota of a thousand keys a second; each read of a hundred asks two of them. What one of them refuses must take nothing
/// from the other: clients that do not wait once got a fifteenth of the quota.
#[test]
fn clients_that_ask_nodes_themselves_get_the_quota_however_they_ask() {
    let cluster = started(&["--nodes", "2", "--groups", "3"]);
    cluster.must(&["store", "alter", "people", "--read-quota-keys", "1000"]);
    for pause in [None, Some(Duration::from_millis(60))] {
        // The first seconds read what the buckets hold.
        let answered = answered_by_second(&cluster, 18, pause);
        let keys: usize = answered[3..].iter().map(|reads| reads * 100).sum();
        let quota = 15 * 1_000;
        assert!(
            (quota * 8 / 10..=quota * 12 / 10).contains(&keys),
            "{pause:?}: {keys} of {quota}: {answered:?}"
        );
    }
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
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && told.contains(expected), "{arguments:?}: {told}");
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
fn an_export_keeps_to_the_read_quota_and_goes_on_when_that_is_changed() {
    let mut cluster = started(&["--nodes", "2"]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("people.jsonl");
    let export = ["store", "export", "people", "--out", out.to_str().expect("UTF-8")];
    let waiting = |cluster: &Cluster| cluster.metric("kith_node_exports_waiting").unwrap_or_default();
    for (quota, goes_on) in [("--read-quota-keys", true), ("--read-quota-bytes", false)] {
        // Half an hour for all of it, at least.
        cluster.must(&["store", "alter", "people", quota, "1"]);
        let mut running =
            cluster.kith(&export).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("kith runs");
        cluster.wait_until("the export waits", |cluster| waiting(cluster) == 1.0);
        assert!(running.try_wait().expect("it can be waited for").is_none());
        if goes_on {
            cluster.must(&["store", "alter", "people", quota, "off"]);
            assert!(running.wait().expect("it ends").success());
            let exported = fs::read_to_string(&out).expect("the export is there");
            assert_eq!(exported.lines().count() as u64, PEOPLE);
        } else {
            running.kill().expect("it can be killed");
            running.wait().expect("it can be waited for");
        }
        // Nothing waits for whoever went away.
        cluster.wait_until("nobody waits", |cluster| waiting(cluster) == 0.0);
    }
}

/// The first message of each partition's records, from the one node, as far as there is one; all are asked for at once.
async fn first_pieces(cluster: &mut Cluster, version: u64) -> Vec<Option<usize>> {
    let topology = connect(cluster).await.topology().await.expect("the router knows its topology");
    let node = Inspector::new(&Dialer::default(), &topology.nodes[0].addr).expect("an address");
    let mut streams = Vec::new();
    for partition in 0..topology.cluster.partitions {
        let request = v1::RecordsRequest { store: "people".to_owned(), version, partition, skip: 0 };
        streams.push(node.records(request).await.expect("it has them"));
    }
    let all = streams.len() as f64;
    cluster
        .wait_until("all of them wait", |cluster| cluster.metric("kith_node_exports_waiting") == Some(all));
    let firsts = streams.iter_mut().map(|stream| stream.message().now_or_never());
    firsts.map(|first| Some(first?.expect("no error").expect("a message").keys.len())).collect()
}

#[test]
fn an_export_that_hangs_up_and_asks_again_gets_nothing_beyond_the_quota() {
    let mut cluster = started(&["--groups", "1", "--nodes", "1", "--partitions", "8"]);
    let versions = cluster.must(&["store", "versions", "people", "-o", "json"]);
    let versions: Value = serde_json::from_str(&versions).expect("JSON");
    let version = versions[0]["version"].as_u64().expect("a version");
    cluster.must(&["store", "alter", "people", "--read-quota-bytes", "1"]);
    // Hours of it, at once.
    judge(&ids(PEOPLE), &cluster.run(&[ids(PEOPLE)], 1).0[0])
        .expect("bytes are paid for when the answer is there");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");
    for _ in 0..3 {
        let got = runtime.block_on(first_pieces(&mut cluster, version));
        assert!(got.iter().all(Option::is_none), "{got:?}");
        cluster
            .wait_until("nobody waits", |cluster| cluster.metric("kith_node_exports_waiting") == Some(0.0));
    }
}

#[test]
fn quotas_that_make_no_sense_are_refused() {
    let cluster = started(&["--nodes", "1", "--groups", "1"]);
    for arguments in [
        &["store", "alter", "people"][..],
        &["store", "alter", "people", "--read-quota-keys", "0"],
        &["store", "alter", "people", "--read-quota-bytes", "some"],
        &["store", "alter", "nowhere", "--read-quota-keys", "5"],
    ] {
        let output = cluster.kith(arguments).output().expect("kith runs");
        assert!(!output.status.success(), "{arguments:?}");
    }
    let made = cluster.must(&["store", "create", "others", "--read-quota-bytes", "2MiB", "-o", "json"]);
    let made: Value = serde_json::from_str(&made).expect("JSON");
    assert_eq!(made["read_quota_bytes"], 2 << 20);
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
    assert_eq!(ask(&Operator::Members, vec![], vec![0, 1]), "OK");
    assert_eq!(ask(&expand, vec![9043, 1005], vec![]), "OK");
    assert_eq!(ask(&Operator::Members, vec![], vec![0, 1, 0]), "bad_request");
    assert_eq!(ask(&Operator::Members, vec![], vec![0; 100_000]), "bad_request");
    assert_eq!(ask(&Operator::Members, vec![], vec![1_000_000]), "bad_request");
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
fn a_node_that_is_told_to_end_leaves_without_a_failed_read() {
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
fn a_router_that_is_told_to_end_answers_what_it_has() {
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
