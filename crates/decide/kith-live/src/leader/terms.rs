//! Takes the leadership of partitions, and gives it up.

use super::intents::OpenIntents;
use super::limits::{FAILURES_HELD_MAX, back_off};
use super::queue::{PendingWrite, Task};
use super::{Action, Leader, LoadId, Stage, WriteError};
use crate::{RowAnswer, RowQuery, RowsAt};
use kith_types::{LogPoint, PartitionId, Term, Timestamp};
use std::collections::{BTreeMap, VecDeque};

/// Assigned terms, by partition. Each begins as soon as no transaction concerns its partition.
pub(super) type NextTerms = BTreeMap<PartitionId, Term>;

/// The number of low bits of a term in a log. They count the terms that a leader has requested for one term of the metadata.
const COUNT_BITS: u32 = 16;

/// Returns the first term that a leader requests from the database if the metadata assigned it the term `assigned`.
///
/// No term is requested twice, so that each term begins in only one history of the database, even if the database is
/// replaced by an older copy of itself. If a leader does not learn whether a term has begun, it therefore requests the next
/// one.
fn first_of(assigned: Term) -> Term {
    Term(assigned.0 << COUNT_BITS)
}

/// The leadership of one partition.
#[derive(Clone, Debug)]
pub(super) struct Leadership {
    stage: TermStage,
    /// The term that the metadata assigned.
    assigned: Term,
    /// The term that was requested from the database last.
    asked: Term,
    /// The term in which the node leads the partition, and the last position that is known to be committed. Before the node
    /// leads, this contains the term that it requests.
    pub(super) end: LogPoint,
    pub(super) intents: OpenIntents,
    /// Writes that arrived before the term had begun.
    pub(super) held: VecDeque<PendingWrite>,
    /// The number of failed steps of beginning the term.
    failures: u32,
    /// Whether this leadership began before the database was replaced. If so, it ends as soon as no transaction concerns the
    /// partition.
    is_replaced: bool,
    /// The time until which the leader waits for open intents; `None` if the partition is not being handed over.
    pub(super) release_by: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TermStage {
    /// The database was asked to begin the term.
    Asked,
    /// The next term must be requested at this time.
    AskAt(Timestamp),
    /// The open intents are being read.
    Reading(LoadId),
    /// The open intents must be read again at this time.
    ReadAt(Timestamp),
    Leading,
}

impl Leadership {
    fn new(assigned: Term) -> Self {
        let term = first_of(assigned);
        Self {
            stage: TermStage::Asked,
            assigned,
            asked: term,
            end: LogPoint { term, ..LogPoint::default() },
            intents: OpenIntents::default(),
            held: VecDeque::new(),
            failures: 0,
            is_replaced: false,
            release_by: None,
        }
    }

    /// Whether the term has begun and the open intents are known.
    pub(super) fn is_leading(&self) -> bool {
        self.stage == TermStage::Leading
    }

    pub(super) fn is_handed_over(&self) -> bool {
        self.release_by.is_some()
    }

    pub(super) fn hold(&mut self, pending: PendingWrite) {
        self.held.push_back(pending);
    }

    /// Returns the next term to request from the database; `None` if the metadata must assign another term first.
    pub(super) fn next_term(&mut self) -> Option<Term> {
        let next = Term(self.asked.0 + 1);
        let is_own = next < first_of(Term(self.assigned.0 + 1));
        is_own.then(|| {
            self.asked = next;
            next
        })
    }

    pub(super) fn wakes_at(&self) -> Option<Timestamp> {
        let term = match self.stage {
            TermStage::AskAt(at) | TermStage::ReadAt(at) => Some(at),
            TermStage::Asked | TermStage::Reading(_) | TermStage::Leading => None,
        };
        let intents = self.intents.values().filter_map(|open| open.send_at);
        intents.chain(term).min()
    }
}

impl Leader {
    /// Whether this node takes writes that a partition orders. If the term has not begun yet, they wait for it.
    pub(super) fn takes_writes(&self, partition: PartitionId) -> bool {
        let ends = self.partitions.get(&partition).map(Leadership::is_handed_over);
        ends == Some(false) || self.next_terms.contains_key(&partition)
    }

