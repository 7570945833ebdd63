//! Has fetches give way to reads: tells [`Pace`] what reads took and what was moved, and holds the rate of all fetches to what it
//! says, and that of all that peers read here: the node that a rebalance copies to has hardly any reads, its donors do.

use super::{HeldStores, Throttle};
use kith_routing::{Latencies, Pace, PaceOptions, PaceSample};
use kith_types::Timestamp;
use std::{
    num::NonZeroU64,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use tokio_util::sync::CancellationToken;

/// How often it looks.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// What reads of this node took since somebody last looked.
#[derive(Debug, Default)]
pub(super) struct Reads(Mutex<Latencies>);

impl Reads {
    /// A read took so long at this node.
    pub fn record(&self, latency: Duration) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).record(latency);
    }

    fn take(&self) -> Latencies {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A node's pace, until it ends.
pub(super) struct Pacer {
    pub node: u32,
    pub reads: Arc<Reads>,
    pub held: Arc<HeldStores>,
}

impl Pacer {
    /// Runs until `stop`. `p99_ratio_max`: how far the p99 of reads may rise; `None`: nothing is held back.
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
            let reads = self.reads.take();
            if is_fetching {
                metrics::counter!("kith_node_reads_beside_fetch_total").increment(reads.count());
            }
            let sample = PaceSample { reads: &reads, fetched: bytes - moved, is_fetching };
            moved = bytes;
            let before = pace.limit();
            pace.on(&sample, Timestamp(started.elapsed()));
            self.hold(before, &pace);
        }
    }

    /// Bytes fetched or read by peers so far, and whether anything is at the moment.
    fn moved(&self) -> (u64, bool) {
        let [fetches, supplies] = self.throttles().map(Throttle::state);
        (fetches.bytes + supplies.bytes, 0 < fetches.moving + supplies.moving)
    }

    fn throttles(&self) -> [&Throttle; 2] {
        [self.held.fetches(), self.held.supplies()]
    }

    fn hold(&self, before: Option<NonZeroU64>, pace: &Pace) {
        let limit = pace.limit();
        if before != limit {
            self.throttles().into_iter().for_each(|throttle| throttle.hold_back(limit));
        }
        let (steady, fetching) = (pace.p99_steady(), pace.p99_fetching());
        match (before, limit) {
            (None, Some(limit)) => {
                metrics::counter!("kith_node_fetch_held_back_total").increment(1);
                let (node, bytes_per_second) = (self.node, limit.get());
                tracing::info!(
                    node,
                    bytes_per_second,
                    ?steady,
                    ?fetching,
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
    }
}
