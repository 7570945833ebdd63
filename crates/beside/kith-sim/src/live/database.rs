//! The database: one copy of the rows and logs of all partitions. Its transactions keep the contract of
//! `kith_database::Database`.

use kith_live::testing::{Tables, taken};
use kith_live::{Batch, Change, CommitResult, RowQuery, RowsAt};
use kith_types::{LogPoint, PartitionCount, PartitionId, Term, Timestamp};
use std::collections::BTreeSet;
use std::rc::Rc;

/// The maximum number of changes that one read of a log returns.
const CHANGES_MAX: usize = 8;

#[derive(Clone)]
pub(super) struct Database {
    pub(super) count: PartitionCount,
    pub(super) logs: Vec<Log>,
    /// The database answers nothing before this time.
    pub(super) down_until: Timestamp,
    /// The number of times that the database was replaced. A connection breaks when the database is replaced.
    pub(super) replaced: u32,
}

#[derive(Clone, Default)]
pub(super) struct Log {
    pub(super) end: LogPoint,
    /// The number of the process that leads the partition.
    leader: u64,
    /// All ends that the log has had.
    pub(super) points: BTreeSet<LogPoint>,
    changes: Vec<(LogPoint, Rc<Change>)>,
    pub(super) tables: Rc<Tables>,
}

/// The result of a read of a log.
pub(super) enum LogRead {
    Changes { changes: Vec<(LogPoint, Rc<Change>)>, end: LogPoint },
    HistoryLost { end: LogPoint },
    Trimmed,
}

impl Database {
    pub(super) fn new(count: PartitionCount) -> Self {
        let log = Log { points: BTreeSet::from([LogPoint::default()]), ..Log::default() };
        Self { count, logs: vec![log; count.get() as usize], down_until: Timestamp::ZERO, replaced: 0 }
    }

    pub(super) fn begin_term(
        &mut self,
        partition: PartitionId,
        term: Term,
        leader: u64,
    ) -> Result<LogPoint, LogPoint> {
        let log = &mut self.logs[partition.index()];
        if log.end.term < term {
            (log.end.term, log.leader) = (term, leader);
            log.points.insert(log.end);
        } else if log.end.term != term || log.leader != leader {
            return Err(log.end);
        }
        Ok(log.end)
    }

    /// Carries out a transaction, and passes every change to `note`, together with the rows after it.
    ///
    /// # Errors
    /// The condition of the transaction that does not hold. In this case the transaction has no effect.
    pub(super) fn commit(
        &mut self,
        batch: &Batch,
        mut note: impl FnMut(PartitionId, LogPoint, &kith_live::LoggedChange, &Rc<Tables>),
    ) -> Result<(), CommitResult> {
        for part in &batch.parts {
            let found = self.end(part.partition);
            if found != part.expected {
                return Err(CommitResult::Elsewhere(vec![(part.partition, found)]));
            }
        }
        for &(partition, point) in &batch.requires {
            if !self.logs[partition.index()].points.contains(&point) {
                return Err(CommitResult::Lacks(partition, point));
            }
        }
        let taken = taken(self.logs.iter().map(|log| &*log.tables), &batch.parts);
        if !taken.is_empty() {
            return Err(CommitResult::Taken(taken));
        }
        for part in &batch.parts {
            let log = &mut self.logs[part.partition.index()];
            for logged in &part.changes {
                log.end.position = log.end.position.next();
                log.points.insert(log.end);
                log.changes.push((log.end, Rc::new(logged.change.clone())));
                let tables = Rc::make_mut(&mut log.tables);
                logged.rows.iter().for_each(|row| tables.write(row, self.count));
                note(part.partition, log.end, logged, &log.tables);
            }
        }
        Ok(())
    }

    pub(super) fn read(&self, partition: PartitionId, queries: &[RowQuery]) -> RowsAt {
        let log = &self.logs[partition.index()];
        RowsAt { at: log.end, answers: queries.iter().map(|query| log.tables.answer(query)).collect() }
    }

    pub(super) fn end(&self, partition: PartitionId) -> LogPoint {
        self.logs[partition.index()].end
    }

    pub(super) fn changes(&self, partition: PartitionId, after: LogPoint) -> LogRead {
        let log = &self.logs[partition.index()];
        if !log.points.contains(&after) {
            return LogRead::HistoryLost { end: log.end };
        }
        let first = log.changes.first().map_or(log.end.position.next(), |(point, _)| point.position);
        if after.position.next() < first {
            return LogRead::Trimmed;
        }
        let later = log.changes.iter().skip((after.position.0 + 1 - first.0) as usize);
        LogRead::Changes { changes: later.take(CHANGES_MAX).cloned().collect(), end: log.end }
    }

    /// Deletes the older half of the changes of each log.
    pub(super) fn trim(&mut self) {
        for log in &mut self.logs {
            let half = log.changes.len() / 2;
            log.changes.drain(..half);
        }
    }
}
