//! The stable codes of all errors of Kith, and their equivalents in other protocols. `docs/errors.md` explains each code.

use strum::{EnumString, IntoStaticStr, VariantArray};

/// Declares the codes, grouped by class, so that every new code gets a class.
macro_rules! codes {
    ($($class:ident: $($code:ident),+;)+) => {
        /// The reason for a failure, for programs to match on. It is the same from the node that detects the failure to the
        /// command that exits with it. Its name, in snake case, is a contract. `Unrecognized` stands for a code of a later
        /// release.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, EnumString, IntoStaticStr, VariantArray,
        )]
        #[strum(serialize_all = "snake_case")]
        #[allow(missing_docs, reason = "docs/errors.md explains each of them, and a test holds the two together")]
        pub enum ErrorCode {
            $($($code,)+)+
        }

        impl ErrorCode {
            /// The class of the code, which determines the gRPC and HTTP status and most decisions about retries.
            pub fn class(self) -> ErrorClass {
                match self {
                    $($(ErrorCode::$code)|+ => ErrorClass::$class,)+
                }
            }
        }
    };
}

codes! {
    Cancelled: Cancelled;
    Unknown: Unrecognized, OutcomeUnknown;
    InvalidArgument:
        UnknownEdgeType, UnknownKind, UnknownField, UnknownColumn, UnknownPolicy, UnknownGroup, WrongTicket, NoEdgeType, NoIndex, DirectionNotKept,
        OutOfRange, WrongFieldType, WrongKeyType, DimensionMismatch, BadRequest, BadLines, BadInput,
        BadRows, BadSchema, BadDefinition, BadShape, TooManyKinds, NoEdges, NoEntities, NoMembers, NoRows,
        NothingToLoad, UnknownType, BadFields, InvalidName, NameTaken, DuplicateKey, Usage, BadSettings, BadSecurityFile,
        InputUnreadable;
    DeadlineExceeded: DeadlineExceeded, SlowRequest, Stalled;
    NotFound:
        MemberNotFound, EntityNotFound, KeyNotFound, UnknownGraph, UnknownStore, UnknownVersion,
        ObjectNotHeld, NoRebalance, NoCluster, DatabaseEmpty;
    AlreadyExists: StoreExists, ObjectExists, UniqueTaken, WriteIdTaken;
    PermissionDenied: PermissionDenied, UrlNotAllowed;
    ResourceExhausted: Overloaded, QuotaExceeded, TooManyConnections, TooFewFiles, DatabaseFull;
    FailedPrecondition:
        CursorExpired, LoadedGraph, LiveGraph, ConditionFailed, PartlyWritten, Unsuitable, NotRecords, NotValues, NotAGraph, NoVersion, NotOwner, StaleReadyFile, NotRunning,
        CannotStop, StillRunning, ReadyFileUnreadable, NotConfirmed, RoleChanged, LoadRunning,
        IncompatibleSchema, RecordTooLarge, ObjectStoreTaken, ObjectStoreUnusable, OutputUnwritable,
        PublicationLeft, StoreFrozen, StoreOwner, StoreInUse, TraversalFailed, OtherStore, VersionDamaged, VersionTaken,
        VersionNotNewer, VersionTooGreat, VersionNotKept, VersionBlocked, VersionCurrent, NothingOlder,
        NotOlder, NotPrepared, PartitionUncovered, PushRunning, PushEnded, PushCancelled, PushServed,
        AlreadyPushed, NoPush, TooFewRecords, RecordsDropped, OverQuota, ShapeRefused, GroupBehind,
        RebalanceRunning, RebalanceNotSettled, StealerUnfit, ReleaseFailed, DataDirectoryDamaged,
        DataDirectoryFormat, DataDirectoryInUse, DataDirectoryOwner, DataDirectoryUnusable,
        TopologyMismatch, ReplicasTogether, ReadyFileInUse, InsecureListener, OpenListener, IdTaken,
        PortInUse, CannotListen, CannotWrite, DatabaseNewer, DatabaseOtherGraph, HistoryLost, LogTrimmed;
    Aborted: Conflict, OtherPosition, PrepareFailed, Fenced, LogMoved;
    OutOfRange: TooLarge;
    Unimplemented: UnsupportedOperation;
    Internal: Internal, BuildFailed, ChildFailed, NotSustained;
    Unavailable:
        Unreachable, NodeUnreachable, NotLeader, Unavailable, Idle, TlsFailed, Leaving, PartitionsUnavailable,
        SchemaUnavailable, VersionUnavailable, CopyInterrupted, ManifestUnreadable, MetadataUnavailable,
        MetadataRefused, TopologyUnknown, ObjectStoreUnreachable, PublicationLost, RebalanceLost,
        RebalanceStopped, DatabaseUnavailable, DatabaseReadOnly, DatabaseRefused;
    DataLoss: Damaged, ReplicasDisagree, DonorUnfit, DatabaseDamaged;
    Unauthenticated: Unauthenticated, TlsRequired;
}

