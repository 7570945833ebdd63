//! The network cache's shell (Moolle §IV-A, Algorithms 1 and 2): does what the state machine
//! of `kith_cache` decides. Look-through on a miss, one flight per member, stale entries
//! served while they are refreshed by the asynchronous controller.

use super::{origin, settings::CacheSettings};
use futures::{FutureExt, future::BoxFuture};
use kith_api::{CacheMode, QueryError};
use kith_cache::{
    Basis, CacheCounters, CacheOptions, Failure, FlightId, Landing, Lookup, Mode, NetworkCache, Origin,
};
use kith_client::{NetworkSource, Run, Session};
use kith_ops::{Network, NetworkKey};
use kith_process::topology::TopologyReceiver;
use kith_types::{OperationName, Timestamp};
use parking_lot::{Mutex, MutexGuard};
use std::{
    sync::{Arc, Weak},
    time::{Duration, Instant},
};
use tokio::sync::oneshot;

/// How often the cache's counters become metrics.
const METRICS_INTERVAL: Duration = Duration::from_secs(1);

/// Whose network, of which graph.
type Key = (String, NetworkKey);

type Cache = NetworkCache<Key, Arc<Network>, oneshot::Sender<Word>>;

/// What one who waits is told.
enum Word {
    Network(Arc<Network>),
    Failed(QueryError),
    /// The one who fetched went away: fetch now, under the same flight.
    Lead,
}

/// Networks in front of the nodes.
pub(crate) struct CachedNetworks {
    shared: Arc<Shared>,
}

struct Shared {
    started: Instant,
    /// `None` if the cache is off. Locked for microseconds.
    cache: Option<Mutex<Cache>>,
}

impl CachedNetworks {
    /// An empty cache that forgets versions when the topology does.
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
            // What lacks partitions serves the one who accepted that, nobody else.
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
            // It landed in between: fetching once more is simpler than looking up again, and as right.
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

    /// Fetches anew what was served stale; nobody waits (Moolle, Algorithm 1, line 21).
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
                // The graph moved on meanwhile: what was fetched belongs to another version.
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
                // One who has gone as well leaves it to the next.
                Landing::Promote(waiter) => {
                    next = waiter.send(Word::Lead).is_err().then_some(Failure::Leader)
                }
                Landing::Wake(waiters) => {
                    let error = error.cloned().unwrap_or_else(|| QueryError::Internal {
                        detail: "a fetch ended without saying why".to_owned(),
                    });
                    for waiter in waiters {
                        let _ = waiter.send(Word::Failed(error.clone()));
                    }
                }
            }
        }
    }
}

/// One who fetches. Dropped without a word, as when its caller goes away, the next one who waits takes over.
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
        // Without edges, whether there is such a member at all is for the graph's other components to say as well.
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

/// Networks of versions that are over make room first.
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
