//! Nodes are restarted, groups are drained, and partitions move to other nodes while writers run. No write fails. Named writes
//! survive the router that they were sent to.

use super::{
    site::{GRAPH, Site, Talk, code},
    support::{
        cluster::{Cluster, signal},
        spare::{Spare, run_json},
        wait_until,
    },
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

const SHAPE: [&str; 11] =
    ["--processes", "--groups", "2", "--nodes", "2", "--routers", "2", "--partitions", "8", "--threads", "2"];
/// The number of objects to which each writer adds associations. Every partition holds some of them.
const SOURCES: u64 = 16;
/// The maximum number of lines of one writer in flight.
const IN_FLIGHT: u32 = 8;
/// A one-sided type, a symmetric one, and one with an inverse, each with the type of the other direction.
const TYPES: [(&str, Option<&str>); 3] =
    [("likes", None), ("friend", Some("friend")), ("follows", Some("followed_by"))];
/// The state that writers share.
#[derive(Default)]
struct Writers {
    stop: AtomicBool,
    failed: Mutex<Vec<String>>,
}

impl Writers {
    /// Writes associations until `stop` is set. Returns the number of associations.
    fn write(&self, writer: u64, talk: &mut Talk) -> u64 {
        let mut written = 0;
        while !self.stop.load(Ordering::Relaxed) {
            let lines: Vec<Value> =
                (written..).take(4 * IN_FLIGHT as usize).map(|it| addition(writer, it)).collect();
            for (line, answer) in lines.iter().zip(talk.ask_all(&lines)) {
                if code(&answer).is_some() {
                    self.failed.lock().push(format!("{line}: {answer}"));
                }
            }
            written += lines.len() as u64;
        }
        written
    }
}

/// Returns the first id, the type and the second id of an association.
fn association(writer: u64, number: u64) -> (u64, (&'static str, Option<&'static str>), u64) {
    let base = writer * 1_000_000;
    (base + number % SOURCES, TYPES[(number % 3) as usize], base + SOURCES + number / SOURCES)
}

fn addition(writer: u64, number: u64) -> Value {
    let (id1, (kind, _), id2) = association(writer, number);
    json!({"op": "assoc_add", "graph": GRAPH, "id1": id1, "type": kind, "id2": id2, "time": number,
        "write_id": format!("w{writer}-{number}"), "deadline_ms": 50_000})
}

/// Waits until all partitions have leaders, and exactly these nodes lead some.
fn wait_until_led_by(cluster: &Cluster, nodes: &[u64]) {
    wait_until(&format!("{nodes:?} lead"), || {
        let status = run_json(cluster, &["cluster", "status"]);
        let graph = &status["live_graphs"][0];
        let listed = graph["nodes"].as_array().expect("a list").iter();
        let leading = listed.filter(|node| node["leads"] != 0).map(|node| node["node"].as_u64());
        graph["leaderless"] == 0 && leading.eq(nodes.iter().copied().map(Some))
    });
}

/// Ends one node after the other. The cluster starts each of them again.
fn restart_nodes(cluster: &mut Cluster) {
    for index in 0..4 {
        let pid = |cluster: &Cluster| cluster.ready()["nodes"][index]["pid"].as_u64().expect("a pid") as u32;
        let leaving = pid(cluster);
        signal(leaving, "TERM");
        cluster.wait_until("the node is back", |cluster| pid(cluster) != leaving);
        wait_until_led_by(cluster, &[0, 1, 2, 3]);
    }
}

fn drain_groups(cluster: &Cluster) {
    for (group, others) in [("0", [2, 3]), ("1", [0, 1])] {
        for (command, leading) in [("drain-group", &others[..]), ("restore-group", &[0, 1, 2, 3])] {
            let ended = run_json(cluster, &["cluster", command, group]);
            assert_eq!(ended["state"], "finished", "{command}: {ended}");
            wait_until_led_by(cluster, leading);
        }
    }
}

/// Adds a node, which takes over partitions, and removes it again.
fn rebalance(cluster: &mut Cluster) {
    let folder = cluster.data().parent().expect("the data folder has a parent").to_owned();
    let spare = Spare::start(cluster, 100, &folder);
    for (command, leading) in
        [(&["add-node", &spare.addr][..], &[0, 1, 2, 3, 100][..]), (&["remove-node", "100"], &[0, 1, 2, 3])]
    {
        let ended = run_json(cluster, &[&["cluster"], command, &["--grace", "0"]].concat());
        assert_eq!(ended["state"], "finished", "{command:?}: {ended}");
        wait_until_led_by(cluster, leading);
    }
}

/// Checks that all written associations can be read, in both directions.
fn check(writer: u64, written: u64, talk: &mut Talk) {
    let mut lists: BTreeMap<(u64, &str), Vec<(u64, u64)>> = BTreeMap::new();
    // Lists begin with the newest association.
    for number in (0..written).rev() {
        let (id1, (kind, inverse), id2) = association(writer, number);
        lists.entry((id1, kind)).or_default().push((id2, number));
        if let Some(inverse) = inverse {
            lists.entry((id2, inverse)).or_default().push((id1, number));
        }
    }
    let reads = lists.keys().map(|(from, kind)| {
        json!({"op": "assoc_range", "graph": GRAPH, "id1": from, "type": kind, "critical": true,
            "deadline_ms": 50_000})
    });
    let reads: Vec<Value> = reads.collect();
    for ((read, answer), expected) in reads.iter().zip(talk.ask_all(&reads)).zip(lists.into_values()) {
        assert_eq!(answer["out"], json!(expected), "{read}: {answer}");
    }
}

#[test]
fn no_write_fails_when_leadership_is_handed_over() {
    let mut site = Site::start(&SHAPE);
    let writers = Writers::default();
    let talks: Vec<Talk> = (0..2).map(|router| site.talk_to(router, IN_FLIGHT)).collect();
    let written: Vec<u64> = thread::scope(|scope| {
        let write = |(writer, mut talk): (usize, Talk)| {
            let writers = &writers;
            scope.spawn(move || writers.write(writer as u64, &mut talk))
        };
        let threads: Vec<_> = talks.into_iter().enumerate().map(write).collect();
        let changed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            restart_nodes(&mut site.cluster);
            drain_groups(&site.cluster);
            rebalance(&mut site.cluster);
        }));
        writers.stop.store(true, Ordering::Relaxed);
        let written =
            threads.into_iter().map(|thread| thread.join().expect("writers do not panic")).collect();
        changed.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        written
    });
    let failed = writers.failed.lock();
    let count: u64 = written.iter().sum();
    assert!(
        failed.is_empty(),
        "{} of {count} writes failed:\n{}",
        failed.len(),
        failed[..failed.len().min(5)].join("\n")
    );
    assert!(100 < count, "hardly anything was written: {count}");
    for (writer, written) in written.into_iter().enumerate() {
        check(writer as u64, written, &mut site.talk(IN_FLIGHT));
    }
}

