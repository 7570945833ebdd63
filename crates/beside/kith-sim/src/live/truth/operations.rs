//! Checks writes. Each must take effect at most once, and its outcome must be the one that the model computes in the order
//! of the logs.

use super::Truth;
use crate::live::database::Database;
use kith_live::{
    Effect, LoggedChange, Outcome, Refusal, RowWrite, Write, WriteAnswer, WriteId, ordering_partition,
};
use kith_types::{LogPoint, PartitionId};

/// A write of a client.
pub(super) struct Operation {
    write: Write,
    /// The partition that orders the write.
    partition: Option<PartitionId>,
    /// The outcome that the client learned in the end.
    reported: Option<WriteOutcome>,
    /// The effect of the write in the current history of the database.
    pub(super) executed: Option<ExecutedWrite>,
    /// The effect of the write in a history that the database has lost.
    pub(super) lost: Option<ExecutedWrite>,
}

impl Operation {
    /// Returns the effects of the write in the current history and in the lost one.
    fn outcomes(&self) -> impl Iterator<Item = &ExecutedWrite> {
        self.executed.iter().chain(&self.lost)
    }
}

/// The place in the log at which a write was decided, and its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ExecutedWrite {
    point: LogPoint,
    outcome: Outcome,
}

/// The outcome of a write as its client learned it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::live) enum WriteOutcome {
    Done,
    Refused,
    /// Nothing was written.
    Failed,
    Unknown,
}

impl Truth {
    /// Returns the number of writes that have begun.
    pub(in crate::live) fn written(&self) -> usize {
        self.operations.len()
    }

    /// Records that a client begins a write. Returns the number of the write.
    pub(in crate::live) fn begin(&mut self, write: Write) -> usize {
        let partition = ordering_partition(&write, &self.types, self.count).ok();
        self.operations.push(Operation { write, partition, reported: None, executed: None, lost: None });
        self.operations.len() - 1
    }

    /// Finds the write that a committed change decides, and compares its outcome with the model.
    pub(super) fn note_change(&mut self, partition: PartitionId, point: LogPoint, logged: &LoggedChange) {
        let Some((number, outcome)) = self.decided(partition, point, logged) else { return };
        let operation = &mut self.operations[number];
        let write = Write { write_id: None, ..operation.write.clone() };
        let expected = match &outcome {
            // The value was taken when the database first refused the transaction, and may be free by now.
            Some(taken @ Outcome::Refused(Refusal::UniqueTaken { .. })) => taken.clone(),
            _ => self.model.run(&write, point.position.0, 0),
        };
        let executed = ExecutedWrite { point, outcome: expected.clone() };
        let before = operation.executed.replace(executed);
        if let Some(before) = before {
            self.fault(format!(
                "write {number} takes effect at {point}, but already took effect at {}",
                before.point
            ));
        }
        if outcome.as_ref().is_some_and(|outcome| *outcome != expected) {
            self.fault(format!("write {number} has the outcome {outcome:?}, expected {expected:?}"));
        }
    }

    /// Returns the number of the write that a change decides, and its outcome if the change contains it.
    fn decided(
        &self,
        partition: PartitionId,
        point: LogPoint,
        logged: &LoggedChange,
    ) -> Option<(usize, Option<Outcome>)> {
        for row in &logged.rows {
            match row {
                RowWrite::PutIntent(intent) => {
                    let named = intent.name.as_ref().and_then(|name| number_of(&name.id));
                    let time = intent.edges.iter().find_map(|edge| Some(edge.content.as_ref()?.time));
                    let number = named.or_else(|| Some(time? as usize - 1))?;
                    return Some((number, Some(Outcome::Done(intent.done))));
                }
                // The write was decided when its intent was stored.
                RowWrite::DeleteIntent(_) => return None,
                RowWrite::PutOutcome(id, recorded) => {
                    return Some((number_of(id)?, Some(recorded.outcome.clone())));
                }
                _ => {}
            }
        }
        logged.change.effects.iter().find_map(|effect| {
            let Effect::Association { now, .. } = effect else { return None };
            let number = now.time as usize - 1;
            let own = now.stamp == point && self.operations.get(number)?.partition == Some(partition);
            own.then_some((number, None))
        })
    }

    /// Checks the answer to a client that a write is done.
    pub(in crate::live) fn answered(&mut self, number: usize, answered: &WriteAnswer) {
        let operation = &self.operations[number];
        let wanted = Outcome::Done(answered.done);
        let known = operation.outcomes().find(|known| known.outcome == wanted);
        let seen = operation.partition.map(|partition| answered.ticket.point(partition));
        match (known, seen) {
            (Some(known), Some(seen)) if known.point <= seen || answered.done.version == 0 => {}
            (Some(known), _) => {
                self.fault(format!("the ticket of write {number} does not reach its place {}", known.point));
            }
            (None, _) => {
                let what = format!(
                    "the answer to write {number} is {wanted:?}, but its effect was {:?}",
                    operation.executed
                );
                self.fault(what);
            }
        }
    }

    /// Checks the answer to a client that a write is refused.
    pub(in crate::live) fn refused(&mut self, number: usize, refusal: Refusal) {
        let operation = &self.operations[number];
        let expected = Outcome::Refused(refusal.clone());
        if !operation.outcomes().any(|known| known.outcome == expected) {
            let known: Vec<&ExecutedWrite> = operation.outcomes().collect();
            self.fault(format!("write {number} was refused with {refusal:?}, but its effect was {known:?}"));
        }
    }

    /// Records the outcome that a client learned in the end.
    pub(in crate::live) fn report(&mut self, number: usize, outcome: WriteOutcome) {
        self.operations[number].reported = Some(outcome);
    }

    /// Checks, at the end of a run, that failed writes had no effect, and that acknowledged writes had one, at least in a
    /// lost history. Repeats the checks of [`Truth::check_settled`].
    pub(in crate::live) fn check_answers(&mut self, database: &Database) {
        let mut faults = Vec::new();
        for (number, operation) in self.operations.iter().enumerate() {
            match (operation.reported, &operation.executed) {
                (Some(WriteOutcome::Failed), Some(executed)) => {
                    faults.push(format!("write {number} failed, but took effect: {executed:?}"));
                }
                (Some(WriteOutcome::Done | WriteOutcome::Refused), None) if operation.lost.is_none() => {
                    faults.push(format!("write {number} was acknowledged, but never took effect"));
                }
                _ => {}
            }
        }
        faults.into_iter().for_each(|fault| self.fault(fault));
        self.check_settled(database);
    }
}

fn number_of(id: &WriteId) -> Option<usize> {
    id.as_str().strip_prefix('w')?.parse().ok()
}
