//! The tools of operators: metrics that are there before the first event, groups that are taken out, a data directory that goes away.

use crate::support;
use kith_engine::{KeyType, ValueType};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpStream,
};
use support::{
    cluster::{Cluster, http_get, kith, metric_at, signal, text},
    root,
    spare::{Spare, metadata_address, refused, run_json},
    values::{create, push},
};

/// A metric as a rule names it, with the labels that it asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Named {
    name: String,
    labels: Vec<String>,
}

impl Named {
    /// Whether a line of `/metrics` is about it.
    fn is_in(&self, line: &str) -> bool {
        let Some(rest) = line.strip_prefix(&self.name) else { return false };
        let labels = rest.split(' ').next().unwrap_or_default();
        rest.starts_with(['{', ' ']) && self.labels.iter().all(|label| labels.contains(label))
    }
}

/// The metrics of this project in the rules of a page.
fn named(page: &str) -> Vec<Named> {
    let rules = page.lines().filter_map(|line| line.trim().strip_prefix("expr: "));
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let mut found: Vec<Named> = Vec::new();
    for rule in rules {
        for (at, _) in rule.match_indices("kith_") {
            let rest = &rule[at..];
            let end = rest.find(|c: char| !is_name(c)).unwrap_or(rest.len());
            let selector = rest[end..].strip_prefix('{').and_then(|rest| rest.split_once('}'));
            let labels = selector.map(|(labels, _)| labels.split(',')).into_iter().flatten();
            let labels = labels.filter(|label| !label.contains("!=")).map(str::to_owned).collect();
            found.push(Named { name: rest[..end].to_owned(), labels });
        }
    }
    found
}

#[test]
fn every_metric_that_an_alert_is_about_is_there_before_its_first_event() {
    // A store has its histogram from its first read on. The others are of processes with TLS: `rights.rs` looks for them.
    const HISTOGRAM: &str = "kith_router_store_latency_seconds_bucket";
    const LATER: [&str; 3] =
        [HISTOGRAM, "kith_server_reload_failed", "kith_server_certificate_expiry_timestamp_seconds"];
    let mut cluster = Cluster::start(&["--processes", "--groups", "1", "--nodes", "1"]);
    create(&cluster, "words", KeyType::String, ValueType::Text);
    let page = fs::read_to_string(root().join("docs/operating/alerts.md")).expect("the page");
    let named = named(&page);
    assert!(15 < named.len(), "{named:?}");
    let router = cluster.ready()["http"].as_str().expect("an address").to_owned();
    let node = cluster.nodes_http().remove(0);
    let mut missing = Vec::new();
    for (addr, prefixes) in
        [(router, ["kith_router_", "kith_server_"]), (node, ["kith_node_", "kith_server_"])]
    {
        let its = named.iter().filter(|it| prefixes.iter().any(|prefix| it.name.starts_with(prefix)));
        let its: Vec<&Named> = its.filter(|it| !LATER.contains(&it.name.as_str())).collect();
        assert!(!its.is_empty());
        // Gauges are set, and a store is known, within a second or so; nothing has happened by then.
        cluster.wait_until("every metric is there", |_| {
            let shown = http_get(&addr, "/metrics");
            let lacks = its.iter().filter(|it| !shown.lines().any(|line| it.is_in(line)));
            let lacks: Vec<String> = lacks.map(|it| format!("{it:?}")).collect();
            let done = lacks.is_empty();
            if lacks != missing {
                println!("{addr} lacks {lacks:?}");
                missing = lacks;
            }
            done
        });
    }
    for outcome in ["done", "failed", "refused", "cancelled"] {
        let name = format!("kith_router_pushes_total{{store=\"words\",outcome=\"{outcome}\"}}");
        assert_eq!(cluster.metric(&name), Some(0.0), "{name}");
    }
    assert_eq!(cluster.metric("kith_router_rebalance_stopped"), Some(0.0));
    for later in LATER {
        assert!(named.iter().any(|it| it.name == later), "{later} is about no alert: look for it here");
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let rows = folder.path().join("words.csv");
    fs::write(&rows, "key,value\na,1\n").expect("written");
    cluster.must(&["store", "push", "words", &rows.display().to_string()]);
    cluster.must(&["get", "words", "a"]);
    let first = format!("{HISTOGRAM}{{store=\"words\",op=\"mget\",le=\"+Inf\"}}");
    assert_eq!(cluster.metric(&first), Some(1.0), "{first}");
    // Writes to live graphs count in the same way.
    let types = folder.path().join("types.toml");
    fs::write(&types, "[object.person]\n").expect("written");
    cluster.must(&["schema", "apply", &types.display().to_string(), "--graph", "social"]);
    let failed = "kith_router_query_errors_total{op=\"object_add\"}";
    assert_eq!(cluster.metric(failed), Some(0.0), "{failed}");
    let write = json!({"op": "object_add", "graph": "social", "type": "person", "id": 1});
    assert!(cluster.run(&[write], 1).0[0].get("error").is_none());
    let first = format!("{HISTOGRAM}{{store=\"social\",op=\"object_add\",le=\"+Inf\"}}");
    assert_eq!(cluster.metric(&first), Some(1.0), "{first}");
    assert_processes_describe_themselves(&cluster);
}

/// Checks that each process says what it runs and what it takes of its machine.
fn assert_processes_describe_themselves(cluster: &Cluster) {
    const OF_PROCESS: [&str; 4] =
        ["process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds", "process_max_fds"];
    let build = format!("kith_build_info{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"));
    let router = cluster.ready()["http"].as_str().expect("an address").to_owned();
    for addr in cluster.nodes_http().into_iter().chain([router]) {
        let shown = http_get(&addr, "/metrics");
        let is_there = |line: &str| line.starts_with(&build) && line.ends_with(" 1");
        assert!(shown.lines().any(is_there), "{addr}: {build} is not in\n{shown}");
        for name in OF_PROCESS {
            let value = metric_at(&addr, name);
            assert!(value.is_some_and(|value| 0.0 < value), "{addr}: {name}: {value:?}");
        }
    }
}

