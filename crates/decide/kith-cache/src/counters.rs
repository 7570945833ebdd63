//! The counters of a cache, for metrics.

/// Counts since the start, and the current contents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounters {
    /// Look-ups answered with a fresh entry.
    pub hits: u64,
    /// Look-ups answered with a stale entry.
    pub stale: u64,
    /// Look-ups that made their caller fetch.
    pub misses: u64,
    /// Look-ups that wait for a fetch under way.
    pub joined: u64,
    /// Look-ups that bypassed the cache.
    pub bypassed: u64,
    /// Refreshes that were requested for a stale entry.
    pub refreshes: u64,
    /// Fetches that failed.
    pub failures: u64,
    /// Entries removed to make room.
    pub evictions: u64,
    /// Entries removed because they had expired, or their version was superseded.
    pub expired: u64,
    /// Values that were not kept, because they were heavier than the cache or of a superseded version.
    pub refused: u64,
    /// Entries in the cache.
    pub entries: u64,
    /// The bytes of all entries.
    pub bytes: u64,
    /// Fetches under way.
    pub flights: u64,
}

impl CacheCounters {
    /// Counts a value that was kept, with the number of entries that were evicted for it; `None` if it was not kept.
    pub(crate) fn note_kept(&mut self, evicted: Option<u64>) {
        match evicted {
            Some(evicted) => self.evictions += evicted,
            None => self.refused += 1,
        }
    }

    /// Returns the share of look-ups that were answered at once, among those that did not bypass the cache. `None`
    /// before the first look-up.
    pub fn hit_rate(&self) -> Option<f64> {
        let answered = self.hits + self.stale;
        let all = answered + self.misses + self.joined;
        (0 < all).then(|| answered as f64 / all as f64)
    }
}
