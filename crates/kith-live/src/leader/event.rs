//! What goes into a leader and what comes out.

use crate::{Batch, Change, Done, Intent, Refusal, RowQuery, RowsAt, Ticket, Write, WriteFault};
use kith_types::{LogPoint, PartitionId, Position, Term, Timestamp};
use thiserror::Error;

/// The caller of a write, as the shell knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallerId(pub u64);

/// The sender of a delivery, as the shell knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SenderId(pub u64);

/// One read of rows; never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LoadId(pub u64);

/// One commit; never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitId(pub u64);

/// The current time on both clocks of the node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Since the node started. It never goes back; intervals are measured with it.
    pub since_start: Timestamp,
    /// Milliseconds since 1970. It is stored, and never compared.
    pub since_1970: u64,
}

/// A committed intent on its way to the other end of its pair.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    /// The intent.
    pub intent: Intent,
    /// The floor of the partition that orders the pair: all of its intents with a stamp below are complete.
    pub floor: LogPoint,
    /// Where the log of that partition ended when this was so. A log that does not contain this place may not have the intent, and
    /// may have intents below the floor that are open.
    pub as_of: LogPoint,
}

/// What happened.
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
    /// A caller wants a write.
    Write { caller: CallerId, write: Write },
    /// Another leader, or this one, delivers an intent.
    Delivery { sender: SenderId, delivery: Delivery },
    /// [`Action::Load`] was answered: for each of its partitions, in their order, one snapshot with an answer to each query.
    Loaded { load: LoadId, rows: Vec<RowsAt> },
    /// [`Action::Load`] failed.
    LoadFailed { load: LoadId },
    /// [`Action::Commit`] came to an end.
    Committed { commit: CommitId, result: CommitResult },
    /// The leader of the other partition answered that the intent with this stamp is done there. Its log has reached `at`.
    Delivered { partition: PartitionId, stamp: LogPoint, at: LogPoint },
    /// [`Action::Deliver`] failed, or its result is not known. [`DeliveryError::HistoryLost`] is reported as [`Event::Replaced`] with
    /// [`Delivery::as_of`].
    DeliveryFailed { partition: PartitionId, stamp: LogPoint },
    /// The database was replaced by an older copy of itself: the log of this partition was found to lack the place `before`.
    Replaced { partition: PartitionId, before: LogPoint },
    /// This node is to stop leading a partition. It takes no more writes for it, completes what it has begun, and then releases it
    /// ([`Action::Released`]), at once if it does not lead it.
    HandOver { partition: PartitionId },
    /// The time of [`super::Leader::wakes_at`] has come.
    Woken,
}

/// The result of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitResult {
    /// It took effect.
    Done,
    /// It did not take effect and never will: these logs do not end where it expected. At least one such partition is named, with
    /// the end of its log.
    Elsewhere(Vec<(PartitionId, LogPoint)>),
    /// It did not take effect and never will: the log of a partition lacks this place, which the transaction requires.
    Lacks(PartitionId, LogPoint),
    /// It did not take effect and never will, for another reason.
    Refused,
    /// It may have taken effect, or may do so later: the answer was lost.
    Unknown,
}

/// What the shell must do, in this order.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum Action {
    /// Raise the term of a partition in the database and read its position, in one transaction. Terms ascend, and none is asked for
    /// twice.
    BeginTerm { partition: PartitionId, term: Term },
    /// Read rows of the primary database, all of one partition from one snapshot. It must end at some time.
    Load { load: LoadId, queries: Vec<(PartitionId, Vec<RowQuery>)> },
    /// Commit a transaction. It must end at some time, if only as [`CommitResult::Unknown`].
    Commit { commit: CommitId, batch: Batch },
    /// Bring an intent of `from` to the leader of `to`.
    Deliver { from: PartitionId, to: PartitionId, delivery: Delivery },
    /// Answer a caller.
    Answer { caller: CallerId, answer: Result<Answered, WriteError> },
    /// Answer a delivery: it is done, and the log has reached this place.
    AnswerDelivery { sender: SenderId, answer: Result<LogPoint, DeliveryError> },
    /// The log of a partition has reached `after`, and these changes follow: apply them to the cache and push them to the other
    /// replicas. There are none if a term has begun.
    Publish { partition: PartitionId, after: LogPoint, changes: Vec<Change> },
    /// This node no longer leads a partition, because its log has a later term or does not end where it should. It may lead it
    /// again in a later term.
    SteppedDown { partition: PartitionId, term: Term },
    /// This node no longer leads a partition, as [`Event::HandOver`] asked, and has nothing under way there.
    Released { partition: PartitionId },
}

/// The answer to a write that took effect, or had nothing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The outcome.
    pub done: Done,
    /// What a read must have reached to see it.
    pub ticket: Ticket,
}

/// Why a write failed. Except for [`WriteError::OutcomeUnknown`], nothing was written.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteError {
    /// It makes no sense.
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
    /// Too many writes wait.
    #[error("too many writes wait for the database")]
    Overloaded,
    /// The database does not take the write.
    #[error("the database is not available for writes")]
    Unavailable,
    /// The write has taken effect, or will, or never will.
    #[error("whether the write takes effect is not known: repeat it with the same write_id")]
    OutcomeUnknown,
}

/// Why a delivery was not taken. It is to be sent again.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum DeliveryError {
    /// This node does not lead the partition of the other end.
    #[error("this node does not lead partition {0}")]
    NotLeader(PartitionId),
    /// Too many deliveries wait.
    #[error("too many deliveries wait for the database")]
    Overloaded,
    /// The database does not take the change.
    #[error("the database is not available for writes")]
    Unavailable,
    /// The database was replaced by an older copy of itself, which does not have what the delivery is about.
    #[error("the log of partition {0} has lost what is delivered")]
    HistoryLost(PartitionId),
}
