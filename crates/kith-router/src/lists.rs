//! Neighbour lists that the router keeps: the shell of `kith_cache::ListCache`.

use super::{origin, settings::CacheSettings};
use kith_api::QueryError;
use kith_cache::ListCache;
use kith_client::{
    ListStore, Session,
    topology::{Graph, Pin, Pinned},
};
use kith_ops::{EdgeSelector, KindRole};
use kith_process::topology::TopologyReceiver;
use kith_wire::documents::ServedDocument;
use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
    time::Duration,
};
use tokio_util::sync::CancellationToken;

/// How often the cache's counters become metrics.
const METRICS_INTERVAL: Duration = Duration::from_secs(1);
/// When filling is tried again that a node's absence or a new version stopped.
const FILL_AGAIN: Duration = Duration::from_secs(1);

/// Whole neighbour lists in front of the nodes.
pub(crate) struct CachedLists {
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

    /// Brings the lists of every graph to hand that fits in whole, until `stop`: a badge of people whom this router
    /// never heard of then needs no node, as little as one of people whom it did.
    pub fn fill_ahead(
        self: Arc<Self>,
        session: Session,
        topology: TopologyReceiver,
        stop: CancellationToken,
    ) {
        tokio::spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = fill(&self, &session, topology) => {}
            }
        });
    }

    fn lock(&self) -> MutexGuard<'_, ListCache> {
        self.cache.lock()
    }
}

impl ListStore for CachedLists {
    fn read(&self, graph: &Pinned, edge: &EdgeSelector, keys: &[u64]) -> Vec<Option<Arc<[u64]>>> {
        match origin::pinned(graph, &edge.kind) {
            Some(origin) => self.lock().read(&graph.name, origin, edge, keys),
            None => vec![None; keys.len()],
        }
    }

    fn keep(&self, graph: &Pinned, edge: &EdgeSelector, lists: &[(u64, Arc<[u64]>)]) {
        let Some(origin) = origin::pinned(graph, &edge.kind) else { return };
        let mut cache = self.lock();
        for (key, list) in lists {
            cache.keep(&graph.name, origin, edge, *key, Arc::clone(list));
        }
    }
}

/// Lists of versions that are over make room first.
async fn follow_versions(lists: Weak<CachedLists>, mut topology: TopologyReceiver) {
    while topology.changed().await.is_ok() {
        let Some(lists) = lists.upgrade() else { return };
        let document = Arc::clone(&topology.borrow_and_update());
        lists.lock().supersede(|graph, edge| origin::current(&document, graph, &edge.kind));
    }
}

/// Follows the versions, and fills what is new.
async fn fill(lists: &CachedLists, session: &Session, mut topology: TopologyReceiver) {
    let mut filled = BTreeMap::new();
    loop {
        let document = Arc::clone(&topology.borrow_and_update());
        let mut is_done = true;
        for served in document.graphs() {
            if filled.get(&served.name) == Some(&served.version) {
                continue;
            }
            match fill_graph(lists, session, served).await {
                Ok(true) => drop(filled.insert(served.name.clone(), served.version)),
                Ok(false) => is_done = false,
                Err(error) => {
                    tracing::debug!(graph = served.name, %error, "neighbour lists are not brought to hand yet");
                    is_done = false;
                }
            }
        }
        let again = async {
            match is_done {
                true => std::future::pending().await,
                false => tokio::time::sleep(FILL_AGAIN).await,
            }
        };
        tokio::select! {
            changed = topology.changed() => if changed.is_err() { return },
            () = again => {}
        }
    }
}

/// Edge type by edge type, in their order, while there is room. False if it has to be tried again.
async fn fill_graph(
    lists: &CachedLists,
    session: &Session,
    served: &ServedDocument,
) -> Result<bool, QueryError> {
    let topology = session.topology();
    let graph: &Graph = topology.graph(&served.name)?;
    if graph.pinned.pin != Pin::Version(served.version) {
        return Ok(false);
    }
    // Every member has a list, if an empty one.
    let members = served.components.iter().map(|component| component.members).max().unwrap_or(0);
    for kind in graph.schema.kinds.iter().filter(|kind| kind.is_edge_type()) {
        let Some(component) = served.components.iter().find(|component| component.name == kind.name) else {
            continue;
        };
        let ids = if kind.role == KindRole::Undirected { component.edges * 2 } else { component.edges };
        let has_room = lists.lock().has_room(members, ids);
        if has_room && !session.bring_to_hand(&graph.pinned, &kind.default_edge()).await? {
            return Ok(false);
        }
    }
    Ok(true)
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
