//! Converts errors of databases to wire messages and back without loss.

use crate::{CommitError, DatabaseError, LogError};
use kith_live::{IndexId, UniqueHolder};
use kith_types::{LogPoint, PartitionId, Position};
use kith_wire::v1::{self, database_fault::Kind};

pub(super) fn wire_point(point: LogPoint) -> v1::LogPlace {
    v1::LogPlace { term: point.term.0, position: point.position.0 }
}

/// Converts a place. An absent place is the start of a log.
pub(super) fn point(position: Option<v1::LogPlace>) -> LogPoint {
    let position = position.unwrap_or_default();
    LogPoint::new(position.term, position.position)
}

fn numbers(found: u64, expected: u64) -> v1::DatabaseNumbers {
    v1::DatabaseNumbers { found, expected }
}

fn at(partition: PartitionId, found: LogPoint) -> v1::DatabasePlace {
    v1::DatabasePlace { partition: partition.0, found: Some(wire_point(found)) }
}

fn fault(kind: Kind) -> v1::DatabaseFault {
    v1::DatabaseFault { kind: Some(kind) }
}

fn history_lost(partition: PartitionId, point: LogPoint, end: LogPoint) -> v1::DatabaseFault {
    let (point, end) = (Some(wire_point(point)), Some(wire_point(end)));
    fault(Kind::HistoryLost(v1::DatabaseHistoryLost { partition: partition.0, point, end }))
}

impl From<DatabaseError> for v1::DatabaseFault {
    fn from(error: DatabaseError) -> Self {
        fault(match error {
            DatabaseError::Unavailable { reason } => Kind::Unavailable(reason),
            DatabaseError::Full { reason } => Kind::Full(reason),
            DatabaseError::ReadOnly { reason } => Kind::ReadOnly(reason),
            // A database process accepts whatever a leader may write, so it never returns `TooLarge`.
            DatabaseError::Refused { reason } | DatabaseError::TooLarge { reason, .. } => {
                Kind::Refused(reason)
            }
            DatabaseError::Damaged { detail } => Kind::Damaged(detail),
            DatabaseError::NoGraph { address } => Kind::NoGraph(address),
            DatabaseError::Newer { found, known } => Kind::Newer(numbers(found.into(), known.into())),
            DatabaseError::OtherGraph { found, expected } => Kind::OtherGraph(numbers(found, expected)),
            DatabaseError::OtherPartitions { found, expected } => {
                Kind::OtherPartitions(numbers(found, expected.into()))
            }
            DatabaseError::Invalid { detail } => Kind::Invalid(detail),
        })
    }
}

impl From<CommitError> for v1::DatabaseFault {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Fenced { partition, found } => fault(Kind::Fenced(at(partition, found))),
            CommitError::Moved { partition, found } => fault(Kind::Moved(at(partition, found))),
            CommitError::Lacks { partition, point, end } => history_lost(partition, point, end),
            CommitError::Taken { holders } => {
                let holder = |it: UniqueHolder| v1::DatabaseUniqueHolder {
                    index: it.index.0,
                    key: it.key.to_vec().into(),
                    id: it.id,
                };
                fault(Kind::Taken(v1::DatabaseTaken { holders: holders.into_iter().map(holder).collect() }))
            }
            CommitError::Unknown { reason } => fault(Kind::Unknown(reason)),
            CommitError::NotWritten(error) => error.into(),
        }
    }
}

impl From<LogError> for v1::DatabaseFault {
    fn from(error: LogError) -> Self {
        match error {
            LogError::Trimmed { partition, after, first } => {
                let after = Some(wire_point(after));
                fault(Kind::Trimmed(v1::DatabaseTrimmed { partition: partition.0, after, first: first.0 }))
            }
            LogError::HistoryLost { partition, point, end } => history_lost(partition, point, end),
            LogError::Database(error) => error.into(),
        }
    }
}

fn holder(holder: v1::DatabaseUniqueHolder) -> UniqueHolder {
    UniqueHolder { index: IndexId(holder.index), key: (&*holder.key).into(), id: holder.id }
}

/// Describes a fault that this release does not know or that does not belong to the call.
fn unexpected(kind: Option<Kind>) -> String {
    match kind {
        Some(kind) => format!("the database process answered {kind:?}, which does not belong to this call"),
        None => "the database process answered with a fault that this release does not know".to_owned(),
    }
}

