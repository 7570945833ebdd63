//! What became of a commit whose answer was lost.
//!
//! The commit may have taken effect, may do so later, or never. So the leader commits a **marker**: empty changes in the same
//! term at the same positions. Whichever of the two gets the positions is the outcome, and the other one never takes effect. The
//! answer to the marker may be lost as well. It is then committed again: all markers are alike, so it does not matter which of
//! them took effect. A marker is told from the commit by its length: it has one change where the commit does not have exactly
//! one, and two where it does.

use super::limits::back_off;
use super::queue::Task;
use super::share::{Ending, Share};
use super::{Action, CommitId, CommitResult, Leader, Stage, WriteError};
use crate::{Batch, BatchPart, Change, LoggedChange};
use kith_types::{LogPoint, PartitionId, Timestamp};
use std::collections::BTreeSet;

/// The marker for a commit.
#[derive(Clone, Debug)]
pub(super) struct Marker {
    state: MarkerState,
    /// Partitions that are not part of it any more: they have another leader.
    lost: BTreeSet<PartitionId>,
    failures: u32,
}

#[derive(Clone, Copy, Debug)]
enum MarkerState {
    Sent(CommitId),
    SendAt(Timestamp),
}

/// What the ends of logs say about a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Written,
    NotWritten,
}

impl Marker {
    pub(super) fn is_sent_as(&self, commit: CommitId) -> bool {
        matches!(self.state, MarkerState::Sent(own) if own == commit)
    }

    pub(super) fn send_at(&self) -> Option<Timestamp> {
        if let MarkerState::SendAt(at) = self.state { Some(at) } else { None }
    }

    /// Whether it has changes for a share. Shares without changes do not tell whether the commit took effect.
    fn marks(&self, share: &Share) -> bool {
        !share.changes.is_empty() && !self.lost.contains(&share.partition)
    }
}

impl Leader {
    fn marker_length(&self, share: &Share) -> usize {
        if share.changes.len() == 1 && self.guards.marker_differs { 2 } else { 1 }
    }

    /// Finds out what became of a commit.
    pub(super) fn settle(&mut self, shares: Vec<Share>) {
        if shares.iter().all(|share| share.changes.is_empty()) || !self.guards.unknown_settled {
            self.back_off();
            return self.repeat_all(shares);
        }
        let state = MarkerState::SendAt(self.now.since_start);
        self.mark(Marker { state, lost: BTreeSet::new(), failures: 0 }, shares);
    }

    fn repeat_all(&mut self, shares: Vec<Share>) {
        let tasks = shares.into_iter().flat_map(|share| share.decided).map(|decided| decided.task);
        self.repeat(tasks.collect());
    }

    fn mark(&mut self, mut marker: Marker, shares: Vec<Share>) {
        let parts = shares.iter().filter(|share| marker.marks(share)).map(|share| BatchPart {
            partition: share.partition,
            expected: share.expected,
            changes: vec![LoggedChange::default(); self.marker_length(share)],
        });
        let batch = Batch { parts: parts.collect() };
        if batch.parts.is_empty() {
            return self.never_known(&marker, shares);
        }
        let commit = CommitId(self.new_id());
        marker.state = MarkerState::Sent(commit);
        self.actions.push(Action::Commit { commit, batch });
        self.stage = Stage::Settling { marker, shares };
    }

    pub(super) fn resend_marker(&mut self) {
        match std::mem::replace(&mut self.stage, Stage::Idle) {
            Stage::Settling { marker, shares }
                if marker.send_at().is_some_and(|at| at <= self.now.since_start) =>
            {
                self.mark(marker, shares);
            }
            other => self.stage = other,
        }
    }

    /// The marker came to an end.
    pub(super) fn marked(&mut self, mut marker: Marker, shares: Vec<Share>, result: CommitResult) {
        match result {
            CommitResult::Done => self.not_written(&marker, shares),
            CommitResult::Elsewhere(ends) => {
                let verdict = ends.iter().find_map(|&(partition, end)| {
                    let share = shares.iter().find(|share| share.partition == partition)?;
                    self.verdict(share, end)
                });
                let lost = ends.iter().filter(|(partition, end)| {
                    let share = shares.iter().find(|share| share.partition == *partition);
                    share.is_some_and(|share| self.verdict(share, *end).is_none())
                });
                marker.lost.extend(lost.map(|(partition, _)| *partition));
                match verdict {
                    Some(Verdict::Written) => self.written(&marker, shares),
                    Some(Verdict::NotWritten) => self.not_written(&marker, shares),
                    None if marker.lost.is_empty() => self.mark_later(marker, shares),
                    None => self.mark(marker, shares),
                }
            }
            CommitResult::Refused | CommitResult::Unknown => self.mark_later(marker, shares),
        }
    }

    fn mark_later(&mut self, mut marker: Marker, shares: Vec<Share>) {
        marker.failures += 1;
        marker.state = MarkerState::SendAt(self.now.since_start + back_off(marker.failures));
        self.stage = Stage::Settling { marker, shares };
    }

    /// What it means that a log ends at `end`, where the commit or an earlier marker may have put it. Nothing if it has another
    /// leader.
    fn verdict(&self, share: &Share, end: LogPoint) -> Option<Verdict> {
        if share.changes.is_empty() {
            None
        } else if end == share.end() {
            Some(Verdict::Written)
        } else if end == share.ends_after(self.marker_length(share)) {
            Some(Verdict::NotWritten)
        } else {
            None
        }
    }

    fn written(&mut self, marker: &Marker, shares: Vec<Share>) {
        self.finish(shares);
        marker.lost.iter().for_each(|partition| self.step_down(*partition));
    }

    /// A marker took effect: the commit never will, not even where leadership was lost. There the tasks are refused.
    fn not_written(&mut self, marker: &Marker, shares: Vec<Share>) {
        let mut tasks = Vec::new();
        for share in shares {
            if marker.marks(&share) {
                let length = self.marker_length(&share);
                let (partition, after) = (share.partition, share.expected);
                if let Some(leadership) = self.partitions.get_mut(&partition) {
                    leadership.end = share.ends_after(length);
                }
                let changes = vec![Change::default(); length];
                self.actions.push(Action::Publish { partition, after, changes });
            }
            tasks.extend(share.decided.into_iter().map(|decided| decided.task));
        }
        self.repeat(tasks);
        marker.lost.iter().for_each(|partition| self.step_down(*partition));
    }

    /// All partitions that the commit wrote to have other leaders, so this one does not learn what became of it.
    fn never_known(&mut self, marker: &Marker, shares: Vec<Share>) {
        let mut tasks = Vec::new();
        for decided in shares.into_iter().flat_map(|share| share.decided) {
            if !marker.lost.contains(&decided.task.partition()) {
                tasks.push(decided.task);
                continue;
            }
            match (decided.task, decided.ending) {
                (Task::Write(pending), Ending::Outcome { .. } | Ending::Begun(_)) if decided.writes => {
                    self.answer(&pending, Err(WriteError::OutcomeUnknown));
                }
                (task, _) => self.refuse(task),
            }
        }
        self.repeat(tasks);
        marker.lost.iter().for_each(|partition| self.step_down(*partition));
    }
}
