//! The database is replaced by an older copy of itself. Every replica refuses tickets of lost writes, also after new writes.
//! All other reads and writes continue.

use super::{
    site::{GRAPH, Site, Talk, code},
    support::{
        cluster::{has_ended, signal},
        in_time, wait_until,
    },
};
use serde_json::{Value, json};
use std::{fs, path::Path, thread, time::Duration};

/// One partition, so that every write is in the same log.
const SHAPE: [&str; 9] =
    ["--processes", "--groups", "2", "--nodes", "1", "--partitions", "1", "--threads", "2"];
/// The files of the graph in the folder of its database. SQLite keeps recent transactions in the second and third file.
const FILES: [&str; 3] = ["social.sqlite", "social.sqlite-wal", "social.sqlite-shm"];

fn follow(id2: u64) -> Value {
    json!({"op": "assoc_add", "graph": GRAPH, "id1": 1, "type": "follows", "id2": id2, "time": id2, "deadline_ms": 3_000})
}

/// Returns reads of the written association list with a ticket, in each group and without a group, from caches and from
/// adjacency lists.
fn reads(ticket: &Value) -> Vec<Value> {
    let ops = [
        json!({"op": "assoc_range", "graph": GRAPH, "id1": 1, "type": "follows"}),
        json!({"op": "assoc_count", "graph": GRAPH, "id1": 1, "type": "follows"}),
        json!({"op": "connections", "graph": GRAPH, "id": 1, "edge_type": "follows", "direction": "out"}),
    ];
    let groups = [json!(0), json!(1), Value::Null];
    let reads = groups.iter().flat_map(|group| {
        ops.iter().map(move |op| {
            let mut read = op.clone();
            read["ticket"] = ticket.clone();
            if !group.is_null() {
                read["group"] = group.clone();
            }
            read
        })
    });
    reads.collect()
}

/// Repeats a line until it gets an answer or the error `history_lost`.
fn settled(talk: &mut Talk, line: &Value) -> Value {
    let mut answer = Value::Null;
    let is_settled = in_time().any(|()| {
        answer = talk.ask(line);
        let waits = code(&answer).is_some_and(|code| code != "history_lost");
        if waits {
            thread::sleep(Duration::from_millis(50));
        }
        !waits
    });
    assert!(is_settled, "{line}: {answer}");
    answer
}

/// Repeats a line until its ticket is refused. Before a replica notices that the database was replaced, it may still show
/// the lost writes.
fn until_lost(talk: &mut Talk, line: &Value) {
    let is_refused = in_time().any(|()| {
        let answer = settled(talk, line);
        let is_refused = code(&answer) == Some("history_lost");
        assert!(is_refused || is(&answer, &[4, 3, 2]), "{line}: {answer}");
        is_refused
    });
    assert!(is_refused, "{line}");
}

/// Whether the answer to one of the reads shows these ids, which are given newest first.
fn is(answer: &Value, ids: &[u64]) -> bool {
    let out: Vec<[u64; 2]> = ids.iter().map(|id| [*id, *id]).collect();
    let mut ascending = ids.to_vec();
    ascending.sort_unstable();
    answer["out"] == json!(out) || answer["count"] == ids.len() || answer["ids"] == json!(ascending)
}

fn copy(from: &Path, to: &Path) {
    for file in FILES {
        let _ = fs::remove_file(to.join(file));
        if from.join(file).exists() {
            fs::copy(from.join(file), to.join(file)).expect("the file can be copied");
        }
    }
}

/// Kills the database process, replaces its files by the copy, and waits until the process is started again.
fn replace(site: &Site, folder: &Path, saved: &Path) {
    let pid = || site.cluster.ready()["databases"][0]["pid"].as_u64().expect("a pid") as u32;
    let (before, supervisor) = (pid(), site.cluster.pid());
    // The supervisor must not start the process again before the files are in place.
    signal(supervisor, "STOP");
    signal(before, "KILL");
    wait_until("the database is gone", || has_ended(before));
    copy(saved, folder);
    signal(supervisor, "CONT");
    wait_until("the database is back", || pid() != before);
}

#[test]
fn tickets_of_a_lost_history_are_refused_and_all_else_goes_on() {
    let site = Site::start(&SHAPE);
    // A conversation adds the tickets of its own writes to its reads, so reads use another one.
    let (mut writer, mut reader) = (site.talk(1), site.talk(1));
    let kept = writer.must(&follow(2))["ticket"].clone();
    let (folder, saved) = (site.cluster.data().join("database-000"), tempfile::tempdir().expect("a folder"));
    copy(&folder, saved.path());
    let lost: Vec<Value> = [3, 4].map(|id2| writer.must(&follow(id2))["ticket"].clone()).to_vec();
    for read in reads(&lost[1]) {
        let answer = settled(&mut reader, &read);
        assert_eq!(code(&answer), None, "{read}: {answer}");
    }
    replace(&site, &folder, saved.path());

    for ticket in &lost {
        reads(ticket).iter().for_each(|read| until_lost(&mut reader, read));
    }
    for read in reads(&kept) {
        let answer = settled(&mut reader, &read);
        assert!(is(&answer, &[2]), "{read}: {answer}");
    }
    // New writes use the lost positions again.
    let mut newer = Value::Null;
    for id2 in [5, 6, 7] {
        newer = settled(&mut writer, &follow(id2))["ticket"].clone();
    }
    for read in lost.iter().flat_map(reads) {
        let answer = settled(&mut reader, &read);
        assert_eq!(code(&answer), Some("history_lost"), "{read}: {answer}");
    }
    for read in reads(&newer) {
        let answer = settled(&mut reader, &read);
        assert!(is(&answer, &[7, 6, 5, 2]), "{read}: {answer}");
    }
    // Neither a later ticket beside it nor the writes that the router has sent since hide that a write is lost.
    for read in lost.iter().flat_map(|ticket| reads(&json!([ticket, newer]))) {
        let answer = settled(&mut reader, &read);
        assert_eq!(code(&answer), Some("history_lost"), "{read}: {answer}");
    }
    let traversal = |ticket: &Value| {
        let ticket = ticket.as_str().expect("a ticket is a text");
        let gremlin = format!("g.with('kith.ticket', '{ticket}').V(1).out('follows').count()");
        json!({"op": "gremlin", "graph": GRAPH, "gremlin": gremlin})
    };
    for ticket in &lost {
        let answer = settled(&mut reader, &traversal(ticket));
        assert_eq!(code(&answer), Some("history_lost"), "{answer}");
    }
    for ticket in [&kept, &newer] {
        let answer = settled(&mut reader, &traversal(ticket));
        assert_eq!(code(&answer), None, "{answer}");
    }
}
