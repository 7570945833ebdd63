//! Clusters whose etcd goes away, as a whole or in part.

use super::support::{
    self,
    cluster::{http_get, text},
    line::Line,
};
use super::{CLOCKS_APART, MEMBER, Machines, NODES, ROUTERS, refusal};
use kith_cluster::testing::Etcd;
use serde_json::Value;
use std::{
    fs,
    time::{Duration, Instant},
};

/// A node of each group and a router start again from what they keep.
fn some_start_again(machines: &mut Machines) {
    let log = machines.log_file();
    for node in [0, 3] {
        machines.nodes[node].kill();
        machines.nodes[node].start(&log);
    }
    machines.routers[1].kill();
    machines.routers[1].start(&log);
    machines.wait_until("all nodes are up at both routers again", |all| {
        (0..ROUTERS as usize).all(|router| all.nodes_up(router) == NODES as usize)
    });
}

#[test]
fn a_cluster_of_machines_outlives_its_etcd() {
    let mut machines = Machines::start();
    let edges = support::root().join("testdata/kith-village/edges.csv.gz");
    machines.must(0, &["load", "graph", edges.to_str().expect("UTF-8"), "--graph", "village"]);
    machines.must(0, &["store", "create", "people"]);
    machines.must_push(0, "first");
    let reads = |all: &Machines, router: usize, value: &str| {
        let output = all.at(router, &["get", "people", "a"]);
        output.status.success() && String::from_utf8_lossy(&output.stdout).contains(value)
    };
    machines.wait_until("the other router follows", |all| reads(all, 1, "first"));
    machines.wait_until("the other router knows the graph", |all| {
        all.at(1, &["graph", "connections", MEMBER, "--graph", "village"]).status.success()
    });
    machines.assert_answers("first");
    machines.wait_until("all are alive in etcd", |all| all.alive() == (NODES + ROUTERS) as usize);

    // Away: reads go on, changes say why they cannot.
    machines.etcd[0].kill();
    machines.assert_answers("first");
    assert_eq!(refusal(&machines.push(0, "lost")), "metadata_unavailable");
    assert_eq!(refusal(&machines.at(1, &["store", "rollback", "people"])), "metadata_unavailable");
    some_start_again(&mut machines);
    machines.assert_answers("first");

    // Back, with its data: watches and leases go on.
    machines.etcd[0].restart();
    machines.wait_until("all are alive in etcd again", |all| all.alive() == (NODES + ROUTERS) as usize);
    machines.must_push(0, "second");
    machines.wait_until("the other router follows again", |all| reads(all, 1, "second"));
    machines.assert_answers("second");

    // Back without the history that the watches would go on from.
    machines.etcd[0].restart();
    machines.must_push(1, "third");
    machines.etcd[0].compact();
    machines.must_push(1, "fourth");
    machines.wait_until("the other router follows after a compaction", |all| reads(all, 0, "fourth"));
    machines.assert_answers("fourth");
}

/// Whether `/readyz` of a router says that it is to be asked.
fn is_ready(machines: &Machines, router: usize) -> bool {
    let output = machines.must(0, &["cluster", "status"]);
    let routers = output["routers"].as_array().expect("a list");
    let http = routers[router]["http"].as_str().expect("an address");
    http_get(http, "/readyz").starts_with("HTTP/1.1 200")
}

/// The value that a router reads for the key that is pushed.
fn value(machines: &Machines, router: usize) -> Value {
    machines.must(router, &["get", "people", "a"])["value"].clone()
}

/// The second router alone has lost etcd: its profiles, the status of the cluster and its log say so, once.
fn the_second_says_that_it_is_stale(machines: &Machines) {
    let keys = machines.folder.path().join("keys");
    fs::write(&keys, "a\n").expect("written");
    let read = ["mget", "people", "--keys-from", keys.to_str().expect("UTF-8"), "--profile"];
    let output = text(&machines.at(1, &read));
    assert!(output.contains("metadata_age_ms"), "{output}");
    assert!(!text(&machines.at(0, &read)).contains("metadata_age_ms"));
    machines.wait_until("it is not ready", |all| !is_ready(all, 1));
    assert!(is_ready(machines, 0));
    let status = machines.must(0, &["cluster", "status"]);
    assert!(3_000 < status["routers"][1]["metadata_age_ms"].as_u64().expect("a number"), "{status}");
    assert_eq!(
        machines.log().matches("the metadata store cannot be reached").count(),
        1,
        "{}",
        machines.log()
    );
}

