//! The outcome of one key of a batch read.

use kith_schema::compute::ComputeFault;
use kith_types::ErrorCode;

/// The value of one key, or why there is none: every key is accounted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// The value; it may be empty.
    Found(&'a [u8]),
    /// The store has no such key. This is proven.
    Absent,
    /// Every replica that was asked failed for this key.
    Error(RecordError),
    /// No replica answered for the key.
    Unanswered,
    /// The store has the key, but its value is not sent: it was counted, or is not among the best.
    Unsent,
}

/// The reason why there is no value for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordError {
    /// The bytes do not match their checksum.
    Damaged,
    /// The value does not suit the computation: it has another type or other dimensions.
    Unsuitable,
    /// Several replicas must agree, but gave different answers.
    Disagreeing,
    /// The list has another length than the query vector of an operator.
    Dimensions(ComputeFault),
}

impl RecordError {
    /// The code that users see.
    pub fn code(self) -> ErrorCode {
        match self {
            RecordError::Damaged => ErrorCode::Damaged,
            RecordError::Unsuitable => ErrorCode::Unsuitable,
            RecordError::Disagreeing => ErrorCode::ReplicasDisagree,
            RecordError::Dimensions(_) => ErrorCode::DimensionMismatch,
        }
    }
}

/// The number of keys with each outcome. The four counts sum to the number of keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordCounts {
    /// The number of keys with a value, sent or not.
    pub found: u64,
    /// The number of keys that the store does not have.
    pub absent: u64,
    /// The number of keys that failed.
    pub error: u64,
    /// The number of keys without an answer.
    pub unanswered: u64,
}
