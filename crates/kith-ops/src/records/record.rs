//! What became of one key of a batch read.

use kith_schema::compute::ComputeFault;
use kith_types::ErrorCode;

/// The value of one key, or why there is none (architecture D8: every key is accounted for).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// The value; it may be empty.
    Found(&'a [u8]),
    /// The store has no such key; proven.
    Absent,
    /// Every replica that was asked failed for this key.
    Error(RecordError),
    /// No replica answered for the key.
    Unanswered,
    /// The store has the key; its value was worked on, and is not wanted: it is not among the best, or was counted.
    Unsent,
}

/// Why a key's value cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordError {
    /// Its bytes fail their checksum.
    Damaged,
    /// It cannot be worked on as asked: of another type, of other dimensions.
    Unsuitable,
    /// Replicas gave different answers, where several must agree.
    Disagreeing,
    /// A list that is not as long as the query of an operator.
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

/// How many keys ended how; the four sum to the number of keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordCounts {
    /// Keys with a value, sent or not.
    pub found: u64,
    /// Keys that the store does not have.
    pub absent: u64,
    /// Keys that failed.
    pub error: u64,
    /// Keys that nobody answered for.
    pub unanswered: u64,
}