/// The class of a code: the canonical codes of gRPC, each of which has an HTTP status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
#[allow(missing_docs, reason = "as gRPC defines them")]
pub enum ErrorClass {
    Cancelled,
    Unknown,
    InvalidArgument,
    DeadlineExceeded,
    NotFound,
    AlreadyExists,
    PermissionDenied,
    ResourceExhausted,
    FailedPrecondition,
    Aborted,
    OutOfRange,
    Unimplemented,
    Internal,
    Unavailable,
    DataLoss,
    Unauthenticated,
}

impl ErrorCode {
    /// All codes, class by class.
    pub const ALL: &'static [ErrorCode] = Self::VARIANTS;

    /// The name in messages, JSON and on the wire: `member_not_found`.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The code with this name; [`ErrorCode::Unrecognized`] if this release has none.
    pub fn of_name(name: &str) -> Self {
        name.parse().unwrap_or(ErrorCode::Unrecognized)
    }

    /// Whether the caller lacks a right or an identity, so that every router and node would refuse it.
    pub fn is_denial(self) -> bool {
        matches!(self.class(), ErrorClass::Unauthenticated | ErrorClass::PermissionDenied)
    }

    /// The exit code of a command that fails with this code: 2 if the command line is invalid, otherwise 1.
    pub fn exit_code(self) -> u8 {
        match self {
            ErrorCode::Usage | ErrorCode::InvalidName | ErrorCode::NameTaken | ErrorCode::NothingToLoad => 2,
            _ => 1,
        }
    }
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

impl ErrorClass {
    /// The number of the class in gRPC.
    pub fn grpc(self) -> i32 {
        match self {
            ErrorClass::Cancelled => 1,
            ErrorClass::Unknown => 2,
            ErrorClass::InvalidArgument => 3,
            ErrorClass::DeadlineExceeded => 4,
            ErrorClass::NotFound => 5,
            ErrorClass::AlreadyExists => 6,
            ErrorClass::PermissionDenied => 7,
            ErrorClass::ResourceExhausted => 8,
            ErrorClass::FailedPrecondition => 9,
            ErrorClass::Aborted => 10,
            ErrorClass::OutOfRange => 11,
            ErrorClass::Unimplemented => 12,
            ErrorClass::Internal => 13,
            ErrorClass::Unavailable => 14,
            ErrorClass::DataLoss => 15,
            ErrorClass::Unauthenticated => 16,
        }
    }

    /// The HTTP status of the class, by the mapping in `google/rpc/code.proto`.
    pub fn http(self) -> u16 {
        match self {
            ErrorClass::InvalidArgument | ErrorClass::FailedPrecondition | ErrorClass::OutOfRange => 400,
            ErrorClass::Unauthenticated => 401,
            ErrorClass::PermissionDenied => 403,
            ErrorClass::NotFound => 404,
            ErrorClass::AlreadyExists | ErrorClass::Aborted => 409,
            ErrorClass::ResourceExhausted => 429,
            ErrorClass::Cancelled => 499,
            ErrorClass::Unknown | ErrorClass::Internal | ErrorClass::DataLoss => 500,
            ErrorClass::Unimplemented => 501,
            ErrorClass::Unavailable => 503,
            ErrorClass::DeadlineExceeded => 504,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_snake_case_and_lead_back() {
        assert_eq!(ErrorCode::NotAGraph.name(), "not_a_graph");
        for code in ErrorCode::ALL {
            assert_eq!(ErrorCode::of_name(code.name()), *code);
        }
        assert_eq!(ErrorCode::of_name("invented_next_year"), ErrorCode::Unrecognized);
    }

    #[test]
    fn denials_concern_the_caller() {
        let denials: Vec<_> =
            ErrorCode::ALL.iter().filter(|code| code.is_denial()).map(|c| c.name()).collect();
        assert_eq!(denials, ["permission_denied", "url_not_allowed", "unauthenticated", "tls_required"]);
    }
}
