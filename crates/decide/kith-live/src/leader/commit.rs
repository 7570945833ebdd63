//! The second half of a transaction: commits what is decided, and answers.

use super::limits::DELIVERY_PATIENCE;
use super::queue::Task;
use super::share::{Decided, Ending, Share};
use super::{Action, CommitId, CommitResult, DeliveryError, Leader, Stage, WriteError};
use crate::{Batch, Outcome};
use kith_types::{LogPoint, PartitionId, Position, Term};
use std::collections::BTreeMap;

impl Leader {
    /// Commits shares in one transaction. A share without changes proves that its answers were decided on current rows.
    pub(super) fn commit(&mut self, mut shares: Vec<Share>) {
        if !self.guards.answers_proven {
            let (unproven, rest) = shares.into_iter().partition(|share| share.changes.is_empty());
            shares = rest;
            self.finish(unproven);
        }
        if shares.is_empty() {
            self.stage = Stage::Idle;
            return;
        }
        let commit = CommitId(self.new_id());
        let batch = Batch { parts: shares.iter().map(Share::part).collect(), requires: requires(&shares) };
        self.actions.push(Action::Commit { commit, batch });
        self.stage = Stage::Committing { commit, shares };
    }

    pub(super) fn committed(&mut self, commit: CommitId, result: CommitResult) {
        match std::mem::replace(&mut self.stage, Stage::Idle) {
            Stage::Committing { commit: own, shares } if own == commit => match result {
                CommitResult::Done => self.finish(shares),
                CommitResult::Elsewhere(ends) => self.commit_without(shares, &ends),
                CommitResult::Lacks(partition, point) => self.not_contained(shares, (partition, point)),
                CommitResult::Taken(holders) => self.decide_again(shares, holders),
                CommitResult::TooLarge { value_max } => self.without_longest(shares, value_max),
                CommitResult::Refused => self.not_committed(shares),
                CommitResult::Unknown => self.settle(shares),
            },
            other => self.stage = other,
        }
    }

    /// Commits the shares of the partitions that this node still leads. They must not fail because the leadership of others
    /// is lost.
    fn commit_without(&mut self, shares: Vec<Share>, ends: &[(PartitionId, LogPoint)]) {
        let is_lost = |share: &Share| ends.iter().any(|(partition, _)| *partition == share.partition);
        let (lost, rest): (Vec<Share>, Vec<Share>) = shares.into_iter().partition(is_lost);
        if lost.is_empty() {
            return self.not_committed(rest);
        }
        for share in lost {
            share.decided.into_iter().for_each(|decided| self.refuse(decided.task));
            self.step_down(share.partition);
        }
        self.commit(rest);
    }

    /// Ends the tasks that rely on a log point that the database lacks. The other tasks are decided again without them.
    fn not_contained(&mut self, shares: Vec<Share>, lacking: (PartitionId, LogPoint)) {
        let decided = shares.into_iter().flat_map(|share| share.decided);
        let (lost, rest): (Vec<Decided>, Vec<Decided>) =
            decided.partition(|decided| decided.requires == Some(lacking));
        if lost.is_empty() {
            self.back_off();
        }
        self.repeat(rest.into_iter().map(|decided| decided.task).collect());
        for decided in lost {
            match decided.task {
                Task::Delivery { sender, .. } => {
                    let answer = Err(DeliveryError::HistoryLost(lacking.0));
                    self.actions.push(Action::AnswerDelivery { sender, answer });
                }
                Task::Completion { partition, stamp, .. } => self.not_delivered(partition, stamp),
                Task::Write(_) => self.fail(decided.task),
            }
        }
    }

    /// Refuses the writes whose values are longer than the database accepts, and decides the others again. If it is not known
    /// how much it accepts, the writes with the longest value are refused. Each round ends at least one task.
    fn without_longest(&mut self, shares: Vec<Share>, value_max: Option<u64>) {
        let sized: Vec<(Decided, u64)> = shares.into_iter().flat_map(Share::into_sized).collect();
        let longest = sized.iter().map(|(_, bytes)| *bytes).max().unwrap_or_default();
        let most = value_max.unwrap_or(u64::MAX).min(longest.saturating_sub(1));
        let mut rest = Vec::new();
        for (decided, bytes) in sized {
            match decided.task {
                task if bytes <= most && most < longest => rest.push(task),
                Task::Write(pending) => self.answer(&pending, Err(WriteError::TooLarge { bytes })),
                task => {
                    self.fail(task);
                    self.back_off();
                }
            }
        }
        self.load_rows(rest);
    }

    pub(super) fn not_committed(&mut self, shares: Vec<Share>) {
        let decided = shares.into_iter().flat_map(|share| share.decided);
        decided.for_each(|decided| self.fail(decided.task));
        self.back_off();
    }

    /// Publishes changes that are committed, and answers their tasks.
    pub(super) fn finish(&mut self, shares: Vec<Share>) {
        self.failures = 0;
        let mut begun = Vec::new();
        for share in shares {
            let (partition, end) = (share.partition, share.end());
            if let Some(leadership) = self.partitions.get_mut(&partition) {
                leadership.end = end;
            }
            if !share.changes.is_empty() {
                let changes = share.changes.into_iter().map(|logged| logged.change).collect();
                self.actions.push(Action::Publish { partition, after: share.expected, changes });
            }
            for decided in share.decided {
                begun.extend(self.end_task(decided).map(|stamp| (partition, stamp)));
            }
        }
        // A delivery carries the floor, which depends on all intents that have begun. So deliveries are sent last.
        begun.into_iter().for_each(|(partition, stamp)| self.send(partition, stamp));
    }

    /// Ends a task that is committed. Returns the stamp of the intent that has begun, if there is one.
    fn end_task(&mut self, decided: Decided) -> Option<LogPoint> {
        match (decided.task, decided.ending) {
            (Task::Write(pending), Ending::Outcome { outcome, points }) => {
                let answer = self.answered(outcome, points);
                self.answer(&pending, answer);
            }
            (Task::Write(pending), Ending::Begun(intent)) => {
                let Some(leadership) = self.partitions.get_mut(&pending.write.partition) else {
                    self.answer(&pending, Err(WriteError::OutcomeUnknown));
                    return None;
                };
                let stamp = intent.stamp;
                let send_at = self.now.since_start + DELIVERY_PATIENCE;
                leadership.intents.add(intent, Some(pending.caller), send_at);
                self.queue.forget(&pending.write);
                return Some(stamp);
            }
            (Task::Delivery { sender, .. }, Ending::Delivered { at }) => {
                self.actions.push(Action::AnswerDelivery { sender, answer: Ok(at) });
            }
            (Task::Completion { partition, stamp, .. }, Ending::Completed { at }) => {
                self.completed(partition, stamp, at);
            }
            _ => {}
        }
        None
    }

    fn completed(&mut self, partition: PartitionId, stamp: LogPoint, at: LogPoint) {
        let leadership = self.partitions.get_mut(&partition);
        let Some(open) = leadership.and_then(|leadership| leadership.intents.remove(stamp)) else { return };
        if let Some(caller) = open.caller {
            let there = open.there.map(|there| (open.intent.pair.partitions(self.count).1, there));
            let points = there.into_iter().chain([(partition, at)]);
            let answer = self.answered(Outcome::Done(open.intent.done), points);
            self.actions.push(Action::Answer { caller, answer });
        }
        self.queue.push_first(open.waiting.into_iter());
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
