//! Gremlin over `github-devs`: the second degree against Kith's own query, loaded and live, then three traversals against Gremlin Server with
//! TinkerGraph and against JanusGraph. All sides answer the same questions in turn, and all answers are checked.
//!
//! `KITH_BENCH_WHAT` selects parts, `KITH_BENCH_PAIRS` sets the number of questions that all sides answer in turn,
//! `KITH_BENCH_BLOCKS` the number of blocks for which CPU time is measured.

mod own;
mod rivals;
mod server;

use crate::{
    rig::Edges,
    support::{self, cluster::Cluster},
};

/// The name of the graph, in the test data and in all servers.
const GRAPH: &str = "github-devs";
const PARTS: &str = "own,live,rivals";

/// Runs the benchmark.
pub fn run() {
    let Some(data) = support::data() else { return };
    let file = data.join(GRAPH).join("edges.csv.gz");
    let graph = Edges::read(&file);
    let cluster = Cluster::start(&["--processes", "--groups", "1", "--nodes", "3"]);
    cluster.must(&["load", "graph", file.to_str().expect("UTF-8"), "--graph", GRAPH]);
    let what = std::env::var("KITH_BENCH_WHAT").unwrap_or_else(|_| PARTS.to_owned());
    for part in what.split(',') {
        match part {
            "own" => own::run(&cluster, &graph),
            "live" => own::run_live(&cluster, &graph),
            "rivals" => rivals::run(&cluster, &graph, &file),
            other => panic!("KITH_BENCH_WHAT: {other:?} is not one of {PARTS}"),
        }
    }
}

/// The processes of a cluster's router and nodes.
fn servers(cluster: &Cluster) -> Vec<u32> {
    let ready = cluster.ready();
    let members = ["routers", "nodes"].map(|of| ready[of].as_array().cloned().expect("a list"));
    let pids = members.iter().flatten().map(|member| member["pid"].as_u64().expect("a process") as u32);
    pids.collect()
}
