//! The errors of live graphs, and their conversion to statuses for callers.

use kith_database::{DatabaseError, LogError};
use kith_live::{
    DeliveryError, FieldsFault, FindFault, GraphTypes, UnknownType, UntestableElement, WriteError, WriteFault,
};
use kith_query::QueryError;
use kith_schema::SourceError;
use kith_types::{ErrorCode, PartitionId};
use thiserror::Error;
use tonic::Status;

/// The advice to an operator whose database does not work.
const LOOK: &str = "look at the database and at `kith cluster status`";

/// The reasons for which a live graph cannot answer a read.
#[derive(Clone, Debug, Error)]
pub(crate) enum LiveError {
    /// This node does not hold the partition.
    #[error("partition {} is not held here", .0.0)]
    NotOwner(PartitionId),
    /// The database of the graph is not open on this node.
    #[error("the live graph {graph:?} is not open on this node: {reason}")]
    NotOpen { graph: String, code: ErrorCode, reason: String },
    /// The database does not answer, or its answer cannot be used.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// A ticket names a point that the log does not contain.
    #[error(
        "the ticket names a write that is no longer in the database: it was replaced by an older copy of itself"
    )]
    HistoryLost,
    /// The lists of a partition cannot be read.
    #[error(transparent)]
    Lists(#[from] SourceError),
    /// The graph has no such type.
    #[error(transparent)]
    Type(#[from] UnknownType),
    /// A field cannot be looked up, or cannot have the value.
    #[error(transparent)]
    Find(#[from] FindFault),
    /// The log of a partition has a type that this node does not know yet.
    #[error("this node does not know the newest types of the graph yet")]
    OldTypes,
    /// Stored fields cannot be decoded.
    #[error(transparent)]
    Fields(#[from] FieldsFault),
    /// A test of a traversal cannot be made.
    #[error(transparent)]
    Test(#[from] UntestableElement),
    /// As many reads wait for the database as may, or the rows of all reads have taken the memory for them.
    #[error("too many reads of partition {} wait for the database", .0.0)]
    Busy(PartitionId),
    /// The rows of one partition that a read needs take too much memory.
    #[error("the rows of partition {} that the read needs take more than {most} bytes", partition.0)]
    TooLarge { partition: PartitionId, most: u64 },
    /// A range of a list begins at an index beyond the bound.
    #[error("pos is {}, but must be at most {}", .0, kith_live::INDEX_MAX)]
    IndexTooGreat(u64),
    /// Changes arrive faster than this node can read them.
    #[error("partition {} cannot keep up with its log", .0.0)]
    Behind(PartitionId),
}

impl LiveError {
    pub fn to_status(&self) -> Status {
        let (code, help) = match self {
            LiveError::NotOwner(partition) => {
                let partitions = vec![partition.0];
                let help = "refresh the routing table".to_owned();
                let detail = kith_wire::v1::ErrorDetail { help, partitions, ..Default::default() };
                return kith_wire::with_detail(ErrorCode::NotOwner, self.to_string(), detail);
            }
            LiveError::NotOpen { code, .. } => (*code, LOOK),
            LiveError::Database(error) => (error.code(), LOOK),
            LiveError::HistoryLost => {
                (ErrorCode::HistoryLost, "read without the ticket, and write again what is missing")
            }
            LiveError::Type(fault) => {
                return kith_wire::status(ErrorCode::UnknownType, self.to_string(), fault.help());
            }
            LiveError::Find(fault) => {
                return kith_wire::status(find_code(fault), self.to_string(), fault.help());
            }
            LiveError::Fields(_) => {
                (ErrorCode::Damaged, "the types of the graph and its rows do not fit: report it with the log")
            }
            LiveError::Test(fault) => (fault.code, "see docs/gremlin.md"),
            LiveError::Lists(SourceError::PositionUnavailable { .. }) => {
                (ErrorCode::OtherPosition, "ask again")
            }
            LiveError::Lists(_) => (ErrorCode::Unavailable, "ask another replica"),
            LiveError::Busy(_) => (ErrorCode::Overloaded, "send less, or ask another replica"),
            LiveError::TooLarge { .. } => {
                (ErrorCode::TooLarge, "read fewer objects or associations at a time")
            }
            LiveError::IndexTooGreat(_) => {
                (ErrorCode::OutOfRange, "go on with `after`: the time and the id2 of the last association")
            }
            LiveError::Behind(_) | LiveError::OldTypes => (ErrorCode::Unavailable, "ask another replica"),
        };
        kith_wire::status(code, self.to_string(), help)
    }
}

fn find_code(fault: &FindFault) -> ErrorCode {
    match fault {
        FindFault::UnknownType(_) => ErrorCode::UnknownType,
        FindFault::NoField { .. } => ErrorCode::UnknownField,
        FindFault::NoIndex { .. } => ErrorCode::NoIndex,
        // The value is null, or has another type.
        _ => ErrorCode::BadFields,
    }
}

/// Whether a write may be valid under newer types than this node knows. Sessions add the types that a write to an open graph
/// names before they send it.
pub(crate) fn needs_newer_types(error: &WriteError, types: &GraphTypes) -> bool {
    match error {
        WriteError::Invalid(WriteFault::Type(_)) => types.open,
        WriteError::Invalid(WriteFault::Fields(fault)) => fault.needs_newer_types(),
        _ => false,
    }
}

/// Converts the error of a write to the status for its caller. `database` is the reason for which the database did not do what
/// the leader last asked, if it is known.
pub(crate) fn write_status(error: WriteError, write_id: &str, database: Option<DatabaseError>) -> Status {
    let error = match error {
        WriteError::Invalid(fault) => QueryError::Write(fault),
        WriteError::Refused(refusal) => QueryError::Refused(refusal),
        WriteError::WriteIdTaken => QueryError::WriteIdTaken { write_id: write_id.to_owned() },
        WriteError::NotLeader { partition } => {
            QueryError::NotLeader { detail: format!("this node does not lead partition {}", partition.0) }
        }
        WriteError::Overloaded => QueryError::Overloaded { detail: error.to_string() },
        WriteError::TooLarge { .. } => {
            let help = "store less in one object, or raise max_allowed_packet of the server to 16 MiB";
            return kith_wire::status(ErrorCode::TooLarge, format!("nothing was written: {error}"), help);
        }
        WriteError::OutcomeUnknown => QueryError::OutcomeUnknown { detail: error.to_string() },
        // Only `Unavailable` is left.
        other => {
            let code = database.as_ref().map_or(ErrorCode::DatabaseUnavailable, DatabaseError::code);
            let reason = database.map_or_else(|| other.to_string(), |database| database.to_string());
            return kith_wire::status(code, format!("nothing was written: {reason}"), LOOK);
        }
    };
    error.to_status()
}

/// Converts the error of a delivery to the status for its sender, which sends the delivery again.
pub(crate) fn delivery_status(error: DeliveryError) -> Status {
    let code = match error {
        DeliveryError::NotLeader(_) => ErrorCode::NotLeader,
        DeliveryError::Overloaded => ErrorCode::Overloaded,
        DeliveryError::Unavailable => ErrorCode::DatabaseUnavailable,
        DeliveryError::HistoryLost(_) => ErrorCode::HistoryLost,
    };
    kith_wire::status(code, error.to_string(), "send it again")
}

/// Converts the error of a check whether a log contains a point. Callers handle trimmed logs themselves.
pub(super) fn of_log(error: LogError) -> LiveError {
    match error {
        LogError::Database(error) => LiveError::Database(error),
        LogError::Trimmed { .. } | LogError::HistoryLost { .. } => LiveError::HistoryLost,
    }
}