/// The first line of the answer to a line of a Redis client.
fn redis(cluster: &Cluster, line: &str) -> String {
    let addr = cluster.ready()["resp"].as_str().expect("an address").to_owned();
    let mut stream = TcpStream::connect(addr).expect("it listens");
    stream.write_all(format!("{line}\r\n").as_bytes()).expect("it reads");
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).expect("it answers");
    answer
}

#[test]
fn a_dead_node_shows_in_metrics_and_so_do_reads_of_redis_clients_that_fail() {
    let mut cluster = Cluster::start(&["--processes", "--groups", "1", "--nodes", "1"]);
    create(&cluster, "words", KeyType::String, ValueType::Text);
    push(&cluster, "words", (KeyType::String, ValueType::Text), 1, [(b"a".to_vec(), b"first".to_vec())]);
    assert_eq!(redis(&cluster, "GET words:a"), "$5\r\n");
    let failed = "kith_router_query_errors_total{op=\"resp\"}";
    let down = "kith_router_nodes_down{group=\"0\",zone=\"\"}";
    assert_eq!(cluster.metric(failed), Some(0.0));
    let pid = cluster.node_pids(0)[0];
    signal(pid, "STOP");
    cluster.wait_until("the node is down", |cluster| cluster.metric(down) == Some(1.0));
    let answer = redis(&cluster, "GET words:a");
    signal(pid, "CONT");
    assert!(answer.starts_with("-ERR "), "{answer}");
    assert_eq!(cluster.metric(failed), Some(1.0));
    cluster.wait_until("the node is up", |cluster| cluster.metric(down) == Some(0.0));
}

