//! Finds out what became of a commit whose answer was lost.
//!
//! The commit may have taken effect, may still take effect later, or may never take effect. So the leader begins its next
//! term in each partition that the commit wrote to. From then on the commit cannot take effect any more, and where the log
//! ends tells whether it has.
//!
//! The positions of the commit are never used again in the same term. A replica may have seen the commit before the database
//! was replaced by a copy of itself that lacks the commit.

use super::limits::back_off;
use super::queue::Task;
use super::share::{Share, TaskEnding};
use super::terms::Terms;
use super::transactions::{Stage, Transactions};
use super::{Action, WriteError};
use kith_types::{LogPoint, PartitionId, Position, Term, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// The partitions that a commit wrote to, with the states of their next terms.
pub(super) type Settlement = BTreeMap<PartitionId, TermAfterCommit>;

#[derive(Clone, Copy, Debug)]
pub(super) enum TermAfterCommit {
    /// The next term must be requested at this time.
    AskAt { at: Timestamp, failures: u32 },
    /// This term was requested.
    Asked { term: Term, failures: u32 },
    /// The next term has begun, at this log point.
    Begun(LogPoint),
    /// The partition has another leader.
    Lost,
}

/// Whether a commit took effect, according to the end of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Written,
    NotWritten,
}

/// Returns when the next term of a partition must be requested; `None` if no partition waits for that.
pub(super) fn asks_at(settlement: &Settlement) -> Option<Timestamp> {
    let at = |settling: &TermAfterCommit| {
        if let TermAfterCommit::AskAt { at, .. } = settling { Some(*at) } else { None }
    };
    settlement.values().filter_map(at).min()
}

/// Returns whether the changes of a share took effect, according to the end of its log; `None` if the log ends elsewhere,
/// because the database was replaced by a copy of itself.
fn verdict(share: &Share, end: Position) -> Option<Verdict> {
    if end == share.end().position {
        Some(Verdict::Written)
    } else if end == share.expected.position {
        Some(Verdict::NotWritten)
    } else {
        None
    }
}

impl Transactions {
    /// Begins to find out what became of a commit.
    pub(super) fn settle(&mut self, terms: &mut Terms, shares: Vec<Share>) {
        // The logs of shares without changes do not show whether the commit took effect.
        let changed = shares.iter().filter(|share| !share.changes.is_empty());
        let ask = TermAfterCommit::AskAt { at: terms.tasks.now.since_start, failures: 0 };
        let settlement: Settlement = changed.map(|share| (share.partition, ask)).collect();
        if settlement.is_empty() || !terms.tasks.guards.unknown_settled {
            self.back_off(terms);
            return terms.tasks.repeat(tasks_of(shares));
        }
        self.stage = Stage::Settling { settlement, shares };
        self.ask_to_settle(terms);
    }

    /// Requests the next terms that are due.
    pub(super) fn ask_to_settle(&mut self, terms: &mut Terms) {
        let now = terms.tasks.now.since_start;
        let Stage::Settling { settlement, .. } = &mut self.stage else { return };
        for (&partition, settling) in settlement {
            let TermAfterCommit::AskAt { at, failures } = *settling else { continue };
            if now < at {
                continue;
            }
            *settling = match terms.led.get_mut(&partition).and_then(|it| it.next_term()) {
                None => TermAfterCommit::Lost,
                Some(term) => {
                    terms.tasks.actions.push(Action::BeginTerm { partition, term });
                    TermAfterCommit::Asked { term, failures }
                }
            };
        }
        self.conclude(terms);
    }

    /// Returns the state of a partition whose next term was requested.
    fn settling(&mut self, partition: PartitionId, term: Term) -> Option<(&mut TermAfterCommit, u32)> {
        let Stage::Settling { settlement, .. } = &mut self.stage else { return None };
        let settling = settlement.get_mut(&partition)?;
        match *settling {
            TermAfterCommit::Asked { term: asked, failures } if asked == term => Some((settling, failures)),
            _ => None,
        }
    }

