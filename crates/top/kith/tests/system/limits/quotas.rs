//! Quotas of stores for reads and exports, on every way in.

use super::{PEOPLE, code, ids, refused, started};
use crate::support::{
    cluster::{Cluster, run_lines},
    redis::Redis,
    streams::connect,
    words::judge,
};
use futures::FutureExt;
use kith_client::{Inspector, security::Dialer};
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
        let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!((code(&answer), output.status.code()), ("quota_exceeded", Some(1)), "{way:?}");
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
        let mut refusal = Value::Null;
        // Nodes hear of it a moment after the router.
        cluster.wait_until("nodes refuse", |cluster| {
            refusal = direct(cluster, &[ids(600)]).remove(0);
            refusal.get("error").is_some()
        });
        assert_eq!(code(&refusal), "quota_exceeded");
        let message = refusal["error"]["message"].as_str().expect("text");
        assert!(message.contains("used up: 2 ") && message.contains("a second at node "), "{message}");
        let help = refusal["error"]["help"].as_str().expect("text");
        assert!(help.starts_with("ask again in ") && help.contains("kith store alter people"), "{help}");
        let answer = direct(&cluster, &[ids(0), ids(600)]);
        assert_eq!((&answer[0]["results"], code(&answer[1])), (&json!([]), "quota_exceeded"));
        let reply = Redis::of_node(&cluster.ready(), 0).cli(&["mget", "people:1", "people:2"]);
        assert!(
            reply.starts_with("ERR quota_exceeded: the read quota of store \"people\" is used up"),
            "{reply}"
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
        // On a busy machine, clients ask too seldom to use up all of it.
        assert!(
            (quota * 6 / 10..=quota * 12 / 10).contains(&keys),
            "{pause:?}: {keys} of {quota}: {answered:?}"
        );
    }
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
