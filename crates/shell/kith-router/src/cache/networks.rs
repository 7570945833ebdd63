//! The router's network cache (Moolle §IV-A, Algorithms 1 and 2). It carries out what the state machine of `kith_cache`
//! decides: a miss is fetched from the nodes, concurrent queries for one network share a fetch, and a stale entry is served
//! while the asynchronous controller refreshes it.

use super::origin;
use crate::settings::CacheSettings;
use futures::{FutureExt, future::BoxFuture};
use kith_cache::{
    Basis, CacheCounters, CacheOptions, Failure, FlightId, Landing, Lookup, Mode, NetworkCache, Origin,
};
use kith_cluster::topology::TopologyReceiver;
use kith_operators::{Network, NetworkKey};
use kith_query::{CacheMode, QueryError};
use kith_session::{NetworkSource, Run, Session};
use kith_types::{OperationName, Timestamp};
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
    Lead,
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

impl NetworkSource for CachedNetworks {
    fn network<'a>(
        &'a self,
        run: &'a mut Run<'_>,
        key: NetworkKey,
    ) -> BoxFuture<'a, Result<Arc<Network>, QueryError>> {
        async move {
            let place: Key = (run.pinned().name.clone(), key.clone());
            let Some(origin) = origin::pinned(run.pinned(), &key.edge_type) else {
                return run.fetch_network(key).await;
            };
            match self.shared.look_up(&place, origin, run.cache_mode()) {
                Lookup::Hit(network) => {
                    run.note_cache("hit");
                    Ok(network)
                }
                Lookup::Stale(network, refresh) => {
                    run.note_cache("stale");
                    if let Some(flight) = refresh {
                        self.refresh(run.session().clone(), flight, place, origin);
                    }
                    Ok(network)
                }
                Lookup::Fetch(flight) => {
                    run.note_cache("miss");
                    self.fetch(run, flight, key).await
                }
                Lookup::Join(flight) => {
                    run.note_cache("joined");
                    self.join(run, flight, key).await
                }
                Lookup::Bypass => {
                    run.note_cache("bypass");
                    run.fetch_network(key).await
                }
            }
        }
        .boxed()
    }
}

impl CachedNetworks {
    async fn fetch(
        &self,
        run: &mut Run<'_>,
        flight: FlightId,
        key: NetworkKey,
    ) -> Result<Arc<Network>, QueryError> {
        let mut leader = Leader::new(&self.shared, flight);
        let fetched = run.fetch_network(key).await;
        match &fetched {
            // A network without some partitions is only for a caller that accepted a partial answer.
            Ok(_) if run.is_partial() => {}
            Ok(network) => leader.land(network),
            Err(QueryError::DeadlineExceeded { .. } | QueryError::VersionUnavailable { .. }) => {}
            Err(error) => leader.fail(error),
        }
        fetched
    }

    async fn join(
        &self,
        run: &mut Run<'_>,
        flight: FlightId,
        key: NetworkKey,
    ) -> Result<Arc<Network>, QueryError> {
        let (sender, receiver) = oneshot::channel();
        if !self.shared.join(flight, sender) {
            // The flight has ended in between. Fetching once more is simpler than another lookup, and just as correct.
            return run.fetch_network(key).await;
        }
        match tokio::time::timeout_at(run.deadline().into(), receiver).await {
            Ok(Ok(Word::Network(network))) => Ok(network),
            Ok(Ok(Word::Failed(error))) => Err(error),
            Ok(Ok(Word::Lead)) => self.fetch(run, flight, key).await,
            Ok(Err(_)) => run.fetch_network(key).await,
            Err(_) => Err(QueryError::DeadlineExceeded { deadline_ms: run.allowed_ms() }),
        }
    }

    /// Refreshes an entry that was served stale. Nobody waits for it (Moolle, Algorithm 1, line 21).
    fn refresh(&self, session: Session, flight: FlightId, place: Key, origin: Origin) {
        let shared = Arc::clone(&self.shared);
        tokio::spawn(async move {
            let mut leader = Leader::new(&shared, flight);
            let (graph, key) = place;
            let network_edge = key.edge_type.clone();
            let fetched = session
                .in_background(&graph, OperationName::Network, async |run: &mut Run<'_>| {
                    let network = run.fetch_network(key).await?;
                    let now = origin::pinned(run.pinned(), &network_edge);
                    Ok((now == Some(origin)).then_some(network))
                })
                .await;
            match fetched {
                Ok(Some(network)) => leader.land(&network),
                // The graph has changed meanwhile, so the fetched network belongs to another version.
                Ok(None) => {}
                Err(error) => leader.fail(&error),
            }
        });
    }
}

impl Shared {
    fn lock(&self) -> Option<MutexGuard<'_, Cache>> {
        Some(self.cache.as_ref()?.lock())
    }

    fn look_up(&self, place: &Key, origin: Origin, mode: CacheMode) -> Lookup<Arc<Network>> {
        let mode = match mode {
            CacheMode::Use => Mode::Use,
            CacheMode::Bypass => Mode::Bypass,
            CacheMode::Refresh => Mode::Refresh,
        };
        match self.lock() {
            Some(mut cache) => cache.get(place, origin, self.now(), mode),
            None => Lookup::Bypass,
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp(self.started.elapsed())
    }

    fn join(&self, flight: FlightId, waiter: oneshot::Sender<Word>) -> bool {
        self.lock().is_some_and(|mut cache| cache.join(flight, waiter).is_ok())
    }

    fn end(&self, flight: FlightId, failure: Failure, error: Option<&QueryError>) {
        let mut next = Some(failure);
        while let Some(failure) = next.take() {
            let Some(mut cache) = self.lock() else { return };
            let landing = cache.failed(flight, failure);
            drop(cache);
            match landing {
                // If that query is gone as well, the next one is promoted.
                Landing::Promote(waiter) => {
                    next = waiter.send(Word::Lead).is_err().then_some(Failure::Leader)
                }
                Landing::Wake(waiters) => {
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

/// The query that fetches for a flight. If it is dropped without a result, for example because its caller is gone, the next
/// waiting query takes over.
struct Leader<'a> {
    shared: &'a Shared,
    flight: Option<FlightId>,
}

impl<'a> Leader<'a> {
    fn new(shared: &'a Shared, flight: FlightId) -> Self {
        Self { shared, flight: Some(flight) }
    }

    fn land(&mut self, network: &Arc<Network>) {
        let (Some(flight), Some(mut cache)) = (self.flight.take(), self.shared.lock()) else { return };
        // Without edges, it depends on the graph's other components whether the member exists at all.
        let basis = if network.first().is_empty() { Basis::Graph } else { Basis::Component };
        let waiters = cache.filled(flight, Arc::clone(network), basis, network.weight(), self.shared.now());
        drop(cache);
        for waiter in waiters {
            let _ = waiter.send(Word::Network(Arc::clone(network)));
        }
    }

    fn fail(&mut self, error: &QueryError) {
        if let Some(flight) = self.flight.take() {
            self.shared.end(flight, Failure::Everyone, Some(error));
        }
    }
}

impl Drop for Leader<'_> {
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
