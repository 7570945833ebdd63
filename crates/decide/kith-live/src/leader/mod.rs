//! The state machine of the partitions that one node leads in one database.
//!
//! It does no I/O: the shell reports events and carries out actions. Writes, deliveries and completions of all partitions
//! that the node leads wait in one queue. There is one transaction at a time: it takes tasks off the queue, reads their
//! rows, decides them in order (`transactions.rs`, `decisions.rs`), and commits the parts of all partitions together
//! (`commit.rs`). If the answer to a commit is lost, `settle.rs` finds out what became of the commit before anything else
//! is written. If unique values are taken (`unique.rs`), the transaction is decided again, without the writes that want
//! them. `pairs.rs` delivers open intents to the other end of their pair, `terms.rs` takes leadership and gives it up, and
//! `tasks.rs` answers.
//!
//! Safety depends on the database alone: each part of a transaction is conditional on the term and the position that this
//! leader knows. No outcome is answered before the transaction that decided it is committed, even if this transaction writes
//! nothing. So a deposed leader answers no outcome.

mod commit;
mod decisions;
mod duties;
mod event;
mod intents;
mod limits;
mod pairs;
mod queue;
mod settle;
mod share;
mod tasks;
mod terms;
#[cfg(test)]
mod tests;
mod transactions;
mod unique;

pub use duties::{Duties, DutyChange};
pub use event::{
    Action, CallerId, ClockReading, CommitId, CommitResult, Delivery, DeliveryError, Event, LoadId, SenderId,
    WriteAnswer, WriteError,
};

use crate::{GraphTypes, Guards};
use kith_types::{LogPoint, PartitionCount, PartitionId, Timestamp};
use std::sync::Arc;
use tasks::Tasks;
use terms::{Leadership, Terms};
use transactions::Transactions;

/// The state of the partitions that one node leads in one database.
#[derive(Clone, Debug)]
pub struct Leader {
    terms: Terms,
    transactions: Transactions,
}

impl Leader {
    /// Creates a leader that leads no partition yet. `count` is the number of partitions of the cluster.
    pub fn new(types: Arc<GraphTypes>, count: PartitionCount) -> Self {
        Self { terms: Terms::new(Tasks::new(types, count)), transactions: Transactions::new() }
    }

    /// Sets the rules that are in force, for tests and simulations that switch some of them off.
    #[doc(hidden)]
    pub fn with_guards(mut self, guards: Guards) -> Self {
        self.terms.tasks.guards = guards;
        self
    }

    /// Uses newer types of the graph from now on.
    pub fn set_types(&mut self, types: Arc<GraphTypes>) {
        self.terms.tasks.types = types;
    }

    /// Takes in an event, and returns the actions that the shell must carry out.
    pub fn on(&mut self, event: Event, now: ClockReading) -> Vec<Action> {
        self.terms.tasks.now = now;
        let Self { terms, transactions } = self;
        match event {
            Event::Lead { partition, term } => terms.lead(partition, term),
            Event::TermBegun { partition, term, end } => {
                if !terms.term_begun(partition, LogPoint { term, position: end }) {
                    transactions.settled(terms, partition, term, Some(end));
                }
            }
            Event::TermRefused { partition, term } => {
                if !terms.term_refused(partition, term) {
                    transactions.settled(terms, partition, term, None);
                }
            }
            Event::TermUnknown { partition, term } => {
                if !terms.term_unknown(partition, term) {
                    transactions.settle_again(terms, partition, term);
                }
            }
            Event::Write { caller, write } => terms.write(caller, &write),
            Event::Delivery { sender, delivery } => terms.tasks.delivery(sender, delivery),
            Event::Loaded { load, rows } => transactions.loaded(terms, load, rows),
            Event::LoadFailed { load } => transactions.load_failed(terms, load),
            Event::Committed { commit, result } => transactions.committed(terms, commit, result),
            Event::Delivered { partition, stamp, at } => terms.delivered(partition, stamp, at),
            Event::DeliveryFailed { partition, stamp } => terms.delivery_failed(partition, stamp),
            Event::Replaced { partition, before } => terms.replaced(partition, before),
            Event::HandOver { partition } => terms.hand_over(partition),
            Event::Woken => self.woken(),
        }
        self.advance();
        std::mem::take(&mut self.terms.tasks.actions)
    }

    /// Returns when [`Event::Woken`] is due, unless another event comes first; `None` if nothing is due at a certain time.
    pub fn wakes_at(&self) -> Option<Timestamp> {
        let partitions = self.terms.led.values().filter_map(Leadership::wakes_at);
        partitions.chain(self.transactions.wakes_at(&self.terms)).min()
    }

    /// Returns where the log of a partition ends after the last commit; `None` if this node does not lead the partition.
    pub fn end(&self, partition: PartitionId) -> Option<LogPoint> {
        self.terms.end(partition)
    }

    /// Returns the floor of a partition: all of its intents with a stamp below the floor are complete. `None` if this node
    /// does not lead the partition.
    pub fn floor(&self, partition: PartitionId) -> Option<LogPoint> {
        self.terms.floor(partition)
    }

    /// Begins the next transaction and new terms if they can begin now, and ends leaderships that are over.
    fn advance(&mut self) {
        let Self { terms, transactions } = self;
        terms.end_replaced(transactions);
        while transactions.is_idle() {
            terms.end_replaced(transactions);
            terms.release_idle();
            terms.begin_terms(transactions);
            if terms.tasks.queue.is_empty() || terms.tasks.now.since_start < transactions.not_before {
                return;
            }
            transactions.load(terms);
        }
        terms.begin_terms(transactions);
    }

    fn woken(&mut self) {
        self.terms.retry_terms();
        self.transactions.ask_to_settle(&mut self.terms);
        self.terms.resend_intents();
    }
}

/// Returns the log point that follows the end of a log.
fn next(end: LogPoint) -> LogPoint {
    LogPoint { position: end.position.next(), ..end }
}
