//! The truth about a run. Every transaction and every answer is compared with a model without partitions, logs and caches.

mod answers;
mod history;
mod operations;

pub(super) use operations::WriteOutcome;

use super::database::Database;
use history::{History, UsedAgain};
use kith_live::testing::{Model, Tables, faults_of};
use kith_live::{Batch, CommitResult, GraphTypes};
use kith_types::{LogPoint, PartitionCount, PartitionId, Timestamp};
use operations::{ExecutedWrite, Operation};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// The maximum number of violations that a run records.
const VIOLATIONS_MAX: usize = 8;

pub(super) struct Truth {
    count: PartitionCount,
    types: Arc<GraphTypes>,
    /// The data that callers see, as TAO defines it, once all open intents are complete.
    model: Model,
    operations: Vec<Operation>,
    history: History,
    /// Descriptions of broken promises.
    pub(super) violations: Vec<String>,
    pub(super) commits: u64,
    pub(super) terms: u64,
}

/// A copy of the database, and the state of the truth when the copy was made.
pub(super) struct OlderCopy {
    database: Database,
    model: Model,
    executed: Vec<Option<ExecutedWrite>>,
}

impl Truth {
    pub(super) fn new(count: PartitionCount, types: Arc<GraphTypes>) -> Self {
        Self {
            count,
            types,
            model: Model::default(),
            operations: Vec::new(),
            history: History::new(count),
            violations: Vec::new(),
            commits: 0,
            terms: 0,
        }
    }

    pub(super) fn fault(&mut self, what: String) {
        if self.violations.len() < VIOLATIONS_MAX {
            self.violations.push(what);
        }
    }

    /// Carries out a transaction, records its changes, and checks the rows that it leaves.
    pub(super) fn commit(
        &mut self,
        database: &mut Database,
        batch: &Batch,
        now: Timestamp,
    ) -> Result<(), CommitResult> {
        database.commit(batch, |partition, point, logged, tables| {
            self.note_change(partition, point, logged);
            self.note_end(partition, point, tables, now);
        })?;
        self.commits += 1;
        for fault in faults_of(&tables_of(database), &self.types) {
            self.fault(fault);
        }
        Ok(())
    }

    pub(super) fn term_begun(&mut self, database: &Database, partition: PartitionId, now: Timestamp) {
        let log = &database.logs[partition.index()];
        if self.note_end(partition, log.end, &log.tables, now) {
            self.terms += 1;
        }
    }

    /// Checks the conditions that must hold some time after the last fault: no intent is open, and the database and the
    /// model hold the same objects and associations.
    pub(super) fn check_settled(&mut self, database: &Database) {
        let open: usize = database.logs.iter().map(|log| log.tables.intents.len()).sum();
        if open != 0 {
            self.fault(format!("{open} intents are still open ten seconds or more after the last fault"));
        }
        let named = |kind| self.types.associations.get(kind).map_or("", |kind| &kind.name);
        let stored: BTreeMap<(u64, String, u64), (u64, u64)> = tables_of(database)
            .iter()
            .flat_map(|tables| &tables.associations)
            .map(|(key, row)| {
                let name = (key.list.id1, named(&key.list.kind).to_owned(), key.id2);
                (name, (row.stamp.position.0, row.time))
            })
            .collect();
        let expected = self.model.edges.iter().map(|(name, edge)| (name.clone(), (edge.0, edge.1))).collect();
        if open == 0 && stored != expected {
            self.fault(format!("the stored associations are {stored:?}, expected {expected:?}"));
        }
        let objects: BTreeMap<u64, u64> = tables_of(database)
            .iter()
            .flat_map(|tables| tables.objects.values())
            .map(|object| (object.id, object.stamp.position.0))
            .collect();
        let expected: BTreeMap<u64, u64> =
            self.model.objects.iter().map(|(id, object)| (*id, object.0)).collect();
        if objects != expected {
            self.fault(format!("the stored objects are {objects:?}, expected {expected:?}"));
        }
    }

    /// Calls [`History::note`], and records a violation if a lost place is used again.
    fn note_end(
        &mut self,
        partition: PartitionId,
        point: LogPoint,
        tables: &Rc<Tables>,
        now: Timestamp,
    ) -> bool {
        self.history.note(partition, point, tables, now).unwrap_or_else(|UsedAgain { partition, point }| {
            self.fault(format!("at {:?} the lost place {point} of {partition} is used again", now.0));
            true
        })
    }

    /// Returns how often the database was replaced.
    pub(super) fn replaced_times(&self) -> u64 {
        self.history.replaced_times()
    }

    /// Makes a copy of the database.
    pub(super) fn copied(&self, database: &Database) -> OlderCopy {
        let executed = self.operations.iter().map(|operation| operation.executed.clone()).collect();
        OlderCopy { database: database.clone(), model: self.model.clone(), executed }
    }

    /// Replaces the database by a copy.
    pub(super) fn replaced(&mut self, copy: OlderCopy, database: &mut Database, now: Timestamp) {
        self.history.replace(database, &copy.database, now);
        let (down_until, replaced) = (database.down_until, database.replaced + 1);
        *database = Database { down_until, replaced, ..copy.database };
        self.model = copy.model;
        for (index, operation) in self.operations.iter_mut().enumerate() {
            let executed = copy.executed.get(index).cloned().flatten();
            if operation.executed != executed {
                operation.lost = std::mem::replace(&mut operation.executed, executed);
            }
        }
    }
}

fn tables_of(database: &Database) -> Vec<&Tables> {
    database.logs.iter().map(|log| &*log.tables).collect()
}
