//! The state machine of the partitions that one node leads in one database.
//!
//! It does no I/O: the shell reports events and carries out actions. Writes, deliveries and completions of all partitions
//! that the node leads wait in one queue. There is one transaction at a time: it takes tasks off the queue, reads their
//! rows, decides them in order (`cycle.rs`), and commits the parts of all partitions together (`commit.rs`). If the answer
//! to a commit is lost, `settle.rs` finds out what became of the commit before anything else is written. If unique values are
//! taken, `unique.rs` has the transaction decided again, without the writes that want them. `pairs.rs` delivers open intents to the other end of their pair, and `terms.rs` takes leadership and gives it up.
//!
//! Safety depends on the database alone: each part of a transaction is conditional on the term and the position that this
//! leader knows. No outcome is answered before the transaction that decided it is committed, even if this transaction writes
//! nothing. So a deposed leader answers no outcome.

mod commit;
mod cycle;
mod duties;
mod event;
mod hand_over;
mod intents;
mod limits;
mod pairs;
mod queue;
mod settle;
mod share;
mod terms;
#[cfg(test)]
mod tests;
mod unique;

pub use duties::{Duties, DutyChange};
pub use event::{
    Action, Answered, CallerId, CommitId, CommitResult, Delivery, DeliveryError, Event, LoadId, Now,
    SenderId, WriteError,
};

use crate::{GraphTypes, Guards, Outcome, ResolvedWrite, RowQuery, Ticket, UniqueHolder, Write};
use kith_types::{LogPoint, PartitionCount, PartitionId, Timestamp};
use queue::{PendingWrite, Queue, Task};
use settle::{Settlement, asks_at};
use share::Share;
use std::collections::BTreeMap;
use std::sync::Arc;
use terms::{Leadership, NextTerms};

/// The state of the partitions that one node leads in one database.
#[derive(Clone, Debug)]
pub struct Leader {
    types: Arc<GraphTypes>,
    count: PartitionCount,
    guards: Guards,
    partitions: BTreeMap<PartitionId, Leadership>,
    next_terms: NextTerms,
    queue: Queue,
    stage: Stage,
    /// The objects that hold unique values which writes of the current transaction want, as far as the database has
    /// reported them.
    holders: Vec<UniqueHolder>,
    /// The number of consecutive transactions that failed.
    failures: u32,
    /// The time before which no transaction may begin.
    not_before: Timestamp,
    last_id: u64,
    now: Now,
    actions: Vec<Action>,
}

/// The stage of the current transaction.
#[derive(Clone, Debug)]
enum Stage {
    Idle,
    Loading {
        load: LoadId,
        tasks: Vec<Task>,
        queries: Vec<(PartitionId, Vec<RowQuery>)>,
    },
    Committing {
        commit: CommitId,
        shares: Vec<Share>,
    },
    /// The answer to the commit was lost, and the next terms show whether it took effect.
    Settling {
        settlement: Settlement,
        shares: Vec<Share>,
    },
}

impl Leader {
    /// Creates a leader that leads no partition yet. `count` is the number of partitions of the cluster.
    pub fn new(types: Arc<GraphTypes>, count: PartitionCount) -> Self {
        Self {
            types,
            count,
            guards: Guards::default(),
            partitions: BTreeMap::new(),
            next_terms: NextTerms::default(),
            queue: Queue::default(),
            stage: Stage::Idle,
            holders: Vec::new(),
            failures: 0,
            not_before: Timestamp::ZERO,
            last_id: 0,
            now: Now::default(),
            actions: Vec::new(),
        }
    }

    /// Sets the rules that are in force, for tests and simulations that switch some of them off.
    #[doc(hidden)]
    pub fn with_guards(self, guards: Guards) -> Self {
        Self { guards, ..self }
    }

    /// Uses newer types of the graph from now on.
    pub fn set_types(&mut self, types: Arc<GraphTypes>) {
        self.types = types;
    }

    /// Takes in an event, and returns the actions that the shell must carry out.
    pub fn on(&mut self, event: Event, now: Now) -> Vec<Action> {
        self.now = now;
        match event {
            Event::Lead { partition, term } => self.lead(partition, term),
            Event::TermBegun { partition, term, end } => {
                self.term_begun(partition, LogPoint { term, position: end });
            }
            Event::TermRefused { partition, term } => self.term_refused(partition, term),
            Event::TermUnknown { partition, term } => self.term_unknown(partition, term),
            Event::Write { caller, write } => self.write(caller, &write),
            Event::Delivery { sender, delivery } => self.delivery(sender, delivery),
            Event::Loaded { load, rows } => self.loaded(load, rows),
            Event::LoadFailed { load } => self.load_failed(load),
            Event::Committed { commit, result } => self.committed(commit, result),
            Event::Delivered { partition, stamp, at } => self.delivered(partition, stamp, at),
            Event::DeliveryFailed { partition, stamp } => self.delivery_failed(partition, stamp),
            Event::Replaced { partition, before } => self.replaced(partition, before),
            Event::HandOver { partition } => self.hand_over(partition),
            Event::Woken => self.woken(),
        }
        self.advance();
        std::mem::take(&mut self.actions)
    }

