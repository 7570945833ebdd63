//! A database in memory, for tests. It applies batches as a real database must, and checks the invariants after each batch.

use crate::{
    Association, AssociationKey, Batch, BatchPart, Change, CommitResult, Effect, GraphTypes, LoggedChange,
    Object, Outcome, RecordedOutcome, RowQuery, RowWrite, RowsAt, WriteId, fixture,
    testing::{Tables, faults_of, taken},
};
use kith_types::{LogPoint, PartitionCount, PartitionId, Term, partition_of_id};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone)]
pub(crate) struct Twin {
    pub(crate) count: PartitionCount,
    pub(crate) types: GraphTypes,
    logs: BTreeMap<PartitionId, Log>,
    /// The ids of the writes that took effect, to find a write that takes effect twice.
    executed: BTreeSet<WriteId>,
    /// The faults that were found, which the test reports.
    pub(crate) faults: Vec<String>,
}

#[derive(Clone, Default)]
struct Log {
    end: LogPoint,
    /// Every log point at which the log has ended.
    points: BTreeSet<LogPoint>,
    rows: Tables,
    /// The rows of a replica that applies only the changes.
    replica: Tables,
    /// The changes, and the rows after each of them.
    history: Vec<(Change, Tables)>,
}

impl Twin {
    pub(crate) fn new(count: u32) -> Self {
        let count = PartitionCount::new(count).unwrap();
        let logs = count.iter().map(|partition| (partition, Log::default())).collect();
        let (executed, faults) = (BTreeSet::new(), Vec::new());
        Self { count, types: fixture::types(), logs, executed, faults }
    }

    pub(crate) fn begin_term(&mut self, partition: PartitionId, term: Term) -> Result<LogPoint, LogPoint> {
        let log = self.logs.get_mut(&partition).unwrap();
        if term < log.end.term {
            return Err(log.end);
        }
        log.end.term = term;
        log.points.insert(log.end);
        Ok(log.end)
    }

    /// Replaces the database by an earlier copy of itself.
    pub(crate) fn restore(&mut self, copy: &Twin) {
        self.logs = copy.logs.clone();
        self.executed = copy.executed.clone();
    }

    pub(crate) fn end(&self, partition: PartitionId) -> LogPoint {
        self.logs[&partition].end
    }

    pub(crate) fn commit(&mut self, batch: &Batch) -> Result<(), CommitResult> {
        let elsewhere: Vec<(PartitionId, LogPoint)> = batch
            .parts
            .iter()
            .map(|part| (part, self.end(part.partition)))
            .filter(|(part, end)| part.expected != *end)
            .map(|(part, end)| (part.partition, end))
            .collect();
        if !elsewhere.is_empty() {
            return Err(CommitResult::Elsewhere(elsewhere));
        }
        let is_there =
            |(partition, point): &&(PartitionId, LogPoint)| self.logs[partition].points.contains(point);
        if let Some(&(partition, point)) = batch.requires.iter().find(|required| !is_there(required)) {
            return Err(CommitResult::Lacks(partition, point));
        }
        let taken = taken(self.logs.values().map(|log| &log.rows), &batch.parts);
        if !taken.is_empty() {
            return Err(CommitResult::Taken(taken));
        }
        for part in &batch.parts {
            self.apply(part);
        }
        self.check();
        Ok(())
    }

    fn apply(&mut self, part: &BatchPart) {
        let mut executed = Vec::new();
        let log = self.logs.get_mut(&part.partition).unwrap();
        for LoggedChange { change, rows } in &part.changes {
            for row in rows {
                log.rows.write(row, self.count);
                executed.extend(match row {
                    RowWrite::PutIntent(intent) => intent.name.clone().map(|name| name.id),
                    // An outcome with a log point elsewhere completes an intent, whose write is already counted.
                    RowWrite::PutOutcome(
                        id,
                        RecordedOutcome { outcome: Outcome::Done(done), elsewhere: None, .. },
                    ) if done.version != 0 => Some(id.clone()),
                    _ => None,
                });
            }
            for effect in &change.effects {
                learn(&mut log.replica, effect, &log.rows);
            }
            log.history.push((change.clone(), log.rows.clone()));
            log.end.position = log.end.position.next();
            log.points.insert(log.end);
        }
        for id in executed {
            if !self.executed.insert(id.clone()) {
                self.faults.push(format!("write {id} took effect twice"));
            }
        }
    }

