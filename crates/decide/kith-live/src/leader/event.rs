//! The events that a leader takes in, and the actions that it returns.

use crate::{
    Batch, Change, CompletedWrite, Intent, Refusal, RowQuery, RowsAt, Ticket, UniqueHolder, Write, WriteFault,
};
use kith_types::{LogPoint, PartitionId, Position, Term, Timestamp};
use thiserror::Error;

/// The number by which the shell knows the caller of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallerId(pub u64);

/// The number by which the shell knows the sender of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SenderId(pub u64);

/// The number of a read of rows. No number is used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LoadId(pub u64);

/// The number of a commit. No number is used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitId(pub u64);

/// The current time on both clocks of the node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockReading {
    /// The time since the node started. It never goes back, so intervals are measured with it.
    pub since_start: Timestamp,
    /// Milliseconds since 1970. This time is stored, but never compared.
    pub since_1970: u64,
}

/// A committed intent on its way to the other end of its pair.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    /// The intent.
    pub intent: Intent,
    /// The floor of the partition that orders the pair: all of its intents with a stamp below this are complete.
    pub floor: LogPoint,
    /// The point at which the log of the partition that orders the pair ended when the delivery was made. If a log does
    /// not contain this log point, it may lack the intent, and intents below the floor may be open there.
    pub as_of: LogPoint,
}

/// An event that the shell reports to a leader.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum Event {
    /// The metadata say that this node leads a partition, in a term that nobody else has.
    Lead { partition: PartitionId, term: Term },
    /// [`Action::BeginTerm`] took effect. The log ends at `end`.
    TermBegun { partition: PartitionId, term: Term, end: Position },
    /// [`Action::BeginTerm`] was refused: a later term has begun.
    TermRefused { partition: PartitionId, term: Term },
    /// Whether [`Action::BeginTerm`] took effect is not known.
    TermUnknown { partition: PartitionId, term: Term },
    /// A caller requests a write.
    Write { caller: CallerId, write: Write },
    /// Another leader, or this one, delivers an intent.
    Delivery { sender: SenderId, delivery: Delivery },
    /// [`Action::Load`] was answered. `rows` has one snapshot for each partition, in the order of the partitions, with an
    /// answer to each query.
    Loaded { load: LoadId, rows: Vec<RowsAt> },
    /// [`Action::Load`] failed.
    LoadFailed { load: LoadId },
    /// [`Action::Commit`] has ended.
    Committed { commit: CommitId, result: CommitResult },
    /// The leader of the other partition answered that it has applied the intent with this stamp. The log of the other
    /// partition has reached `at`.
    Delivered { partition: PartitionId, stamp: LogPoint, at: LogPoint },
    /// [`Action::Deliver`] failed, or its result is not known. [`DeliveryError::HistoryLost`] is reported as [`Event::Replaced`] with
    /// [`Delivery::as_of`].
    DeliveryFailed { partition: PartitionId, stamp: LogPoint },
    /// The database was replaced by an older copy of itself: the log of this partition no longer contains the log point
    /// `before`.
    Replaced { partition: PartitionId, before: LogPoint },
    /// This node must stop leading a partition. It takes no more writes for the partition, completes its open intents, and
    /// then releases the partition ([`Action::Released`]). A partition that the node does not lead is released at once.
    HandOver { partition: PartitionId },
    /// The time of [`super::Leader::wakes_at`] has come.
    Woken,
}

/// The result of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitResult {
    /// The transaction took effect.
    Done,
    /// The transaction did not take effect and never will, because logs do not end where it expects. At least one of these
    /// partitions is named, with the end of its log.
    Elsewhere(Vec<(PartitionId, LogPoint)>),
    /// The transaction did not take effect and never will, because the log of this partition lacks this log point, which the
    /// transaction requires.
    Lacks(PartitionId, LogPoint),
    /// The transaction did not take effect and never will, because objects that it does not change have unique values that
    /// it gives to others. The logs end where it expects. All of these values are named, and at least one.
    Taken(Vec<UniqueHolder>),
    /// The transaction did not take effect and never will, because a value is longer than the database accepts. `value_max` is
    /// the longest value that it accepts, in bytes, if that is known.
    TooLarge {
        /// The most bytes of one value.
        value_max: Option<u64>,
    },
    /// The transaction did not take effect and never will, for another reason.
    Refused,
    /// The answer was lost: the transaction may have taken effect, or may still do so later.
    Unknown,
}

