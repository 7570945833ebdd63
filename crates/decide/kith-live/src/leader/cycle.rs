//! The first half of a transaction: takes tasks that wait, reads their rows, and decides them.

use super::limits::{BATCH_BYTES_MAX, INTENTS_MAX};
use super::queue::{PendingWrite, Task};
use super::share::{Share, Taken};
use super::unique::TouchedValues;
use super::{Action, Leader, LoadId, Stage, WriteError};
use crate::{DecisionContext, RowQuery, Rows, RowsAt, completion_queries, delivery_queries};
use kith_types::PartitionId;
use std::collections::{BTreeMap, BTreeSet};

impl Leader {
    /// Takes the next tasks off the queue and requests their rows. Writes that must wait for a term or for an open intent
    /// are stored with that term or intent.
    pub(super) fn load(&mut self) {
        self.holders.clear();
        let taken = self.queue.take();
        self.load_rows(taken);
    }

    /// Requests the rows of those tasks that can be decided now.
    pub(super) fn load_rows(&mut self, tasks: Vec<Task>) {
        let tasks: Vec<Task> = tasks.into_iter().filter_map(|task| self.ready(task)).collect();
        if tasks.is_empty() {
            return;
        }
        let mut queries: BTreeMap<PartitionId, BTreeSet<RowQuery>> = BTreeMap::new();
        for task in &tasks {
            queries.entry(task.partition()).or_default().extend(self.queries(task));
        }
        let queries: Vec<(PartitionId, Vec<RowQuery>)> = queries
            .into_iter()
            .map(|(partition, queries)| (partition, queries.into_iter().collect()))
            .collect();
        let load = LoadId(self.new_id());
        self.actions.push(Action::Load { load, queries: queries.clone() });
        self.stage = Stage::Loading { load, tasks, queries };
    }

    /// Returns the task if it can be decided now. Otherwise, the task waits elsewhere, is refused, or is no longer needed.
    fn ready(&mut self, task: Task) -> Option<Task> {
        let Some(leadership) = self.partitions.get_mut(&task.partition()) else {
            self.refuse(task);
            return None;
        };
        match task {
            Task::Completion { stamp, .. } => leadership.intents.get(stamp).map(|_| task),
            Task::Delivery { .. } if leadership.is_leading() => Some(task),
            Task::Write(pending) if !leadership.is_handed_over() => {
                if !leadership.is_leading() {
                    leadership.hold(pending);
                    return None;
                }
                let blocking = leadership.intents.blocking(&pending.write);
                let blocking = blocking.filter(|_| self.guards.intents_block);
                match blocking.and_then(|stamp| leadership.intents.get_mut(stamp)) {
                    Some(open) => open.waiting.push_back(pending),
                    None => return Some(Task::Write(pending)),
                }
                None
            }
            other => {
                self.refuse(other);
                None
            }
        }
    }

    fn queries(&self, task: &Task) -> Vec<RowQuery> {
        match task {
            Task::Write(pending) => pending.write.queries(self.count),
            Task::Delivery { delivery, .. } => delivery_queries(&delivery.intent, self.count),
            Task::Completion { partition, stamp, .. } => {
                let open = self.partitions.get(partition).and_then(|it| it.intents.get(*stamp));
                open.map(|open| completion_queries(&open.intent, self.count)).unwrap_or_default()
            }
        }
    }

    pub(super) fn load_failed(&mut self, load: LoadId) {
        match std::mem::replace(&mut self.stage, Stage::Idle) {
            Stage::Loading { load: own, tasks, .. } if own == load => {
                tasks.into_iter().for_each(|task| self.fail(task));
                self.back_off();
            }
            other => {
                self.stage = other;
                self.intents_not_loaded(load);
            }
        }
    }

