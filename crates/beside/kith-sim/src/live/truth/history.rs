//! All states that the logs have had, including those that were lost when the database was replaced.

use crate::live::database::Database;
use kith_live::testing::Tables;
use kith_types::{LogPoint, PartitionCount, PartitionId, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// The states of all logs.
pub(super) struct History {
    logs: Vec<LogHistory>,
    /// The times at which the database was replaced by an older copy of itself.
    replaced: Vec<Timestamp>,
}

#[derive(Clone, Default)]
struct LogHistory {
    /// The rows at each place in the log.
    states: BTreeMap<LogPoint, Rc<Tables>>,
    /// The ends of the log, each with the time from which on the log ended there.
    ends: Vec<(Timestamp, LogPoint)>,
    /// Places that the log contained and lost when the database was replaced.
    lost: BTreeSet<LogPoint>,
}

/// A place of a lost history is used again in the current log, so the two histories cannot be distinguished.
#[derive(Debug)]
pub(super) struct UsedAgain {
    pub(super) partition: PartitionId,
    pub(super) point: LogPoint,
}

impl History {
    pub(super) fn new(count: PartitionCount) -> Self {
        let log = LogHistory {
            states: BTreeMap::from([(LogPoint::default(), Rc::default())]),
            ends: vec![(Timestamp::ZERO, LogPoint::default())],
            lost: BTreeSet::new(),
        };
        Self { logs: vec![log; count.get() as usize], replaced: Vec::new() }
    }

    /// Records that a log now ends at `point`. Returns whether it ended elsewhere before.
    ///
    /// # Errors
    /// If the place was in a history that the database has lost.
    pub(super) fn note(
        &mut self,
        partition: PartitionId,
        point: LogPoint,
        tables: &Rc<Tables>,
        now: Timestamp,
    ) -> Result<bool, UsedAgain> {
        let log = &mut self.logs[partition.index()];
        if log.ends.last().is_some_and(|(_, end)| *end == point) {
            return Ok(false);
        }
        log.states.insert(point, Rc::clone(tables));
        log.ends.push((now, point));
        if log.lost.contains(&point) { Err(UsedAgain { partition, point }) } else { Ok(true) }
    }

    /// Returns the rows at all places of a range, both ends included.
    pub(super) fn between(
        &self,
        partition: PartitionId,
        (from, until): (LogPoint, LogPoint),
    ) -> impl Iterator<Item = &Tables> {
        let range = self.logs[partition.index()].states.range(from..=until);
        range.map(|(_, tables)| &**tables)
    }

    /// Returns the place at which the log ended at the given time.
    pub(super) fn end_at(&self, partition: PartitionId, at: Timestamp) -> LogPoint {
        let ends = &self.logs[partition.index()].ends;
        let later = ends.partition_point(|(since, _)| *since <= at);
        later.checked_sub(1).map_or(LogPoint::default(), |index| ends[index].1)
    }

    pub(super) fn is_lost(&self, partition: PartitionId, point: LogPoint) -> bool {
        self.logs[partition.index()].lost.contains(&point)
    }

    /// Whether the database was replaced between two times, both included.
    pub(super) fn is_replaced(&self, from: Timestamp, until: Timestamp) -> bool {
        self.replaced.iter().any(|at| (from..=until).contains(at))
    }

    /// Records that the database was replaced by an older copy.
    pub(super) fn replace(&mut self, old: &Database, new: &Database, now: Timestamp) {
        for (log, (old, new)) in self.logs.iter_mut().zip(old.logs.iter().zip(&new.logs)) {
            log.lost.extend(old.points.difference(&new.points));
            log.ends.push((now, new.end));
        }
        self.replaced.push(now);
    }

    /// Returns how often the database was replaced.
    pub(super) fn replaced_times(&self) -> u64 {
        self.replaced.len() as u64
    }
}