/// The state from which the second router starts, on its disk, while the line to etcd is cut, is no newer than before.
fn the_second_starts_from_what_it_knew(machines: &mut Machines) {
    let cut = Instant::now();
    let log = machines.log_file();
    machines.routers[1].kill();
    machines.routers[1].start(&log);
    let (mut age, mut at_least) = (None, Duration::ZERO);
    machines.wait_until("it serves what it knew", |all| {
        at_least = cut.elapsed();
        let status = all.must(0, &["cluster", "status"]);
        age = status["routers"][1]["metadata_age_ms"].as_u64().map(Duration::from_millis);
        age.is_some()
    });
    assert!(at_least < age.expect("the age is reported") + CLOCKS_APART, "{age:?} after {at_least:?}");
    assert_eq!(value(machines, 1), "second");
}

#[test]
fn a_router_that_alone_loses_etcd_says_so_and_no_swap_ends_before_it_does() {
    let mut machines = Machines::start();
    let line = Line::to(machines.etcd[0].host());
    let log = machines.log_file();
    machines.routers[1].kill();
    let through = format!("etcd://{}", line.addr());
    machines.routers[1].arguments.extend(["--metadata".to_owned(), through]);
    machines.routers[1].start(&log);
    machines.must(0, &["store", "create", "people"]);
    machines.must_push(0, "first");
    machines.must_push(0, "second");
    machines.wait_until("all are alive in etcd", |all| all.alive() == (NODES + ROUTERS) as usize);
    machines
        .wait_until("the other router is ready", |all| all.nodes_up(1) == NODES as usize && is_ready(all, 1));

    // The rollback returns when everybody serves it.
    let output = machines.must(0, &["store", "rollback", "people"]);
    assert_eq!(output["routers"], serde_json::json!([{"router": 1, "state": "seen"}]), "{}", machines.log());
    assert_eq!((value(&machines, 0), value(&machines, 1)), ("first".into(), "first".into()));

    // Or when those that do not know that they may not.
    line.cut();
    let newest = output["before"].to_string();
    let output = machines.must(0, &["store", "swap", "people", &newest, "--force"]);
    assert_eq!(
        output["routers"],
        serde_json::json!([{"router": 1, "state": "expired"}]),
        "{}",
        machines.log()
    );
    assert_eq!((value(&machines, 0), value(&machines, 1)), ("second".into(), "first".into()));
    the_second_says_that_it_is_stale(&machines);

    // If nobody knows better, all are asked.
    machines.etcd[0].kill();
    machines.wait_until("both are ready", |all| is_ready(all, 0) && is_ready(all, 1));
    assert_eq!(value(&machines, 0), "second");

    machines.etcd[0].restart();
    line.mend();
    machines.wait_until("it follows again", |all| value(all, 1) == "second" && is_ready(all, 1));

    line.cut();
    the_second_starts_from_what_it_knew(&mut machines);
}

#[test]
fn two_members_of_three_are_enough_for_changes() {
    let mut machines = Machines::start_with(Etcd::start_three().into());
    machines.must(0, &["store", "create", "people"]);
    for member in 0..machines.etcd.len() {
        machines.etcd[member].kill();
        let pushed = format!("without {member}");
        // A push that meets an election fails, and has changed nothing.
        machines.wait_until("a push succeeds", |all| {
            let output = all.push(0, &pushed);
            let is_done = output.status.success();
            assert!(
                is_done || refusal(&output) == "metadata_unavailable",
                "{}\n{}",
                text(&output),
                all.log()
            );
            is_done
        });
        machines.wait_until("both routers answer by it", |all| {
            (0..ROUTERS as usize).all(|router| all.must(router, &["get", "people", "a"])["value"] == pushed)
        });
        machines.etcd[member].restart();
    }
    machines.wait_until("all are alive in etcd", |all| all.alive() == (NODES + ROUTERS) as usize);
}
