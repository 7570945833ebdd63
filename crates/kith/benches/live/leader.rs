//! How long writes wait after the node that leads was killed.

use super::{
    rig,
    site::{Association, Site, timed},
    support::cluster::signal,
};
use futures::{StreamExt, stream};
use std::time::Duration;

const SHAPE: [&str; 6] = ["--groups", "2", "--nodes", "2", "--partitions", "24"];
/// Some of them lie in any partition.
const OBJECTS: u64 = 200;
const PATIENCE: Duration = Duration::from_secs(60);
/// Until the node that was killed is back and leads its share.
const PAUSE: Duration = Duration::from_secs(6);

pub async fn run() {
    let deaths = rig::setting("KITH_BENCH_DEATHS", 6);
    let site = Site::start(&SHAPE, None).await;
    let mut longest = Vec::new();
    for death in 0..deaths {
        all(&site, 2 * death as u64).await;
        let ready = site.cluster.ready();
        let nodes = ready["nodes"].as_array().expect("a list");
        let pid = nodes[death % nodes.len()]["pid"].as_u64().expect("a process");
        signal(pid as u32, "KILL");
        longest.push(all(&site, 2 * death as u64 + 1).await);
        tokio::time::sleep(PAUSE).await;
    }
    longest.sort_by(f64::total_cmp);
    println!(
        "a node that leads a quarter of the partitions is killed, {deaths} times: the longest that a write of any partition takes"
    );
    println!(
        "  median {:.0} ms, longest {:.0} ms",
        longest[longest.len() / 2] / 1e3,
        longest.last().expect("there are some") / 1e3
    );
}

/// Writes to every object at once; how long the slowest took, in microseconds.
async fn all(site: &Site, turn: u64) -> f64 {
    let write = async |id1: u64| {
        let association = Association { kind: "likes", id1, id2: OBJECTS + turn, time: turn, data: None };
        timed(site.add_at_last(&association, PATIENCE)).await.0
    };
    stream::iter(0..OBJECTS)
        .map(write)
        .buffer_unordered(OBJECTS as usize)
        .fold(0.0, async |a: f64, b| a.max(b))
        .await
}
