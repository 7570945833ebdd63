//! Decides how a cache catches up with its log, and whether the log contains a place.

use super::guards::Guard;
use super::partition::{PartitionCache, Progress};
use kith_live::Change;
use kith_types::{LogPoint, Timestamp};

/// The next read of the database, so that the cache reaches a place of its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FollowStep {
    /// Nothing. The cache has reached the place.
    Reached,
    /// The end of the log. The cache is empty, so it can start there ([`PartitionCache::jump`]).
    End,
    /// The changes after this place; pass them to [`PartitionCache::follow`]. If the log does not contain this place,
    /// or not the changes that follow it, [`PartitionCache::jump`] to its end.
    Changes {
        /// The place that the cache has applied.
        after: LogPoint,
    },
}

impl<W> PartitionCache<'_, W> {
    /// Returns what to read next so that the cache reaches `target`.
    pub fn toward(&self, target: LogPoint) -> FollowStep {
        let after = self.partition.applied;
        if target <= after {
            FollowStep::Reached
        } else if after == LogPoint::default() {
            FollowStep::End
        } else {
            FollowStep::Changes { after }
        }
    }

    /// Applies changes that were read after a place that the cache has applied, from a log that ended at `end`. Stops
    /// at a gap.
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
        // A later term may have begun in which nothing was written yet.
        match self.partition.applied.position == end.position {
            true => self.begin_term(end),
            false => Progress::Applied,
        }
    }

    /// Records that the log has reached this place, as reported by its leader.
    pub fn saw(&mut self, point: LogPoint) {
        self.partition.seen = point.max(self.partition.seen);
    }

    /// Returns the greatest place that the log is known to have reached. The cache may not have applied it yet.
    pub fn seen(&self) -> LogPoint {
        self.partition.seen
    }

    /// Whether the database was replaced by an older copy of itself, because its log lacks `before`. `before` is the
    /// value of [`Self::seen`] when the caller began to ask for the end of the log, and `end` is the answer.
    pub fn was_replaced(&self, before: LogPoint, end: LogPoint) -> bool {
        end < before && self.partition.seen == before
    }

    /// Starts again at the end of a log that lacks changes that the cache has applied or seen ([`Self::jump`]). Returns
    /// a place that the log lacks. A leader whose term began before this place must give up its term.
    pub fn replaced(&mut self, end: LogPoint) -> LogPoint {
        let (applied, seen) = (self.partition.applied, self.partition.seen);
        self.jump(end);
        if end < seen { seen } else { applied }
    }

    /// Whether a log that ended at `end` when it was read lacks `target`, which was seen in it before. In that case the
    /// database was replaced by an older copy of itself.
    pub fn lacks(&self, target: LogPoint, end: LogPoint) -> bool {
        end < target && end <= self.partition.applied
    }

    /// Whether rows that were read as of `shown` reflect `point`, which is at most `shown`. They do unless the database
    /// has lost `point`.
    pub fn shows(&self, point: LogPoint, shown: LogPoint) -> TermCheck {
        let looks = self.partition.guards.hold(Guard::FindTickets);
        if point == LogPoint::default() || point.term == shown.term || !looks {
            return TermCheck::Yes;
        }
        // Knowledge about the log that the cache follows does not apply to another log.
        if shown.term != self.partition.applied.term && self.partition.guards.hold(Guard::FindInOwnLog) {
            return TermCheck::OtherTerm;
        }
        let known = self.partition.contained.get(&point.term);
        match known.is_some_and(|known| point.position <= *known) {
            true => TermCheck::Yes,
            false => TermCheck::Unknown(Search { point, jumps: self.partition.jumps }),
        }
    }

    /// Records that the log contains the place of the search, or was trimmed beyond it. This has no effect if the cache
    /// has jumped since the search began, because the log that was searched may not be the one that the cache follows
    /// now.
    pub fn found(&mut self, search: Search) {
        if search.jumps == self.partition.jumps || !self.partition.guards.hold(Guard::FindAgainAfterJump) {
            let known = self.partition.contained.entry(search.point.term).or_default();
            *known = search.point.position.max(*known);
        }
    }
}

/// Whether rows reflect a place of an earlier term, which may be from a history that the database has lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TermCheck {
    /// The rows reflect the place.
    Yes,
    /// The rows reflect the place if the database finds it in the log. Report that with [`PartitionCache::found`].
    Unknown(Search),
    /// The rows are from another term than the one that the cache follows. The older of the two must catch up before
    /// the caller asks again.
    OtherTerm,
}

/// A place to look for in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Search {
    point: LogPoint,
    /// The number of jumps of the cache when the search began.
    jumps: u64,
}

impl Search {
    /// Returns the place to look for.
    pub fn point(self) -> LogPoint {
        self.point
    }
}
