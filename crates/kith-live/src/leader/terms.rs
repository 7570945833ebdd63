//! Taking the leadership of a partition, and giving it up.

use super::intents::OpenIntents;
use super::limits::{HANDOVER_PATIENCE, back_off};
use super::queue::{PendingWrite, Task};
use super::{Action, Leader, LoadId, Stage, WriteError};
use crate::{RowAnswer, RowQuery, RowsAt};
use kith_types::{LogPoint, PartitionId, Term, Timestamp};
use std::collections::{BTreeMap, VecDeque};

/// Terms that begin when no transaction concerns their partition.
pub(super) type NextTerms = BTreeMap<PartitionId, Term>;

/// The leadership of one partition.
#[derive(Clone, Debug)]
pub(super) struct Leadership {
    stage: TermStage,
    /// The term, and while it leads the last position that is known to be committed.
    pub(super) end: LogPoint,
    pub(super) intents: OpenIntents,
    /// Writes that arrived before the term had begun.
    held: VecDeque<PendingWrite>,
    /// How often beginning failed.
    failures: u32,
    /// Set if the partition is handed over: until when open intents are waited for.
    release_by: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TermStage {
    /// The database was asked to raise the term.
    Asked,
    /// It is to be asked again.
    AskAt(Timestamp),
    /// The open intents are being read.
    Reading(LoadId),
    Leading,
}

impl Leadership {
    fn new(term: Term) -> Self {
        Self {
            stage: TermStage::Asked,
            end: LogPoint { term, ..LogPoint::default() },
            intents: OpenIntents::default(),
            held: VecDeque::new(),
            failures: 0,
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

    pub(super) fn wakes_at(&self) -> Option<Timestamp> {
        let term = if let TermStage::AskAt(at) = self.stage { Some(at) } else { None };
        let intents = self.intents.values().filter_map(|open| open.send_at);
        intents.chain(term).min()
    }

    /// When it is released although intents are open.
    pub(super) fn release_by(&self) -> Option<Timestamp> {
        self.release_by
    }
}

impl Leader {
    /// Whether writes that a partition orders are taken, now or when its term has begun.
    pub(super) fn takes_writes(&self, partition: PartitionId) -> bool {
        let ends = self.partitions.get(&partition).map(Leadership::is_handed_over);
        ends == Some(false) || self.next_terms.contains_key(&partition)
    }

    pub(super) fn lead(&mut self, partition: PartitionId, term: Term) {
        let known = self.partitions.get(&partition).map(|leadership| leadership.end.term);
        if known.max(self.next_terms.get(&partition).copied()) < Some(term) {
            self.next_terms.insert(partition, term);
        }
    }

    /// Begins the terms of partitions that the transaction under way does not concern.
    pub(super) fn begin_terms(&mut self) {
        let ready: Vec<PartitionId> =
            self.next_terms.keys().copied().filter(|partition| !self.is_in_transaction(*partition)).collect();
        for partition in ready {
            let Some(term) = self.next_terms.remove(&partition) else { continue };
            let held = self.queue.take_of(partition);
            self.give_up(partition);
            let mut leadership = Leadership::new(term);
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
        let load = LoadId(self.new_id());
        let Some(leadership) = self.asked(partition, end.term) else { return };
        leadership.end = end;
        leadership.stage = TermStage::Reading(load);
        self.actions.push(Action::Load { load, queries: vec![(partition, vec![RowQuery::Intents])] });
    }

    pub(super) fn term_refused(&mut self, partition: PartitionId, term: Term) {
        if self.asked(partition, term).is_some() {
            self.step_down(partition);
        }
    }

    pub(super) fn term_unknown(&mut self, partition: PartitionId, term: Term) {
        if self.asked(partition, term).is_some() {
            self.ask_again(partition);
        }
    }

    /// The leadership whose term the database was asked to begin.
    fn asked(&mut self, partition: PartitionId, term: Term) -> Option<&mut Leadership> {
        let leadership = self.partitions.get_mut(&partition)?;
        (leadership.stage == TermStage::Asked && leadership.end.term == term).then_some(leadership)
    }

    fn ask_again(&mut self, partition: PartitionId) {
        if let Some(leadership) = self.partitions.get_mut(&partition) {
            leadership.failures += 1;
            leadership.stage = TermStage::AskAt(self.now.since_start + back_off(leadership.failures));
        }
    }

    pub(super) fn retry_terms(&mut self) {
        for (&partition, leadership) in &mut self.partitions {
            if matches!(leadership.stage, TermStage::AskAt(at) if at <= self.now.since_start) {
                leadership.stage = TermStage::Asked;
                let term = leadership.end.term;
                self.actions.push(Action::BeginTerm { partition, term });
            }
        }
    }

    /// The partition whose open intents this load reads.
    fn reading(&self, load: LoadId) -> Option<PartitionId> {
        let reads = |leadership: &Leadership| leadership.stage == TermStage::Reading(load);
        self.partitions.iter().find(|(_, leadership)| reads(leadership)).map(|(partition, _)| *partition)
    }

    pub(super) fn intents_not_loaded(&mut self, load: LoadId) {
        if let Some(partition) = self.reading(load) {
            self.ask_again(partition);
        }
    }

    /// The open intents of a partition are known: its term has begun.
    pub(super) fn intents_loaded(&mut self, load: LoadId, rows: Vec<RowsAt>) {
        let Some(partition) = self.reading(load) else { return };
        let Some(RowsAt { at, mut answers }) = rows.into_iter().next() else {
            return self.ask_again(partition);
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
                let held = std::mem::take(&mut leadership.held);
                self.queue.push_first(held.into_iter());
                self.resend_intents();
            }
            _ => self.ask_again(partition),
        }
    }

    /// Takes no more writes for a partition, and releases it when what has begun is complete. Deliveries are still taken: what
    /// other partitions have begun cannot be complete without them, and two partitions that are handed over at the same time may
    /// wait for each other.
    pub(super) fn hand_over(&mut self, partition: PartitionId) {
        self.next_terms.remove(&partition);
        let Some(leadership) = self.partitions.get_mut(&partition) else {
            return self.actions.push(Action::Released { partition });
        };
        leadership.release_by.get_or_insert(self.now.since_start + HANDOVER_PATIENCE);
        let mut writes: Vec<PendingWrite> = leadership.held.drain(..).collect();
        for open in leadership.intents.values_mut() {
            writes.extend(open.waiting.drain(..));
        }
        writes.into_iter().for_each(|pending| self.refuse(Task::Write(pending)));
        for task in self.queue.take_of(partition) {
            match task {
                Task::Completion { .. } | Task::Delivery { .. } => self.queue.push(task),
                Task::Write(_) => self.refuse(task),
            }
        }
    }

    /// Releases partitions that are handed over and have nothing under way.
    pub(super) fn release_idle(&mut self) {
        let is_over = |leadership: &Leadership| {
            let is_idle = leadership.intents.is_empty();
            leadership.release_by.is_some_and(|by| is_idle || by <= self.now.since_start)
        };
        let leaderships = self.partitions.iter().filter(|(_, leadership)| is_over(leadership));
        let over: Vec<PartitionId> = leaderships.map(|(partition, _)| *partition).collect();
        for partition in over {
            self.give_up(partition);
            self.actions.push(Action::Released { partition });
        }
    }

    /// Stops leading a partition that has another leader.
    pub(super) fn step_down(&mut self, partition: PartitionId) {
        if let Some(leadership) = self.partitions.get(&partition) {
            let term = leadership.end.term;
            self.give_up(partition);
            self.actions.push(Action::SteppedDown { partition, term });
        }
    }

    /// Stops leading a partition if it began to lead it before the database was replaced. What it has not committed since may be
    /// lost, and it knows nothing of the intents that are open again.
    pub(super) fn replaced(&mut self, partition: PartitionId, before: LogPoint) {
        let is_of_before = |leadership: &Leadership| leadership.end.term <= before.term;
        let concerns = self.partitions.get(&partition).is_some_and(is_of_before);
        if concerns && self.guards.older_copies_noticed && !self.is_in_transaction(partition) {
            self.step_down(partition);
        }
    }

    /// Forgets a partition. What was begun there may still take effect; all else was not written.
    fn give_up(&mut self, partition: PartitionId) {
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
