//! How a cache reaches a place of its log, and whether the log contains a place.

use super::guards::Guard;
use super::partition::{PartitionCache, Progress};
use kith_live::Change;
use kith_types::{LogPoint, Timestamp};

/// What to read of the database so that the cache reaches a place of its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Toward {
    /// Nothing: it has reached the place.
    Reached,
    /// Where the log ends. The cache is empty, so it can begin there: [`PartitionCache::jump`].
    End,
    /// The changes after this place: [`PartitionCache::follow`]. If the log does not contain this place, or not the changes that
    /// follow it, [`PartitionCache::jump`] to its end.
    Changes {
        /// What the cache has applied.
        after: LogPoint,
    },
}

impl<W> PartitionCache<'_, W> {
    /// What to read next so that the cache reaches `target`.
    pub fn toward(&self, target: LogPoint) -> Toward {
        let after = self.partition.applied;
        if target <= after {
            Toward::Reached
        } else if after == LogPoint::default() {
            Toward::End
        } else {
            Toward::Changes { after }
        }
    }

    /// Applies changes that were read after a place that the cache has applied, from a log that ended at `end`. After a gap
    /// nothing more is applied.
    pub fn follow<'a>(
        &mut self,
        changes: impl IntoIterator<Item = (LogPoint, &'a Change)>,
        end: LogPoint,
        now: Timestamp,
    ) -> Progress {
        for (point, change) in changes {
            if let gap @ Progress::Gap { .. } = self.apply(point, change, now) {
                return gap;
            }
        }
        // A later term may have begun, in which nothing was written yet.
        match self.partition.applied.position == end.position {
            true => self.begin_term(end),
            false => Progress::Applied,
        }
    }

    /// Whether a log lacks `before`, which the cache had applied when somebody began to ask where the log ends, if the answer is
    /// `end`: the database was replaced by an older copy of itself.
    pub fn was_replaced(&self, before: LogPoint, end: LogPoint) -> bool {
        end < before && self.partition.applied == before
    }

    /// Whether a log that ended at `end` when it was read does not contain `target`, which somebody has seen in it: the
    /// database was replaced by an older copy of itself.
    pub fn lacks(&self, target: LogPoint, end: LogPoint) -> bool {
        end < target && end <= self.partition.applied
    }

    /// What to look for in the database before an answer as of `shown` may count as one that shows `point`, which an earlier term
    /// may have ended before. `None`: the answer shows it.
    pub fn must_find(&self, point: LogPoint, shown: LogPoint) -> Option<Search> {
        let known = self.partition.contained.get(&point.term);
        let is_found = known.is_some_and(|known| point.position <= *known);
        let asks = point != LogPoint::default() && point.term != shown.term && !is_found;
        let asks = asks && self.partition.guards.hold(Guard::FindTickets);
        asks.then_some(Search { point, jumps: self.partition.jumps })
    }

    /// The log contains what was looked for, or has been trimmed beyond it. It counts for nothing if the cache has jumped
    /// meanwhile: then the log that was searched may be another one than the cache follows now.
    pub fn found(&mut self, search: Search) {
        if search.jumps == self.partition.jumps || !self.partition.guards.hold(Guard::FindAgainAfterJump) {
            let known = self.partition.contained.entry(search.point.term).or_default();
            *known = search.point.position.max(*known);
        }
    }
}

/// A place to look for in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Search {
    point: LogPoint,
    /// How often the cache had jumped.
    jumps: u64,
}

impl Search {
    /// The place.
    pub fn point(self) -> LogPoint {
        self.point
    }
}
