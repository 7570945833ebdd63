//! Measures fan-out controllers on real processes (Moolle §V): with one slow node, and with a mixed load that rises.
//! Both are runs of `kith bench graph`, which alternates between settings, checks every answer and prints the results.
//! This file provides the cluster, the slow node and the settings.
//!
//! `KITH_BENCH_SECONDS` sets the time for which each setting is queried at each rate.

use crate::{
    rig::{self, slow::Slow},
    support::{self, cluster::Cluster},
};
use std::{io::Write, process::Command, time::Duration};

const GRAPH: &str = "github-devs";
/// The time for which the slow node is stopped. The 99th percentile of the paper's requests is 21 ms (Moolle §V-A).
const STOPPED: Duration = Duration::from_millis(20);
/// The time for which it then runs. It is stopped for 2.5 % of the time, which is in the 99th percentile of queries
/// that always wait for this node, but not of those that seldom do.
const RUNNING: Duration = Duration::from_millis(780);

/// Runs the benchmark.
pub fn run() {
    let Some(data) = support::data() else { return };
    let cluster = Cluster::start(&["--processes", "--groups", "4", "--nodes", "3"]);
    let file = |name: &str| data.join(GRAPH).join(name).display().to_string();
    cluster.must(&[
        "load",
        "graph",
        &file("edges.csv.gz"),
        "--entities",
        &file("entities.csv.gz"),
        "--graph",
        GRAPH,
    ]);
    if wanted("one-slow-node") {
        one_slow_node(&cluster);
    }
    if wanted("rising-load") {
        rising_load(&cluster);
    }
}

/// Whether a scenario is to run: the command line names it, or names none.
fn wanted(name: &str) -> bool {
    let names: Vec<String> = std::env::args().filter(|argument| !argument.starts_with('-')).skip(2).collect();
    names.is_empty() || names.iter().any(|wanted| wanted == name)
}

/// Compares Moolle's defaults with naive round robin over all groups, while one node of twelve stops again and again.
fn one_slow_node(cluster: &Cluster) {
    println!("one slow node of twelve: it stands still {STOPPED:?} of every {:?}", STOPPED + RUNNING);
    let slow = Slow::start(cluster.node_pids(1)[0], STOPPED, RUNNING);
    bench(
        cluster,
        &["--rates", "100,300", "--members", "degree", "--keys-min", "50"],
        &["name=moolle", "name=naive policy=round-robin fan-out=max"],
    );
    drop(slow);
}

/// Compares early-terminating queries with and without their controller, as the load rises past the configured limit of
/// the client. The other queries are the same under both.
fn rising_load(cluster: &Cluster) {
    println!("rising load: early-terminating queries with their controller, and always over all groups");
    let mut config = tempfile::NamedTempFile::new().expect("a temporary file");
    // The limit is low enough for two cores that client and cluster share. At 600 queries/s, the other queries make
    // 1,200 requests/s, which leaves room for all groups; at 1,200 queries/s, there is hardly room for one.
    let limits = "[session.steering]\nclient-requests-per-second = 3000\nnode-requests-per-second = 100000\n";
    config.write_all(limits.as_bytes()).expect("the file can be written");
    let config = config.path().display().to_string();
    bench(
        cluster,
        &["--direct", "--config", &config, "--rates", "150,600,900,1200", "--members", "degree"],
        &["name=controlled", "name=uncontrolled controllers=early-terminable=maximum"],
    );
}

fn bench(cluster: &Cluster, arguments: &[&str], settings: &[&str]) {
    let seconds = rig::setting("KITH_BENCH_SECONDS", 18).to_string();
    let mut command: Command =
        cluster.kith(&["bench", "graph", "-g", GRAPH, "--rounds", "6", "--seconds", &seconds]);
    command.args(arguments);
    for setting in settings {
        command.args(["--setting", setting]);
    }
    let status = command.status().expect("kith bench runs");
    assert!(status.success(), "queries failed or answers were wrong: {status}");
}
