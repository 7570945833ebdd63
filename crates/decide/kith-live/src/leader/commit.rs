//! The second half of a transaction: commits what is decided, and answers.

use super::queue::Task;
use super::settle::tasks_of;
use super::share::{DecidedTask, Share};
use super::terms::Terms;
use super::transactions::{Stage, Transactions};
use super::{Action, CommitId, CommitResult, DeliveryError, WriteError};
use crate::{Batch, UniqueHolder};
use kith_types::{LogPoint, PartitionId, Position, Term};
use std::collections::BTreeMap;

impl Transactions {
    /// Commits shares in one transaction. A share without changes proves that its answers were decided on current rows.
    pub(super) fn commit(&mut self, terms: &mut Terms, mut shares: Vec<Share>) {
        if !terms.tasks.guards.answers_proven {
            let (unproven, rest) = shares.into_iter().partition(|share| share.changes.is_empty());
            shares = rest;
            self.finish(terms, unproven);
        }
        if shares.is_empty() {
            self.stage = Stage::Idle;
            return;
        }
        let commit = CommitId(terms.tasks.new_id());
        let batch = Batch { parts: shares.iter().map(Share::part).collect(), requires: requires(&shares) };
        terms.tasks.actions.push(Action::Commit { commit, batch });
        self.stage = Stage::Committing { commit, shares };
    }

    pub(super) fn committed(&mut self, terms: &mut Terms, commit: CommitId, result: CommitResult) {
        match std::mem::replace(&mut self.stage, Stage::Idle) {
            Stage::Committing { commit: own, shares } if own == commit => match result {
                CommitResult::Done => self.finish(terms, shares),
                CommitResult::Elsewhere(ends) => self.commit_without(terms, shares, &ends),
                CommitResult::Lacks(partition, point) => {
                    self.not_contained(terms, shares, (partition, point))
                }
                CommitResult::Taken(holders) => self.decide_again(terms, shares, holders),
                CommitResult::TooLarge { value_max } => self.without_longest(terms, shares, value_max),
                CommitResult::Refused => self.not_committed(terms, shares),
                CommitResult::Unknown => self.settle(terms, shares),
            },
            other => self.stage = other,
        }
    }

    /// Commits the shares of the partitions that this node still leads. They must not fail because the leadership of others
    /// is lost.
    fn commit_without(&mut self, terms: &mut Terms, shares: Vec<Share>, ends: &[(PartitionId, LogPoint)]) {
        let is_lost = |share: &Share| ends.iter().any(|(partition, _)| *partition == share.partition);
        let (lost, rest): (Vec<Share>, Vec<Share>) = shares.into_iter().partition(is_lost);
        if lost.is_empty() {
            return self.not_committed(terms, rest);
        }
        for share in lost {
            share.decided.into_iter().for_each(|decided| terms.tasks.refuse(decided.task));
            terms.step_down(share.partition);
        }
        self.commit(terms, rest);
    }

    /// Ends the tasks that rely on a log point that the database lacks. The other tasks are decided again without them.
    fn not_contained(&mut self, terms: &mut Terms, shares: Vec<Share>, lacking: (PartitionId, LogPoint)) {
        let decided = shares.into_iter().flat_map(|share| share.decided);
        let (lost, rest): (Vec<DecidedTask>, Vec<DecidedTask>) =
            decided.partition(|decided| decided.requires == Some(lacking));
        if lost.is_empty() {
            self.back_off(terms);
        }
        terms.tasks.repeat(rest.into_iter().map(|decided| decided.task).collect());
        for decided in lost {
            match decided.task {
                Task::Delivery { sender, .. } => {
                    let answer = Err(DeliveryError::HistoryLost(lacking.0));
                    terms.tasks.actions.push(Action::AnswerDelivery { sender, answer });
                }
                Task::Completion { partition, stamp, .. } => terms.not_delivered(partition, stamp),
                Task::Write(_) => terms.tasks.fail(decided.task),
            }
        }
    }

    /// Refuses the writes whose values are longer than the database accepts, and decides the others again. If it is not known
    /// how much it accepts, the writes with the longest value are refused. Each round ends at least one task.
    fn without_longest(&mut self, terms: &mut Terms, shares: Vec<Share>, value_max: Option<u64>) {
        let sized: Vec<(DecidedTask, u64)> = shares.into_iter().flat_map(Share::into_sized).collect();
        let longest = sized.iter().map(|(_, bytes)| *bytes).max().unwrap_or_default();
        let most = value_max.unwrap_or(u64::MAX).min(longest.saturating_sub(1));
        let mut rest = Vec::new();
        for (decided, bytes) in sized {
            match decided.task {
                task if bytes <= most && most < longest => rest.push(task),
                Task::Write(pending) => terms.tasks.answer(&pending, Err(WriteError::TooLarge { bytes })),
                task => {
                    terms.tasks.fail(task);
                    self.back_off(terms);
                }
            }
        }
        self.load_rows(terms, rest);
    }

    pub(super) fn not_committed(&mut self, terms: &mut Terms, shares: Vec<Share>) {
        let decided = shares.into_iter().flat_map(|share| share.decided);
        decided.for_each(|decided| terms.tasks.fail(decided.task));
        self.back_off(terms);
    }

    /// Publishes changes that are committed, and answers their tasks.
    pub(super) fn finish(&mut self, terms: &mut Terms, shares: Vec<Share>) {
        self.failures = 0;
        let mut begun = Vec::new();
        for share in shares {
            let (partition, end) = (share.partition, share.end());
            if let Some(leadership) = terms.led.get_mut(&partition) {
                leadership.end = end;
            }
            if !share.changes.is_empty() {
                let changes = share.changes.into_iter().map(|logged| logged.change).collect();
                terms.tasks.actions.push(Action::Publish { partition, after: share.expected, changes });
            }
            for decided in share.decided {
                begun.extend(terms.end_task(decided).map(|stamp| (partition, stamp)));
            }
        }
        // A delivery carries the floor, which depends on all intents that have begun. So deliveries are sent last.
        begun.into_iter().for_each(|(partition, stamp)| terms.send(partition, stamp));
    }

    /// Decides the tasks of a transaction again, now that it is known which objects have some of the unique values.
    pub(super) fn decide_again(&mut self, terms: &mut Terms, shares: Vec<Share>, holders: Vec<UniqueHolder>) {
        let known = self.holders.len();
        self.holders.extend(holders);
        self.holders.sort();
        self.holders.dedup();
        if self.holders.len() <= known {
            // The database named nothing that was not known, so another round would end in the same way.
            return self.not_committed(terms, shares);
        }
        self.load_rows(terms, tasks_of(shares));
    }
}

/// Returns the log points that the tasks of a transaction rely on. A log that contains a log point also contains all earlier
/// ones of the same term, so only the last one of each term is needed.
fn requires(shares: &[Share]) -> Vec<(PartitionId, LogPoint)> {
    let mut last: BTreeMap<(PartitionId, Term), Position> = BTreeMap::new();
    let decided = shares.iter().flat_map(|share| &share.decided);
    for (partition, LogPoint { term, position }) in decided.filter_map(|decided| decided.requires) {
        let known = last.entry((partition, term)).or_default();
        *known = position.max(*known);
    }
    last.into_iter().map(|((partition, term), position)| (partition, LogPoint { term, position })).collect()
}
