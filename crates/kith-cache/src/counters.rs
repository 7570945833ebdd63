//! What the cache has done, for metrics.

/// Counts since the start, and what is held now.
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
    /// Look-ups that went past the cache.
    pub bypassed: u64,
    /// Refreshes that a stale entry asked for.
    pub refreshes: u64,
    /// Fetches that failed.
    pub failures: u64,
    /// Entries dropped to make room.
    pub evictions: u64,
    /// Entries dropped because their time or their version was over.
    pub expired: u64,
    /// Values not kept: heavier than the cache, or of a version that is over.
    pub refused: u64,
    /// Entries held.
    pub entries: u64,
    /// What they weigh.
    pub bytes: u64,
    /// Fetches under way.
    pub flights: u64,
}

impl CacheCounters {
    /// Notes that a value was kept, and how many entries made room for it; `None` if it was not kept.
    pub(crate) fn note_kept(&mut self, evicted: Option<u64>) {
        match evicted {
            Some(evicted) => self.evictions += evicted,
            None => self.refused += 1,
        }
    }

    /// The share of look-ups answered at once, of those that did not go past the cache; `None` before the first.
    pub fn hit_rate(&self) -> Option<f64> {
        let answered = self.hits + self.stale;
        let all = answered + self.misses + self.joined;
        (0 < all).then(|| answered as f64 / all as f64)
    }
}
