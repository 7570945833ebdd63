//! Every operation, through every door of a router, is admitted, recorded, counted and charged; and what is recorded asks the
//! same again.

use crate::support;
use serde_json::{Value, json};
use std::{fs, path::PathBuf, process::Stdio};
use support::{
    cluster::{Cluster, run_lines, signal, text},
    redis::Redis,
    reference::Reference,
};

const GRAPH: &str = "kith-village";
/// Stands for a file of three keys among the arguments of a command.
const KEYS: &str = "keys.txt";

/// One operation through one door.
#[derive(Clone, Copy, Debug)]
enum Door {
    /// `kith run` over this transport.
    Run(&'static str),
    /// A subcommand with these arguments over this transport.
    Command(&'static str),
    /// redis-cli.
    Redis,
}

/// A request, and its name at the router.
struct Sample {
    op: &'static str,
    door: Door,
    /// A request line, or the arguments of a command.
    request: Value,
    /// Keys of the store that it reads; `None` of a graph.
    keys: Option<u64>,
    /// Whether values come back, whose bytes are charged.
    has_values: bool,
}

/// A cluster of one node as a process, whose router records all and logs all as slow.
struct Watched {
    cluster: Cluster,
    folder: tempfile::TempDir,
}

impl Watched {
    fn start(settings: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (record, config) = (folder.path().join("queries.jsonl"), folder.path().join("router.toml"));
        fs::write(&config, format!("record = {record:?}\n{settings}\n[slow-log]\nthreshold-ms = 0\n"))
            .expect("written");
        let config = config.to_str().expect("UTF-8");
        let cluster = Cluster::start(&["--processes", "--nodes", "1", "--groups", "1", "--config", config]);
        let load = Reference::open(GRAPH).expect("it comes with the project").load_arguments();
        cluster.must(&load.iter().map(String::as_str).collect::<Vec<_>>());
        let rows = folder.path().join("people.jsonl");
        let row = |id: u64| {
            format!("{}\n", json!({"id": id, "age": id % 3, "tags": ["a"], "v": [id as f64 + 0.5, 1.0]}))
        };
        fs::write(&rows, (1..=9).map(row).collect::<String>()).expect("written");
        cluster.must(&["store", "create", "people", "--key", "id", "--value", "record", "--key-field", "id"]);
        cluster.must(&["store", "push", "people", rows.to_str().expect("UTF-8")]);
        fs::write(folder.path().join(KEYS), "1\n2\n3\n").expect("written");
        Self { cluster, folder }
    }

    fn record(&self) -> PathBuf {
        self.folder.path().join("queries.jsonl")
    }

    fn recorded(&self) -> Vec<Value> {
        let lines = fs::read_to_string(self.record()).unwrap_or_default();
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    fn metric(&self, name: &str) -> u64 {
        self.cluster.metric(name).unwrap_or_default() as u64
    }

    /// Asks, and tells what was printed.
    fn ask(&self, asked: &Sample) -> String {
        let keys = self.folder.path().join(KEYS);
        let keys = keys.to_str().expect("UTF-8");
        let words = || {
            let words = asked.request.as_array().expect("arguments").iter();
            let words = words.map(|word| word.as_str().expect("text"));
            words.map(|word| if word == KEYS { keys } else { word }).collect::<Vec<&str>>()
        };
        match asked.door {
            Door::Run(transport) => {
                let command = self.cluster.kith(&["run", "--input", "-", "--transport", transport]);
                run_lines(command, std::slice::from_ref(&asked.request), usize::MAX, || ()).0[0].to_string()
            }
            Door::Command(transport) => {
                let arguments = [&words()[..], &["--transport", transport, "-o", "json"]].concat();
                text(&self.cluster.kith(&arguments).output().expect("kith runs"))
            }
            Door::Redis => Redis::of_router(&self.cluster.ready()).cli(&words()),
        }
    }

    /// Metrics that grow by one with each request, by those of `op`, and what was recorded.
    fn seen(&self, op: &str) -> Seen {
        Seen {
            noted: self.metric(&format!("kith_router_query_seconds_count{{op=\"{op}\"}}")),
            logged: self.metric("kith_router_slow_queries_total"),
            keys: self.metric("kith_router_read_keys_total{store=\"people\"}"),
            bytes: self.metric("kith_router_read_bytes_total{store=\"people\"}"),
        }
    }
}

#[derive(Debug)]
struct Seen {
    noted: u64,
    logged: u64,
    keys: u64,
    bytes: u64,
}

/// A request by line: its name in metrics, the line, how many keys of a store it reads, and whether its answer has values of them.
type Line = (&'static str, Value, Option<u64>, bool);

/// Requests of all operations.
fn lines() -> Vec<Line> {
    [of_a_graph(), of_a_store()].concat()
}

fn of_a_graph() -> Vec<Line> {
    let graph = |op: &'static str, fields: Value| {
        let mut line = json!({"op": op, "graph": GRAPH, "id": 9043});
        line.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
        (op, line, None, false)
    };
    vec![
        graph("connections", json!({})),
        ("degree", json!({"op": "degree", "graph": GRAPH, "ids": [9043, 1]}), None, false),
        graph("edges", json!({"limit": 2, "descending": true})),
        graph("network", json!({"return": "size"})),
        graph("distance", json!({"to": [1007]})),
        graph("path", json!({"to": 10000, "max": 4})),
        graph("common", json!({"to": 7739, "kind": "school", "return": "size"})),
        graph("entities", json!({"kind": "region"})),
        graph("suggest", json!({"k": 3})),
        ("members", json!({"op": "members", "graph": GRAPH, "kind": "region", "entity": 1}), None, false),
    ]
}

fn of_a_store() -> Vec<Line> {
    let store = "people";
    let any = json!([{"eq": 0}, {"and": [{"ge": 1}, {"lt": 2}]}, {"any_of": [2, 7]}]);
    vec![
        ("mget", json!({"op": "mget", "store": store, "keys": [1, 2, 77]}), Some(3), true),
        (
            "compute",
            json!({"op": "compute", "store": store, "keys": [1, 2, 3, 4], "project": ["age"],
                "dot": [{"field": "v", "query": [1, 2], "as": "score"}, {"field": "v", "query": [0.5, 0.1]}],
                "cosine": [{"field": "v", "query": [1, 0]}], "hadamard": [{"field": "v", "query": [1, -1]}],
                "count": [{"field": "tags", "as": "n"}], "top_k": {"by": "score", "k": 3}}),
            Some(4),
            true,
        ),
        (
            "aggregate",
            json!({"op": "aggregate", "store": store, "keys": [1, 2, 3], "count_by_value": {"field": "age", "top": 2}}),
            Some(3),
            false,
        ),
        (
            "aggregate",
            json!({"op": "aggregate", "store": store, "keys": [1, 2, 3, 4, 5],
                "count_by_bucket": {"field": "age", "buckets": [{"name": "young", "or": any}, {"name": "old", "gt": 1, "le": 9}]}}),
            Some(5),
            false,
        ),
    ]
}

/// Every operation through every door.
fn all() -> Vec<Sample> {
    let mut all = Vec::new();
    for transport in ["framed", "grpc"] {
        for (op, request, keys, has_values) in lines() {
            all.push(Sample { op, door: Door::Run(transport), request, keys, has_values });
        }
        let command = |op, words: &[&str], keys, has_values| Sample {
            op,
            door: Door::Command(transport),
            request: json!(words),
            keys,
            has_values,
        };
        all.push(command("explain", &["explain", "network", "9043", "--graph", GRAPH], None, false));
        all.push(command("mget_stream", &["mget", "people", "1", "2", "--stream"], Some(2), true));
        let compute = ["compute", "people", "--keys-from", KEYS, "--dot", "v:[1,2]", "--stream"];
        all.push(command("compute_stream", &compute, Some(3), true));
    }
    all.push(Sample {
        op: "resp",
        door: Door::Redis,
        request: json!(["mget", "people:1", "people:2"]),
        keys: Some(2),
        has_values: true,
    });
    all
}

#[test]
fn every_operation_of_every_door_is_recorded_counted_and_charged() {
    let mut watched = Watched::start("");
    for asked in all() {
        let (before, recorded) = (watched.seen(asked.op), watched.recorded().len());
        let answer = watched.ask(&asked);
        let what = format!("{} by {:?}: {answer}", asked.op, asked.door);
        assert!(!answer.contains("\"code\"") && !answer.contains("error["), "{what}");
        let after = watched.seen(asked.op);
        assert_eq!((after.noted, after.logged), (before.noted + 1, before.logged + 1), "{what}");
        assert_eq!(after.keys, before.keys + asked.keys.unwrap_or_default(), "{what}");
        assert_eq!(before.bytes < after.bytes, asked.has_values, "{what}");
        // There is nothing to replay of a plan.
        let lines = if asked.op == "explain" { 0 } else { 1 };
        let Watched { cluster, folder } = &mut watched;
        let record = folder.path().join("queries.jsonl");
        cluster.wait_until(&format!("the record of {what}"), |_| {
            fs::read_to_string(&record).unwrap_or_default().lines().count() == recorded + lines
        });
    }
}

#[test]
fn what_is_recorded_asks_the_same() {
    let mut watched = Watched::start("");
    let requests: Vec<Value> = lines().into_iter().map(|(_, line, ..)| line).collect();
    let (answers, exit) = watched.cluster.run(&requests, 1);
    assert_eq!(exit, 0);
    let record = watched.record();
    watched.cluster.wait_until("the record is written", |_| {
        fs::read_to_string(&record).unwrap_or_default().lines().count() == requests.len()
    });
    let recorded = watched.recorded();
    let (again, _) = watched.cluster.run(&recorded, 1);
    for ((recorded, again), first) in recorded.iter().zip(again).zip(answers) {
        assert!(again == first, "{recorded}");
    }
}

#[test]
fn no_operation_of_any_door_enters_a_router_that_is_full() {
    let watched = Watched::start("[admission]\nqueries-max = 1\n");
    let node = watched.cluster.node_pids(0)[0];
    signal(node, "STOP");
    let held = json!({"op": "mget", "store": "people", "keys": [1], "deadline_ms": 60_000});
    let holding = watched.folder.path().join("held.jsonl");
    fs::write(&holding, format!("{held}\n")).expect("written");
    let mut holder = watched
        .cluster
        .kith(&["run", "--input", holding.to_str().expect("UTF-8")])
        .stdout(Stdio::null())
        .spawn()
        .expect("kith runs");
    let record = watched.record();
    support::wait_until("the one place is taken", || {
        !fs::read_to_string(&record).unwrap_or_default().is_empty()
    });
    for asked in all() {
        let refused = |watched: &Watched| {
            let store = if asked.keys.is_some() { "people" } else { GRAPH };
            watched.metric(&format!("kith_router_refused_total{{store=\"{store}\",reason=\"overloaded\"}}"))
        };
        let before = refused(&watched);
        let answer = watched.ask(&asked);
        assert!(answer.contains("overloaded"), "{} by {:?}: {answer}", asked.op, asked.door);
        assert!(before < refused(&watched), "{} by {:?}", asked.op, asked.door);
    }
    signal(node, "CONT");
    assert!(holder.wait().expect("it ends").code().is_some());
}

#[test]
fn no_read_of_any_door_is_beyond_the_quota_of_its_store() {
    let watched = Watched::start("");
    watched.cluster.must(&["store", "alter", "people", "--read-quota-keys", "1"]);
    let reads: Vec<Sample> = all().into_iter().filter(|asked| asked.keys.is_some()).collect();
    // What is left of the first second.
    support::wait_until("the quota is used up", || watched.ask(&reads[0]).contains("quota_exceeded"));
    for asked in reads {
        let answer = watched.ask(&asked);
        assert!(answer.contains("quota_exceeded"), "{} by {:?}: {answer}", asked.op, asked.door);
    }
}