    /// Records that a requested term has begun at position `end`, or was refused if `end` is `None`.
    pub(super) fn settled(
        &mut self,
        terms: &mut Terms,
        partition: PartitionId,
        term: Term,
        end: Option<Position>,
    ) {
        if let Some((settling, _)) = self.settling(partition, term) {
            let begun = |position| TermAfterCommit::Begun(LogPoint { term, position });
            *settling = end.map_or(TermAfterCommit::Lost, begun);
            self.conclude(terms);
        }
    }

    /// Records that it is not known whether a requested term has begun. The term after it is requested later.
    pub(super) fn settle_again(&mut self, terms: &mut Terms, partition: PartitionId, term: Term) {
        let now = terms.tasks.now.since_start;
        if let Some((settling, failures)) = self.settling(partition, term) {
            let failures = failures + 1;
            *settling = TermAfterCommit::AskAt { at: now + back_off(failures), failures };
        }
    }

    /// Ends the commit once each next term has begun or cannot begin.
    fn conclude(&mut self, terms: &mut Terms) {
        let is_open = |settling: &TermAfterCommit| {
            matches!(settling, TermAfterCommit::AskAt { .. } | TermAfterCommit::Asked { .. })
        };
        match std::mem::replace(&mut self.stage, Stage::Idle) {
            Stage::Settling { settlement, shares } if !settlement.values().any(is_open) => {
                self.end_settled(terms, &settlement, shares);
            }
            other => self.stage = other,
        }
    }

    fn end_settled(&mut self, terms: &mut Terms, settlement: &Settlement, shares: Vec<Share>) {
        let begun = |share: &Share| match settlement.get(&share.partition) {
            Some(TermAfterCommit::Begun(end)) => Some((*end, verdict(share, end.position)?)),
            _ => None,
        };
        let ends: Vec<(PartitionId, LogPoint, Verdict)> = shares
            .iter()
            .filter_map(|share| begun(share).map(|(end, verdict)| (share.partition, end, verdict)))
            .collect();
        let verdict = ends.first().map(|(_, _, verdict)| *verdict);
        // If the database was replaced meanwhile, the logs of the partitions may contradict each other. The first one
        // counts, and the leadership of those that contradict it is lost.
        let led: BTreeMap<PartitionId, LogPoint> = ends
            .into_iter()
            .filter(|(_, _, own)| Some(*own) == verdict)
            .map(|(partition, end, _)| (partition, end))
            .collect();
        let lost: BTreeSet<PartitionId> =
            settlement.keys().copied().filter(|partition| !led.contains_key(partition)).collect();
        match verdict {
            Some(Verdict::Written) => self.finish(terms, shares),
            // The commit never takes effect, not even in partitions whose leadership was lost. The tasks of these partitions
            // are refused.
            Some(Verdict::NotWritten) => terms.tasks.repeat(tasks_of(shares)),
            None => never_known(terms, &lost, shares),
        }
        for (partition, end) in led {
            if let Some(leadership) = terms.led.get_mut(&partition) {
                leadership.end = end;
                terms.tasks.actions.push(Action::Publish { partition, after: end, changes: Vec::new() });
            }
        }
        lost.into_iter().for_each(|partition| terms.step_down(partition));
    }
}

/// Ends a commit whose fate this leader never learns: all partitions that it wrote to have other leaders, or their logs
/// belong to another copy of the database.
fn never_known(terms: &mut Terms, lost: &BTreeSet<PartitionId>, shares: Vec<Share>) {
    let mut tasks = Vec::new();
    for decided in shares.into_iter().flat_map(|share| share.decided) {
        if !lost.contains(&decided.task.partition()) {
            tasks.push(decided.task);
            continue;
        }
        match (decided.task, decided.ending) {
            (Task::Write(pending), TaskEnding::Outcome { .. } | TaskEnding::Begun(_)) if decided.writes => {
                terms.tasks.answer(&pending, Err(WriteError::OutcomeUnknown));
            }
            (task, _) => terms.tasks.refuse(task),
        }
    }
    terms.tasks.repeat(tasks);
}

pub(super) fn tasks_of(shares: Vec<Share>) -> Vec<Task> {
    shares.into_iter().flat_map(|share| share.decided).map(|decided| decided.task).collect()
}
