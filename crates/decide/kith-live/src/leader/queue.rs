//! Work that waits for the next transaction.

use super::limits::{BATCH_BYTES_MAX, BATCH_TASKS_MAX, DELIVERIES_MAX, WRITES_BYTES_MAX, WRITES_MAX};
use super::{CallerId, Delivery, SenderId};
use crate::ResolvedWrite;
use kith_types::{LogPoint, PartitionId};
use std::collections::VecDeque;

/// An accepted write that is neither answered nor has begun an intent.
#[derive(Clone, Debug)]
pub(super) struct PendingWrite {
    pub(super) caller: CallerId,
    pub(super) write: ResolvedWrite,
    /// The number of commits with the write that did not take effect.
    pub(super) tries: u32,
}

impl PendingWrite {
    fn bytes(&self) -> usize {
        self.write.bytes()
    }
}

/// One piece of work in one partition.
#[derive(Clone, Debug)]
pub(super) enum Task {
    Write(PendingWrite),
    /// Applies an intent at the end that does not order the pair.
    Delivery {
        sender: SenderId,
        delivery: Delivery,
        partition: PartitionId,
    },
    /// Completes an intent at the ordering end, after the other end has answered.
    Completion {
        partition: PartitionId,
        stamp: LogPoint,
        /// The approximate number of bytes that the intent takes.
        bytes: usize,
    },
}

impl Task {
    pub(super) fn partition(&self) -> PartitionId {
        match self {
            Task::Write(pending) => pending.write.partition,
            Task::Delivery { partition, .. } | Task::Completion { partition, .. } => *partition,
        }
    }

    /// Returns about how many bytes the task adds to a transaction.
    fn bytes(&self) -> usize {
        match self {
            Task::Write(pending) => pending.bytes(),
            Task::Delivery { delivery, .. } => delivery.intent.bytes(),
            Task::Completion { bytes, .. } => *bytes,
        }
    }
}

/// The tasks that wait. Completions are taken first and writes last, because writes may wait for completions and deliveries.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    completions: VecDeque<Task>,
    deliveries: VecDeque<Task>,
    writes: VecDeque<PendingWrite>,
    /// The number of accepted writes that are neither answered nor have begun an intent, wherever they wait.
    accepted: usize,
    /// The size of these writes, in bytes.
    accepted_bytes: usize,
}

impl Queue {
    /// Accepts a write unless there are too many. When the write is answered or begins an intent, [`Queue::forget`] must be
    /// called.
    pub(super) fn accept(&mut self, write: &ResolvedWrite) -> bool {
        let bytes = self.accepted_bytes + write.bytes();
        if WRITES_MAX <= self.accepted || WRITES_BYTES_MAX < bytes {
            return false;
        }
        self.accepted += 1;
        self.accepted_bytes = bytes;
        true
    }

    pub(super) fn forget(&mut self, write: &ResolvedWrite) {
        self.accepted = self.accepted.saturating_sub(1);
        self.accepted_bytes = self.accepted_bytes.saturating_sub(write.bytes());
    }

    #[cfg(test)]
    pub(super) fn accepted(&self) -> (usize, usize) {
        (self.accepted, self.accepted_bytes)
    }

    /// Whether there is room for another delivery.
    pub(super) fn takes_delivery(&self) -> bool {
        self.deliveries.len() < DELIVERIES_MAX
    }

    pub(super) fn push(&mut self, task: Task) {
        match task {
            Task::Write(pending) => self.writes.push_back(pending),
            Task::Delivery { .. } => self.deliveries.push_back(task),
            Task::Completion { .. } => self.completions.push_back(task),
        }
    }

    /// Puts writes before all other writes, without changing their order.
    pub(super) fn push_first(&mut self, writes: impl DoubleEndedIterator<Item = PendingWrite>) {
        writes.rev().for_each(|write| self.writes.push_front(write));
    }

    /// Takes the next tasks for one transaction: at least one, if any task waits. Tasks that would make the transaction too
    /// large stay in the queue.
    pub(super) fn take(&mut self) -> Vec<Task> {
        let mut next = Next::default();
        next.fill(&mut self.completions, Task::bytes, |task| task);
        next.fill(&mut self.deliveries, Task::bytes, |task| task);
        next.fill(&mut self.writes, PendingWrite::bytes, Task::Write);
        next.tasks
    }

    pub(super) fn take_of(&mut self, partition: PartitionId) -> Vec<Task> {
        let mut taken = Vec::new();
        for tasks in [&mut self.completions, &mut self.deliveries] {
            let (of, rest): (VecDeque<Task>, _) =
                tasks.drain(..).partition(|task| task.partition() == partition);
            *tasks = rest;
            taken.extend(of);
        }
        let (of, rest): (VecDeque<_>, _) =
            self.writes.drain(..).partition(|pending| pending.write.partition == partition);
        self.writes = rest;
        taken.extend(of.into_iter().map(Task::Write));
        taken
    }

    pub(super) fn is_empty(&self) -> bool {
        self.completions.is_empty() && self.deliveries.is_empty() && self.writes.is_empty()
    }
}

/// Tasks that are taken for one transaction.
#[derive(Default)]
struct Next {
    tasks: Vec<Task>,
    /// The size of these tasks and of the first task that did not fit, in bytes.
    bytes: usize,
}

impl Next {
    /// Takes tasks of one kind off the front of their queue. Once a task did not fit, no task of a later kind fits.
    fn fill<T>(&mut self, queue: &mut VecDeque<T>, bytes: impl Fn(&T) -> usize, task: impl Fn(T) -> Task) {
        for _ in 0..BATCH_TASKS_MAX {
            let Some(next) = queue.front() else { return };
            self.bytes += bytes(next);
            if BATCH_BYTES_MAX < self.bytes && !self.tasks.is_empty() {
                return;
            }
            self.tasks.extend(queue.pop_front().map(&task));
        }
    }
}