    pub(super) fn lead(&mut self, partition: PartitionId, term: Term) {
        let known = self.partitions.get(&partition).map(|leadership| leadership.assigned);
        if known.max(self.next_terms.get(&partition).copied()) < Some(term) {
            self.next_terms.insert(partition, term);
        }
    }

    /// Begins the terms of partitions that the transaction under way does not concern.
    pub(super) fn begin_terms(&mut self) {
        let ready: Vec<PartitionId> =
            self.next_terms.keys().copied().filter(|partition| !self.is_in_transaction(*partition)).collect();
        for partition in ready {
            let Some(assigned) = self.next_terms.remove(&partition) else { continue };
            let held = self.queue.take_of(partition);
            self.give_up(partition);
            let mut leadership = Leadership::new(assigned);
            let term = leadership.asked;
            for task in held {
                match task {
                    Task::Write(pending) => leadership.hold(pending),
                    other => self.refuse(other),
                }
            }
            self.partitions.insert(partition, leadership);
            self.actions.push(Action::BeginTerm { partition, term });
        }
    }

    fn is_in_transaction(&self, partition: PartitionId) -> bool {
        match &self.stage {
            Stage::Idle => false,
            Stage::Loading { queries, .. } => queries.iter().any(|(concerned, _)| *concerned == partition),
            Stage::Committing { shares, .. } | Stage::Settling { shares, .. } => {
                shares.iter().any(|share| share.partition == partition)
            }
        }
    }

    pub(super) fn term_begun(&mut self, partition: PartitionId, end: LogPoint) {
        if let Some(leadership) = self.asked(partition, end.term) {
            leadership.end = end;
            self.read_intents(partition);
        } else {
            self.settled(partition, end.term, Some(end.position));
        }
    }

    pub(super) fn term_refused(&mut self, partition: PartitionId, term: Term) {
        if self.asked(partition, term).is_some() {
            self.step_down(partition);
        } else {
            self.settled(partition, term, None);
        }
    }

    pub(super) fn term_unknown(&mut self, partition: PartitionId, term: Term) {
        if self.asked(partition, term).is_some() {
            self.again(partition, TermStage::AskAt);
        } else {
            self.settle_again(partition, term);
        }
    }

    /// Returns the leadership that waits for the database to begin this term.
    fn asked(&mut self, partition: PartitionId, term: Term) -> Option<&mut Leadership> {
        let leadership = self.partitions.get_mut(&partition)?;
        (leadership.stage == TermStage::Asked && leadership.asked == term).then_some(leadership)
    }

    /// Sets the time at which a step that failed is tried again. Writes wait for it, but not through more than
    /// [`FAILURES_HELD_MAX`] failures in a row.
    fn again(&mut self, partition: PartitionId, stage: impl FnOnce(Timestamp) -> TermStage) {
        let Some(leadership) = self.partitions.get_mut(&partition) else { return };
        leadership.failures += 1;
        leadership.stage = stage(self.now.since_start + back_off(leadership.failures));
        if leadership.failures <= FAILURES_HELD_MAX {
            return;
        }
        let held = std::mem::take(&mut leadership.held);
        held.into_iter().for_each(|pending| self.fail(Task::Write(pending)));
    }

    pub(super) fn retry_terms(&mut self) {
        let now = self.now.since_start;
        let due = |stage| match stage {
            TermStage::AskAt(at) | TermStage::ReadAt(at) => at <= now,
            TermStage::Asked | TermStage::Reading(_) | TermStage::Leading => false,
        };
        let waiting = self.partitions.iter().filter(|(_, leadership)| due(leadership.stage));
        let waiting: Vec<(PartitionId, TermStage)> =
            waiting.map(|(partition, leadership)| (*partition, leadership.stage)).collect();
        for (partition, stage) in waiting {
            match stage {
                TermStage::ReadAt(_) => self.read_intents(partition),
                _ => self.ask_next(partition),
            }
        }
    }

    /// Requests the next term of a partition that this node does not lead yet.
    fn ask_next(&mut self, partition: PartitionId) {
        let Some(leadership) = self.partitions.get_mut(&partition) else { return };
        let Some(term) = leadership.next_term() else { return self.step_down(partition) };
        leadership.end.term = term;
        leadership.stage = TermStage::Asked;
        self.actions.push(Action::BeginTerm { partition, term });
    }