/// Stops a router, sends it a line, and kills it. Returns the answer of the client, which knows other routers.
fn killed_while_asked(router: &Value, talk: &mut Talk, line: &Value) -> Value {
    let pid = router["pid"].as_u64().expect("a process") as u32;
    signal(pid, "STOP");
    thread::scope(|scope| {
        let asked = scope.spawn(|| talk.ask(line));
        // The line then lies in the socket of the router.
        thread::sleep(Duration::from_millis(500));
        signal(pid, "KILL");
        asked.join().expect("it is answered")
    })
}

#[test]
fn a_named_write_goes_to_the_next_router_if_the_first_is_killed() {
    let shape = ["--processes", "--groups", "1", "--nodes", "1", "--routers", "3", "--partitions", "4"];
    let site = Site::start_empty(&shape);
    let applied = site.apply(GRAPH, "[association.likes]\n", &[]);
    assert!(applied.status.success(), "{applied:?}");
    let ready = site.cluster.ready();
    let line = |id2: u64, write_id: Option<&str>| {
        json!({"op": "assoc_add", "graph": GRAPH, "id1": 1, "type": "likes", "id2": id2, "time": 1, "write_id": write_id,
               "deadline_ms": 20_000})
    };
    let mut talk = Talk::at(&site.routers().join(","), 1);
    // The first write through a router opens the connection.
    talk.must(&line(1, None));
    let unnamed = killed_while_asked(&ready["routers"][0], &mut talk, &line(2, None));
    assert_eq!(code(&unnamed), Some("outcome_unknown"), "{unnamed}");
    talk.must(&line(1, None));
    let named = line(3, Some("third"));
    let answer = killed_while_asked(&ready["routers"][1], &mut talk, &named);
    assert_eq!(answer["existed"], false, "{answer}");
    assert_eq!(site.talk_to(2, 1).must(&named), answer, "it was carried out once");
}
