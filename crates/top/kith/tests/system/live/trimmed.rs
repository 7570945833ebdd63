//! Logs are trimmed, and a replica whose log was trimmed while it was frozen recovers from the rows of the database.

use super::{
    site::{GRAPH, Site, Talk, code},
    support::{cluster::metric_at, in_time, wait_until, wait_until_or_tell},
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::{thread, time::Duration};

/// One partition in two groups, so that one node leads and the other one follows.
const SHAPE: [&str; 13] = [
    "--processes",
    "--groups",
    "2",
    "--nodes",
    "1",
    "--partitions",
    "1",
    "--threads",
    "2",
    "--scrub-rate",
    "off",
    "--log-retention",
    "1s",
];

/// The only node of a group.
struct Node {
    group: u64,
    pid: Pid,
    http: String,
}

impl Node {
    fn metric(&self, name: &str) -> f64 {
        metric_at(&self.http, name).unwrap_or_default()
    }

    fn written(&self) -> f64 {
        self.metric("kith_live_writes_total{outcome=\"done\"}")
    }

    fn signal(&self, signal: Signal) {
        kill_process(self.pid, signal).expect("the process belongs to this test and runs");
    }
}

/// Returns the leader and the follower.
fn leader_and_follower(site: &Site) -> (Node, Node) {
    let (ready, http) = (site.cluster.ready(), site.cluster.nodes_http());
    let node = |group: usize| {
        let pid = ready["nodes"][group]["pid"].as_i64().and_then(|pid| Pid::from_raw(pid as i32));
        Node { group: group as u64, pid: pid.expect("a pid"), http: http[group].clone() }
    };
    let (one, other) = (node(0), node(1));
    if 0.0 < one.written() { (one, other) } else { (other, one) }
}

/// Repeats a read until it is answered. A replica that builds its adjacency lists answers `partitions_unavailable`.
fn answered(talk: &mut Talk, line: &Value) -> Value {
    let mut answer = Value::Null;
    let is_answered = in_time().any(|()| {
        answer = talk.ask(line);
        let refused = code(&answer);
        assert!(refused.is_none_or(|code| code == "partitions_unavailable"), "{line}: {answer}");
        thread::sleep(Duration::from_millis(20));
        refused.is_none()
    });
    assert!(is_answered, "{line}: {answer}");
    answer
}

#[test]
fn a_frozen_replica_whose_log_was_trimmed_reads_its_rows_again() {
    let site = Site::start(&SHAPE);
    let mut talk = site.talk(1);
    let mut writes = 0.0;
    let mut write = |line: Value| {
        writes += 1.0;
        (talk.must(&line)["ticket"].clone(), writes)
    };
    let follow = |id1: u64, id2: u64| json!({"op": "assoc_add", "graph": GRAPH, "id1": id1, "type": "follows", "id2": id2, "time": 1});
    write(json!({"op": "object_add", "graph": GRAPH, "type": "person", "id": 1, "data": {"name": "Ada"}}));
    write(follow(1, 2));
    let (ticket, _) = write(follow(2, 3));
    let (leader, follower) = leader_and_follower(&site);
    let read = |ticket: &Value| {
        let of = |mut line: Value| {
            line["graph"] = json!(GRAPH);
            line["group"] = json!(follower.group);
            line["ticket"] = ticket.clone();
            line
        };
        [
            of(json!({"op": "object_get", "id": 1})),
            of(json!({"op": "assoc_range", "id1": 1, "type": "follows"})),
            of(json!({"op": "connections", "id": 1, "edge_type": "follows", "direction": "out"})),
            of(json!({"op": "distance", "id": 1, "to": [3], "edge_type": "follows", "direction": "out"})),
        ]
    };
    let mut reader = site.talk(1);
    for line in read(&ticket) {
        answered(&mut reader, &line);
    }
    follower.signal(Signal::STOP);
    write(json!({"op": "object_update", "graph": GRAPH, "id": 1, "data": {"age": 36}}));
    write(json!({"op": "assoc_delete", "graph": GRAPH, "id1": 2, "type": "follows", "id2": 3}));
    let (ticket, writes) = write(follow(1, 3));
    let trimmed = || leader.metric("kith_live_trimmed_total{rows=\"changes\"}");
    wait_until_or_tell("all changes are trimmed", || writes <= trimmed(), || format!("{}", trimmed()));
    follower.signal(Signal::CONT);

    let [object, range, connections, distance] = read(&ticket).map(|line| answered(&mut reader, &line));
    assert_eq!(object["object"]["data"], json!({"name": "Ada", "age": 36}));
    assert_eq!(range["out"], json!([[2, 1], [3, 1]]));
    assert_eq!(connections["ids"], json!([2, 3]));
    assert_eq!(distance["distances"], json!([1]), "{distance}");
    assert!(
        0.0 < follower.metric("kith_live_jumps_total"),
        "the follower has skipped the trimmed part of the log"
    );
    for bytes in ["kith_live_list_bytes", "kith_live_cache_bytes"] {
        wait_until(bytes, || 0.0 < follower.metric(&format!("{bytes}{{graph=\"{GRAPH}\"}}")));
    }
}
