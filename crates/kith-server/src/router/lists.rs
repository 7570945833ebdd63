//! Neighbour lists that the router keeps: the shell of `kith_cache::ListCache`.

use super::settings::CacheSettings;
use crate::topology::TopologyReceiver;
use kith_cache::ListCache;
use kith_client::{ListStore, topology::Pinned};
use kith_ops::EdgeSelector;
use kith_types::StoreVersion;
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

/// How often the cache's counters become metrics.
const METRICS_INTERVAL: Duration = Duration::from_secs(1);

/// Whole neighbour lists in front of the nodes.
pub(super) struct CachedLists {
    /// Locked for microseconds.
    cache: Mutex<ListCache>,
}

impl CachedLists {
    /// An empty cache that forgets versions when the topology does.
    pub fn start(settings: &CacheSettings, topology: TopologyReceiver) -> Arc<Self> {
        let lists = Arc::new(Self { cache: Mutex::new(ListCache::new(settings.list_bytes)) });
        tokio::spawn(follow_versions(Arc::downgrade(&lists), topology));
        tokio::spawn(publish_metrics(Arc::downgrade(&lists)));
        lists
    }

    fn lock(&self) -> MutexGuard<'_, ListCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ListStore for CachedLists {
    fn read(&self, graph: &Pinned, edge: &EdgeSelector, keys: &[u64]) -> Vec<Option<Arc<[u64]>>> {
        self.lock().read(&graph.name, StoreVersion(graph.version), edge, keys)
    }

    fn keep(&self, graph: &Pinned, edge: &EdgeSelector, lists: &[(u64, Arc<[u64]>)]) {
        let mut cache = self.lock();
        for (key, list) in lists {
            cache.keep(&graph.name, StoreVersion(graph.version), edge, *key, Arc::clone(list));
        }
    }
}

/// Lists of versions that are over make room first.
async fn follow_versions(lists: Weak<CachedLists>, mut topology: TopologyReceiver) {
    while topology.changed().await.is_ok() {
        let Some(lists) = lists.upgrade() else { return };
        let document = Arc::clone(&topology.borrow_and_update());
        lists.lock().supersede(|name| {
            let graph = document.graph(name)?;
            Some(StoreVersion(graph.version))
        });
    }
}

async fn publish_metrics(lists: Weak<CachedLists>) {
    loop {
        tokio::time::sleep(METRICS_INTERVAL).await;
        let Some(lists) = lists.upgrade() else { return };
        let counters = lists.lock().counters();
        for (outcome, count) in [("hit", counters.hits), ("miss", counters.misses)] {
            metrics::counter!("kith_router_list_cache_lookups_total", "outcome" => outcome).absolute(count);
        }
        metrics::gauge!("kith_router_list_cache_bytes").set(counters.bytes as f64);
        metrics::gauge!("kith_router_list_cache_entries").set(counters.entries as f64);
    }
}
