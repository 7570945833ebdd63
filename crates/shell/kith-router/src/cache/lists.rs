//! The router's cache of neighbour lists. It carries out what `kith_cache::ListCache` decides.

use super::{
    list_question::{self, ListQuestion},
    origin,
};
use crate::settings::CacheSettings;
use kith_cache::{ListCache, Origin};
use kith_cluster::topology::TopologyReceiver;
use kith_operators::Value;
use kith_query::{CacheMode, FanOut, QueryError};
use kith_schema::{EdgeSelector, KindRole};
use kith_session::{CacheLookup, CacheUse, Keeper, ResultCache, Session, fetch_lists_ahead};
use kith_topology::{Graph, Pin, PinnedState};
use kith_wire::documents::ServedDocument;
use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
    time::Duration,
};
use tokio_util::sync::CancellationToken;

/// The interval at which the cache's counters are published as metrics.
const METRICS_INTERVAL: Duration = Duration::from_secs(1);
/// The pause before filling is tried again after an absent node or a new version stopped it.
const FILL_AGAIN: Duration = Duration::from_secs(1);

/// A cache of whole neighbour lists in front of the nodes.
pub(crate) struct CachedLists {
    /// The lock is held for microseconds.
    cache: Arc<Mutex<ListCache>>,
}

impl CachedLists {
    /// Returns an empty cache, which evicts lists of superseded versions first.
    pub fn start(settings: &CacheSettings, topology: TopologyReceiver) -> Arc<Self> {
        let lists = Arc::new(Self { cache: Arc::new(Mutex::new(ListCache::new(settings.list_bytes))) });
        tokio::spawn(follow_versions(Arc::downgrade(&lists), topology));
        tokio::spawn(publish_metrics(Arc::downgrade(&lists)));
        lists
    }

    /// Loads the lists of every edge type whose lists all fit into the cache, until `stop`. A query about members that this
    /// router has never seen then needs no node either.
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

impl CachedLists {
    /// The lists of `keys`, in the order of the keys; `None` for a list that is not kept.
    fn read(&self, graph: &PinnedState, edge: &EdgeSelector, keys: &[u64]) -> Vec<Option<Arc<[u64]>>> {
        match origin::pinned(graph, &edge.kind) {
            Some(origin) => self.lock().read(&graph.name, origin, edge, keys),
            None => vec![None; keys.len()],
        }
    }
}

#[cfg(test)]
impl CachedLists {
    /// An empty cache of this size that follows no versions.
    pub fn for_tests(bytes_max: u64) -> Self {
        Self { cache: Arc::new(Mutex::new(ListCache::new(bytes_max))) }
    }
}

impl ResultCache for CachedLists {
    fn fan_out(&self, at: CacheUse<'_>, fan_out: &FanOut) -> CacheLookup<FanOut, Value> {
        let Some(question) = ListQuestion::of(fan_out) else { return CacheLookup::Nothing };
        let cached = match at.mode {
            CacheMode::Use => self.read(at.pinned, question.edge, question.keys),
            CacheMode::Refresh => vec![None; question.keys.len()],
            CacheMode::Bypass => return CacheLookup::Bypassed,
        };
        let Some(rest) = list_question::rest(fan_out, question.keys, &cached) else {
            return CacheLookup::Whole(question.joined(cached, Vec::new()));
        };
        let known_keys = cached.iter().flatten().count();
        let origin = origin::pinned(at.pinned, &question.edge.kind);
        let keeper = ListKeeper {
            cache: Arc::clone(&self.cache),
            entry: origin.map(|origin| (at.pinned.name.clone(), origin)),
            whole: fan_out.clone(),
            rest: rest.clone(),
            cached,
        };
        CacheLookup::Rest { question: rest, known_keys, keeper: Box::new(keeper) }
    }
}

/// Keeps lists that nodes send for one fan-out.
struct ListKeeper {
    cache: Arc<Mutex<ListCache>>,
    /// The graph and the versions that lists are kept for; `None` if they cannot be kept.
    entry: Option<(String, Origin)>,
    whole: FanOut,
    rest: FanOut,
    cached: Vec<Option<Arc<[u64]>>>,
}

impl Keeper<Value> for ListKeeper {
    fn keep(self: Box<Self>, answer: Value, _is_complete: bool) -> Value {
        let Self { cache, entry, whole, rest, cached } = *self;
        let Some(question) = ListQuestion::of(&whole) else { return answer };
        let fetched = match answer {
            Value::Lists(fetched) => fetched,
            other => return other,
        };
        if let Some((graph, origin)) = entry {
            let mut cache = cache.lock();
            for (key, list) in list_question::keepable(&rest, &fetched) {
                cache.keep(&graph, origin, question.edge, key, list);
            }
        }
        question.joined(cached, fetched)
    }
}

/// Tells the cache about new versions, so that it evicts lists of superseded versions first.
async fn follow_versions(lists: Weak<CachedLists>, mut topology: TopologyReceiver) {
    while topology.changed().await.is_ok() {
        let Some(lists) = lists.upgrade() else { return };
        let document = Arc::clone(&topology.borrow_and_update());
        lists.lock().supersede(|graph, edge| origin::current(&document, graph, &edge.kind));
    }
}

/// Loads the lists of each new version.
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
                    tracing::debug!(graph = served.name, %error, "neighbour lists cannot be loaded into the cache yet");
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

/// Loads the lists of one graph, edge type by edge type in schema order, while the cache has room. Returns `false` if it
/// must be tried again, because another version is served meanwhile.
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
    // Every member has a list, which may be empty.
    let members = served.components.iter().map(|component| component.members).max().unwrap_or(0);
    for kind in graph.schema.kinds.iter().filter(|kind| kind.is_edge_type()) {
        let Some(component) = served.components.iter().find(|component| component.name == kind.name) else {
            continue;
        };
        let ids = if kind.role == KindRole::Undirected { component.edges * 2 } else { component.edges };
        let has_room = lists.lock().has_room(members, ids);
        if has_room && !fetch_lists_ahead(session, &graph.pinned, &kind.default_edge()).await? {
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
