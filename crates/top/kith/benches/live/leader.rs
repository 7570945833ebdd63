//! Measures how long writes wait after the leader of their partition was killed.

use super::site::{Association, Site, timed};
use crate::{rig, support::cluster::signal};
use futures::{StreamExt, stream};
use std::time::Duration;

const SHAPE: [&str; 6] = ["--groups", "2", "--nodes", "2", "--partitions", "24"];
/// The number of objects that are written. Every partition holds some of them.
const OBJECTS: u64 = 200;
const TIMEOUT: Duration = Duration::from_secs(60);
/// The time until a killed node is back and leads its share of the partitions.
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
        "the slowest write of any partition after a node that leads a quarter of the partitions was killed, {deaths} times"
    );
    println!(
        "  median {:.0} ms, longest {:.0} ms",
        longest[longest.len() / 2] / 1e3,
        longest.last().expect("at least one node was killed") / 1e3
    );
}

/// Writes to all objects at once. Returns the time of the slowest write, in microseconds.
async fn all(site: &Site, turn: u64) -> f64 {
    let write = async |id1: u64| {
        let association = Association { kind: "likes", id1, id2: OBJECTS + turn, time: turn, data: None };
        timed(site.add_at_last(&association, TIMEOUT)).await.0
    };
    stream::iter(0..OBJECTS)
        .map(write)
        .buffer_unordered(OBJECTS as usize)
        .fold(0.0, async |a: f64, b| a.max(b))
        .await
}
