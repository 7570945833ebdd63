//! The leadership of partitions: how a node takes it, hands it over and gives it up.

use super::intents::OpenIntents;
use super::limits::{FAILURES_HELD_MAX, HANDOVER_TIMEOUT, back_off};
use super::queue::{PendingWrite, Task};
use super::tasks::Tasks;
use super::transactions::Transactions;
use super::{Action, CallerId, LoadId, WriteError, next};
use crate::{ResolvedWrite, RowAnswer, RowQuery, RowsAt, Write};
use kith_types::{LogPoint, PartitionId, Term, Timestamp};
use std::collections::{BTreeMap, VecDeque};

/// Assigned terms, by partition. Each begins as soon as no transaction concerns its partition.
type NextTerms = BTreeMap<PartitionId, Term>;

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

/// The partitions that a node leads, and the tasks that wait for the next transaction.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    pub(super) tasks: Tasks,
    /// The leaderships, from the request of their terms on.
    pub(super) led: BTreeMap<PartitionId, Leadership>,
    next: NextTerms,
}

impl Terms {
    pub(super) fn new(tasks: Tasks) -> Self {
        Self { tasks, led: BTreeMap::new(), next: NextTerms::default() }
    }

    /// Returns where the log of a partition ends after the last commit; `None` if this node does not lead the partition.
    pub(super) fn end(&self, partition: PartitionId) -> Option<LogPoint> {
        let leadership = self.led.get(&partition).filter(|leadership| leadership.is_leading())?;
        Some(leadership.end)
    }

    /// Returns the floor of a partition: all of its intents with a stamp below the floor are complete. `None` if this node
    /// does not lead the partition.
    pub(super) fn floor(&self, partition: PartitionId) -> Option<LogPoint> {
        let leadership = self.led.get(&partition).filter(|leadership| leadership.is_leading())?;
        let lowest = leadership.intents.lowest().filter(|_| self.tasks.guards.floor_below_intents);
        Some(lowest.unwrap_or(next(leadership.end)))
    }

    /// Whether this node takes writes that a partition orders. If the term has not begun yet, they wait for it.
    pub(super) fn takes_writes(&self, partition: PartitionId) -> bool {
        let ends = self.led.get(&partition).map(Leadership::is_handed_over);
        ends == Some(false) || self.next.contains_key(&partition)
    }

    pub(super) fn write(&mut self, caller: CallerId, write: &Write) {
        let answer = match ResolvedWrite::new(write, &self.tasks.types, self.tasks.count) {
            Err(fault) => Err(fault.into()),
            Ok(write) if !self.takes_writes(write.partition) => {
                Err(WriteError::NotLeader { partition: write.partition })
            }
            Ok(write) => return self.tasks.accept(caller, write),
        };
        self.tasks.actions.push(Action::Answer { caller, answer });
    }

    pub(super) fn lead(&mut self, partition: PartitionId, term: Term) {
        let known = self.led.get(&partition).map(|leadership| leadership.assigned);
        if known.max(self.next.get(&partition).copied()) < Some(term) {
            self.next.insert(partition, term);
        }
    }

    /// Begins the terms of partitions that the transaction under way does not concern.
    pub(super) fn begin_terms(&mut self, transactions: &Transactions) {
        let ready: Vec<PartitionId> =
            self.next.keys().copied().filter(|partition| !transactions.concern(*partition)).collect();
        for partition in ready {
            let Some(assigned) = self.next.remove(&partition) else { continue };
            let held = self.tasks.queue.take_of(partition);
            self.give_up(partition);
            let mut leadership = Leadership::new(assigned);
            let term = leadership.asked;
            for task in held {
                match task {
                    Task::Write(pending) => leadership.hold(pending),
                    other => self.tasks.refuse(other),
                }
            }
            self.led.insert(partition, leadership);
            self.tasks.actions.push(Action::BeginTerm { partition, term });
        }
    }

