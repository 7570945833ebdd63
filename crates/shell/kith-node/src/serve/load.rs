//! The load that a node measures and reports in its replies (Moolle, equation 9: the number of clients `m` is counted at the
//! node, which all clients reach).

use kith_routing::ReportedLatencies;
use kith_types::clock::since_1970;
use kith_wire::v1::{NodeCounters, NodeLoad};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// The time over which requests per second are averaged.
const RATE_WINDOW: Duration = Duration::from_secs(1);
/// A client that has been silent for this long is no longer counted.
const CLIENT_SILENCE: Duration = Duration::from_secs(10);
/// The largest number of distinct clients that is counted. It bounds the table.
const CLIENTS_MAX: usize = 100_000;
/// The largest number of requests in flight. Above it, a node answers `overloaded` at once instead of queueing.
const IN_FLIGHT_MAX: u32 = 4_096;

/// Counts requests and clients.
#[derive(Debug)]
pub struct LoadCounter {
    in_flight: AtomicU32,
    /// Whether the node has begun to leave.
    leaving: AtomicBool,
    /// Requests since the window began.
    requests: AtomicU64,
    /// The current window, which is written about once a second, and for each new client.
    window: Mutex<Window>,
    /// The counts of requests, which are written once per request.
    tally: Mutex<Tally>,
}

/// The outcomes of all requests since the start.
#[derive(Debug)]
struct Tally {
    started_us: u64,
    requests: u64,
    keys: u64,
    failed: u64,
    latencies: ReportedLatencies,
}

#[derive(Debug)]
struct Window {
    began: Instant,
    rate: f64,
    /// The time of each client's last request.
    clients: HashMap<u64, Instant>,
}

/// A request in flight. It counts until it is dropped.
#[derive(Debug)]
pub struct InFlight(Arc<LoadCounter>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl LoadCounter {
    /// Returns a counter without any requests.
    pub fn new(now: Instant) -> Self {
        let window = Window { began: now, rate: 0.0, clients: HashMap::new() };
        let tally = Tally {
            started_us: u64::try_from(since_1970().as_micros()).unwrap_or(u64::MAX),
            requests: 0,
            keys: 0,
            failed: 0,
            latencies: ReportedLatencies::default(),
        };
        Self {
            in_flight: AtomicU32::new(0),
            leaving: AtomicBool::new(false),
            requests: AtomicU64::new(0),
            window: Mutex::new(window),
            tally: Mutex::new(tally),
        }
    }

    /// Records that a request for `keys` keys has ended. `took` is how long its answer took; `None` if it failed.
    pub fn note(&self, keys: usize, took: Option<Duration>) {
        let mut tally = self.tally.lock();
        tally.requests += 1;
        tally.keys += keys as u64;
        match took {
            Some(took) => tally.latencies.record(took),
            None => tally.failed += 1,
        }
    }

    /// Returns everything that was recorded.
    pub fn counters(&self) -> NodeCounters {
        let tally = self.tally.lock();
        NodeCounters {
            started_us: tally.started_us,
            requests: tally.requests,
            keys: tally.keys,
            failed: tally.failed,
            latencies: tally.latencies.counts().to_vec(),
        }
    }

    /// Makes the load report that the node is leaving.
    pub fn leave(&self) {
        self.leaving.store(true, Ordering::Relaxed);
    }

    /// Whether the node is leaving.
    pub fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Relaxed)
    }

    /// Counts a request of `client` that starts now. Returns `None` if too many are in flight.
    pub fn start(self: &Arc<Self>, client: u64, now: Instant) -> Option<InFlight> {
        if IN_FLIGHT_MAX <= self.in_flight.fetch_add(1, Ordering::Relaxed) {
            self.in_flight.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        self.requests.fetch_add(1, Ordering::Relaxed);
        let mut window = self.window.lock();
        if window.clients.len() < CLIENTS_MAX {
            window.clients.insert(client, now);
        }
        window.turn(&self.requests, now);
        Some(InFlight(Arc::clone(self)))
    }

    /// Returns the current load.
    pub fn load(&self, now: Instant) -> NodeLoad {
        let mut window = self.window.lock();
        window.turn(&self.requests, now);
        NodeLoad {
            requests_per_second: window.rate,
            clients: u32::try_from(window.clients.len()).unwrap_or(u32::MAX),
            in_flight: self.in_flight.load(Ordering::Relaxed),
            leaving: self.is_leaving(),
        }
    }
}

impl Window {
    fn turn(&mut self, requests: &AtomicU64, now: Instant) {
        let age = now.saturating_duration_since(self.began);
        if age < RATE_WINDOW {
            return;
        }
        self.rate = requests.swap(0, Ordering::Relaxed) as f64 / age.as_secs_f64();
        self.began = now;
        self.clients.retain(|_, seen| now.saturating_duration_since(*seen) < CLIENT_SILENCE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_clients_follow_the_requests() {
        let start = Instant::now();
        let counter = Arc::new(LoadCounter::new(start));
        for index in 0..500 {
            drop(counter.start(index % 3, start + Duration::from_millis(index * 2)));
        }
        let load = counter.load(start + Duration::from_secs(1));
        assert_eq!((load.clients, load.in_flight), (3, 0));
        assert!((load.requests_per_second - 500.0).abs() < 1.0, "{load:?}");
        let later = counter.load(start + Duration::from_secs(20));
        assert_eq!((later.clients, later.requests_per_second), (0, 0.0));
    }

    #[test]
    fn what_was_noted_only_grows() {
        let counter = LoadCounter::new(Instant::now());
        counter.note(7, Some(Duration::from_millis(3)));
        counter.note(5, None);
        let counters = counter.counters();
        assert_eq!((counters.requests, counters.keys, counters.failed), (2, 12, 1));
        assert_eq!(counters.latencies.iter().sum::<u64>(), 1);
        assert!(0 < counters.started_us);
    }

    #[test]
    fn too_many_in_flight_are_turned_away_at_once() {
        let now = Instant::now();
        let counter = Arc::new(LoadCounter::new(now));
        let held: Vec<_> = (0..IN_FLIGHT_MAX).map(|_| counter.start(1, now).unwrap()).collect();
        assert!(counter.start(1, now).is_none());
        drop(held);
        assert!(counter.start(1, now).is_some());
    }
}
