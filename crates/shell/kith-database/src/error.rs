//! Errors of databases and their stable codes. For leaders, the most important distinction is whether nothing was
//! written or that is unknown.

use kith_live::{GarbledBytes, UniqueHolder};
use kith_types::{ErrorCode, LogPoint, PartitionCount, PartitionId, Position};
use thiserror::Error;

/// The reason why a database cannot be used, or why a call failed without writing anything.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum DatabaseError {
    /// The database cannot be reached, does not answer in time, or is blocked by other transactions. The call may be
    /// repeated.
    #[error("the database is unavailable: {reason}")]
    Unavailable { reason: String },
    /// The database has no space left.
    #[error("the database is full: {reason}")]
    Full { reason: String },
    /// The database accepts no writes.
    #[error("the database is read-only: {reason}")]
    ReadOnly { reason: String },
    /// The database denies the login or a permission, or it does not know a statement.
    #[error("the database refuses the request: {reason}")]
    Refused { reason: String },
    /// The database does not accept so much in one value or one transaction.
    #[error("too large for the database: {reason}")]
    TooLarge {
        reason: String,
        /// The most bytes of one value, if they are known.
        value_max: Option<u64>,
    },
    /// The contents of the database contradict themselves or cannot be decoded.
    #[error("the database is damaged: {detail}")]
    Damaged { detail: String },
    /// The database has no graph.
    #[error("there is no graph in the database {address}")]
    NoGraph { address: String },
    /// A later release has changed the tables of the database.
    #[error("the tables of the database have version {found}, and this release knows versions up to {known}")]
    Newer { found: u32, known: u32 },
    /// The database holds another graph.
    #[error("the database holds the graph {found:016x}, not {expected:016x}")]
    OtherGraph { found: u64, expected: u64 },
    /// The graph has another number of partitions.
    #[error("the graph in the database has {found} partitions, not {expected}")]
    OtherPartitions { found: u64, expected: u32 },
    /// The request is invalid.
    #[error("invalid request to the database: {detail}")]
    Invalid { detail: String },
}

impl DatabaseError {
    /// Returns the stable error code.
    #[deny(clippy::wildcard_enum_match_arm)]
    pub fn code(&self) -> ErrorCode {
        match self {
            DatabaseError::Unavailable { .. } => ErrorCode::DatabaseUnavailable,
            DatabaseError::Full { .. } => ErrorCode::DatabaseFull,
            DatabaseError::ReadOnly { .. } => ErrorCode::DatabaseReadOnly,
            DatabaseError::Refused { .. } => ErrorCode::DatabaseRefused,
            DatabaseError::TooLarge { .. } => ErrorCode::TooLarge,
            DatabaseError::Damaged { .. } => ErrorCode::DatabaseDamaged,
            DatabaseError::NoGraph { .. } => ErrorCode::DatabaseEmpty,
            DatabaseError::Newer { .. } => ErrorCode::DatabaseNewer,
            DatabaseError::OtherGraph { .. } | DatabaseError::OtherPartitions { .. } => {
                ErrorCode::DatabaseOtherGraph
            }
            DatabaseError::Invalid { .. } => ErrorCode::Internal,
        }
    }

    pub(crate) fn damaged(detail: impl Into<String>) -> Self {
        DatabaseError::Damaged { detail: detail.into() }
    }

    pub(crate) fn unavailable(reason: impl Into<String>) -> Self {
        DatabaseError::Unavailable { reason: reason.into() }
    }

    /// Returns the error for a partition that the graph does not have.
    pub(crate) fn no_partition(partition: PartitionId, count: PartitionCount) -> Self {
        let detail = format!("{partition} is not one of the {} partitions of the graph", count.get());
        DatabaseError::Invalid { detail }
    }
}

impl From<GarbledBytes> for DatabaseError {
    fn from(garbled: GarbledBytes) -> Self {
        DatabaseError::damaged(garbled.to_string())
    }
}

/// The reason why a transaction of a leader failed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum CommitError {
    /// Another term has begun: the caller no longer leads the partition. Nothing was written.
    #[error("{partition} is led in another term: its log ends at {found}")]
    Fenced { partition: PartitionId, found: LogPoint },
    /// The term is right, but the log ends elsewhere. Nothing was written.
    #[error("the log of {partition} ends at {found}, not where the transaction expected")]
    Moved { partition: PartitionId, found: LogPoint },
    /// A log lacks a place that the transaction requires, because the database was replaced by another copy of itself.
    /// Nothing was written.
    #[error("the log of {partition} has no {point}, which the transaction requires")]
    Lacks { partition: PartitionId, point: LogPoint, end: LogPoint },
    /// Other objects have unique values that the transaction gives to objects. All of these values are named. Nothing was
    /// written.
    #[error("other objects have {} unique values of the transaction", holders.len())]
    Taken { holders: Vec<UniqueHolder> },
    /// The connection was lost, or the disk failed, during the commit. The transaction may have been written.
    #[error("whether the transaction was written is unknown: {reason}")]
    Unknown { reason: String },
    /// Nothing was written, for another reason.
    #[error(transparent)]
    NotWritten(#[from] DatabaseError),
}

impl CommitError {
    /// Returns the stable error code.
    #[deny(clippy::wildcard_enum_match_arm)]
    pub fn code(&self) -> ErrorCode {
        match self {
            CommitError::Fenced { .. } => ErrorCode::Fenced,
            CommitError::Moved { .. } => ErrorCode::LogMoved,
            CommitError::Lacks { .. } => ErrorCode::HistoryLost,
            CommitError::Taken { .. } => ErrorCode::UniqueTaken,
            CommitError::Unknown { .. } => ErrorCode::OutcomeUnknown,
            CommitError::NotWritten(error) => error.code(),
        }
    }

    /// Converts the error of a log that lacks a place which a transaction requires.
    pub(crate) fn lacks(error: LogError) -> Self {
        match error {
            LogError::HistoryLost { partition, point, end } => CommitError::Lacks { partition, point, end },
            LogError::Database(error) => error.into(),
            trimmed @ LogError::Trimmed { .. } => DatabaseError::damaged(trimmed.to_string()).into(),
        }
    }

    /// Returns the error for a log that does not end where a transaction expected.
    pub(crate) fn elsewhere(partition: PartitionId, expected: LogPoint, found: LogPoint) -> Self {
        if found.term == expected.term {
            CommitError::Moved { partition, found }
        } else {
            CommitError::Fenced { partition, found }
        }
    }
}

/// The reason why a reader cannot continue to read a log.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum LogError {
    /// The changes after the reader's point were removed.
    #[error("the log of {partition} no longer has the changes between {after} and {first}")]
    Trimmed {
        partition: PartitionId,
        after: LogPoint,
        /// The first position that the log still has, or its next position if it is empty.
        first: Position,
    },
    /// The log lacks the reader's point, because the database was replaced by another copy of itself.
    #[error("the log of {partition} has no {point}: it belongs to another history, which the database lost")]
    HistoryLost {
        partition: PartitionId,
        point: LogPoint,
        /// The end of the log.
        end: LogPoint,
    },
    /// The database cannot be read.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

impl LogError {
    /// Returns the stable error code.
    #[deny(clippy::wildcard_enum_match_arm)]
    pub fn code(&self) -> ErrorCode {
        match self {
            LogError::Trimmed { .. } => ErrorCode::LogTrimmed,
            LogError::HistoryLost { .. } => ErrorCode::HistoryLost,
            LogError::Database(error) => error.code(),
        }
    }
}
