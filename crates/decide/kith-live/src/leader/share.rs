//! The share of one partition in a transaction: the tasks that are decided, their changes, and their answers once the
//! transaction is committed.

use super::intents::OpenIntents;
use super::queue::{PendingWrite, Task};
use super::unique::TouchedValues;
use crate::{
    BatchPart, Decision, DecisionContext, Intent, LoggedChange, Outcome, RowWrite, Rows, complete, decide,
    deliver,
};
use kith_types::{LogPoint, PartitionId};

#[derive(Clone, Debug)]
pub(super) struct Share {
    pub(super) partition: PartitionId,
    /// The point at which the log must end before the transaction.
    pub(super) expected: LogPoint,
    rows: Rows,
    pub(super) changes: Vec<LoggedChange>,
    pub(super) decided: Vec<DecidedTask>,
    /// Intents that begin in this transaction.
    pub(super) begun: OpenIntents,
    /// The approximate number of bytes that the changes take.
    pub(super) bytes: usize,
}

/// A task, and how it ends once the transaction is committed.
#[derive(Clone, Debug)]
pub(super) struct DecidedTask {
    pub(super) task: Task,
    pub(super) ending: TaskEnding,
    /// Whether the task changes something.
    pub(super) writes: bool,
    /// The log point of another partition that the task relies on.
    pub(super) requires: Option<(PartitionId, LogPoint)>,
}

#[derive(Clone, Debug)]
pub(super) enum TaskEnding {
    /// A write is answered with this outcome. Reads that have reached these log points see the write.
    Outcome { outcome: Outcome, points: Vec<(PartitionId, LogPoint)> },
    /// A write has begun this intent, and waits for the other end.
    Begun(Intent),
    /// A delivery is answered: the intent is applied, and the log has reached this log point.
    Delivered { at: LogPoint },
    /// An intent is complete as of this log point.
    Completed { at: LogPoint },
}

/// The result of deciding a task.
pub(super) enum TaskOutcome {
    /// The task ends with the transaction.
    Decided,
    /// The write must wait for the next transaction, because another write of this one changes who has a unique value.
    Postponed(PendingWrite),
    /// The write is answered with this error at once. Nothing was written.
    Answered(PendingWrite, super::WriteError),
    /// The task was not decided, because something that it needs is missing.
    Failed(Task),
}

impl Share {
    pub(super) fn new(partition: PartitionId, expected: LogPoint, rows: Rows) -> Self {
        let begun = OpenIntents::default();
        Self { partition, expected, rows, changes: Vec::new(), decided: Vec::new(), begun, bytes: 0 }
    }

    /// Returns where the log ends after the changes so far.
    pub(super) fn end(&self) -> LogPoint {
        self.ends_after(self.changes.len())
    }

    /// Returns where the log ends after this many changes.
    pub(super) fn ends_after(&self, changes: usize) -> LogPoint {
        LogPoint::new(self.expected.term.0, self.expected.position.0 + changes as u64)
    }

    pub(super) fn part(&self) -> BatchPart {
        BatchPart { partition: self.partition, expected: self.expected, changes: self.changes.clone() }
    }

    /// Returns the log point of the next change.
    pub(super) fn next(&self) -> LogPoint {
        self.ends_after(self.changes.len() + 1)
    }

