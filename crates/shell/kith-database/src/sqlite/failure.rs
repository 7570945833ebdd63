//! The meaning of SQLite errors.

use crate::{CommitError, DatabaseError};
use rusqlite::{Error, ErrorCode};

/// Returns the meaning of an error before the commit. Nothing was written.
pub(super) fn failure(error: &Error) -> DatabaseError {
    let reason = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => DatabaseError::Full { reason },
        Some(ErrorCode::ReadOnly) => DatabaseError::ReadOnly { reason },
        Some(ErrorCode::PermissionDenied | ErrorCode::AuthorizationForStatementDenied) => {
            DatabaseError::Refused { reason }
        }
        // A new row exists already, or a table is missing.
        Some(
            ErrorCode::DatabaseCorrupt
            | ErrorCode::NotADatabase
            | ErrorCode::ConstraintViolation
            | ErrorCode::TypeMismatch
            | ErrorCode::Unknown,
        ) => DatabaseError::Damaged { detail: reason },
        Some(_) => DatabaseError::Unavailable { reason },
        None => DatabaseError::Damaged { detail: reason },
    }
}

/// Returns the meaning of an error of `COMMIT` itself. If the disk failed, the commit may have reached the write-ahead
/// log, where recovery would find it. The record that ends the transaction is written last, so a full disk or a lock
/// proves that this record is missing.
pub(super) fn commit_failure(error: &Error) -> CommitError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull | ErrorCode::DatabaseBusy) => failure(error).into(),
        _ => CommitError::Unknown { reason: error.to_string() },
    }
}
