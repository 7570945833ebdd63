//! The requests of leaders to a database: transactions over several partitions, and reads from one snapshot.

use crate::{
    Association, AssociationKey, Change, IndexEntry, IndexId, Intent, ListKey, ListPlace, Object, Outcome,
    Pair, TypeId, WriteId,
};
use kith_types::{LogPoint, PartitionId};
use std::sync::Arc;

/// One transaction: all of it takes effect, or nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// The changes, with one part for each partition. No partition occurs twice.
    pub parts: Vec<BatchPart>,
    /// Log points that the logs of these partitions must contain; otherwise the transaction does not take effect. It relies
    /// on what was decided there. A database that was replaced by an older copy of itself may lack such a log point.
    pub requires: Vec<(PartitionId, LogPoint)>,
}

/// The share of one partition in a [`Batch`].
#[derive(Clone, Debug, PartialEq)]
pub struct BatchPart {
    /// The partition.
    pub partition: PartitionId,
    /// The point at which the log of the partition must end; otherwise the transaction does not take effect. This is
    /// the term of the leader, and the position that the leader believes to be the last.
    pub expected: LogPoint,
    /// The changes, at consecutive positions. The first position is the one after `expected.position`. A part without
    /// changes only proves that the log ends at `expected`.
    pub changes: Vec<LoggedChange>,
}

impl BatchPart {
    /// Returns where the log ends after the transaction.
    pub fn end(&self) -> LogPoint {
        let position = self.expected.position.0 + self.changes.len() as u64;
        LogPoint::new(self.expected.term.0, position)
    }
}

/// One position of a log: the rows that the database writes, and the change that replicas apply.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoggedChange {
    /// The change that replicas apply.
    pub change: Change,
    /// The rows that are written, in this order.
    pub rows: Vec<RowWrite>,
}

/// The new state of one row. States are absolute, never increments.
#[derive(Clone, Debug, PartialEq)]
pub enum RowWrite {
    /// Stores an object.
    PutObject(Object),
    /// Removes an object.
    DeleteObject(u64),
    /// Stores an association of a list.
    PutAssociation(ListKey, Association),
    /// Removes an association.
    DeleteAssociation(AssociationKey),
    /// Stores the length of a list. The length 0 removes the row.
    SetCount(ListKey, u64),
    /// Stores an open intent. Its key is its stamp.
    PutIntent(Intent),
    /// Removes the intent with this stamp, which is complete.
    DeleteIntent(LogPoint),
    /// Stores the last stamp that was applied to a pair, in the partition that does not order the pair.
    PutPairStamp(Pair, LogPoint),
    /// Removes the stamps below `before` of all pairs that partition `from` orders.
    DropPairStamps {
        /// The ordering partition.
        from: PartitionId,
        /// The floor.
        before: LogPoint,
    },
    /// Stores the floor of partition `from`. All of its intents with a stamp below `before` are complete, so a delivery of
    /// such an intent changes nothing.
    SetFloor {
        /// The ordering partition.
        from: PartitionId,
        /// The floor.
        before: LogPoint,
    },
    /// Stores the outcome of a write under its write id.
    PutOutcome(WriteId, RecordedOutcome),
    /// Adds an object to an index. If the values of the index are unique and another object of the graph has the value, the
    /// transaction does not take effect. A transaction adds or removes a unique value at most once.
    PutEntry(IndexEntry),
    /// Removes an object from an index.
    DeleteEntry(IndexEntry),
}

/// The outcome of a write, as it is recorded under its write id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedOutcome {
    /// The checksum of the write ([`crate::Write::checksum`]). It shows if a caller uses the same id for another write by
    /// mistake.
    pub write: u64,
    /// The time at which the outcome was recorded: milliseconds since 1970, by the leader's clock.
    pub at: u64,
    /// The outcome itself.
    pub outcome: Outcome,
    /// For a write to two partitions, the partition that does not order it, and the log point that this partition had
    /// reached when it had applied the write. The ticket contains both.
    pub elsewhere: Option<(PartitionId, LogPoint)>,
}

/// A query for one row, for several rows of one kind, or for a part of an association list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowQuery {
    /// The object with this id. The answer is [`RowAnswer::Object`].
    Object(u64),
    /// The association with this key. The answer is [`RowAnswer::Association`].
    Association(AssociationKey),
    /// The length of this list. The answer is [`RowAnswer::Count`].
    Count(ListKey),
    /// At most `limit` of the associations that follow `after` in the order of the list, without the first `skip` of
    /// them. The answer is [`RowAnswer::List`]. A database skips in an index, without reading the rows.
    List {
        /// The list.
        list: ListKey,
        /// The place after which the answer begins; `None` to begin with the newest association.
        after: Option<ListPlace>,
        /// The number of associations to leave out; the callers bound it.
        skip: u32,
        /// The maximum number of associations to return.
        limit: u32,
    },
    /// All open intents of the partition. The answer is [`RowAnswer::Intents`].
    Intents,
    /// The stamp that is stored for this pair. The answer is [`RowAnswer::Point`], with the start of a log if no stamp
    /// is stored.
    PairStamp(Pair),
    /// The floor that is stored for this ordering partition. The answer is [`RowAnswer::Point`], with the start of a
    /// log if no floor is stored.
    Floor(PartitionId),
    /// The outcome that is recorded under this write id. The answer is [`RowAnswer::Outcome`].
    Outcome(WriteId),
    /// At most `limit` objects that an index of the partition has under this key, in ascending order of ids. The answer
    /// is [`RowAnswer::Ids`].
    Entries {
        /// The index.
        index: IndexId,
        /// The key.
        key: Arc<[u8]>,
        /// The id after which the answer begins; `None` to begin with the smallest id.
        after: Option<u64>,
        /// The maximum number of ids to return.
        limit: u32,
    },
    /// The number of objects of the partition that have one of these types; of all objects if there are none. The answer
    /// is [`RowAnswer::Count`].
    ObjectCount(Vec<TypeId>),
    /// The number of associations in all lists of these types in the partition. The answer is [`RowAnswer::Count`].
    AssociationCount {
        /// The types.
        kinds: Vec<TypeId>,
        /// Whether only associations count whose `id1` is not greater than `id2`. A database reads all their rows for
        /// that; otherwise, only the lengths of the lists.
        ascending: bool,
    },
}

/// The answer to a [`RowQuery`].
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "RowQuery says which query each variant answers")]
pub enum RowAnswer {
    Object(Option<Object>),
    Association(Option<Association>),
    Count(u64),
    List(Vec<Association>),
    Intents(Vec<Intent>),
    Point(LogPoint),
    Outcome(Option<RecordedOutcome>),
    Ids(Vec<u64>),
}

/// Rows of one partition that were read from one snapshot, and the end of the log in this snapshot.
#[derive(Clone, Debug, PartialEq)]
pub struct RowsAt {
    /// The term and the position at which the log of the partition ended.
    pub at: LogPoint,
    /// The answers, one for each query, in the order of the queries.
    pub answers: Vec<RowAnswer>,
}
