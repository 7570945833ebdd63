//! The outcomes of transactions and writes: for the leader, the state of the database, and the metrics.

use super::database::GraphDatabase;
use kith_database::{CommitError, DatabaseError};
use kith_live::{CommitResult, WriteAnswer, WriteError};

/// Records whether the database has executed a transaction of the leader, or has refused it as it should.
pub(super) fn note_commit<T>(database: &GraphDatabase, result: &Result<T, CommitError>) {
    let error = match result {
        // The database works, and does not accept this write.
        Err(CommitError::NotWritten(DatabaseError::TooLarge { .. })) => None,
        Err(CommitError::NotWritten(error)) => Some(error.clone()),
        Err(CommitError::Unknown { reason }) => Some(DatabaseError::Unavailable { reason: reason.clone() }),
        Ok(_)
        | Err(
            CommitError::Fenced { .. }
            | CommitError::Moved { .. }
            | CommitError::Lacks { .. }
            | CommitError::Taken { .. },
        ) => None,
    };
    database.note(error.as_ref());
}

/// Converts the result of a transaction for the leader.
pub(super) fn commit_result(result: Result<(), CommitError>) -> CommitResult {
    match result {
        Ok(()) => CommitResult::Done,
        Err(CommitError::Fenced { partition, found } | CommitError::Moved { partition, found }) => {
            CommitResult::Elsewhere(vec![(partition, found)])
        }
        Err(CommitError::Lacks { partition, point, .. }) => {
            tracing::warn!(%partition, %point, "the database has lost a place: it was replaced by an older copy of itself");
            CommitResult::Lacks(partition, point)
        }
        Err(CommitError::Taken { holders }) => CommitResult::Taken(holders),
        Err(CommitError::NotWritten(DatabaseError::TooLarge { value_max, reason })) => {
            tracing::warn!(reason, "a write is too large for the database");
            CommitResult::TooLarge { value_max }
        }
        Err(CommitError::Unknown { reason }) => {
            tracing::warn!(reason, "the outcome of a transaction was lost");
            CommitResult::Unknown
        }
        Err(error) => {
            tracing::warn!(%error, "a transaction was refused");
            CommitResult::Refused
        }
    }
}

/// Counts a write by its outcome.
pub(super) fn note_write(answer: &Result<WriteAnswer, WriteError>) {
    let outcome = match answer {
        Ok(_) => "done",
        Err(WriteError::Invalid(_) | WriteError::TooLarge { .. }) => "invalid",
        Err(WriteError::Refused(_)) => "refused",
        Err(WriteError::WriteIdTaken) => "write_id_taken",
        Err(WriteError::NotLeader { .. }) => "not_leader",
        Err(WriteError::Overloaded) => "overloaded",
        Err(WriteError::OutcomeUnknown) => "outcome_unknown",
        Err(_) => "unavailable",
    };
    metrics::counter!("kith_live_writes_total", "outcome" => outcome).increment(1);
}
