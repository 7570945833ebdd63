//! Whole neighbour lists by key, which distances to far targets, paths and common connections request again and again.
//! These are the one-hop results of *OneHop*, but of immutable versions only, so nothing needs to be invalidated.
//!
//! Networks are a thousand times heavier, so each belongs to one router. Lists are small, so every router keeps those
//! that it was asked for. No query waits for another: two queries that miss at the same time both fetch.

use crate::origin::Source;
use crate::queues::Queues;
use crate::{Basis, CacheCounters, Origin};
use kith_schema::EdgeSelector;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One list takes at most this share of the cache, so that a member whom everybody knows cannot evict a thousand other
/// lists.
const LIST_SHARE: u64 = 64;

/// The number of one graph and edge selector.
type Space = u32;

/// A list, and the version that it was read from.
#[derive(Debug)]
struct Kept {
    source: Source,
    list: Arc<[u64]>,
}

/// The neighbour lists that one router keeps.
#[derive(Debug)]
pub struct ListCache {
    bytes_max: u64,
    queues: Queues<(Space, u64), Kept>,
    /// Maps a graph and an edge selector to a number. The selectors come from the graph's schema, so there are few.
    spaces: BTreeMap<String, BTreeMap<EdgeSelector, Space>>,
    counters: CacheCounters,
}

impl ListCache {
    /// Returns an empty cache of at most `bytes_max` bytes, including keys and bookkeeping; 0 keeps nothing.
    pub fn new(bytes_max: u64) -> Self {
        Self {
            bytes_max,
            queues: Queues::new(bytes_max),
            spaces: BTreeMap::new(),
            counters: CacheCounters::default(),
        }
    }

    /// Returns the lists of `keys` that may serve a query that pinned `origin`, in the order of the keys. `O(keys log
    /// entries)`.
    pub fn read(
        &mut self,
        graph: &str,
        origin: Origin,
        edge: &EdgeSelector,
        keys: &[u64],
    ) -> Vec<Option<Arc<[u64]>>> {
        let space = self.spaces.get(graph).and_then(|edges| edges.get(edge)).copied();
        let lists: Vec<_> =
            keys.iter().map(|&key| space.and_then(|space| self.one((space, key), origin))).collect();
        let hits = lists.iter().flatten().count() as u64;
        self.counters.hits += hits;
        self.counters.misses += keys.len() as u64 - hits;
        lists
    }

    /// Keeps a list that a node returned at `origin`: sorted, distinct ids. An older version replaces a newer one only
    /// after a rollback.
    pub fn keep(&mut self, graph: &str, origin: Origin, edge: &EdgeSelector, key: u64, list: Arc<[u64]>) {
        let weight = size_of_val(&*list) as u64;
        let slot = (self.space(graph, edge), key);
        let newer = !self.queues.is_over(&slot)
            && self.queues.get(&slot).is_some_and(|entry| origin < entry.value.source.origin);
        // Whether a member without edges exists depends on all components of the graph.
        let basis = if list.is_empty() { Basis::Graph } else { Basis::Component };
        let fits = weight <= self.bytes_max / LIST_SHARE;
        let kept = match fits && !newer {
            true => self.queues.insert(slot, Kept { source: Source { origin, basis }, list }, weight),
            false => None,
        };
        self.counters.note_kept(kept);
    }

    /// Whether `lists` further lists with `ids` ids in total would fit without evicting entries that are still useful.
    /// Only then should they be fetched before they are requested.
    pub fn has_room(&self, lists: u64, ids: u64) -> bool {
        let lists = lists.saturating_mul(Queues::<(Space, u64), Kept>::OVERHEAD);
        let bytes = lists.saturating_add(ids.saturating_mul(size_of::<u64>() as u64));
        self.queues.bytes_of_use().saturating_add(bytes) <= self.bytes_max
    }

    /// Reports which versions new queries pin for each graph and edge. Lists of other versions are evicted first; lists
    /// of edges that `current` does not know are removed at once. `O(entries)`.
    pub fn supersede(&mut self, current: impl Fn(&str, &EdgeSelector) -> Option<Origin>) {
        let mut origins: BTreeMap<Space, Option<Origin>> = BTreeMap::new();
        for (graph, edges) in &self.spaces {
            origins.extend(edges.iter().map(|(edge, space)| (*space, current(graph, edge))));
        }
        let of = |space: &Space| origins.get(space).copied().flatten();
        self.counters.expired += self.queues.remove_all(|(space, _)| of(space).is_none());
        self.queues
            .set_over(|(space, _), kept| of(space).is_some_and(|current| !kept.source.serves(current)));
    }

    /// Returns the counters since the start, and the current contents.
    pub fn counters(&self) -> CacheCounters {
        CacheCounters { entries: self.queues.len() as u64, bytes: self.queues.total_bytes(), ..self.counters }
    }

    fn one(&mut self, slot: (Space, u64), wanted: Origin) -> Option<Arc<[u64]>> {
        let kept = Some(&self.queues.get(&slot)?.value).filter(|kept| kept.source.serves(wanted))?;
        let list = Arc::clone(&kept.list);
        self.queues.touch(&slot);
        Some(list)
    }

