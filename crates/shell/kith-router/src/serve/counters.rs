//! The work that a router has done since it started, for `kith top` and other observers (`docs/design/0014-live-view.md`).

use super::recent::Recent;
use kith_routing::{NodeLoad, ReportedLatencies};
use kith_session::Executor;
use kith_types::clock::since_1970;
use kith_wire::v1;
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// Counts queries. The numbers only grow.
#[derive(Debug)]
pub(crate) struct RouterCounters {
    started_us: u64,
    started: Instant,
    queries: AtomicU64,
    failed: AtomicU64,
    partial: AtomicU64,
    /// The durations of all queries. They are written once per query.
    latencies: Mutex<ReportedLatencies>,
    /// The durations of answered queries by store. Only existing stores have an entry.
    stores: Mutex<Stores>,
}

/// The durations of answers, by store.
#[derive(Debug, Default)]
struct Stores {
    stores: BTreeMap<String, OfStore>,
    histograms: usize,
}

/// The durations of a store's answers.
#[derive(Debug, Default)]
struct OfStore {
    answers: u64,
    recent: Recent,
    /// Metrics, by operation.
    ops: BTreeMap<&'static str, Timer>,
}

struct Timer(metrics::Histogram);

impl std::fmt::Debug for Timer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Timer")
    }
}

/// The number of histograms that a router keeps for pairs of a store and an operation, of 16 series each. Further pairs
/// share one histogram for each operation, under this name of a store, which no store can have.
const HISTOGRAMS_MAX: usize = 1_000;
const OTHERS: &str = "(others)";

impl Stores {
    fn record(&mut self, store: &str, op: &'static str, took: Duration, now: Duration) {
        if !self.stores.contains_key(store) {
            self.stores.insert(store.to_owned(), OfStore::default());
        }
        let Some(of) = self.stores.get_mut(store) else { return };
        of.answers += 1;
        of.recent.record(took, now);
        let timer = of.ops.entry(op).or_insert_with(|| {
            let label = if self.histograms < HISTOGRAMS_MAX { store } else { OTHERS };
            self.histograms += 1;
            Timer(metrics::histogram!("kith_router_store_latency_seconds", "store" => label.to_owned(), "op" => op))
        });
        timer.0.record(took.as_secs_f64());
    }
}

impl RouterCounters {
    /// Returns the counters of a router that starts now.
    pub fn new() -> Self {
        Self {
            started_us: u64::try_from(since_1970().as_micros()).unwrap_or(u64::MAX),
            started: Instant::now(),
            queries: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            partial: AtomicU64::new(0),
            latencies: Mutex::default(),
            stores: Mutex::default(),
        }
    }

    /// Counts a query that has ended.
    pub fn query(&self, took: Duration, failed: bool) {
        self.queries.fetch_add(1, Ordering::Relaxed);
        self.failed.fetch_add(failed.into(), Ordering::Relaxed);
        self.latencies.lock().record(took);
    }

    /// Counts a query as failed whose incomplete answer its door cannot use.
    pub fn failed_after_all(&self, op: &'static str) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        query_failed(op);
    }

    /// Counts an answered query of a store.
    pub fn store(&self, store: &str, op: &'static str, took: Duration) {
        self.stores.lock().record(store, op, took, self.started.elapsed());
    }

    /// The number of answers of a store since this router started, and the p50 and p99 of the durations in the last one
    /// to two minutes.
    pub fn latencies_of(&self, store: &str) -> (u64, Duration, Duration) {
        let mut stores = self.stores.lock();
        let Some(of) = stores.stores.get_mut(store) else { return Default::default() };
        let [p50, p99] = of.recent.per_mille([500, 990], self.started.elapsed());
        (of.answers, p50, p99)
    }

    /// Publishes the numbers of answers by store as metrics.
    pub fn show(&self) {
        for (store, of) in &self.stores.lock().stores {
            let answers = metrics::counter!("kith_router_store_answers_total", "store" => store.clone());
            answers.absolute(of.answers);
        }
    }

