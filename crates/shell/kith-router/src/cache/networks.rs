//! The router's network cache (Moolle §IV-A, Algorithms 1 and 2). It carries out what the state machine of `kith_cache`
//! decides: after a miss, the session fetches from the nodes; concurrent queries for one network share a fetch; and a stale
//! entry is served while the session refreshes it.

use super::origin;
use crate::settings::CacheSettings;
use futures::FutureExt;
use kith_cache::{
    AfterFailure, Basis, CacheCounters, CacheOptions, Failure, FlightId, Lookup, Mode, NetworkCache, Origin,
};
use kith_cluster::topology::TopologyReceiver;
use kith_operators::{Network, NetworkKey};
use kith_query::{CacheMode, QueryError};
use kith_session::{CacheLookup, CacheUse, Keeper, ResultCache};
use kith_types::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use std::{
    sync::{Arc, Weak},
    time::{Duration, Instant},
};
use tokio::sync::oneshot;

/// The interval at which the cache's counters are published as metrics.
const METRICS_INTERVAL: Duration = Duration::from_secs(1);

/// The name of a graph, and a network in it.
type Key = (String, NetworkKey);

type Cache = NetworkCache<Key, Arc<Network>, oneshot::Sender<Word>>;

/// The message to a query that waits for a fetch.
enum Word {
    Network(Arc<Network>),
    Failed(QueryError),
    /// The query that fetched was cancelled: the waiting query must fetch now, under the same flight.
    Lead(Leader),
}

/// A cache of networks in front of the nodes.
pub(crate) struct CachedNetworks {
    shared: Arc<Shared>,
}

struct Shared {
    started: Instant,
    /// The cache; `None` if it is off. The lock is held for microseconds.
    cache: Option<Mutex<Cache>>,
}

impl CachedNetworks {
    /// Returns an empty cache, which evicts networks of superseded versions first.
    pub fn new(settings: &CacheSettings, topology: TopologyReceiver) -> Self {
        let options =
            CacheOptions { bytes_max: settings.bytes, fresh_for: settings.fresh, stale_for: settings.stale };
        let cache = (0 < settings.bytes).then(|| Mutex::new(NetworkCache::new(options)));
        let shared = Arc::new(Shared { started: Instant::now(), cache });
        tokio::spawn(follow_versions(Arc::downgrade(&shared), topology));
        tokio::spawn(publish_metrics(Arc::downgrade(&shared)));
        Self { shared }
    }
}

#[cfg(test)]
impl CachedNetworks {
    /// An empty cache that follows no versions.
    pub fn for_tests() -> Self {
        let cache = Some(Mutex::new(NetworkCache::new(CacheOptions::default())));
        Self { shared: Arc::new(Shared { started: Instant::now(), cache }) }
    }
}

impl ResultCache for CachedNetworks {
    fn network(&self, at: CacheUse<'_>, key: &NetworkKey) -> CacheLookup<NetworkKey, Arc<Network>> {
        let Some(origin) = origin::pinned(at.pinned, &key.edge_type) else { return CacheLookup::Nothing };
        let entry: Key = (at.pinned.name.clone(), key.clone());
        match self.shared.look_up(&entry, origin, at.mode) {
            Lookup::Hit(network) => CacheLookup::Whole(network),
            Lookup::Stale(network, flight) => {
                let leader = flight.map(|flight| Leader::new(Arc::clone(&self.shared), flight));
                CacheLookup::Stale(
                    network,
                    leader.map(|leader| Box::new(leader) as Box<dyn Keeper<Arc<Network>>>),
                )
            }
            Lookup::Fetch(flight) => rest(key.clone(), Leader::new(Arc::clone(&self.shared), flight)),
            Lookup::Join(flight) => self.join(flight, key.clone()),
            Lookup::Bypass => CacheLookup::Bypassed,
        }
    }
}

/// Lets the session fetch a network for a flight.
fn rest(key: NetworkKey, leader: Leader) -> CacheLookup<NetworkKey, Arc<Network>> {
    CacheLookup::Rest { question: key, known_keys: 0, keeper: Box::new(leader) }
}

impl CachedNetworks {
    /// Lets the session wait for a fetch of another query. If the flight has ended meanwhile, or ends without a word, the
    /// session fetches for itself, which is simpler than another lookup and just as correct.
    fn join(&self, flight: FlightId, key: NetworkKey) -> CacheLookup<NetworkKey, Arc<Network>> {
        let (sender, receiver) = oneshot::channel();
        let has_joined = self.shared.join(flight, sender);
        let outcome = async move {
            if !has_joined {
                return CacheLookup::Nothing;
            }
            match receiver.await {
                Ok(Word::Network(network)) => CacheLookup::Whole(network),
                Ok(Word::Failed(error)) => CacheLookup::Failed(error),
                Ok(Word::Lead(leader)) => rest(key, leader),
                Err(_) => CacheLookup::Nothing,
            }
        };
        CacheLookup::Awaited(outcome.boxed())
    }
}

