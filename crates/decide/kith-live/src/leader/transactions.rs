//! The transactions of a leader, of which there is one at a time. Their first half is here: tasks that wait are taken, their
//! rows are read, and they are decided.

use super::limits::{self, BATCH_BYTES_MAX};
use super::queue::{PendingWrite, Task};
use super::settle::{Settlement, asks_at};
use super::share::{Share, TaskOutcome};
use super::terms::Terms;
use super::unique::TouchedValues;
use super::{Action, CommitId, LoadId};
use crate::{Guards, RowQuery, Rows, RowsAt, UniqueHolder};
use kith_types::{PartitionId, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// The current transaction, and what is known for the next one.
#[derive(Clone, Debug)]
pub(super) struct Transactions {
    pub(super) stage: Stage,
    /// The objects that hold unique values which writes of the current transaction want, as far as the database has
    /// reported them.
    pub(super) holders: Vec<UniqueHolder>,
    /// The number of consecutive transactions that failed.
    pub(super) failures: u32,
    /// The time before which no transaction may begin.
    pub(super) not_before: Timestamp,
}

/// The stage of the current transaction.
#[derive(Clone, Debug)]
pub(super) enum Stage {
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

impl Transactions {
    pub(super) fn new() -> Self {
        Self { stage: Stage::Idle, holders: Vec::new(), failures: 0, not_before: Timestamp::ZERO }
    }

    pub(super) fn is_idle(&self) -> bool {
        matches!(self.stage, Stage::Idle)
    }

    /// Whether the current transaction concerns a partition.
    pub(super) fn concern(&self, partition: PartitionId) -> bool {
        match &self.stage {
            Stage::Idle => false,
            Stage::Loading { queries, .. } => queries.iter().any(|(concerned, _)| *concerned == partition),
            Stage::Committing { shares, .. } | Stage::Settling { shares, .. } => {
                shares.iter().any(|share| share.partition == partition)
            }
        }
    }

    /// Returns when the next step is due; `None` if none is due at a certain time.
    pub(super) fn wakes_at(&self, terms: &Terms) -> Option<Timestamp> {
        match &self.stage {
            Stage::Idle => {
                let begins = (!terms.tasks.queue.is_empty()).then_some(self.not_before);
                let releases = terms.led.values().filter_map(|leadership| leadership.release_by);
                releases.chain(begins).min()
            }
            Stage::Settling { settlement, .. } => asks_at(settlement),
            Stage::Loading { .. } | Stage::Committing { .. } => None,
        }
    }

    /// Delays the next transaction, by more after each consecutive failure.
    pub(super) fn back_off(&mut self, terms: &Terms) {
        self.failures += 1;
        self.not_before = terms.tasks.now.since_start + limits::back_off(self.failures);
    }

    /// Takes the next tasks off the queue and requests their rows. Writes that must wait for a term or for an open intent
    /// are stored with that term or intent.
    pub(super) fn load(&mut self, terms: &mut Terms) {
        self.holders.clear();
        let taken = terms.tasks.queue.take();
        self.load_rows(terms, taken);
    }

    /// Requests the rows of those tasks that can be decided now.
    pub(super) fn load_rows(&mut self, terms: &mut Terms, tasks: Vec<Task>) {
        let tasks: Vec<Task> = tasks.into_iter().filter_map(|task| terms.ready(task)).collect();
        if tasks.is_empty() {
            return;
        }
        let mut queries: BTreeMap<PartitionId, BTreeSet<RowQuery>> = BTreeMap::new();
        for task in &tasks {
            queries.entry(task.partition()).or_default().extend(terms.queries(task));
        }
        let queries: Vec<(PartitionId, Vec<RowQuery>)> = queries
            .into_iter()
            .map(|(partition, queries)| (partition, queries.into_iter().collect()))
            .collect();
        let load = LoadId(terms.tasks.new_id());
        terms.tasks.actions.push(Action::Load { load, queries: queries.clone() });
        self.stage = Stage::Loading { load, tasks, queries };
    }

    pub(super) fn load_failed(&mut self, terms: &mut Terms, load: LoadId) {
        match std::mem::replace(&mut self.stage, Stage::Idle) {
            Stage::Loading { load: own, tasks, .. } if own == load => {
                tasks.into_iter().for_each(|task| terms.tasks.fail(task));
                self.back_off(terms);
            }
            other => {
                self.stage = other;
                terms.intents_not_loaded(load);
            }
        }
    }

    pub(super) fn loaded(&mut self, terms: &mut Terms, load: LoadId, rows: Vec<RowsAt>) {
        match std::mem::replace(&mut self.stage, Stage::Idle) {
            Stage::Loading { load: own, tasks, queries } if own == load => {
                let shares = self.shares(terms, queries, rows);
                self.decide(terms, tasks, shares);
            }
            other => {
                self.stage = other;
                terms.intents_loaded(load, rows);
            }
        }
    }

    /// Returns an empty share for each partition whose rows were read where this leader believes that the log ends. If a log
    /// ends elsewhere, the partition has another leader, or the database was replaced by an older copy of itself. This
    /// leader then steps down, because only a later term may write there.
    fn shares(
        &mut self,
        terms: &mut Terms,
        queries: Vec<(PartitionId, Vec<RowQuery>)>,
        rows: Vec<RowsAt>,
    ) -> BTreeMap<PartitionId, Share> {
        let mut shares = BTreeMap::new();
        for ((partition, queries), RowsAt { at, answers }) in queries.into_iter().zip(rows) {
            let Some(end) = terms.end(partition) else { continue };
            if end != at && (end < at || terms.tasks.guards.older_copies_noticed) {
                terms.step_down(partition);
            } else if end == at && queries.len() == answers.len() {
                let mut rows = Rows::new(queries, answers);
                self.holders.iter().for_each(|holder| rows.hold(holder.clone()));
                shares.insert(partition, Share::new(partition, end, rows));
            }
        }
        shares
    }

    fn decide(&mut self, terms: &mut Terms, tasks: Vec<Task>, mut shares: BTreeMap<PartitionId, Share>) {
        let (mut postponed, mut touched) = (Vec::new(), TouchedValues::default());
        let (mut failed, mut bytes) = (false, 0);
        for task in tasks {
            let Some(share) = shares.get_mut(&task.partition()) else {
                failed = true;
                terms.unshared(task);
                continue;
            };
            let before = share.bytes;
            let task = match task {
                Task::Write(pending)
                    if BATCH_BYTES_MAX < bytes || must_wait(&pending, share, terms.tasks.guards) =>
                {
                    postponed.push(pending);
                    continue;
                }
                task => task,
            };
            let taken = terms.decide_one(task, share, &mut touched);
            bytes += share.bytes - before;
            match taken {
                TaskOutcome::Decided => {}
                TaskOutcome::Answered(pending, error) => terms.tasks.answer(&pending, Err(error)),
                TaskOutcome::Postponed(pending) => postponed.push(pending),
                TaskOutcome::Failed(task) => {
                    failed = true;
                    terms.tasks.fail(task);
                }
            }
        }
        terms.tasks.queue.push_first(postponed.into_iter());
        if failed {
            self.back_off(terms);
        }
        self.commit(terms, shares.into_values().filter(|share| !share.decided.is_empty()).collect());
    }
}

/// Whether a write must wait for an intent that begins in the same transaction.
fn must_wait(pending: &PendingWrite, share: &Share, guards: Guards) -> bool {
    guards.intents_block && share.begun.blocking(&pending.write).is_some()
}
