//! Caches that follow the log of a partition of a live graph (TAO §4; `docs/design/0019-live-graph.md`).
//!
//! [`LiveCaches`] holds the entries of all partitions of a node, with one limit in bytes: objects, the newest parts of
//! association lists, the lengths of lists, entries of indexes, and proofs of absence. Each partition has a [`PartitionCache`], which
//! applies the changes of the log in order and answers queries as of a place in the log. If rows are missing, it
//! returns the [`kith_live::RowQuery`]s to read. The rows come back with the place at which they were read, and are
//! used only if they are not older than the applied changes. The cache answers from memory only while a proof of
//! [freshness](PartitionCache::ask_freshness) holds.
//!
//! The caller reads databases and the clock, and does the waiting. Undo information for graph queries is not kept here.
//!
//! ```
//! use kith_cache::live::{CacheReply, LiveCacheOptions, LiveCaches, MissDecision, Need, Query, RowsAnswer};
//! use kith_live::{Change, RowAnswer, RowQuery};
//! use kith_types::{LogPoint, PartitionId, Timestamp};
//!
//! let mut caches: LiveCaches<u32> = LiveCaches::new(LiveCacheOptions::default());
//! let mut cache = caches.open(PartitionId(3), LogPoint::new(1, 7));
//! let now = Timestamp::ZERO;
//! let nonce = cache.ask_freshness(now);
//! cache.prove_freshness(nonce, LogPoint::new(1, 7), now);
//!
//! let query = Query::Objects(vec![42]);
//! let CacheReply::Missing(rows) = cache.ask(&query, Need::default(), now) else { panic!("it is empty") };
//! assert_eq!(rows, [RowQuery::Object(42)]);
//! let MissDecision::Fetch(flight) = cache.begin(&rows[0]) else { panic!("nobody else reads it") };
//! let landed = cache.land(flight, LogPoint::new(1, 8), &rows[0], &RowAnswer::Object(None));
//! assert!(landed.filled.is_some(), "it is as new as what was applied");
//!
//! let CacheReply::Answer(answered) = cache.ask(&query, Need::default(), now) else { panic!("it was filled") };
//! assert_eq!((answered.answer, answered.until), (RowsAnswer::Objects(vec![None]), LogPoint::new(1, 8)));
//! ```

mod ask;
mod entry;
mod follow;
mod freshness;
mod guards;
mod indexed;
mod key;
mod lists;
mod partition;
mod pending;
mod prefix;
mod query;
mod reading;
mod recent;
mod store;
mod verifier;

#[cfg(test)]
mod tests;

pub use follow::{FollowStep, Search, TermCheck};
pub use freshness::Nonce;
#[doc(hidden)]
pub use guards::Guard;
pub use indexed::IDS_MIN;
pub use partition::{FilledRows, FlightOutcome, MissDecision, PartitionCache, Progress};
pub use query::{CacheReply, DatedAnswer, Memory, Need, Query, Readiness, RowsAnswer, Start};
pub use reading::{LiveRead, LiveReadStep};
pub use verifier::{Verifier, VerifyOutcome};

use crate::CacheCounters;
use freshness::Freshness;
use kith_live::GraphTypes;
use kith_types::{LogPoint, PartitionId};
use partition::Partition;
use recent::Recent;
use std::collections::{BTreeMap, btree_map::Entry};
use std::sync::Arc;
use std::time::Duration;
use store::Store;

/// Limits of [`LiveCaches`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveCacheOptions {
    /// The most bytes of all entries together, including their keys and bookkeeping.
    pub bytes_max: u64,
    /// The time for which a partition may answer from memory after it asked for the end of the log.
    pub stale_max: Duration,
    /// The time for which changes are remembered, so that older fills can be refused. This must be longer than any read
    /// of the database takes.
    pub recent_for: Duration,
    /// The most changes that are remembered per partition, at about 100 bytes each.
    pub recent_max: usize,
    /// The most rows that are being read from the database per partition.
    pub fills_max: usize,
}

impl Default for LiveCacheOptions {
    /// The defaults are 256 MiB; fresh for 2 seconds; 3 minutes and 16,384 changes are remembered; 65,536 rows are
    /// being read.
    fn default() -> Self {
        Self {
            bytes_max: 256 << 20,
            stale_max: kith_live::STALE_MAX,
            recent_for: Duration::from_secs(180),
            recent_max: 16_384,
            fills_max: 1 << 16,
        }
    }
}

/// The caches of the partitions of one node. A node with many cores may have several of them, each with its share of
/// the bytes.
#[derive(Debug)]
pub struct LiveCaches<W> {
    options: LiveCacheOptions,
    store: Store,
    partitions: BTreeMap<PartitionId, Partition<W>>,
}

impl<W> LiveCaches<W> {
    /// Returns caches without partitions.
    pub fn new(options: LiveCacheOptions) -> Self {
        Self { options, store: Store::new(options.bytes_max), partitions: BTreeMap::new() }
    }

    /// Sets the types of the graph, by which changes are applied to entries of indexes. A change of an object that the
    /// types do not know empties these entries.
    pub fn set_types(&mut self, types: Arc<GraphTypes>) {
        self.store.types = Some(types);
    }

    /// Starts to follow the log of a partition after `at`, with an empty cache that replaces any existing one.
    pub fn open(&mut self, id: PartitionId, at: LogPoint) -> PartitionCache<'_, W> {
        let LiveCacheOptions { stale_max, recent_for, recent_max, fills_max, .. } = self.options;
        let recent = Recent::new(at, recent_for, recent_max);
        let epoch = self.store.next_epoch();
        let partition = Partition::new(epoch, at, recent, Freshness::new(stale_max), fills_max);
        let partition = match self.partitions.entry(id) {
            Entry::Vacant(slot) => slot.insert(partition),
            Entry::Occupied(slot) => {
                let slot = slot.into_mut();
                *slot = partition;
                slot
            }
        };
        PartitionCache { id, partition, store: &mut self.store }
    }

    /// Stops following a partition. Its entries are removed as they are encountered, and the waiters of its fills are
    /// dropped.
    pub fn close(&mut self, id: PartitionId) {
        self.partitions.remove(&id);
    }

    /// Returns the cache of a partition; `None` if it is not followed.
    pub fn partition(&mut self, id: PartitionId) -> Option<PartitionCache<'_, W>> {
        let partition = self.partitions.get_mut(&id)?;
        Some(PartitionCache { id, partition, store: &mut self.store })
    }

    /// Returns the counters since the start, and the current contents.
    pub fn counters(&self) -> CacheCounters {
        let flights = self.partitions.values().map(Partition::flight_count).sum::<usize>() as u64;
        CacheCounters { flights, ..self.store.counters() }
    }
}