    /// Returns when [`Event::Woken`] is due, unless another event comes first; `None` if nothing is due at a certain time.
    pub fn wakes_at(&self) -> Option<Timestamp> {
        let transaction = match &self.stage {
            Stage::Idle => {
                let begins = (!self.queue.is_empty()).then_some(self.not_before);
                let releases = self.partitions.values().filter_map(|leadership| leadership.release_by);
                releases.chain(begins).min()
            }
            Stage::Settling { settlement, .. } => asks_at(settlement),
            Stage::Loading { .. } | Stage::Committing { .. } => None,
        };
        let partitions = self.partitions.values().filter_map(Leadership::wakes_at);
        partitions.chain(transaction).min()
    }

    /// Returns where the log of a partition ends after the last commit; `None` if this node does not lead the partition.
    pub fn end(&self, partition: PartitionId) -> Option<LogPoint> {
        let leadership = self.partitions.get(&partition).filter(|leadership| leadership.is_leading())?;
        Some(leadership.end)
    }

    /// Returns the floor of a partition: all of its intents with a stamp below the floor are complete. `None` if this node
    /// does not lead the partition.
    pub fn floor(&self, partition: PartitionId) -> Option<LogPoint> {
        let leadership = self.partitions.get(&partition).filter(|leadership| leadership.is_leading())?;
        let lowest = leadership.intents.lowest().filter(|_| self.guards.floor_below_intents);
        Some(lowest.unwrap_or(next(leadership.end)))
    }

    fn write(&mut self, caller: CallerId, write: &Write) {
        let answer = match ResolvedWrite::new(write, &self.types, self.count) {
            Err(fault) => Err(fault.into()),
            Ok(write) if !self.takes_writes(write.partition) => {
                Err(WriteError::NotLeader { partition: write.partition })
            }
            Ok(write) if !self.queue.accept(&write) => Err(WriteError::Overloaded),
            Ok(write) => return self.queue.push(Task::Write(PendingWrite { caller, write, tries: 0 })),
        };
        self.actions.push(Action::Answer { caller, answer });
    }

    fn delivery(&mut self, sender: SenderId, delivery: Delivery) {
        let partition = delivery.intent.pair.partitions(self.count).1;
        if self.queue.takes_delivery() {
            return self.queue.push(Task::Delivery { sender, delivery, partition });
        }
        let answer = Err(DeliveryError::Overloaded);
        self.actions.push(Action::AnswerDelivery { sender, answer });
    }

    /// Begins the next transaction and new terms if they can begin now, and ends leaderships that are over.
    fn advance(&mut self) {
        self.end_replaced();
        while matches!(self.stage, Stage::Idle) {
            self.end_replaced();
            self.release_idle();
            self.begin_terms();
            if self.queue.is_empty() || self.now.since_start < self.not_before {
                return;
            }
            self.load();
        }
        self.begin_terms();
    }

    fn woken(&mut self) {
        self.retry_terms();
        self.ask_to_settle();
        self.resend_intents();
    }

    /// Answers an accepted write that has not begun an intent.
    fn answer(&mut self, pending: &PendingWrite, answer: Result<Answered, WriteError>) {
        self.queue.forget(&pending.write);
        self.actions.push(Action::Answer { caller: pending.caller, answer });
    }

    /// Returns the answer to a write with this outcome. Reads that have reached `points` see the write.
    fn answered(
        &self,
        outcome: Outcome,
        points: impl IntoIterator<Item = (PartitionId, LogPoint)>,
    ) -> Result<Answered, WriteError> {
        match outcome {
            Outcome::Refused(refusal) => Err(refusal.into()),
            Outcome::Done(done) => {
                let mut ticket = Ticket::new(self.types.identity);
                points.into_iter().for_each(|(partition, point)| ticket.require(partition, point));
                Ok(Answered { done, ticket })
            }
        }
    }

    /// Ends a task of a partition that this node does not lead or hands over. Nothing was written.
    fn refuse(&mut self, task: Task) {
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
    fn fail(&mut self, task: Task) {
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
    fn repeat(&mut self, tasks: Vec<Task>) {
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

    /// Delays the next transaction, by more after each consecutive failure.
    fn back_off(&mut self) {
        self.failures += 1;
        self.not_before = self.now.since_start + limits::back_off(self.failures);
    }

    fn new_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }
}

/// Returns the log point that follows the end of a log.
fn next(end: LogPoint) -> LogPoint {
    LogPoint { position: end.position.next(), ..end }
}