    /// Decides a write. `touched` are the unique values that the transaction has changed so far, in all partitions.
    pub(super) fn write(
        &mut self,
        pending: PendingWrite,
        context: DecisionContext<'_>,
        touched: &mut TouchedValues,
    ) -> TaskOutcome {
        let partition = self.partition;
        let (ending, change) = match decide(&pending.write, &self.rows, context) {
            Err(_) => return TaskOutcome::Failed(Task::Write(pending)),
            Ok(Decision::Invalid(fault)) => return TaskOutcome::Answered(pending, fault.into()),
            Ok(Decision::IdTaken) => return TaskOutcome::Answered(pending, super::WriteError::WriteIdTaken),
            Ok(Decision::Nothing(outcome)) => {
                (TaskEnding::Outcome { outcome, points: vec![(partition, self.end())] }, None)
            }
            Ok(Decision::Repeated(recorded)) => {
                let points = recorded.elsewhere.into_iter().chain([(partition, self.end())]).collect();
                (TaskEnding::Outcome { outcome: recorded.outcome, points }, None)
            }
            Ok(Decision::Changed(_, change)) if !touched.add(&change.rows) => {
                return TaskOutcome::Postponed(pending);
            }
            Ok(Decision::Changed(outcome, change)) => {
                (TaskEnding::Outcome { outcome, points: vec![(partition, context.point)] }, Some(change))
            }
            Ok(Decision::Begun(intent, change)) => {
                self.begun.add(intent.clone(), None, kith_types::Timestamp::ZERO);
                (TaskEnding::Begun(intent), Some(change))
            }
        };
        self.take(Task::Write(pending), ending, change, None)
    }

    pub(super) fn deliver(&mut self, task: Task, context: DecisionContext<'_>) -> TaskOutcome {
        let Task::Delivery { delivery, .. } = &task else { return TaskOutcome::Failed(task) };
        let from = delivery.intent.pair.partitions(context.count).0;
        let requires = context.guards.histories_match.then_some((from, delivery.as_of));
        match deliver(&delivery.intent, delivery.floor, &self.rows, context) {
            Err(_) => TaskOutcome::Failed(task),
            Ok(None) => {
                let at = self.end();
                self.take(task, TaskEnding::Delivered { at }, None, requires)
            }
            Ok(change) => self.take(task, TaskEnding::Delivered { at: context.point }, change, requires),
        }
    }

    /// Completes an intent. The other end had reached `there` when it answered.
    pub(super) fn complete(
        &mut self,
        task: Task,
        open: (&Intent, LogPoint),
        context: DecisionContext<'_>,
    ) -> TaskOutcome {
        let (intent, there) = open;
        let other = intent.pair.partitions(context.count).1;
        let requires = context.guards.histories_match.then_some((other, there));
        match complete(intent, there, &self.rows, context) {
            Err(_) => TaskOutcome::Failed(task),
            Ok(change) => {
                self.take(task, TaskEnding::Completed { at: context.point }, Some(change), requires)
            }
        }
    }

    /// Returns the decided tasks, each with the size of the longest value that it writes.
    pub(super) fn into_sized(self) -> Vec<(DecidedTask, u64)> {
        let longest =
            |change: LoggedChange| change.rows.iter().map(value_bytes).max().unwrap_or_default() as u64;
        // Each task that writes has one change.
        let mut changes = self.changes.into_iter().map(longest);
        let size = |decided: &DecidedTask| {
            if decided.writes { changes.next().unwrap_or_default() } else { 0 }
        };
        let sizes: Vec<u64> = self.decided.iter().map(size).collect();
        self.decided.into_iter().zip(sizes).collect()
    }

    fn take(
        &mut self,
        task: Task,
        ending: TaskEnding,
        change: Option<LoggedChange>,
        requires: Option<(PartitionId, LogPoint)>,
    ) -> TaskOutcome {
        let writes = change.is_some();
        if let Some(change) = change {
            self.rows.apply(&change.rows);
            self.bytes += change.rows.iter().map(row_bytes).sum::<usize>();
            self.changes.push(change);
        }
        self.decided.push(DecidedTask { task, ending, writes, requires });
        TaskOutcome::Decided
    }
}

pub(super) fn row_bytes(row: &RowWrite) -> usize {
    size_of::<RowWrite>() + value_bytes(row)
}

/// Returns about how many bytes the longest value of a row takes.
fn value_bytes(row: &RowWrite) -> usize {
    match row {
        RowWrite::PutObject(object) => object.data.bytes.len(),
        RowWrite::PutAssociation(_, association) => association.data.bytes.len(),
        RowWrite::PutIntent(intent) => intent.bytes(),
        RowWrite::PutEntry(entry) | RowWrite::DeleteEntry(entry) => entry.key.len(),
        _ => 0,
    }
}