    fn read_intents(&mut self, partition: PartitionId) {
        let load = LoadId(self.new_id());
        let Some(leadership) = self.partitions.get_mut(&partition) else { return };
        leadership.stage = TermStage::Reading(load);
        self.actions.push(Action::Load { load, queries: vec![(partition, vec![RowQuery::Intents])] });
    }

    /// Returns the partition whose open intents this load reads.
    fn reading(&self, load: LoadId) -> Option<PartitionId> {
        let reads = |leadership: &Leadership| leadership.stage == TermStage::Reading(load);
        self.partitions.iter().find(|(_, leadership)| reads(leadership)).map(|(partition, _)| *partition)
    }

    pub(super) fn intents_not_loaded(&mut self, load: LoadId) {
        if let Some(partition) = self.reading(load) {
            self.again(partition, TermStage::ReadAt);
        }
    }

    /// Takes in the open intents of a partition, which this node leads from now on.
    pub(super) fn intents_loaded(&mut self, load: LoadId, rows: Vec<RowsAt>) {
        let Some(partition) = self.reading(load) else { return };
        let Some(RowsAt { at, mut answers }) = rows.into_iter().next() else {
            return self.again(partition, TermStage::ReadAt);
        };
        let notices = self.guards.older_copies_noticed;
        let Some(leadership) = self.partitions.get_mut(&partition) else { return };
        match answers.pop() {
            // The partition has another leader, or the database was replaced by an older copy of itself.
            _ if at != leadership.end && (leadership.end.term < at.term || notices) => {
                self.step_down(partition);
            }
            Some(RowAnswer::Intents(intents)) if at == leadership.end => {
                leadership.stage = TermStage::Leading;
                let now = self.now.since_start;
                intents.into_iter().for_each(|intent| leadership.intents.add(intent, None, now));
                self.actions.push(Action::Publish { partition, after: at, changes: Vec::new() });
                let held = std::mem::take(&mut leadership.held);
                self.queue.push_first(held.into_iter());
                self.resend_intents();
            }
            _ => self.again(partition, TermStage::ReadAt),
        }
    }

    /// Stops leading a partition because the term cannot be used any more, and reports this.
    pub(super) fn step_down(&mut self, partition: PartitionId) {
        if let Some(leadership) = self.partitions.get(&partition) {
            let term = leadership.assigned;
            self.give_up(partition);
            self.actions.push(Action::SteppedDown { partition, term });
        }
    }

    /// Marks a leadership that began before the database was replaced, so that it ends. Some of its commits may be lost, and
    /// it does not know the intents that are open again.
    pub(super) fn replaced(&mut self, partition: PartitionId, before: LogPoint) {
        let leadership = self.partitions.get_mut(&partition);
        if let Some(leadership) = leadership.filter(|leadership| leadership.end.term <= before.term) {
            leadership.is_replaced = self.guards.older_copies_noticed;
        }
    }

    /// Ends leaderships that began before the database was replaced, if no transaction concerns them.
    pub(super) fn end_replaced(&mut self) {
        let over = self.partitions.iter().filter(|(_, leadership)| leadership.is_replaced);
        let over: Vec<PartitionId> = over.map(|(partition, _)| *partition).collect();
        for partition in over {
            if !self.is_in_transaction(partition) {
                self.step_down(partition);
            }
        }
    }

    /// Forgets a partition. Its open intents may still take effect, so their callers get the error that the outcome is
    /// not known. All other writes were not written.
    pub(super) fn give_up(&mut self, partition: PartitionId) {
        let Some(mut leadership) = self.partitions.remove(&partition) else { return };
        let mut writes: Vec<PendingWrite> = leadership.held.drain(..).collect();
        for open in leadership.intents.values_mut() {
            writes.extend(open.waiting.drain(..));
            if let Some(caller) = open.caller {
                let answer = Err(WriteError::OutcomeUnknown);
                self.actions.push(Action::Answer { caller, answer });
            }
        }
        writes.into_iter().for_each(|pending| self.refuse(Task::Write(pending)));
        for task in self.queue.take_of(partition) {
            self.refuse(task);
        }
    }
}