/// An action for the shell, which begins actions in the order in which [`super::Leader::on`] returns them.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum Action {
    /// Raise the term of a partition in the database and read its position, in one transaction. The terms of a partition
    /// ascend, and no term is requested twice.
    BeginTerm { partition: PartitionId, term: Term },
    /// Read rows from the primary database. All rows of one partition must come from one snapshot. The shell must always
    /// report the end of the read, as [`Event::Loaded`] or [`Event::LoadFailed`].
    Load { load: LoadId, queries: Vec<(PartitionId, Vec<RowQuery>)> },
    /// Commit a transaction. The shell must always report the end of the commit, if only as [`CommitResult::Unknown`].
    Commit { commit: CommitId, batch: Batch },
    /// Deliver an intent of partition `from` to the leader of partition `to`.
    Deliver { from: PartitionId, to: PartitionId, delivery: Delivery },
    /// Answer a caller.
    Answer { caller: CallerId, answer: Result<WriteAnswer, WriteError> },
    /// Answer a delivery. If the intent is applied, the answer is a log point that the log has reached since.
    AnswerDelivery { sender: SenderId, answer: Result<LogPoint, DeliveryError> },
    /// Apply these changes, which follow `after` in the log of a partition, to the cache and the lists of this node. Other
    /// replicas read them from the log in the database. If a term has begun, there are no changes, and the log ends at
    /// `after`.
    Publish { partition: PartitionId, after: LogPoint, changes: Vec<Change> },
    /// This node no longer leads a partition in this term: the log has a later term or does not end where it should, or the
    /// node has used up its terms. The node may lead the partition again in a later term.
    SteppedDown { partition: PartitionId, term: Term },
    /// This node no longer leads a partition, as [`Event::HandOver`] asked. If it has waited too long for open intents, the
    /// next leader completes them.
    Released { partition: PartitionId },
}

/// The answer to a write that took effect, or had nothing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteAnswer {
    /// The outcome.
    pub done: CompletedWrite,
    /// The log points that a read must have reached to see the write.
    pub ticket: Ticket,
}

/// The reason why a write failed. Except for [`WriteError::OutcomeUnknown`], nothing was written.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteError {
    /// The write is invalid.
    #[error(transparent)]
    Invalid(#[from] WriteFault),
    /// A condition does not hold.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Another write has the same id.
    #[error("the write_id was used for another write: choose a new one")]
    WriteIdTaken,
    /// This node does not lead the partition that orders the write.
    #[error("this node does not lead partition {partition}")]
    NotLeader {
        /// The partition.
        partition: PartitionId,
    },
    /// Too many writes are waiting.
    #[error("too many writes wait for the database")]
    Overloaded,
    /// A value is longer than the database accepts.
    #[error("the write has a value of {bytes} bytes, and the database of the graph does not accept it")]
    TooLarge {
        /// The size of the longest value.
        bytes: u64,
    },
    /// The database did not accept the write.
    #[error("the database is not available for writes")]
    Unavailable,
    /// The write may have taken effect, may take effect later, or may never take effect.
    #[error("whether the write takes effect is not known")]
    OutcomeUnknown,
}

/// The reason why a delivery failed. The sender must send it again.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum DeliveryError {
    /// This node does not lead the partition of the other end.
    #[error("this node does not lead partition {0}")]
    NotLeader(PartitionId),
    /// Too many deliveries are waiting.
    #[error("too many deliveries wait for the database")]
    Overloaded,
    /// The database did not accept the change.
    #[error("the database is not available for writes")]
    Unavailable,
    /// The database was replaced by an older copy of itself: the log of this partition lacks the log point
    /// [`Delivery::as_of`].
    #[error("the database was replaced by an older copy: the log of partition {0} lacks what is delivered")]
    HistoryLost(PartitionId),
}
