//! What became of a commit whose answer was lost.
//!
//! The commit may have taken effect, may do so later, or never. So the leader begins its next term in each partition that the
//! commit wrote to. From then on the commit cannot take effect any more, and where the log ends tells whether it has.
//!
//! The positions of the commit are never used again in the same term. Somebody may have seen the commit, and then the database may
//! have been replaced by a copy of itself that does not have it.

use super::limits::back_off;
use super::queue::Task;
use super::share::{Ending, Share};
use super::{Action, Leader, Stage, WriteError};
use kith_types::{LogPoint, PartitionId, Position, Term, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// How far the next terms of the partitions are that a commit wrote to.
pub(super) type Settlement = BTreeMap<PartitionId, Settling>;

#[derive(Clone, Copy, Debug)]
pub(super) enum Settling {
    /// The next term is to be asked for.
    AskAt { at: Timestamp, failures: u32 },
    /// This term was asked for.
    Asked { term: Term, failures: u32 },
    /// It has begun, and the log ended at this position.
    Begun(LogPoint),
    /// The partition has another leader.
    Lost,
}

/// What the end of a log says about a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Written,
    NotWritten,
}

/// When the next term of a partition is to be asked for.
pub(super) fn asks_at(settlement: &Settlement) -> Option<Timestamp> {
    let at = |settling: &Settling| if let Settling::AskAt { at, .. } = settling { Some(*at) } else { None };
    settlement.values().filter_map(at).min()
}

/// What the end of its log says about a share that has changes. Nothing if the database was replaced by another copy of itself.
fn verdict(share: &Share, end: Position) -> Option<Verdict> {
    if end == share.end().position {
        Some(Verdict::Written)
    } else if end == share.expected.position {
        Some(Verdict::NotWritten)
    } else {
        None
    }
}

impl Leader {
    /// Finds out what became of a commit.
    pub(super) fn settle(&mut self, shares: Vec<Share>) {
        // Shares without changes do not tell.
        let changed = shares.iter().filter(|share| !share.changes.is_empty());
        let ask = Settling::AskAt { at: self.now.since_start, failures: 0 };
        let settlement: Settlement = changed.map(|share| (share.partition, ask)).collect();
        if settlement.is_empty() || !self.guards.unknown_settled {
            self.back_off();
            return self.repeat(tasks_of(shares));
        }
        self.stage = Stage::Settling { settlement, shares };
        self.ask_to_settle();
    }

    /// Asks for the next terms that are due.
    pub(super) fn ask_to_settle(&mut self) {
        let now = self.now.since_start;
        let Stage::Settling { settlement, .. } = &mut self.stage else { return };
        for (&partition, settling) in settlement {
            let Settling::AskAt { at, failures } = *settling else { continue };
            if now < at {
                continue;
            }
            *settling = match self.partitions.get_mut(&partition).and_then(|it| it.next_term()) {
                None => Settling::Lost,
                Some(term) => {
                    self.actions.push(Action::BeginTerm { partition, term });
                    Settling::Asked { term, failures }
                }
            };
        }
        self.conclude();
    }

    /// The state of a partition whose next term was asked for.
    fn settling(&mut self, partition: PartitionId, term: Term) -> Option<(&mut Settling, u32)> {
        let Stage::Settling { settlement, .. } = &mut self.stage else { return None };
        let settling = settlement.get_mut(&partition)?;
        match *settling {
            Settling::Asked { term: asked, failures } if asked == term => Some((settling, failures)),
            _ => None,
        }
    }

    /// A term that was asked for has begun where the log ended at `end`, or was refused.
    pub(super) fn settled(&mut self, partition: PartitionId, term: Term, end: Option<Position>) {
        if let Some((settling, _)) = self.settling(partition, term) {
            let begun = |position| Settling::Begun(LogPoint { term, position });
            *settling = end.map_or(Settling::Lost, begun);
            self.conclude();
        }
    }

    /// Whether the term has begun is not known.
    pub(super) fn settle_again(&mut self, partition: PartitionId, term: Term) {
        let now = self.now.since_start;
        if let Some((settling, failures)) = self.settling(partition, term) {
            let failures = failures + 1;
            *settling = Settling::AskAt { at: now + back_off(failures), failures };
        }
    }

    /// Ends the commit once all next terms have begun or were refused.
    fn conclude(&mut self) {
        let is_open =
            |settling: &Settling| matches!(settling, Settling::AskAt { .. } | Settling::Asked { .. });
        match std::mem::replace(&mut self.stage, Stage::Idle) {
            Stage::Settling { settlement, shares } if !settlement.values().any(is_open) => {
                self.end_settled(&settlement, shares);
            }
            other => self.stage = other,
        }
    }

    fn end_settled(&mut self, settlement: &Settlement, shares: Vec<Share>) {
        let begun = |share: &Share| match settlement.get(&share.partition) {
            Some(Settling::Begun(end)) => Some((*end, verdict(share, end.position)?)),
            _ => None,
        };
        let ends: Vec<(PartitionId, LogPoint, Verdict)> = shares
            .iter()
            .filter_map(|share| begun(share).map(|(end, verdict)| (share.partition, end, verdict)))
            .collect();
        let verdict = ends.first().map(|(_, _, verdict)| *verdict);
        // If the database was replaced meanwhile, the others may say something else.
        let led: BTreeMap<PartitionId, LogPoint> = ends
            .into_iter()
            .filter(|(_, _, own)| Some(*own) == verdict)
            .map(|(partition, end, _)| (partition, end))
            .collect();
        let lost: BTreeSet<PartitionId> =
            settlement.keys().copied().filter(|partition| !led.contains_key(partition)).collect();
        match verdict {
            Some(Verdict::Written) => self.finish(shares),
            // The commit never takes effect, not even where leadership was lost. There the tasks are refused.
            Some(Verdict::NotWritten) => self.repeat(tasks_of(shares)),
            None => self.never_known(&lost, shares),
        }
        for (partition, end) in led {
            if let Some(leadership) = self.partitions.get_mut(&partition) {
                leadership.end = end;
                self.actions.push(Action::Publish { partition, after: end, changes: Vec::new() });
            }
        }
        lost.into_iter().for_each(|partition| self.step_down(partition));
    }

    /// All partitions that the commit wrote to have other leaders, so this one does not learn what became of it.
    fn never_known(&mut self, lost: &BTreeSet<PartitionId>, shares: Vec<Share>) {
        let mut tasks = Vec::new();
        for decided in shares.into_iter().flat_map(|share| share.decided) {
            if !lost.contains(&decided.task.partition()) {
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
    }
}

fn tasks_of(shares: Vec<Share>) -> Vec<Task> {
    shares.into_iter().flat_map(|share| share.decided).map(|decided| decided.task).collect()
}
