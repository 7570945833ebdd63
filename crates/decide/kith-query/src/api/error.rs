//! Errors of queries: a stable code, what happened and why, and what to do.

mod help;

use crate::OperationError;
use kith_schema::live::{FieldsFault, Refusal, WriteFault};
use kith_schema::{KeyType, ValueType, compute::ComputeError};
use kith_types::ErrorCode;
use kith_types::QuotaRefusal;
use kith_wire::LookupError;
use kith_wire::v1::ErrorDetail;
use thiserror::Error;
use tonic::{Code, Status};

/// The time after which to ask an overloaded router or node again. A queue that refuses work is empty sooner than that.
const OVERLOADED_RETRY_MS: u64 = 100;
/// The beginning of the message of a refused write.
const NOTHING_WRITTEN: &str = "nothing was written: ";

/// The name in messages for the number of keys.
pub(crate) const KEY_COUNT: &str = "the number of keys";

/// The reason why a query has no answer. The codes are a contract: `docs/errors.md`.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum QueryError {
    /// The query does not fit the graph.
    #[error(transparent)]
    Operation(#[from] OperationError),
    /// The state of a live graph that the read showed does not have the member. It may have been written too recently.
    #[error("member {id} is not in the graph as this read shows it")]
    NotShown { id: u64 },
    /// There is no such graph or store, or it cannot be read now.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// A loaded graph was asked for something that only live graphs have.
    #[error("graph {name:?} was loaded; {what}")]
    LoadedGraph {
        name: String,
        /// The reason as a sentence.
        what: &'static str,
    },
    /// The ticket belongs to another graph.
    #[error("the ticket belongs to another graph than {graph:?}")]
    WrongTicket { graph: String },
    /// The tickets belong to more than one graph.
    #[error("the tickets belong to different graphs")]
    MixedTickets,
    /// There is no such replica group.
    #[error("there is no replica group {group}")]
    UnknownGroup {
        group: u32,
        /// All groups.
        known: Vec<u32>,
    },
    /// No replica could answer for the state of a live graph that the query had begun to read.
    #[error(
        "graph {name:?} was written to so fast that its nodes cannot answer for one state of it: {reason}"
    )]
    OtherPosition {
        name: String,
        /// The last reason given.
        reason: String,
    },
    /// The keys have another type than the store's.
    #[error("the keys of store {store:?} are of type {expected}, not {got}")]
    WrongKeys {
        store: String,
        /// The type of the store's keys.
        expected: KeyType,
        /// The type of the given keys.
        got: &'static str,
    },
    /// A batch is larger than a batch may be.
    #[error("{what} is {got}, but must be at most {max}")]
    BatchTooLarge {
        /// The dimension that is too large.
        what: &'static str,
        got: u64,
        max: u64,
    },
    /// The answer, or a node's share of an intermediate result, is too large.
    #[error("the answer, or what it is made from, is more than {max} bytes")]
    TooLarge { max: u64 },
    /// Records are damaged on every replica that could be asked.
    #[error("records of store {store:?} are damaged on every replica that could be asked: {detail}")]
    Damaged {
        store: String,
        /// The message of a node.
        detail: String,
    },
    /// Replicas gave different answers about keys of a store whose replicas must agree.
    #[error("replicas of store {store:?} disagree about {keys} of the keys asked for")]
    Disagreement {
        store: String,
        /// The number of such keys.
        keys: u64,
    },
    /// Records cannot be decoded, because no process that answers has their schema.
    #[error("the schema of the records of store {store:?} at version {version} cannot be had: {reason}")]
    SchemaUnavailable {
        store: String,
        /// The version that answered.
        version: u64,
        /// The last reason given.
        reason: String,
    },
    /// A plan does not fit the store's records.
    #[error(transparent)]
    Compute(#[from] ComputeError),
    /// The values of the store are not records, so they have no fields.
    #[error("the values of store {store:?} are {value}, not records: they have no fields")]
    NotRecords {
        store: String,
        /// The type of the values.
        value: ValueType,
    },
    /// Nodes or routers have a release without the operation.
    #[error("the cluster does not support the operation: {detail}")]
    Unsupported {
        /// The message of a node or router.
        detail: String,
    },
    /// There is no such replica policy.
    #[error("there is no policy {name:?}")]
    UnknownPolicy {
        name: String,
        /// The names of all policies.
        known: Vec<String>,
    },
    /// The request itself is malformed.
    #[error("bad request: {detail}")]
    BadRequest {
        /// A description of its fault.
        detail: String,
    },
    /// The deadline passed before the answer was complete.
    #[error("the deadline of {deadline_ms} ms passed")]
    DeadlineExceeded { deadline_ms: u64 },
    /// No replica of these partitions answered.
    #[error("{} of the partitions asked have no replica that answers: {reason}", partitions.len())]
    PartitionsUnavailable {
        partitions: Vec<u32>,
        /// The last reason given.
        reason: String,
    },
    /// The nodes do not hold the version that the query pinned any more or yet, and a retry with a newer topology did not
    /// help.
    #[error("version {version} of {what} {name:?} is not served by enough nodes")]
    VersionUnavailable {
        /// `graph` or `store`.
        what: &'static str,
        name: String,
        version: u64,
    },
    /// The router or its nodes refuse work.
    #[error("overloaded: {detail}")]
    Overloaded { detail: String },
    /// A store is read faster than its quota allows.
    #[error(transparent)]
    QuotaExceeded(#[from] QuotaRefusal),
    /// The router cannot be reached.
    #[error("router {addr} cannot be reached: {reason}")]
    Unreachable { addr: String, reason: String },
    /// A TLS connection failed, because one side does not accept the identity of the other.
    #[error("no TLS with {addr}: {reason}")]
    Tls {
        addr: String,
        reason: String,
        /// Advice on what to do about it.
        help: &'static str,
    },
    /// A node cannot be reached that was asked individually.
    #[error("node at {addr} cannot be reached: {reason}")]
    NodeUnreachable { addr: String, reason: String },
    /// An error that a router or node reported.
    #[error("{message}")]
    Remote {
        /// The error code; [`ErrorCode::Unrecognized`] for a code of a later release, whose name then begins the message.
        code: ErrorCode,
        message: String,
        help: String,
    },
    /// A write is invalid, whatever is stored.
    #[error(transparent)]
    Write(#[from] WriteFault),
    /// A write was refused because of the stored state.
    #[error("{NOTHING_WRITTEN}{0}")]
    Refused(#[from] Refusal),
    /// A write was sent under the name of another write.
    #[error("the write_id {write_id:?} names another write, which was sent within the last ten minutes")]
    WriteIdTaken { write_id: String },
    /// The node that was asked does not lead the partition. Nothing was written.
    #[error("{detail}")]
    NotLeader { detail: String },
    /// A write was sent, and its outcome was lost.
    #[error("nobody knows whether the write was carried out: {detail}")]
    OutcomeUnknown { detail: String },
    /// A traversal failed after it had changed the graph, or while the outcome of a change was unknown.
    #[error("{}; {changes}", of_one_change(cause))]
    PartlyWritten {
        /// The reason why the traversal failed.
        cause: Box<QueryError>,
        /// The changes that it had made before, as a sentence.
        changes: String,
        /// Whether the outcome of a change is unknown.
        is_unknown: bool,
    },
    /// A bug of Kith.
    #[error("internal error: {detail}")]
    Internal {
        /// A description of the fault.
        detail: String,
    },
}

impl QueryError {
    /// Whether the caller lacks a right or an identity, so that every router and node would refuse it.
    pub fn is_denied(&self) -> bool {
        self.code().is_denial()
    }

    /// A node's share of an answer is larger than [`crate::ANSWER_BYTES_MAX`].
    pub fn too_large() -> Self {
        QueryError::TooLarge { max: crate::ANSWER_BYTES_MAX as u64 }
    }

    /// A traversal has changed the graph, and its results cannot be sent.
    pub fn results_lost(cause: QueryError) -> Self {
        let changes = "the traversal has made all its changes, and only its results are lost".to_owned();
        QueryError::PartlyWritten { cause: Box::new(cause), changes, is_unknown: false }
    }

    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        match self {
            QueryError::Operation(error) => operation_code(error),
            QueryError::NotShown { .. } => ErrorCode::MemberNotFound,
            QueryError::Lookup(error) => error.code(),
            QueryError::LoadedGraph { .. } => ErrorCode::LoadedGraph,
            QueryError::WrongTicket { .. } | QueryError::MixedTickets => ErrorCode::WrongTicket,
            QueryError::UnknownGroup { .. } => ErrorCode::UnknownGroup,
            QueryError::OtherPosition { .. } => ErrorCode::OtherPosition,
            QueryError::WrongKeys { .. } => ErrorCode::WrongKeyType,
            QueryError::BatchTooLarge { .. } => ErrorCode::OutOfRange,
            QueryError::TooLarge { .. } => ErrorCode::TooLarge,
            QueryError::Damaged { .. } => ErrorCode::Damaged,
            QueryError::Disagreement { .. } => ErrorCode::ReplicasDisagree,
            QueryError::SchemaUnavailable { .. } => ErrorCode::SchemaUnavailable,
            QueryError::Compute(error) => error.code(),
            QueryError::NotRecords { .. } => ErrorCode::NotRecords,
            QueryError::Unsupported { .. } => ErrorCode::UnsupportedOperation,
            QueryError::UnknownPolicy { .. } => ErrorCode::UnknownPolicy,
            QueryError::BadRequest { .. } => ErrorCode::BadRequest,
            QueryError::DeadlineExceeded { .. } => ErrorCode::DeadlineExceeded,
            QueryError::PartitionsUnavailable { .. } => ErrorCode::PartitionsUnavailable,
            QueryError::VersionUnavailable { .. } => ErrorCode::VersionUnavailable,
            QueryError::Overloaded { .. } => ErrorCode::Overloaded,
            QueryError::QuotaExceeded(_) => ErrorCode::QuotaExceeded,
            QueryError::Unreachable { .. } => ErrorCode::Unreachable,
            QueryError::Tls { .. } => ErrorCode::TlsFailed,
            QueryError::NodeUnreachable { .. } => ErrorCode::NodeUnreachable,
            QueryError::Write(fault) => write_code(fault),
            QueryError::Refused(Refusal::ObjectExists { .. }) => ErrorCode::ObjectExists,
            QueryError::Refused(Refusal::UniqueTaken { .. }) => ErrorCode::UniqueTaken,
            QueryError::Refused(_) => ErrorCode::ConditionFailed,
            QueryError::WriteIdTaken { .. } => ErrorCode::WriteIdTaken,
            QueryError::NotLeader { .. } => ErrorCode::NotLeader,
            QueryError::OutcomeUnknown { .. } | QueryError::PartlyWritten { is_unknown: true, .. } => {
                ErrorCode::OutcomeUnknown
            }
            QueryError::PartlyWritten { is_unknown: false, .. } => ErrorCode::PartlyWritten,
            QueryError::Remote { code, .. } => *code,
            QueryError::Internal { .. } => ErrorCode::Internal,
        }
    }

    /// The time after which the same query may be sent again, in milliseconds; 0 if that is not known.
    pub fn retry_after_ms(&self) -> u64 {
        match self {
            QueryError::Overloaded { .. } => OVERLOADED_RETRY_MS,
            QueryError::QuotaExceeded(refusal) => refusal.retry_after_ms,
            _ => 0,
        }
    }

    /// Converts the error to a gRPC status with details.
    pub fn to_status(&self) -> Status {
        let partitions = match self {
            QueryError::PartitionsUnavailable { partitions, .. } => partitions.clone(),
            _ => Vec::new(),
        };
        let detail = ErrorDetail {
            help: self.help(),
            partitions,
            retry_after_ms: self.retry_after_ms(),
            ..ErrorDetail::default()
        };
        kith_wire::with_detail(self.code(), self.to_string(), detail)
    }

    /// Converts the status that a router returned to an error.
    pub fn from_status(status: &Status) -> Self {
        let detail = kith_wire::detail_of(status);
        if status.code() == Code::Unimplemented && detail.help.is_empty() {
            return QueryError::Remote {
                code: ErrorCode::UnsupportedOperation,
                message: "the process at this address does not serve this request".to_owned(),
                help: "name a router: nodes only evaluate parts of queries".to_owned(),
            };
        }
        let code = ErrorCode::of_name(&detail.code);
        let message = match code {
            ErrorCode::Unrecognized => format!("{}: {}", detail.code, status.message()),
            _ => status.message().to_owned(),
        };
        QueryError::Remote { code, message, help: detail.help }
    }
}

/// The message of an error that ended a traversal. That of a refused write says that nothing was written, which is true of this
/// write only.
fn of_one_change(cause: &QueryError) -> String {
    let message = cause.to_string();
    match message.strip_prefix(NOTHING_WRITTEN) {
        Some(reason) => format!("a change was refused: {reason}"),
        None => message,
    }
}

fn write_code(fault: &WriteFault) -> ErrorCode {
    match fault {
        WriteFault::Type(_) => ErrorCode::UnknownType,
        WriteFault::Fields(FieldsFault::TooLarge { .. }) => ErrorCode::TooLarge,
        WriteFault::Fields(_) => ErrorCode::BadFields,
        _ => ErrorCode::BadRequest,
    }
}

fn operation_code(error: &OperationError) -> ErrorCode {
    match error {
        OperationError::MemberNotFound { .. } => ErrorCode::MemberNotFound,
        OperationError::EntityNotFound { .. } => ErrorCode::EntityNotFound,
        OperationError::UnknownEdgeType { .. } => ErrorCode::UnknownEdgeType,
        OperationError::UnknownKind { .. } => ErrorCode::UnknownKind,
        OperationError::NoEdgeType => ErrorCode::NoEdgeType,
        OperationError::DirectionNotKept { .. } | OperationError::OneSided { .. } => {
            ErrorCode::DirectionNotKept
        }
        OperationError::OutOfRange { .. } | OperationError::NotOfKind { .. } => ErrorCode::OutOfRange,
        OperationError::UnknownColumn { .. } => ErrorCode::UnknownColumn,
        OperationError::RepeatedColumn { .. }
        | OperationError::BothDirections { .. }
        | OperationError::OtherCursor => ErrorCode::BadRequest,
        OperationError::CursorExpired { .. } => ErrorCode::CursorExpired,
        OperationError::TooLarge { .. } => ErrorCode::TooLarge,
        _ => ErrorCode::Internal,
    }
}
