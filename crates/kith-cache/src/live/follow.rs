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

    /// The log has reached this place, says its leader.
    pub fn saw(&mut self, point: LogPoint) {
        self.partition.seen = point.max(self.partition.seen);
    }

    /// The greatest place that the log is known to have reached. The cache may not have applied it yet.
    pub fn seen(&self) -> LogPoint {
        self.partition.seen
    }

    /// Whether a log lacks `before`, which was [`Self::seen`] when somebody began to ask where the log ends, if the answer is
    /// `end`: the database was replaced by an older copy of itself.
    pub fn was_replaced(&self, before: LogPoint, end: LogPoint) -> bool {
        end < before && self.partition.seen == before
    }

    /// Begins again at the end of a log that lacks what the cache had applied or seen ([`Self::jump`]). Returns a place that the
    /// log lacks: a leader that began to lead before it must give up its term.
    pub fn replaced(&mut self, end: LogPoint) -> LogPoint {
        let (applied, seen) = (self.partition.applied, self.partition.seen);
        self.jump(end);
        if end < seen { seen } else { applied }
    }

    /// Whether a log that ended at `end` when it was read does not contain `target`, which somebody has seen in it: the
    /// database was replaced by an older copy of itself.
    pub fn lacks(&self, target: LogPoint, end: LogPoint) -> bool {
        end < target && end <= self.partition.applied
    }

    /// Whether what was read as of `shown` shows `point`, which is not above `shown`: it does unless the database has lost `point`.
    pub fn shows(&self, point: LogPoint, shown: LogPoint) -> Shows {
        let looks = self.partition.guards.hold(Guard::FindTickets);
        if point == LogPoint::default() || point.term == shown.term || !looks {
            return Shows::Yes;
        }
        // What is known of the log that the cache follows says nothing of another one.
        if shown.term != self.partition.applied.term && self.partition.guards.hold(Guard::FindInOwnLog) {
            return Shows::OtherTerm;
        }
        let known = self.partition.contained.get(&point.term);
        match known.is_some_and(|known| point.position <= *known) {
            true => Shows::Yes,
            false => Shows::Unknown(Search { point, jumps: self.partition.jumps }),
        }
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

/// Whether what was read shows a place of an earlier term, which may be of a history that the database has lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// Yes.
    Yes,
    /// Yes if the database finds the place in the log: tell [`PartitionCache::found`].
    Unknown(Search),
    /// What was read is of another term than the cache follows. Bring whichever is behind to the term of the other, and ask again.
    OtherTerm,
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
