//! Connections are opened before queries need them: when a router starts, when a node joins, comes back or loses one.

use crate::support;
use kith_engine::{KeyType, ValueType};
use std::{fs, path::Path};
use support::{
    cluster::{Cluster, signal},
    spare::{Spare, run_json},
    values::{create, push},
};

const KEYS: u64 = 400;
const TYPES: (KeyType, ValueType) = (KeyType::Id, ValueType::Text);

/// Connections of the router to nodes: opened by probes, and by queries.
fn opened(cluster: &Cluster) -> [u32; 2] {
    ["ping", "evaluate"].map(|op| opened_by(cluster, op))
}

fn opened_by(cluster: &Cluster, op: &str) -> u32 {
    cluster.metric(&format!("kith_client_connections_opened_total{{op=\"{op}\"}}")).unwrap_or(0.0) as u32
}

/// Reads all keys through the router, half a dozen at a time: plans of every shape.
fn read(cluster: &Cluster, folder: &Path) {
    for first in (0..KEYS).step_by(80) {
        let file = folder.join("keys");
        fs::write(&file, (first..first + 80).map(|key| format!("{key}\n")).collect::<String>())
            .expect("written");
        let read =
            cluster.must(&["mget", "texts", "--keys-from", file.to_str().expect("UTF-8"), "-o", "json"]);
        assert_eq!(read.lines().filter(|line| line.contains("text of")).count(), 80, "{read}");
    }
}

/// So many connections were opened by probes, and none by a query.
fn assert_opened(cluster: &Cluster, by_probes: u32) {
    let [probes, queries] = opened(cluster);
    assert_eq!(queries, 0, "{probes} by probes");
    // A node that is slow to answer may have been connected to anew.
    assert!(by_probes <= probes, "{probes} of {by_probes} by probes");
}

fn pid(cluster: &Cluster, what: &str, index: usize) -> u32 {
    cluster.ready()[what][index]["pid"].as_u64().expect("a pid") as u32
}

fn kill_and_wait(cluster: &mut Cluster, what: &str, index: usize) {
    let before = pid(cluster, what, index);
    signal(before, "KILL");
    cluster.wait_until("it is back", |cluster| pid(cluster, what, index) != before);
}

#[test]
fn no_query_opens_a_connection_to_a_node() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = folder.path().join("data");
    let shape = ["--processes", "--groups", "2", "--nodes", "2", "--partitions", "24"];
    let mut cluster = Cluster::start(&[&shape[..], &["--data", data.to_str().expect("UTF-8")]].concat());
    create(&cluster, "texts", TYPES.0, TYPES.1);
    let rows = (0..KEYS).map(|key| (key.to_le_bytes().to_vec(), format!("text of {key}").into_bytes()));
    push(&cluster, "texts", TYPES, 1, rows);
    read(&cluster, folder.path());
    assert_eq!(opened(&cluster)[1], 0);

    // A router that starts: all connections are there when it is ready, before anybody has asked it anything.
    kill_and_wait(&mut cluster, "routers", 0);
    assert_opened(&cluster, 4);
    read(&cluster, folder.path());
    assert_opened(&cluster, 4);

    // A node that comes back, whether its connection was in use or idle when it died.
    for node in [0, 3] {
        let before = opened(&cluster)[0];
        kill_and_wait(&mut cluster, "nodes", node);
        cluster.wait_until("it is connected to again", |cluster| {
            read(cluster, folder.path());
            before < opened(cluster)[0]
        });
        read(&cluster, folder.path());
        assert_opened(&cluster, before + 1);
    }

    nodes_that_join_are_connected_to(&mut cluster, folder.path());
}

/// Two nodes join while everything is read.
fn nodes_that_join_are_connected_to(cluster: &mut Cluster, folder: &Path) {
    let before = opened(cluster)[0];
    let spares = [100, 101].map(|node| Spare::start(cluster, node, folder));
    cluster.must(&["cluster", "add-node", &spares[0].addr, "101", "--batch", "4", "--grace", "1"]);
    let mut state = String::new();
    while state != "finished" {
        read(cluster, folder);
        let status = run_json(cluster, &["cluster", "rebalance", "--status"]);
        state = status["state"].as_str().expect("text").to_owned();
        assert!(["planned", "running", "finished"].contains(&state.as_str()), "{status}");
    }
    read(cluster, folder);
    assert_opened(cluster, before + 2);
}

/// Asks the first router for networks, of which the second owns about a half; how many it has passed on so far.
fn networks(cluster: &Cluster) -> u32 {
    for member in 9_000..9_040 {
        let arguments = ["graph", "network-size", &member.to_string(), "--graph", "village", "-o", "json"];
        // Not everybody is a member: that is an answer too.
        cluster.kith(&arguments).output().expect("kith runs");
    }
    cluster.metric("kith_router_forwarded_total").unwrap_or(0.0) as u32
}

#[test]
fn no_query_opens_a_connection_to_another_router() {
    let mut cluster = Cluster::start(&["--processes", "--groups", "1", "--nodes", "1", "--routers", "2"]);
    let edges = support::root().join("testdata/kith-village/edges.csv.gz");
    cluster.must(&["load", "graph", edges.to_str().expect("UTF-8"), "--graph", "village"]);
    // The first router may have started before the second: it connects as soon as it knows of it.
    cluster.wait_until("the routers are connected", |cluster| 1 <= opened_by(cluster, "alive"));
    let forwarded = networks(&cluster);
    assert!(0 < forwarded && opened_by(&cluster, "query") == 0, "{forwarded} were passed on");

    // One that comes back, which nobody has asked anything meanwhile.
    let before = opened_by(&cluster, "alive");
    kill_and_wait(&mut cluster, "routers", 1);
    cluster.wait_until("it is connected to again", |cluster| before < opened_by(cluster, "alive"));
    assert!(forwarded < networks(&cluster));
    assert_eq!(opened_by(&cluster, "query"), 0);
}