    /// Takes in the beginning of a term. Returns false if no leadership waits for it.
    pub(super) fn term_begun(&mut self, partition: PartitionId, end: LogPoint) -> bool {
        let Some(leadership) = self.asked(partition, end.term) else { return false };
        leadership.end = end;
        self.read_intents(partition);
        true
    }

    /// Takes in the refusal of a term. Returns false if no leadership waits for it.
    pub(super) fn term_refused(&mut self, partition: PartitionId, term: Term) -> bool {
        let is_asked = self.asked(partition, term).is_some();
        if is_asked {
            self.step_down(partition);
        }
        is_asked
    }

    /// Records that it is not known whether a term has begun. Returns false if no leadership waits for it.
    pub(super) fn term_unknown(&mut self, partition: PartitionId, term: Term) -> bool {
        let is_asked = self.asked(partition, term).is_some();
        if is_asked {
            self.again(partition, TermStage::AskAt);
        }
        is_asked
    }

    /// Returns the leadership that waits for the database to begin this term.
    fn asked(&mut self, partition: PartitionId, term: Term) -> Option<&mut Leadership> {
        let leadership = self.led.get_mut(&partition)?;
        (leadership.stage == TermStage::Asked && leadership.asked == term).then_some(leadership)
    }

    /// Sets the time at which a step that failed is tried again. Writes wait for it, but not through more than
    /// [`FAILURES_HELD_MAX`] failures in a row.
    fn again(&mut self, partition: PartitionId, stage: impl FnOnce(Timestamp) -> TermStage) {
        let Some(leadership) = self.led.get_mut(&partition) else { return };
        leadership.failures += 1;
        leadership.stage = stage(self.tasks.now.since_start + back_off(leadership.failures));
        if leadership.failures <= FAILURES_HELD_MAX {
            return;
        }
        let held = std::mem::take(&mut leadership.held);
        held.into_iter().for_each(|pending| self.tasks.fail(Task::Write(pending)));
    }

    pub(super) fn retry_terms(&mut self) {
        let now = self.tasks.now.since_start;
        let due = |stage| match stage {
            TermStage::AskAt(at) | TermStage::ReadAt(at) => at <= now,
            TermStage::Asked | TermStage::Reading(_) | TermStage::Leading => false,
        };
        let waiting = self.led.iter().filter(|(_, leadership)| due(leadership.stage));
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
        let Some(leadership) = self.led.get_mut(&partition) else { return };
        let Some(term) = leadership.next_term() else { return self.step_down(partition) };
        leadership.end.term = term;
        leadership.stage = TermStage::Asked;
        self.tasks.actions.push(Action::BeginTerm { partition, term });
    }

    fn read_intents(&mut self, partition: PartitionId) {
        let load = LoadId(self.tasks.new_id());
        let Some(leadership) = self.led.get_mut(&partition) else { return };
        leadership.stage = TermStage::Reading(load);
        self.tasks.actions.push(Action::Load { load, queries: vec![(partition, vec![RowQuery::Intents])] });
    }

    /// Returns the partition whose open intents this load reads.
    fn reading(&self, load: LoadId) -> Option<PartitionId> {
        let reads = |leadership: &Leadership| leadership.stage == TermStage::Reading(load);
        self.led.iter().find(|(_, leadership)| reads(leadership)).map(|(partition, _)| *partition)
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
        let notices = self.tasks.guards.older_copies_noticed;
        let Some(leadership) = self.led.get_mut(&partition) else { return };
        match answers.pop() {
            // The partition has another leader, or the database was replaced by an older copy of itself.
            _ if at != leadership.end && (leadership.end.term < at.term || notices) => {
                self.step_down(partition);
            }
            Some(RowAnswer::Intents(intents)) if at == leadership.end => {
                leadership.stage = TermStage::Leading;
                let now = self.tasks.now.since_start;
                intents.into_iter().for_each(|intent| leadership.intents.add(intent, None, now));
                self.tasks.actions.push(Action::Publish { partition, after: at, changes: Vec::new() });
                let held = std::mem::take(&mut leadership.held);
                self.tasks.queue.push_first(held.into_iter());
                self.resend_intents();
            }
            _ => self.again(partition, TermStage::ReadAt),
        }
    }