    pub(super) fn loaded(&mut self, load: LoadId, rows: Vec<RowsAt>) {
        match std::mem::replace(&mut self.stage, Stage::Idle) {
            Stage::Loading { load: own, tasks, queries } if own == load => {
                let shares = self.shares(queries, rows);
                self.decide(tasks, shares);
            }
            other => {
                self.stage = other;
                self.intents_loaded(load, rows);
            }
        }
    }

    /// Returns an empty share for each partition whose rows were read where this leader believes that the log ends. If a log
    /// ends elsewhere, the partition has another leader, or the database was replaced by an older copy of itself. This
    /// leader then steps down, because only a later term may write there.
    fn shares(
        &mut self,
        queries: Vec<(PartitionId, Vec<RowQuery>)>,
        rows: Vec<RowsAt>,
    ) -> BTreeMap<PartitionId, Share> {
        let mut shares = BTreeMap::new();
        for ((partition, queries), RowsAt { at, answers }) in queries.into_iter().zip(rows) {
            let Some(end) = self.end(partition) else { continue };
            if end != at && (end < at || self.guards.older_copies_noticed) {
                self.step_down(partition);
            } else if end == at && queries.len() == answers.len() {
                let mut rows = Rows::new(queries, answers);
                self.holders.iter().for_each(|holder| rows.hold(holder.clone()));
                shares.insert(partition, Share::new(partition, end, rows));
            }
        }
        shares
    }

    fn decide(&mut self, tasks: Vec<Task>, mut shares: BTreeMap<PartitionId, Share>) {
        let (mut postponed, mut touched) = (Vec::new(), TouchedValues::default());
        let (mut failed, mut bytes) = (false, 0);
        for task in tasks {
            let Some(share) = shares.get_mut(&task.partition()) else {
                failed = true;
                self.unshared(task);
                continue;
            };
            let before = share.bytes;
            let task = match task {
                Task::Write(pending) if BATCH_BYTES_MAX < bytes || self.must_wait(&pending, share) => {
                    postponed.push(pending);
                    continue;
                }
                task => task,
            };
            let taken = self.decide_one(task, share, &mut touched);
            bytes += share.bytes - before;
            match taken {
                Taken::Decided => {}
                Taken::Answered(pending, error) => self.answer(&pending, Err(error)),
                Taken::Postponed(pending) => postponed.push(pending),
                Taken::Failed(task) => {
                    failed = true;
                    self.fail(task);
                }
            }
        }
        self.queue.push_first(postponed.into_iter());
        if failed {
            self.back_off();
        }
        self.commit(shares.into_values().filter(|share| !share.decided.is_empty()).collect());
    }

    /// Whether a write must wait for an intent that begins in the same transaction.
    fn must_wait(&self, pending: &PendingWrite, share: &Share) -> bool {
        self.guards.intents_block && share.begun.blocking(&pending.write).is_some()
    }

    /// Ends a task whose rows were not read where its log ends.
    fn unshared(&mut self, task: Task) {
        if self.partitions.contains_key(&task.partition()) { self.fail(task) } else { self.refuse(task) }
    }

    fn decide_one(&self, task: Task, share: &mut Share, touched: &mut TouchedValues) -> Taken {
        let place = DecisionContext {
            types: &self.types,
            count: self.count,
            point: share.next(),
            now: self.now.since_1970,
            guards: self.guards,
        };
        match task {
            Task::Write(pending) => {
                let open = self.partitions.get(&share.partition).map_or(0, |it| it.intents.len());
                if pending.write.split.is_some() && INTENTS_MAX <= open + share.begun.len() {
                    return Taken::Answered(pending, WriteError::Overloaded);
                }
                share.write(pending, place, touched)
            }
            Task::Delivery { .. } => share.deliver(task, place),
            Task::Completion { partition, stamp, .. } => {
                let open = self.partitions.get(&partition).and_then(|it| it.intents.get(stamp));
                let open = open.and_then(|open| Some((&open.intent, open.there?)));
                match open {
                    Some(open) => share.complete(task, open, place),
                    None => Taken::Failed(task),
                }
            }
        }
    }
}
