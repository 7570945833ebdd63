//! What leaders ask of a database: one transaction over several partitions, and reads from one snapshot.

use crate::{
    Association, AssociationKey, Change, Intent, ListKey, ListPlace, Object, Outcome, Pair, WriteId,
};
use kith_types::{LogPoint, PartitionId};

/// One transaction: all of it takes effect, or nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// What changes, by partition; each partition once.
    pub parts: Vec<BatchPart>,
    /// Places that the logs of any partitions must contain for the transaction to take effect: something else was decided there
    /// that the transaction relies on. A database that was replaced by an older copy of itself may lack them.
    pub requires: Vec<(PartitionId, LogPoint)>,
}

/// The share of one partition in a [`Batch`].
#[derive(Clone, Debug, PartialEq)]
pub struct BatchPart {
    /// The partition.
    pub partition: PartitionId,
    /// Where its log must end for the transaction to take effect: the term that the leader took, and the position that it
    /// believes to be the last.
    pub expected: LogPoint,
    /// The changes, each at the position after the one before. The first follows `expected.position`. A part without changes
    /// proves that the log ends where it is expected to.
    pub changes: Vec<LoggedChange>,
}

impl BatchPart {
    /// Where the log ends after the transaction.
    pub fn end(&self) -> LogPoint {
        let position = self.expected.position.0 + self.changes.len() as u64;
        LogPoint::new(self.expected.term.0, position)
    }
}

/// One position of a log: what it does to rows, and what replicas learn of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoggedChange {
    /// What replicas learn.
    pub change: Change,
    /// The rows that are written, in this order.
    pub rows: Vec<RowWrite>,
}

/// The new state of one row. States are absolute, never increments.
#[derive(Clone, Debug, PartialEq)]
pub enum RowWrite {
    /// An object is this.
    PutObject(Object),
    /// There is no such object.
    DeleteObject(u64),
    /// An association of a list is this.
    PutAssociation(ListKey, Association),
    /// There is no such association.
    DeleteAssociation(AssociationKey),
    /// The length of a list. 0 removes the row.
    SetCount(ListKey, u64),
    /// An intent is open. Its key is the position of its stamp.
    PutIntent(Intent),
    /// The intent with this stamp is complete.
    DeleteIntent(LogPoint),
    /// At the end that does not order a pair: the last stamp that was applied to the pair.
    PutPairStamp(Pair, LogPoint),
    /// Forgets the stamps of pairs that partition `from` orders, if they are below `before`.
    DropPairStamps {
        /// The ordering partition.
        from: PartitionId,
        /// The floor.
        before: LogPoint,
    },
    /// Writes of partition `from` with a stamp below `before` are complete: such a write changes nothing.
    SetFloor {
        /// The ordering partition.
        from: PartitionId,
        /// The floor.
        before: LogPoint,
    },
    /// What came of a named write.
    PutOutcome(WriteId, RecordedOutcome),
}

/// What is recorded under a write id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedOutcome {
    /// A checksum of the write: the same id with another write is a mistake of the caller.
    pub write: u64,
    /// When it was decided: milliseconds since 1970, by the leader's clock.
    pub at: u64,
    /// What came of it.
    pub outcome: Outcome,
    /// At a partition that is not the ordering one, the place that the write reached there; part of the ticket.
    pub elsewhere: Option<(PartitionId, LogPoint)>,
}

/// A row, or part of an association list, to read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowQuery {
    /// Answered by [`RowAnswer::Object`].
    Object(u64),
    /// Answered by [`RowAnswer::Association`].
    Association(AssociationKey),
    /// Answered by [`RowAnswer::Count`].
    Count(ListKey),
    /// Answered by [`RowAnswer::List`]: at most `limit` associations after `after`, in the order of the list.
    List {
        /// The list.
        list: ListKey,
        /// The place before the first one; `None`: from the newest.
        after: Option<ListPlace>,
        /// The most to return.
        limit: u32,
    },
    /// All open intents of the partition. Answered by [`RowAnswer::Intents`].
    Intents,
    /// Answered by [`RowAnswer::Point`]; the start of a log if there is none.
    PairStamp(Pair),
    /// The floor of an ordering partition. Answered by [`RowAnswer::Point`]; the start of a log if there is none.
    Floor(PartitionId),
    /// Answered by [`RowAnswer::Outcome`].
    Outcome(WriteId),
}

/// The answer to a [`RowQuery`].
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "RowQuery says which answers what")]
pub enum RowAnswer {
    Object(Option<Object>),
    Association(Option<Association>),
    Count(u64),
    List(Vec<Association>),
    Intents(Vec<Intent>),
    Point(LogPoint),
    Outcome(Option<RecordedOutcome>),
}

/// Rows of one partition, and the place in its log at which they were read: one snapshot.
#[derive(Clone, Debug, PartialEq)]
pub struct RowsAt {
    /// The last term and position of the partition.
    pub at: LogPoint,
    /// One answer per query, in their order.
    pub answers: Vec<RowAnswer>,
}
