//! Makes fetches give way to reads. [`Pace`] learns how long reads took, here and as routers report, and how much was moved.
//! The limit that it decides applies to all fetches of this node and to all reads by peers. It applies to reads by peers
//! because the node that a rebalance copies to has hardly any reads, but its donors have.

use super::HeldStores;
use crate::versions::throttle::Throttle;
use kith_routing::{Latencies, Pace, PaceOptions, PaceSample, ReportedReads, SeenFrom};
use kith_types::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use std::{
    num::NonZeroU64,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio_util::sync::CancellationToken;

/// The interval at which the limit is updated.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// The read latencies of this node since the last update.
#[derive(Debug, Default)]
pub(crate) struct Reads(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    here: Latencies,
    at_routers: ReportedReads,
}

impl Reads {
    /// Records how long a read took at this node.
    pub fn record(&self, latency: Duration) {
        let mut seen = self.lock();
        seen.here.record(latency);
        seen.at_routers.answered();
    }

    /// Records how long a router waited for reads of this node, as the router reports it ([`Latencies::counts`]).
    pub fn take_report(&self, waits: &[u64]) {
        let believed = if self.lock().at_routers.tell(waits) { "true" } else { "false" };
        metrics::counter!("kith_node_waits_told_total", "believed" => believed).increment(1);
    }

    fn take(&self) -> (Latencies, Latencies) {
        let mut seen = self.lock();
        (std::mem::take(&mut seen.here), seen.at_routers.take())
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock()
    }
}

/// Paces the fetches of a node until it ends.
pub(crate) struct Pacer {
    pub node: u32,
    pub reads: Arc<Reads>,
    pub held: Arc<HeldStores>,
}

impl Pacer {
    /// Runs until `stop` is cancelled. `p99_ratio_max` is how far the p99 of reads may rise; `None` never slows fetches
    /// down.
    pub fn start(self, p99_ratio_max: Option<f64>, stop: CancellationToken) {
        let Some(p99_ratio_max) = p99_ratio_max else { return };
        let pace = Pace::new(PaceOptions { p99_ratio_max, ..PaceOptions::default() });
        tokio::spawn(self.run(pace, stop));
    }

    async fn run(self, mut pace: Pace, stop: CancellationToken) {
        let started = Instant::now();
        let (mut moved, _) = self.moved();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(LOOK_INTERVAL) => {}
            }
            let (bytes, is_fetching) = self.moved();
            let (reads, reported) = self.reads.take();
            if is_fetching {
                metrics::counter!("kith_node_reads_beside_fetch_total").increment(reads.count());
            }
            let sample =
                PaceSample { reads: &reads, reported: &reported, fetched: bytes - moved, is_fetching };
            moved = bytes;
            let before = pace.limit();
            pace.on(&sample, Timestamp(started.elapsed()));
            self.hold(before, &pace);
        }
    }

    /// Returns the bytes that were fetched, or read by peers, so far, and whether anything is being moved now.
    fn moved(&self) -> (u64, bool) {
        let [fetches, supplies] = self.throttles().map(Throttle::state);
        (fetches.bytes + supplies.bytes, 0 < fetches.moving + supplies.moving)
    }

    fn throttles(&self) -> [&Throttle; 2] {
        [&self.held.origins.fetches, &self.held.origins.supplies]
    }

    fn hold(&self, before: Option<NonZeroU64>, pace: &Pace) {
        let limit = pace.limit();
        if before != limit {
            self.throttles().into_iter().for_each(|throttle| throttle.hold_back(limit));
        }
        let p99 = |from| (pace.p99_steady(from), pace.p99_fetching(from));
        let (steady, fetching) = p99(SeenFrom::Node);
        let (steady_at_routers, fetching_at_routers) = p99(SeenFrom::Routers);
        match (before, limit) {
            (None, Some(limit)) => {
                metrics::counter!("kith_node_fetch_held_back_total").increment(1);
                let (node, bytes_per_second) = (self.node, limit.get());
                tracing::info!(
                    node,
                    bytes_per_second,
                    ?steady,
                    ?fetching,
                    ?steady_at_routers,
                    ?fetching_at_routers,
                    "reads got slower: fetches are held back"
                );
            }
            (Some(_), None) => tracing::info!(node = self.node, "fetches are no longer held back"),
            _ => {}
        }
        let seconds = |time: Option<Duration>| time.unwrap_or_default().as_secs_f64();
        metrics::gauge!("kith_node_fetch_held_back_bytes_per_second")
            .set(limit.map_or(0.0, |limit| limit.get() as f64));
        metrics::gauge!("kith_node_read_p99_steady_seconds").set(seconds(steady));
        metrics::gauge!("kith_node_read_p99_fetching_seconds").set(seconds(fetching));
        metrics::gauge!("kith_node_wait_p99_steady_seconds").set(seconds(steady_at_routers));
        metrics::gauge!("kith_node_wait_p99_fetching_seconds").set(seconds(fetching_at_routers));
    }
}
