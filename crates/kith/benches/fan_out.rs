//! Fan-out under control, on real processes (Moolle §V): one slow node, and a mixed load that rises. Both are runs
//! of `kith bench graph`, which takes turns, checks every answer and prints; what is here is the cluster, the
//! slowness and the settings.
//!
//! `KITH_BENCH_SECONDS` says how long each setting is asked at each rate.

#[path = "rig/mod.rs"]
mod rig;
#[path = "../tests/support/mod.rs"]
mod support;

use rig::slow::Slow;
use std::{io::Write, process::Command, time::Duration};
use support::cluster::Cluster;

const GRAPH: &str = "github-devs";
/// The slow node stands still for so long: the 99th percentile of the paper's requests is 21 ms (Moolle §V-A) …
const STOPPED: Duration = Duration::from_millis(20);
/// … then runs for so long: 2.5 % of its time it stands, so that who always waits for it meets that in the 99th
/// percentile, and who seldom asks it does not.
const RUNNING: Duration = Duration::from_millis(780);

fn main() {
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

/// Whether a scenario is named on the command line; without names, all are.
fn wanted(name: &str) -> bool {
    let names: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    names.is_empty() || names.iter().any(|wanted| wanted == name)
}

/// Moolle's defaults against naive round robin over all groups, while one node of twelve stops again and again.
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

/// Early-terminating queries with and without their controller, as the load rises past what the client is told that
/// it sustains. The other queries are the same under both.
fn rising_load(cluster: &Cluster) {
    println!("rising load: early-terminating queries with their controller, and always over all groups");
    let mut config = tempfile::NamedTempFile::new().expect("a temporary file");
    // So that the limit bites within what two cores shared by client and cluster can do: at 600 queries/s
    // the others make 1,200 requests/s and all groups fit beside them, at 1,200 hardly one does.
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