    /// Numbers are not reused. If a graph of the same name is created again, it gets the same numbers.
    fn space(&mut self, graph: &str, edge: &EdgeSelector) -> Space {
        if let Some(space) = self.spaces.get(graph).and_then(|edges| edges.get(edge)) {
            return *space;
        }
        let next = self.spaces.values().map(BTreeMap::len).sum::<usize>() as Space;
        self.spaces.entry(graph.to_owned()).or_default().insert(edge.clone(), next);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_types::{Direction, StoreVersion};
    use proptest::prelude::*;

    fn edge(kind: &str) -> EdgeSelector {
        EdgeSelector { kind: kind.into(), direction: Direction::Both, filter: None }
    }

    /// Version `n` of both the edge type and its graph.
    fn origin(version: u64) -> Origin {
        Origin { component: StoreVersion(version), graph: StoreVersion(version) }
    }

    fn kept(cache: &mut ListCache, graph: &str, version: u64, kind: &str, key: u64) -> Option<Vec<u64>> {
        let mut lists = cache.read(graph, origin(version), &edge(kind), &[key]);
        lists.pop().flatten().map(|list| list.to_vec())
    }

    fn keep(cache: &mut ListCache, graph: &str, version: u64, kind: &str, key: u64, list: &[u64]) {
        cache.keep(graph, origin(version), &edge(kind), key, list.into());
    }

    #[test]
    fn a_list_is_of_one_graph_version_and_edge() {
        let mut cache = ListCache::new(1 << 20);
        keep(&mut cache, "g", 1, "connection", 7, &[1, 2]);
        keep(&mut cache, "g", 1, "follows", 7, &[]);
        assert_eq!(kept(&mut cache, "g", 1, "connection", 7), Some(vec![1, 2]));
        assert_eq!(kept(&mut cache, "g", 1, "follows", 7), Some(vec![]));
        for (graph, version, kind, key) in [
            ("h", 1, "connection", 7),
            ("g", 2, "connection", 7),
            ("g", 1, "school", 7),
            ("g", 1, "connection", 8),
        ] {
            assert_eq!(kept(&mut cache, graph, version, kind, key), None);
        }
    }

    #[test]
    fn a_newer_version_takes_over_and_an_older_one_does_not() {
        let mut cache = ListCache::new(1 << 20);
        keep(&mut cache, "g", 2, "connection", 7, &[2]);
        keep(&mut cache, "g", 1, "connection", 7, &[1]);
        assert_eq!(kept(&mut cache, "g", 1, "connection", 7), None);
        assert_eq!(kept(&mut cache, "g", 2, "connection", 7), Some(vec![2]));
        cache.supersede(|_, _| Some(origin(3)));
        assert_eq!(kept(&mut cache, "g", 2, "connection", 7), Some(vec![2]), "for queries under way");
        cache.supersede(|_, _| None);
        assert_eq!(kept(&mut cache, "g", 2, "connection", 7), None);
        assert_eq!((cache.counters().entries, cache.counters().bytes), (0, 0));
    }

    #[test]
    fn a_load_of_other_edges_leaves_lists_and_takes_what_rests_on_the_whole_graph() {
        let mut cache = ListCache::new(1 << 20);
        keep(&mut cache, "g", 1, "connection", 7, &[2]);
        keep(&mut cache, "g", 1, "connection", 8, &[]);
        let after = Origin { component: StoreVersion(1), graph: StoreVersion(2) };
        cache.supersede(|_, _| Some(after));
        let lists = cache.read("g", after, &edge("connection"), &[7, 8]);
        assert_eq!(lists.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false]);
    }

    #[test]
    fn after_a_rollback_the_older_version_is_kept_again() {
        let mut cache = ListCache::new(1 << 20);
        keep(&mut cache, "g", 2, "connection", 7, &[2]);
        cache.supersede(|_, _| Some(origin(1)));
        keep(&mut cache, "g", 1, "connection", 7, &[1]);
        assert_eq!(kept(&mut cache, "g", 1, "connection", 7), Some(vec![1]));
    }

    #[test]
    fn room_is_what_nothing_of_use_takes() {
        let mut cache = ListCache::new(64 << 10);
        assert!(cache.has_room(100, 4_000) && !cache.has_room(100, 8_192));
        assert!(!cache.has_room(8_192, 0) && !cache.has_room(u64::MAX, u64::MAX));
        for key in 0..100 {
            keep(&mut cache, "g", 1, "connection", key, &(0..40).collect::<Vec<_>>());
        }
        assert!(!cache.has_room(100, 4_000), "half is taken");
        cache.supersede(|_, _| Some(origin(2)));
        assert!(cache.has_room(100, 4_000), "what is over makes room");
    }

    #[test]
    fn one_list_does_not_fill_the_cache() {
        let mut cache = ListCache::new(64 << 10);
        keep(&mut cache, "g", 1, "connection", 7, &(0..129).collect::<Vec<_>>());
        assert_eq!(kept(&mut cache, "g", 1, "connection", 7), None);
        assert_eq!(cache.counters().refused, 1);
    }

    proptest! {
        #[test]
        fn it_gives_back_what_was_kept_or_nothing_within_its_bound(
            steps in prop::collection::vec((0u64..3, 0u64..30, prop::collection::vec(any::<u64>(), 0..40), any::<bool>()), 0..200)
        ) {
            let mut cache = ListCache::new(30 << 10);
            let mut newest: BTreeMap<u64, u64> = BTreeMap::new();
            let mut all: BTreeMap<(u64, u64), Vec<u64>> = BTreeMap::new();
            for (version, key, list, write) in steps {
                if write {
                    // The list of one version never changes.
                    let list = all.entry((version, key)).or_insert(list).clone();
                    keep(&mut cache, "g", version, "connection", key, &list);
                    let newest = newest.entry(key).or_insert(version);
                    *newest = version.max(*newest);
                } else if let Some(got) = kept(&mut cache, "g", version, "connection", key) {
                    prop_assert_eq!(&got, &all[&(version, key)]);
                }
                prop_assert!(cache.counters().bytes <= 30 << 10);
            }
        }
    }
}
