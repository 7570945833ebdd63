//! The meaning of errors of a server, or of the connection to it.

use crate::{CommitError, DatabaseError, LogError};
use mysql_async::{DriverError, Error, IoError, ServerError};

/// Returns the meaning of an error before the commit. Nothing was written.
pub(super) fn failure(error: &Error) -> DatabaseError {
    match error {
        Error::Server(server) => refusal(server),
        Error::Driver(
            DriverError::NoClientSslFlagFromServer
            | DriverError::UnknownAuthPlugin { .. }
            | DriverError::MysqlOldPasswordDisabled
            | DriverError::CleartextPluginDisabled,
        )
        | Error::Url(_) => DatabaseError::Refused { reason: error.to_string() },
        // The message of this error repeats that of its source.
        Error::Io(IoError::Io(error)) => DatabaseError::unavailable(error.to_string()),
        Error::Driver(_) | Error::Io(_) | Error::Other(_) => DatabaseError::unavailable(error.to_string()),
    }
}

/// Returns the meaning of a server's error. The numbers are those of MySQL and MariaDB; numbers above 8000 are those of
/// TiDB.
fn refusal(server: &ServerError) -> DatabaseError {
    let reason = format!("{} (error {})", server.message, server.code);
    match server.code {
        // Locks, deadlocks and write conflicts; too many connections; a server that starts, stops or is out of memory;
        // statements that were killed or timed out.
        1205
        | 1213
        | 9007
        | 1040
        | 1203
        | 1226
        | 1037
        | 1041
        | 1047
        | 1053
        | 1158..=1161
        | 1317
        | 1927
        | 1969
        | 3024
        | 4031
        | 2006
        | 2013 => DatabaseError::Unavailable { reason },
        1290 | 1792 | 1836 => DatabaseError::ReadOnly { reason },
        // A packet, a row or a transaction is longer than the server allows.
        1118 | 1153 | 1301 | 8004 | 8025 => DatabaseError::TooLarge { reason, value_max: None },
        28 | 1021 | 1114 => DatabaseError::Full { reason },
        1030 | 1026 if server.message.contains("28") => DatabaseError::Full { reason },
        // A new row exists already; a table or column is missing; a table is corrupt.
        1062 | 1054 | 1146 | 1034 | 1035 | 1194 | 1195 | 1712 => DatabaseError::Damaged { detail: reason },
        // Logins, permissions, unknown databases, unknown statements, and everything else.
        _ => DatabaseError::Refused { reason },
    }
}

/// Returns the meaning of an error of `COMMIT` itself. Only a few errors prove that the transaction was rolled back: a
/// deadlock (also between the nodes of a Galera cluster), a write conflict, a veto by group replication, and a server
/// that became read-only.
pub(super) fn commit_failure(error: &Error) -> CommitError {
    match error {
        Error::Server(server) if [1205, 1213, 9007, 3101, 1290, 1836].contains(&server.code) => {
            failure(error).into()
        }
        _ => CommitError::Unknown { reason: error.to_string() },
    }
}

/// Whether the connection is unusable. If the connection was idle before, its server may have been restarted.
pub(super) fn is_lost(error: &Error) -> bool {
    match error {
        Error::Server(server) => [1053, 1927, 4031, 2006, 2013].contains(&server.code),
        _ => true,
    }
}

/// Whether the transaction was rolled back in favour of another one, because of a deadlock or a write conflict.
pub(super) fn is_victim(error: &Error) -> bool {
    matches!(error, Error::Server(server) if [1213, 9007].contains(&server.code))
}

/// Whether a table is missing.
pub(super) fn is_no_table(error: &Error) -> bool {
    matches!(error, Error::Server(server) if server.code == 1146)
}

/// Whether the server has no database of the name.
pub(super) fn is_no_database(error: &Error) -> bool {
    matches!(error, Error::Server(server) if server.code == 1049)
}

pub(super) trait CallError: From<DatabaseError> {
    /// Returns the error of the database, if the call failed because of it and had no effect.
    fn of_database(&self) -> Option<&DatabaseError>;
}

impl CallError for DatabaseError {
    fn of_database(&self) -> Option<&DatabaseError> {
        Some(self)
    }
}

impl CallError for CommitError {
    fn of_database(&self) -> Option<&DatabaseError> {
        if let CommitError::NotWritten(error) = self { Some(error) } else { None }
    }
}

impl CallError for LogError {
    fn of_database(&self) -> Option<&DatabaseError> {
        if let LogError::Database(error) = self { Some(error) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_types::ErrorCode;

    fn server(code: u16, message: &str) -> Error {
        Error::Server(ServerError { code, message: message.to_owned(), state: "HY000".to_owned() })
    }

    #[test]
    fn numbers_of_errors_lead_to_codes() {
        for (number, code) in [
            (1205, ErrorCode::DatabaseUnavailable),
            (1045, ErrorCode::DatabaseRefused),
            (1836, ErrorCode::DatabaseReadOnly),
            (1114, ErrorCode::DatabaseFull),
            (1153, ErrorCode::TooLarge),
            (1146, ErrorCode::DatabaseDamaged),
        ] {
            assert_eq!(failure(&server(number, "")).code(), code, "{number}");
        }
        let full = server(1030, "Got error 28 \"No space left on device\" from storage engine InnoDB");
        assert_eq!(failure(&full).code(), ErrorCode::DatabaseFull);
    }

    #[test]
    fn only_a_proof_makes_the_outcome_of_a_commit_known() {
        assert_eq!(commit_failure(&server(1213, "")).code(), ErrorCode::DatabaseUnavailable);
        assert_eq!(commit_failure(&server(1180, "")).code(), ErrorCode::OutcomeUnknown);
        let lost = Error::Driver(DriverError::ConnectionClosed);
        assert_eq!(commit_failure(&lost).code(), ErrorCode::OutcomeUnknown);
    }
}
