//! A cluster that changes its shape while its etcd and its driver die.

use super::{MEMBER, Machines, NODES, ROUTERS, SPARES};
use crate::support::{
    self,
    cluster::{kith, signal, text},
};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

/// Reads without a pause, of whichever router answers, until the test stops them; returns what was wrong.
fn read_on(routers: &str, stop: &AtomicBool) -> Vec<String> {
    let mut wrong = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        for arguments in
            [&["get", "people", "a"][..], &["graph", "connections", MEMBER, "--graph", "village"]]
        {
            let output = kith(&[arguments, &["--router", routers]].concat()).output().expect("kith runs");
            if !output.status.success() {
                wrong.push(text(&output));
            }
        }
    }
    wrong
}

#[test]
fn a_cluster_changes_its_shape_while_its_etcd_and_its_driver_die() {
    let mut machines = Machines::start();
    let edges = support::root().join("testdata/kith-village/edges.csv.gz");
    machines.must(0, &["load", "graph", edges.to_str().expect("UTF-8"), "--graph", "village"]);
    machines.must(0, &["store", "create", "people"]);
    machines.must_push(0, "first");
    let log = machines.log_file();
    machines.nodes.iter_mut().skip(NODES as usize).for_each(|spare| spare.start(&log));
    machines.wait_until("the spares are up", |all| {
        (0..ROUTERS as usize).all(|router| all.nodes_up(router) == (NODES + SPARES) as usize)
    });
    let routers = format!("{},{}", machines.router(1), machines.router(0));
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(|| read_on(&routers, &stop));
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| grow(&mut machines)));
        stop.store(true, Ordering::Relaxed);
        let wrong = reader.join().expect("the reader ends");
        if let Err(panic) = ended {
            std::panic::resume_unwind(panic);
        }
        assert!(wrong.is_empty(), "{} reads failed: {}", wrong.len(), wrong[0]);
    });
    machines.assert_answers("first");
    machines.must_push(0, "second");
    machines.wait_until("the other router follows", |all| {
        String::from_utf8_lossy(&all.at(1, &["get", "people", "a"]).stdout).contains("second")
    });
    machines.assert_answers("second");
}

/// A node is added to each group; meanwhile etcd dies and comes back, and the router that drives dies for good.
fn grow(machines: &mut Machines) {
    let stealer = machines.nodes[NODES as usize].child.as_ref().expect("it runs").id();
    signal(stealer, "STOP");
    let add = ["cluster", "add-node", "4", "5", "--batch", "4", "--grace", "0", "--detach"];
    let begun = machines.must(0, &add);
    machines.etcd[0].kill();
    machines.routers[0].kill();
    machines.etcd[0].restart();
    signal(stealer, "CONT");
    let status = |all: &Machines| all.must(1, &["cluster", "rebalance", "--status"]);
    machines.wait_until("the rebalance is over and has freed what was given up", |all| {
        let status = status(all);
        if status["state"] == "stopped" {
            all.must(1, &["cluster", "rebalance", "--continue", "--detach"]);
        }
        status["state"] == "finished" && status["progress"]["reclaims_left"] == 0
    });
    let ended = status(machines);
    assert_eq!(ended["id"], begun["id"]);
    assert_ne!(ended["driver"], begun["driver"], "another router drove on");
    let output = machines.must(1, &["cluster", "status"]);
    let nodes = output["nodes"].as_array().expect("a list");
    assert!(nodes.len() == 6 && nodes.iter().all(|node| node["partitions"] == 8), "{output}");
    let log = machines.log_file();
    machines.routers[0].start(&log);
    for command in ["drain-group", "restore-group"] {
        assert_eq!(machines.must(1, &["cluster", command, "0"])["state"], "finished");
    }
    machines.wait_until("the router is back", |all| all.nodes_up(0) == (NODES + SPARES) as usize);
}