impl From<v1::DatabaseFault> for DatabaseError {
    fn from(fault: v1::DatabaseFault) -> Self {
        let narrow = |number| u32::try_from(number).unwrap_or(u32::MAX);
        match fault.kind {
            Some(Kind::Unavailable(reason)) => DatabaseError::Unavailable { reason },
            Some(Kind::Full(reason)) => DatabaseError::Full { reason },
            Some(Kind::ReadOnly(reason)) => DatabaseError::ReadOnly { reason },
            Some(Kind::Refused(reason)) => DatabaseError::Refused { reason },
            Some(Kind::Damaged(detail)) => DatabaseError::Damaged { detail },
            Some(Kind::NoGraph(address)) => DatabaseError::NoGraph { address },
            Some(Kind::Newer(it)) => {
                DatabaseError::Newer { found: narrow(it.found), known: narrow(it.expected) }
            }
            Some(Kind::OtherGraph(it)) => {
                DatabaseError::OtherGraph { found: it.found, expected: it.expected }
            }
            Some(Kind::OtherPartitions(it)) => {
                DatabaseError::OtherPartitions { found: it.found, expected: narrow(it.expected) }
            }
            Some(Kind::Invalid(detail)) => DatabaseError::Invalid { detail },
            kind => DatabaseError::unavailable(unexpected(kind)),
        }
    }
}

impl From<v1::DatabaseFault> for CommitError {
    fn from(fault: v1::DatabaseFault) -> Self {
        let partition = |it: &v1::DatabasePlace| PartitionId(it.partition);
        match fault.kind {
            Some(Kind::Fenced(it)) => {
                CommitError::Fenced { partition: partition(&it), found: point(it.found) }
            }
            Some(Kind::Moved(it)) => CommitError::Moved { partition: partition(&it), found: point(it.found) },
            Some(Kind::Unknown(reason)) => CommitError::Unknown { reason },
            Some(Kind::HistoryLost(it)) => CommitError::Lacks {
                partition: PartitionId(it.partition),
                point: point(it.point),
                end: point(it.end),
            },
            Some(Kind::Taken(it)) => {
                CommitError::Taken { holders: it.holders.into_iter().map(holder).collect() }
            }
            // An unknown fault may be a new way to report that the outcome is unknown.
            kind @ (None | Some(Kind::Trimmed(_))) => CommitError::Unknown { reason: unexpected(kind) },
            kind => CommitError::NotWritten(v1::DatabaseFault { kind }.into()),
        }
    }
}

impl From<v1::DatabaseFault> for LogError {
    fn from(fault: v1::DatabaseFault) -> Self {
        match fault.kind {
            Some(Kind::Trimmed(it)) => LogError::Trimmed {
                partition: PartitionId(it.partition),
                after: point(it.after),
                first: Position(it.first),
            },
            Some(Kind::HistoryLost(it)) => LogError::HistoryLost {
                partition: PartitionId(it.partition),
                point: point(it.point),
                end: point(it.end),
            },
            kind => LogError::Database(v1::DatabaseFault { kind }.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: PartitionId = PartitionId(3);

    #[test]
    fn errors_arrive_as_what_they_were() {
        let text = || "why".to_owned();
        let errors = [
            DatabaseError::Unavailable { reason: text() },
            DatabaseError::Full { reason: text() },
            DatabaseError::ReadOnly { reason: text() },
            DatabaseError::Refused { reason: text() },
            DatabaseError::Damaged { detail: text() },
            DatabaseError::NoGraph { address: text() },
            DatabaseError::Newer { found: 7, known: 1 },
            DatabaseError::OtherGraph { found: u64::MAX, expected: 1 },
            DatabaseError::OtherPartitions { found: u64::MAX, expected: 4 },
            DatabaseError::Invalid { detail: text() },
        ];
        for error in errors {
            assert_eq!(DatabaseError::from(v1::DatabaseFault::from(error.clone())), error);
            let commit = CommitError::NotWritten(error.clone());
            assert_eq!(CommitError::from(v1::DatabaseFault::from(commit.clone())), commit);
            let log = LogError::Database(error);
            assert_eq!(LogError::from(v1::DatabaseFault::from(log.clone())), log);
        }
        let found = LogPoint::new(5, u64::MAX);
        for error in [
            CommitError::Fenced { partition: P, found },
            CommitError::Moved { partition: P, found },
            CommitError::Lacks { partition: P, point: found, end: LogPoint::new(4, 2) },
            CommitError::Unknown { reason: text() },
            CommitError::Taken {
                holders: vec![UniqueHolder {
                    index: IndexId(3),
                    key: [0, 255].as_slice().into(),
                    id: u64::MAX,
                }],
            },
        ] {
            assert_eq!(CommitError::from(v1::DatabaseFault::from(error.clone())), error);
        }
        for error in [
            LogError::Trimmed { partition: P, after: LogPoint::default(), first: Position(9) },
            LogError::HistoryLost { partition: P, point: found, end: LogPoint::new(4, 2) },
        ] {
            assert_eq!(LogError::from(v1::DatabaseFault::from(error.clone())), error);
        }
    }

    #[test]
    fn a_fault_that_is_not_known_leaves_a_commit_unknown() {
        let later = v1::DatabaseFault::default;
        assert!(matches!(CommitError::from(later()), CommitError::Unknown { .. }));
        assert!(matches!(DatabaseError::from(later()), DatabaseError::Unavailable { .. }));
    }
}