    pub(crate) fn read(&self, partition: PartitionId, queries: &[RowQuery]) -> RowsAt {
        let log = &self.logs[&partition];
        RowsAt { at: log.end, answers: queries.iter().map(|query| log.rows.answer(query)).collect() }
    }

    /// Returns what a cache answers that has applied the log up to `at`.
    pub(crate) fn read_at(&self, partition: PartitionId, at: LogPoint, queries: &[RowQuery]) -> RowsAt {
        let (log, empty) = (&self.logs[&partition], Tables::default());
        let rows = at.position.0.checked_sub(1).map_or(&empty, |index| &log.history[index as usize].1);
        RowsAt { at, answers: queries.iter().map(|query| rows.answer(query)).collect() }
    }

    /// Whether these changes follow the log point `after` in the log.
    pub(crate) fn holds(&self, partition: PartitionId, after: LogPoint, changes: &[Change]) -> bool {
        let history = self.logs[&partition].history.iter().skip(after.position.0 as usize);
        history.take(changes.len()).map(|(change, _)| change).eq(changes)
    }

    pub(crate) fn associations(&self) -> BTreeMap<AssociationKey, Association> {
        self.logs.values().flat_map(|log| log.rows.associations.clone()).collect()
    }

    pub(crate) fn objects(&self) -> BTreeMap<u64, Object> {
        self.logs.values().flat_map(|log| log.rows.objects.clone()).collect()
    }

    /// Returns the recorded outcomes.
    #[allow(dead_code, reason = "only the tests of leaders use this")]
    pub(crate) fn outcomes(&self) -> impl Iterator<Item = Outcome> + '_ {
        self.logs.values().flat_map(|log| log.rows.outcomes.values()).map(|recorded| recorded.outcome.clone())
    }

    pub(crate) fn open_intents(&self) -> usize {
        self.logs.values().map(|log| log.rows.intents.len()).sum()
    }

    #[allow(dead_code, reason = "only the tests of leaders use this")]
    pub(crate) fn pair_stamps(&self) -> usize {
        self.logs.values().map(|log| log.rows.stamps.len()).sum()
    }

    /// Checks what must hold after every transaction.
    fn check(&mut self) {
        let mut faults = Vec::new();
        for log in self.logs.values() {
            if (&log.rows.objects, &log.rows.associations, &log.rows.counts)
                != (&log.replica.objects, &log.replica.associations, &log.replica.counts)
            {
                faults.push("the changes alone do not lead to the rows that are stored".to_owned());
            }
        }
        let partitions: Vec<&Tables> = self.logs.values().map(|log| &log.rows).collect();
        faults.extend(faults_of(&partitions, &self.types));
        self.faults.extend(faults);
    }
}

/// Applies an effect of a change as a replica does.
fn learn(tables: &mut Tables, effect: &Effect, rows: &Tables) {
    match effect.clone() {
        Effect::Object(object) => drop(tables.objects.insert(object.id, object)),
        Effect::LargeObject(id) => drop(tables.objects.insert(id, rows.objects[&id].clone())),
        Effect::NoObject(id) => drop(tables.objects.remove(&id)),
        Effect::Association { list, now, was, count } => {
            let before = tables.associations.insert(list.to(now.id2), now);
            assert_eq!(before.map(|before| before.time), was, "the time before");
            tables.counts.insert(list, count);
        }
        Effect::NoAssociation { list, id2, was, count } => {
            let before = tables.associations.remove(&list.to(id2));
            assert_eq!(before.map(|before| before.time), Some(was), "the time before");
            tables.counts.insert(list, count);
            tables.counts.retain(|_, count| *count != 0);
        }
    }
}

/// Returns the ids that lie in a partition, the smallest first.
pub(crate) fn ids_in(partition: PartitionId, count: PartitionCount) -> impl Iterator<Item = u64> {
    (1..).filter(move |id| partition_of_id(*id, count) == partition)
}