    /// Stops leading a partition because the term cannot be used any more, and reports this.
    pub(super) fn step_down(&mut self, partition: PartitionId) {
        if let Some(leadership) = self.led.get(&partition) {
            let term = leadership.assigned;
            self.give_up(partition);
            self.tasks.actions.push(Action::SteppedDown { partition, term });
        }
    }

    /// Marks a leadership that began before the database was replaced, so that it ends. Some of its commits may be lost, and
    /// it does not know the intents that are open again.
    pub(super) fn replaced(&mut self, partition: PartitionId, before: LogPoint) {
        let leadership = self.led.get_mut(&partition);
        if let Some(leadership) = leadership.filter(|leadership| leadership.end.term <= before.term) {
            leadership.is_replaced = self.tasks.guards.older_copies_noticed;
        }
    }

    /// Ends leaderships that began before the database was replaced, if no transaction concerns them.
    pub(super) fn end_replaced(&mut self, transactions: &Transactions) {
        let over = self.led.iter().filter(|(_, leadership)| leadership.is_replaced);
        let over: Vec<PartitionId> = over.map(|(partition, _)| *partition).collect();
        for partition in over {
            if !transactions.concern(partition) {
                self.step_down(partition);
            }
        }
    }

    /// Forgets a partition. Its open intents may still take effect, so their callers get the error that the outcome is
    /// not known. All other writes were not written.
    pub(super) fn give_up(&mut self, partition: PartitionId) {
        let Some(mut leadership) = self.led.remove(&partition) else { return };
        let mut writes: Vec<PendingWrite> = leadership.held.drain(..).collect();
        for open in leadership.intents.values_mut() {
            writes.extend(open.waiting.drain(..));
            if let Some(caller) = open.caller {
                let answer = Err(WriteError::OutcomeUnknown);
                self.tasks.actions.push(Action::Answer { caller, answer });
            }
        }
        writes.into_iter().for_each(|pending| self.tasks.refuse(Task::Write(pending)));
        for task in self.tasks.queue.take_of(partition) {
            self.tasks.refuse(task);
        }
    }

    /// Stops taking writes for a partition, which is released when its open intents are complete. Deliveries are still
    /// taken: other partitions cannot complete their intents without them, and two partitions that are handed over at the
    /// same time would wait for each other.
    pub(super) fn hand_over(&mut self, partition: PartitionId) {
        self.next.remove(&partition);
        let Some(leadership) = self.led.get_mut(&partition) else {
            return self.tasks.actions.push(Action::Released { partition });
        };
        leadership.release_by.get_or_insert(self.tasks.now.since_start + HANDOVER_TIMEOUT);
        let mut writes: Vec<PendingWrite> = leadership.held.drain(..).collect();
        for open in leadership.intents.values_mut() {
            writes.extend(open.waiting.drain(..));
        }
        writes.into_iter().for_each(|pending| self.tasks.refuse(Task::Write(pending)));
        for task in self.tasks.queue.take_of(partition) {
            match task {
                Task::Completion { .. } | Task::Delivery { .. } => self.tasks.queue.push(task),
                Task::Write(_) => self.tasks.refuse(task),
            }
        }
    }

    /// Releases partitions that are being handed over, if they have no open intents or the time to wait for these is over.
    pub(super) fn release_idle(&mut self) {
        let is_over = |leadership: &Leadership| {
            let is_idle = leadership.intents.is_empty();
            leadership.release_by.is_some_and(|by| is_idle || by <= self.tasks.now.since_start)
        };
        let leaderships = self.led.iter().filter(|(_, leadership)| is_over(leadership));
        let over: Vec<PartitionId> = leaderships.map(|(partition, _)| *partition).collect();
        for partition in over {
            self.give_up(partition);
            self.tasks.actions.push(Action::Released { partition });
        }
    }
}