#[test]
fn a_group_that_is_taken_out_shows_in_status_and_metrics() {
    let mut cluster = Cluster::start(&["--processes", "--groups", "2", "--nodes", "1"]);
    let states = |cluster: &Cluster| {
        let status = run_json(cluster, &["cluster", "status"]);
        let groups = status["groups"].as_array().expect("a list").clone();
        groups.iter().map(|it| it["state"].as_str().expect("text").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(states(&cluster), ["serving", "serving"]);
    assert!(!cluster.must(&["cluster", "status"]).contains("taken out"));
    run_json(&cluster, &["cluster", "drain-group", "0"]);
    cluster.wait_until("the status says so", |cluster| states(cluster) == ["out", "serving"]);
    let table = cluster.must(&["cluster", "status"]);
    assert!(table.contains("group 0 is taken out") && table.contains("0 out"), "{table}");
    let out = |group: u32| format!("kith_router_group_out{{group=\"{group}\"}}");
    cluster.wait_until("the metric says so", |cluster| cluster.metric(&out(0)) == Some(1.0));
    assert_eq!(cluster.metric(&out(1)), Some(0.0));
    run_json(&cluster, &["cluster", "restore-group", "0"]);
    cluster.wait_until("it is back", |cluster| {
        states(cluster) == ["serving", "serving"] && cluster.metric(&out(0)) == Some(0.0)
    });
}

#[test]
fn a_rebalance_that_has_stopped_shows_in_metrics() {
    let mut cluster = Cluster::start(&["--processes", "--groups", "1", "--nodes", "1"]);
    create(&cluster, "words", KeyType::String, ValueType::Text);
    let rows = (0..500).map(|key| (format!("{key}").into_bytes(), b"first".to_vec()));
    push(&cluster, "words", (KeyType::String, ValueType::Text), 1, rows);
    let data = cluster.data();
    let spare = Spare::start(&mut cluster, 100, data.parent().expect("a folder"));
    let components = spare.data.join("components");
    fs::write(&components, "in the way").expect("a file");
    let (code, reason) = refused(&cluster, &["cluster", "add-node", "100", "--group", "0", "--grace", "0"]);
    assert_eq!(code, "rebalance_stopped", "{reason}");
    let metric = "kith_router_rebalance_stopped";
    cluster.wait_until("the metric says so", |cluster| cluster.metric(metric) == Some(1.0));
    let (code, message) = refused(&cluster, &["cluster", "drain", "0"]);
    assert!(code == "rebalance_running" && message.contains("has stopped"), "{code}: {message}");
    let rows = data.parent().expect("a folder").join("again.csv");
    fs::write(&rows, "key,value\n1,second\n").expect("a file");
    let (code, message) = refused(&cluster, &["store", "push", "words", &rows.display().to_string()]);
    assert!(code == "rebalance_running" && message.contains("has stopped"), "{code}: {message}");
    // The cause is not removed: it stops again, and the command says so.
    let (code, reason) = refused(&cluster, &["cluster", "rebalance", "--continue"]);
    assert_eq!(code, "rebalance_stopped", "{reason}");
    fs::remove_file(&components).expect("the file");
    let ended = run_json(&cluster, &["cluster", "rebalance", "--continue"]);
    assert_eq!(ended["state"], "finished", "{ended}");
    cluster.wait_until("it goes on", |cluster| cluster.metric(metric) == Some(0.0));
}

#[test]
fn a_data_directory_that_is_removed_under_a_node_stays_the_nodes() {
    let mut cluster = Cluster::start(&["--processes", "--groups", "2", "--nodes", "1"]);
    create(&cluster, "words", KeyType::String, ValueType::Text);
    let rows = |value: &str| {
        let value = value.as_bytes().to_vec();
        (0..500).map(move |key| (format!("{key}").into_bytes(), value.clone()))
    };
    push(&cluster, "words", (KeyType::String, ValueType::Text), 1, rows("first"));
    let pid = cluster.node_pids(0)[0];
    let data = cluster.data().join("node-000");
    // At once, as no removal could be: the node must not be caught half-way.
    fs::rename(&data, cluster.data().join("removed")).expect("renamed");
    cluster.wait_until("the directory is made again", |_| data.join("kith.json").exists());
    let identity = fs::read_to_string(data.join("kith.json")).expect("it is there");
    let identity: Value = serde_json::from_str(&identity).expect("JSON");
    assert_eq!(identity["owner"], "node 0");
    let metadata = metadata_address(&cluster.data());
    let intruder = kith(&["node", "--node", "5", "--metadata", &metadata, "--data"])
        .arg(&data)
        .output()
        .expect("kith node runs");
    assert!(text(&intruder).contains("data_directory_in_use"), "{}", text(&intruder));
    // Both versions come to lie there, the one before without anybody asking for it.
    push(&cluster, "words", (KeyType::String, ValueType::Text), 2, rows("second"));
    for version in ["1", "2"] {
        cluster.wait_until("every replica is whole", |cluster| {
            let output = cluster.kith(&["store", "verify", "words", "--version", version]).output();
            output.expect("kith runs").status.success()
        });
    }
    assert_eq!(cluster.node_pids(0), [pid], "it went on");
    assert!(metric_at(&cluster.nodes_http()[0], "kith_node_files_damaged") == Some(0.0));
}
