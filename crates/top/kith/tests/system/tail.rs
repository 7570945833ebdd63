//! Reads by key while nodes, or their router, have a bad day: nothing fails, what is late is asked elsewhere, a pause of
//! the router's own is not taken for the nodes'.

use crate::support;
use kith_engine::{KeyType, ValueType};
use serde_json::{Value, json};
use std::{thread, time::Duration};
use support::{
    cluster::{Cluster, signal},
    in_time,
    values::{create, push},
};

const PEOPLE: u64 = 10_000;
/// By the fixed table such a batch is late after 50 ms.
const BATCH: u64 = 100;
/// How long the router stands still.
const PAUSE: Duration = Duration::from_millis(300);
/// How long all nodes stand still: longer than it takes to call them dead, not as long as a read may take.
const STANDSTILL: Duration = Duration::from_millis(900);

fn value(key: u64) -> String {
    format!("value of {key}, {}", "x".repeat(100))
}

/// Two groups of three node processes with a store of texts by id.
fn started() -> Cluster {
    let cluster = Cluster::start(&["--processes", "--nodes", "3", "--groups", "2"]);
    let types = (KeyType::Id, ValueType::Text);
    create(&cluster, "people", types.0, types.1);
    let rows = (0..PEOPLE).map(|key| (key.to_le_bytes().to_vec(), value(key).into_bytes()));
    push(&cluster, "people", types, 1, rows);
    cluster
}

fn keys(at: u64) -> Vec<u64> {
    (0..BATCH).map(|key| (at * 37 + key * 97) % (PEOPLE + 50)).collect()
}

fn reads(count: u64) -> Vec<Value> {
    let read =
        |at| json!({"op": "mget", "store": "people", "keys": keys(at), "profile": true, "hedge": "table"});
    (0..count).map(read).collect()
}

/// The same, each of one group.
fn reads_of_one_group(count: u64) -> Vec<Value> {
    let mut reads = reads(count);
    reads.iter_mut().for_each(|read| read["fan_out"] = json!("min"));
    reads
}

fn assert_right(answers: &[Value]) {
    for (at, answer) in (0..).zip(answers) {
        let results = answer["results"].as_array().unwrap_or_else(|| panic!("{answer}"));
        assert_eq!(results.len() as u64, BATCH);
        for (key, result) in keys(at).into_iter().zip(results) {
            let expected = match key < PEOPLE {
                true => json!({"key": key, "state": "FOUND", "value": value(key)}),
                false => json!({"key": key, "state": "ABSENT", "value": null}),
            };
            assert_eq!(result, &expected);
        }
    }
}

/// The requests to nodes of an answer's profile.
fn requests(answer: &Value) -> impl Iterator<Item = &Value> {
    let rounds = answer["profile"]["rounds"].as_array().expect("a profile").iter();
    rounds.flat_map(|round| round["requests"].as_array().expect("requests"))
}

/// A process that stands still until this is dropped.
struct Frozen(u32);

impl Frozen {
    fn new(pid: u32) -> Self {
        signal(pid, "STOP");
        Self(pid)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        signal(self.0, "CONT");
    }
}

#[test]
fn with_a_node_frozen_and_another_killed_no_read_fails_and_hedges_win() {
    let mut cluster = started();
    for () in in_time() {
        let nodes = cluster.node_pids(0);
        let mut frozen = None;
        let (answers, exit) = cluster.run_and_then(&reads(500), 8, 50, || {
            frozen = Some(Frozen::new(nodes[0]));
            signal(nodes[1], "KILL");
        });
        assert_eq!(exit, 0);
        assert_right(&answers);
        drop(frozen);
        let is_won_hedge = |request: &&Value| request["cause"] == "hedge" && request["won"] == true;
        let won: Vec<&Value> =
            answers.iter().filter(|answer| requests(answer).any(|request| is_won_hedge(&request))).collect();
        for answer in &won {
            // Keys whose other replica owed this read an answer as well were left to the late node: it need not be overtaken.
            assert!(0 < answer["profile"]["hedges"].as_u64().expect("a count"), "{answer}");
        }
        if !won.is_empty() {
            return;
        }
        // It was noticed before anything was late.
        cluster.wait_until("the killed node is back", |cluster| cluster.node_pids(0)[1] != nodes[1]);
    }
    panic!("nothing was hedged in all that time");
}

#[test]
fn a_group_that_is_frozen_as_a_whole_is_overtaken_as_a_whole() {
    let cluster = started();
    for () in in_time() {
        let nodes = cluster.node_pids(0);
        let mut frozen = Vec::new();
        let (answers, exit) = cluster.run_and_then(&reads_of_one_group(500), 8, 50, || {
            frozen.extend(nodes.iter().map(|&pid| Frozen::new(pid)));
        });
        assert_eq!(exit, 0);
        assert_right(&answers);
        drop(frozen);
        let overtaken = |answer: &Value| {
            requests(answer).filter(|request| request["outcome"] == "overtaken").count() == nodes.len()
        };
        if answers.iter().any(overtaken) {
            return;
        }
    }
    panic!("no read was hedged at all three nodes of the group");
}

#[test]
fn after_a_pause_of_the_router_nothing_is_hedged_for_it() {
    let cluster = started();
    let router = cluster.ready()["routers"][0]["pid"].as_u64().expect("a pid") as u32;
    let pause_us = PAUSE.as_micros() as u64;
    for () in in_time() {
        let (answers, exit) = cluster.run_and_then(&reads(600), 16, 100, || {
            let paused = Frozen::new(router);
            thread::sleep(PAUSE);
            drop(paused);
        });
        assert_eq!(exit, 0);
        assert_right(&answers);
        let took = |answer: &Value| answer["profile"]["total_us"].as_u64().expect("a time");
        let paused: Vec<&Value> = answers.iter().filter(|answer| pause_us <= took(answer)).collect();
        for answer in &paused {
            // The table has what is late asked again after 50 ms: only the pause moves that behind its end. What is late by as much
            // again after it is late by itself.
            let hedged = requests(answer).any(|request| {
                let start_us = request["start_us"].as_u64().expect("a time");
                request["cause"] == "hedge" && (pause_us..2 * pause_us).contains(&start_us)
            });
            assert!(!hedged, "{answer}");
        }
        if !paused.is_empty() {
            return;
        }
    }
    panic!("nothing was ever under way during a pause");
}

#[test]
fn while_all_nodes_stand_still_reads_are_late_and_none_fails() {
    let cluster = started();
    let nodes = [cluster.node_pids(0), cluster.node_pids(1)].concat();
    for () in in_time() {
        let (answers, exit) = cluster.run_and_then(&reads(400), 16, 50, || {
            let frozen: Vec<Frozen> = nodes.iter().map(|&pid| Frozen::new(pid)).collect();
            thread::sleep(STANDSTILL);
            drop(frozen);
        });
        assert_eq!(exit, 0);
        assert_right(&answers);
        let took = |answer: &&Value| answer["profile"]["total_us"].as_u64().expect("a time");
        let waited = STANDSTILL.as_micros() as u64 / 2;
        if answers.iter().any(|answer| waited <= took(&answer)) {
            return;
        }
    }
    panic!("nothing was ever under way while they stood still");
}