impl Shared {
    fn lock(&self) -> Option<MutexGuard<'_, Cache>> {
        Some(self.cache.as_ref()?.lock())
    }

    fn look_up(&self, entry: &Key, origin: Origin, mode: CacheMode) -> Lookup<Arc<Network>> {
        let mode = match mode {
            CacheMode::Use => Mode::Use,
            CacheMode::Bypass => Mode::Bypass,
            CacheMode::Refresh => Mode::Refresh,
        };
        match self.lock() {
            Some(mut cache) => cache.get(entry, origin, self.now(), mode),
            None => Lookup::Bypass,
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp(self.started.elapsed())
    }

    fn join(&self, flight: FlightId, waiter: oneshot::Sender<Word>) -> bool {
        self.lock().is_some_and(|mut cache| cache.join(flight, waiter).is_ok())
    }

    fn end(self: &Arc<Self>, flight: FlightId, failure: Failure, error: Option<&QueryError>) {
        let mut next = Some(failure);
        while let Some(failure) = next.take() {
            let Some(mut cache) = self.lock() else { return };
            let landing = cache.failed(flight, failure);
            drop(cache);
            match landing {
                AfterFailure::Promote(waiter) => {
                    let leader = Leader::new(Arc::clone(self), flight);
                    // If that query is gone as well, the next one is promoted.
                    if let Err(Word::Lead(mut gone)) = waiter.send(Word::Lead(leader)) {
                        gone.flight = None;
                        next = Some(Failure::Leader);
                    }
                }
                AfterFailure::Wake(waiters) => {
                    let error = error.cloned().unwrap_or_else(|| QueryError::Internal {
                        detail: "a fetch ended without a reason".to_owned(),
                    });
                    for waiter in waiters {
                        let _ = waiter.send(Word::Failed(error.clone()));
                    }
                }
            }
        }
    }
}

/// The duty to fetch for a flight. If it is dropped without a result, for example because the caller of the query that
/// fetches is gone, the next waiting query takes over.
struct Leader {
    shared: Arc<Shared>,
    flight: Option<FlightId>,
}

impl Leader {
    fn new(shared: Arc<Shared>, flight: FlightId) -> Self {
        Self { shared, flight: Some(flight) }
    }
}

impl Keeper<Arc<Network>> for Leader {
    fn keep(mut self: Box<Self>, network: Arc<Network>, is_complete: bool) -> Arc<Network> {
        // A network without some partitions is only for a caller that accepted a partial answer.
        if !is_complete {
            return network;
        }
        let (Some(flight), Some(mut cache)) = (self.flight.take(), self.shared.lock()) else {
            return network;
        };
        // Without edges, it depends on the graph's other components whether the member exists at all.
        let basis = if network.first().is_empty() { Basis::Graph } else { Basis::Component };
        let (kept, weight, now) = (Arc::clone(&network), network.weight(), self.shared.now());
        let waiters = cache.filled(flight, kept, basis, weight, now);
        drop(cache);
        for waiter in waiters {
            let _ = waiter.send(Word::Network(Arc::clone(&network)));
        }
        network
    }

    fn fail(mut self: Box<Self>, error: &QueryError) {
        // Another query may have more time, or pin the next version.
        if matches!(error, QueryError::DeadlineExceeded { .. } | QueryError::VersionUnavailable { .. }) {
            return;
        }
        if let Some(flight) = self.flight.take() {
            self.shared.end(flight, Failure::Everyone, Some(error));
        }
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        if let Some(flight) = self.flight.take() {
            self.shared.end(flight, Failure::Leader, None);
        }
    }
}

/// Tells the cache about new versions, so that it evicts networks of superseded versions first.
async fn follow_versions(shared: Weak<Shared>, mut topology: TopologyReceiver) {
    while topology.changed().await.is_ok() {
        let Some(shared) = shared.upgrade() else { return };
        let document = Arc::clone(&topology.borrow_and_update());
        let Some(mut cache) = shared.lock() else { return };
        let current = |(graph, network): &Key| origin::current(&document, graph, &network.edge_type);
        cache.supersede(current);
    }
}

async fn publish_metrics(shared: Weak<Shared>) {
    loop {
        tokio::time::sleep(METRICS_INTERVAL).await;
        let Some(shared) = shared.upgrade() else { return };
        let Some(counters) = shared.lock().map(|cache| cache.counters()) else { return };
        let CacheCounters { hits, stale, misses, joined, evictions, .. } = counters;
        for (outcome, count) in [("hit", hits), ("stale", stale), ("miss", misses), ("joined", joined)] {
            metrics::counter!("kith_router_network_cache_lookups_total", "outcome" => outcome)
                .absolute(count);
        }
        metrics::counter!("kith_router_network_cache_evictions_total").absolute(evictions);
        metrics::gauge!("kith_router_network_cache_bytes").set(counters.bytes as f64);
        metrics::gauge!("kith_router_network_cache_entries").set(counters.entries as f64);
        metrics::gauge!("kith_router_network_cache_hit_ratio").set(counters.hit_rate().unwrap_or(0.0));
    }
}
