//! The tasks that a leader accepts, and how they end.

use super::queue::{PendingWrite, Queue, Task};
use super::{
    Action, CallerId, ClockReading, Delivery, DeliveryError, SenderId, WriteAnswer, WriteError, limits,
};
use crate::{GraphTypes, Guards, Outcome, ResolvedWrite, Ticket};
use kith_types::{LogPoint, PartitionCount, PartitionId};
use std::sync::Arc;

/// The tasks that wait, the rules by which they are decided, and the actions that the shell has not been given yet.
#[derive(Clone, Debug)]
pub(super) struct Tasks {
    pub(super) types: Arc<GraphTypes>,
    /// The number of partitions of the cluster.
    pub(super) count: PartitionCount,
    pub(super) guards: Guards,
    pub(super) queue: Queue,
    pub(super) actions: Vec<Action>,
    /// The time of the current event.
    pub(super) now: ClockReading,
    pub(super) last_id: u64,
}

impl Tasks {
    pub(super) fn new(types: Arc<GraphTypes>, count: PartitionCount) -> Self {
        Self {
            types,
            count,
            guards: Guards::default(),
            queue: Queue::default(),
            actions: Vec::new(),
            now: ClockReading::default(),
            last_id: 0,
        }
    }

    /// Accepts a write, unless there are too many.
    pub(super) fn accept(&mut self, caller: CallerId, write: ResolvedWrite) {
        if self.queue.accept(&write) {
            return self.queue.push(Task::Write(PendingWrite { caller, write, tries: 0 }));
        }
        self.actions.push(Action::Answer { caller, answer: Err(WriteError::Overloaded) });
    }

    /// Accepts a delivery, unless there are too many.
    pub(super) fn delivery(&mut self, sender: SenderId, delivery: Delivery) {
        let partition = delivery.intent.pair.partitions(self.count).1;
        if self.queue.takes_delivery() {
            return self.queue.push(Task::Delivery { sender, delivery, partition });
        }
        let answer = Err(DeliveryError::Overloaded);
        self.actions.push(Action::AnswerDelivery { sender, answer });
    }

    /// Answers an accepted write that has not begun an intent.
    pub(super) fn answer(&mut self, pending: &PendingWrite, answer: Result<WriteAnswer, WriteError>) {
        self.queue.forget(&pending.write);
        self.actions.push(Action::Answer { caller: pending.caller, answer });
    }

    /// Returns the answer to a write with this outcome. Reads that have reached `points` see the write.
    pub(super) fn answered(
        &self,
        outcome: Outcome,
        points: impl IntoIterator<Item = (PartitionId, LogPoint)>,
    ) -> Result<WriteAnswer, WriteError> {
        match outcome {
            Outcome::Refused(refusal) => Err(refusal.into()),
            Outcome::Done(done) => {
                let mut ticket = Ticket::new(self.types.identity);
                points.into_iter().for_each(|(partition, point)| ticket.require(partition, point));
                Ok(WriteAnswer { done, ticket })
            }
        }
    }

    /// Ends a task of a partition that this node does not lead or hands over. Nothing was written.
    pub(super) fn refuse(&mut self, task: Task) {
        let partition = task.partition();
        match task {
            Task::Write(pending) => self.answer(&pending, Err(WriteError::NotLeader { partition })),
            Task::Delivery { sender, .. } => {
                let answer = Err(DeliveryError::NotLeader(partition));
                self.actions.push(Action::AnswerDelivery { sender, answer });
            }
            Task::Completion { .. } => {}
        }
    }

    /// Ends a task that the database did not accept. Nothing was written. Completions are tried again.
    pub(super) fn fail(&mut self, task: Task) {
        match task {
            Task::Write(pending) => self.answer(&pending, Err(WriteError::Unavailable)),
            Task::Delivery { sender, .. } => {
                let answer = Err(DeliveryError::Unavailable);
                self.actions.push(Action::AnswerDelivery { sender, answer });
            }
            Task::Completion { .. } => self.queue.push(task),
        }
    }

    /// Repeats tasks whose transaction did not take effect.
    pub(super) fn repeat(&mut self, tasks: Vec<Task>) {
        let mut writes = Vec::new();
        for task in tasks {
            match task {
                Task::Write(pending) if pending.tries < limits::TRIES_MAX => {
                    writes.push(PendingWrite { tries: pending.tries + 1, ..pending });
                }
                Task::Write(_) => self.fail(task),
                Task::Delivery { .. } | Task::Completion { .. } => self.queue.push(task),
            }
        }
        self.queue.push_first(writes.into_iter());
    }

    pub(super) fn new_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }
}