    /// Counts an answer to an `op` as partial, unless it is `complete`.
    pub fn answer(&self, op: &'static str, complete: bool) {
        if !complete {
            self.partial.fetch_add(1, Ordering::Relaxed);
            metrics::counter!("kith_router_partial_answers_total", "op" => op).increment(1);
        }
    }

    /// All counters, with the requests that the router has sent to each node.
    pub fn report(&self, executor: &Executor) -> v1::RouterCounters {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        v1::RouterCounters {
            started_us: self.started_us,
            queries: load(&self.queries),
            failed: load(&self.failed),
            partial: load(&self.partial),
            latencies: self.latencies.lock().counts().to_vec(),
            nodes: executor.load().nodes.iter().map(asked).collect(),
        }
    }
}

/// Counts a query that failed.
pub(crate) fn query_failed(op: &'static str) {
    metrics::counter!("kith_router_query_errors_total", "op" => op).increment(1);
}

fn asked(node: &NodeLoad) -> v1::AskedCounters {
    let NodeLoad { outstanding_keys, outstanding_requests, tally, .. } = *node;
    v1::AskedCounters {
        node: node.node.0,
        keys_pending: outstanding_keys,
        requests_pending: outstanding_requests,
        requests: tally.requests,
        keys: tally.keys,
        hedges: tally.hedges,
        keys_hedged: tally.keys_hedged,
        failed: tally.failed,
        overtaken: tally.overtaken,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_routing::load::NodeTally;
    use kith_types::NodeId;

    #[test]
    fn each_query_is_counted_once_whatever_became_of_it() {
        let counters = RouterCounters::new();
        counters.query(Duration::from_millis(2), false);
        counters.answer("mget", false);
        counters.query(Duration::from_millis(4), true);
        counters.query(Duration::from_millis(2), false);
        counters.answer("mget", true);
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        assert_eq!((load(&counters.queries), load(&counters.failed), load(&counters.partial)), (3, 1, 1));
        assert_eq!(counters.latencies.lock().count(), 3);
    }

    #[test]
    fn answers_are_timed_by_store() {
        let counters = RouterCounters::new();
        for millis in [2, 2, 2, 64] {
            counters.store("people", "mget", Duration::from_millis(millis));
        }
        counters.store("pages", "gremlin", Duration::from_millis(8));
        let (count, p50, p99) = counters.latencies_of("people");
        assert!(count == 4 && p50 < Duration::from_millis(3) && Duration::from_millis(60) < p99);
        assert_eq!((counters.latencies_of("pages").0, counters.latencies_of("none").0), (1, 0));
    }

    #[test]
    fn what_nodes_were_asked_is_reported_whole() {
        let tally = NodeTally { requests: 1, keys: 2, hedges: 3, keys_hedged: 4, failed: 5, overtaken: 6 };
        let node = NodeLoad {
            node: NodeId(9),
            outstanding_keys: 7,
            outstanding_requests: 8,
            tally,
            ..NodeLoad::default()
        };
        let expected = v1::AskedCounters {
            node: 9,
            keys_pending: 7,
            requests_pending: 8,
            requests: 1,
            keys: 2,
            hedges: 3,
            keys_hedged: 4,
            failed: 5,
            overtaken: 6,
        };
        assert_eq!(asked(&node), expected);
    }

    #[test]
    fn histograms_are_by_store_and_operation_and_bounded() {
        let mut stores = Stores::default();
        for number in 0..HISTOGRAMS_MAX + 10 {
            let name = format!("s{number}");
            stores.record(&name, "mget", Duration::from_millis(1), Duration::ZERO);
            stores.record(&name, "mget", Duration::from_millis(1), Duration::ZERO);
        }
        stores.record("s0", "write", Duration::from_millis(1), Duration::ZERO);
        assert_eq!(stores.histograms, HISTOGRAMS_MAX + 11);
        assert_eq!(stores.stores["s0"].ops.keys().copied().collect::<Vec<_>>(), ["mget", "write"]);
    }
}
