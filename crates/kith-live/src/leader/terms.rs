//! Taking the leadership of a partition, and giving it up.

use super::intents::OpenIntents;
use super::limits::{FAILURES_HELD_MAX, back_off};
use super::queue::{PendingWrite, Task};
use super::{Action, Leader, LoadId, Stage, WriteError};
use crate::{RowAnswer, RowQuery, RowsAt};
use kith_types::{LogPoint, PartitionId, Term, Timestamp};
use std::collections::{BTreeMap, VecDeque};

/// Terms that begin when no transaction concerns their partition.
pub(super) type NextTerms = BTreeMap<PartitionId, Term>;

/// How many bits of a term in a log count the terms that a leader has begun for one term of the metadata.
const COUNT_BITS: u32 = 16;

/// The first term that a leader asks the database for if the metadata assigned it `assigned`.
///
/// No term is asked for twice, so that each term begins in one history of the database only, even if the database is replaced
/// by an older copy of itself. If a leader does not learn whether a term has begun, it therefore asks for the next one.
fn first_of(assigned: Term) -> Term {
    Term(assigned.0 << COUNT_BITS)
}

/// The leadership of one partition.
#[derive(Clone, Debug)]
pub(super) struct Leadership {
    stage: TermStage,
    /// The term that the metadata assigned.
    assigned: Term,
    /// The term that the database was asked for last.
    asked: Term,
    /// The term in which it leads, and the last position that is known to be committed. Before it leads, the term that it asks
    /// for.
    pub(super) end: LogPoint,
    pub(super) intents: OpenIntents,
    /// Writes that arrived before the term had begun.
    pub(super) held: VecDeque<PendingWrite>,
    /// How often beginning failed.
    failures: u32,
    /// Whether it began before the database was replaced, and ends with the transaction under way.
    is_replaced: bool,
    /// Set if the partition is handed over: until when open intents are waited for.
    pub(super) release_by: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TermStage {
    /// The database was asked to raise the term.
    Asked,
    /// It is to be asked for the next term.
    AskAt(Timestamp),
    /// The open intents are being read.
    Reading(LoadId),
    /// They are to be read again.
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

    /// Whether its term has begun and its open intents are known.
    pub(super) fn is_leading(&self) -> bool {
        self.stage == TermStage::Leading
    }

    pub(super) fn is_handed_over(&self) -> bool {
        self.release_by.is_some()
    }

    pub(super) fn hold(&mut self, pending: PendingWrite) {
        self.held.push_back(pending);
    }

    /// The next term to ask the database for; `None` if the metadata must assign another one first.
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
    /// Whether writes that a partition orders are taken, now or when its term has begun.
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

    /// The leadership whose term the database was asked to begin.
    fn asked(&mut self, partition: PartitionId, term: Term) -> Option<&mut Leadership> {
        let leadership = self.partitions.get_mut(&partition)?;
        (leadership.stage == TermStage::Asked && leadership.asked == term).then_some(leadership)
    }

    /// Repeats later what the database did not do. Writes wait for it, but not through more than [`FAILURES_HELD_MAX`] failures
    /// in a row.
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

    /// Asks the database for the next term of a partition that it does not lead yet.
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

    /// The partition whose open intents this load reads.
    fn reading(&self, load: LoadId) -> Option<PartitionId> {
        let reads = |leadership: &Leadership| leadership.stage == TermStage::Reading(load);
        self.partitions.iter().find(|(_, leadership)| reads(leadership)).map(|(partition, _)| *partition)
    }

    pub(super) fn intents_not_loaded(&mut self, load: LoadId) {
        if let Some(partition) = self.reading(load) {
            self.again(partition, TermStage::ReadAt);
        }
    }

    /// The open intents of a partition are known: its term has begun.
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

    /// Stops leading a partition that has another leader.
    pub(super) fn step_down(&mut self, partition: PartitionId) {
        if let Some(leadership) = self.partitions.get(&partition) {
            let term = leadership.assigned;
            self.give_up(partition);
            self.actions.push(Action::SteppedDown { partition, term });
        }
    }

    /// Stops leading a partition if it began to lead it before the database was replaced. What it has not committed since may be
    /// lost, and it knows nothing of the intents that are open again.
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

    /// Forgets a partition. What was begun there may still take effect; all else was not written.
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
