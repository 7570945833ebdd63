//! The reasons why a request failed, and the only decision whether to retry.

use kith_types::{Epoch, ErrorClass, ErrorCode, StoreVersion};
use std::fmt;
use strum::IntoStaticStr;

/// The reason why a request, or one key of it, was not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum FailureClass {
    /// The connection could not be made or broke.
    Connection,
    /// The request took longer than it was given.
    Timeout,
    /// The node was found to be down while the request was in flight.
    NodeDown,
    /// The node does not own the partition at its epoch.
    NotOwner {
        /// The node's epoch.
        epoch: Epoch,
    },
    /// The node does not serve the version that the query pinned.
    VersionUnavailable {
        /// The requested version.
        version: StoreVersion,
    },
    /// Only for live graphs: the node read a partition at a position of its log other than the position at which the query
    /// had read it before, or can no longer read it there.
    OtherPosition,
    /// The node is overloaded and refused the request at once.
    Overloaded,
    /// The store's read quota is used up, and the node refused the request at once.
    Throttled,
    /// The node found damaged or missing bytes.
    Damaged,
    /// The node does not know the operation, because it is of another release.
    Unsupported,
    /// The node failed for an unknown reason.
    Internal,
    /// The request itself is invalid. Every node would refuse it.
    BadRequest,
    /// The node saw the deadline pass.
    DeadlineExceeded,
    /// The node is stopping.
    Cancelled,
}

/// The action that follows a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Ask another replica for the same keys.
    OtherReplica,
    /// These keys stay unanswered.
    Never,
    /// The whole query ends, because no other replica or key would succeed.
    FailQuery,
}

impl FailureClass {
    /// Returns the class of a node's error, which decides what happens to the keys of its request. `version` is the version
    /// that the query pinned, and `epoch` the epoch of the node. For a code that this release does not know, the class leads
    /// to a retry at another replica.
    pub fn of(code: ErrorCode, version: StoreVersion, epoch: Epoch) -> Self {
        match code {
            ErrorCode::VersionUnavailable => FailureClass::VersionUnavailable { version },
            ErrorCode::NotOwner => FailureClass::NotOwner { epoch },
            ErrorCode::OtherPosition => FailureClass::OtherPosition,
            ErrorCode::Unavailable | ErrorCode::Cancelled => FailureClass::Connection,
            ErrorCode::Overloaded => FailureClass::Overloaded,
            ErrorCode::QuotaExceeded => FailureClass::Throttled,
            ErrorCode::Damaged => FailureClass::Damaged,
            ErrorCode::DeadlineExceeded => FailureClass::DeadlineExceeded,
            ErrorCode::UnsupportedOperation => FailureClass::Unsupported,
            ErrorCode::NotRecords | ErrorCode::LoadedGraph | ErrorCode::TooLarge => FailureClass::BadRequest,
            // Every replica reads the same database, which has lost what the ticket names.
            ErrorCode::HistoryLost => FailureClass::BadRequest,
            other => Self::of_class(other.class()),
        }
    }

    #[deny(clippy::wildcard_enum_match_arm)]
    fn of_class(class: ErrorClass) -> Self {
        match class {
            // Every node would refuse it.
            ErrorClass::InvalidArgument | ErrorClass::Unauthenticated | ErrorClass::PermissionDenied => {
                FailureClass::BadRequest
            }
            ErrorClass::Cancelled
            | ErrorClass::Unknown
            | ErrorClass::DeadlineExceeded
            | ErrorClass::NotFound
            | ErrorClass::AlreadyExists
            | ErrorClass::ResourceExhausted
            | ErrorClass::FailedPrecondition
            | ErrorClass::Aborted
            | ErrorClass::OutOfRange
            | ErrorClass::Unimplemented
            | ErrorClass::Internal
            | ErrorClass::Unavailable
            | ErrorClass::DataLoss => FailureClass::Internal,
        }
    }

    /// The only retry decision in Kith. A new class must be placed here by hand.
    #[deny(clippy::wildcard_enum_match_arm)]
    pub fn retry(self) -> Retry {
        match self {
            FailureClass::Connection | FailureClass::Timeout | FailureClass::NodeDown => Retry::OtherReplica,
            FailureClass::NotOwner { .. } | FailureClass::VersionUnavailable { .. } => Retry::OtherReplica,
            FailureClass::Damaged | FailureClass::Unsupported | FailureClass::Internal => Retry::OtherReplica,
            // The next request names the position.
            FailureClass::OtherPosition => Retry::OtherReplica,
            // Each node has its own share of the quota.
            FailureClass::Throttled => Retry::OtherReplica,
            // More requests are the last thing an overloaded cluster needs (Venice never retries 429).
            FailureClass::Overloaded => Retry::Never,
            FailureClass::DeadlineExceeded | FailureClass::Cancelled => Retry::Never,
            FailureClass::BadRequest => Retry::FailQuery,
        }
    }

    /// Returns the name of the class in profiles, metrics and answers.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for FailureClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FailureClass::NotOwner { epoch } => write!(f, "not_owner at {epoch}"),
            FailureClass::VersionUnavailable { version } => write!(f, "version_unavailable: {version}"),
            other => f.write_str(other.name()),
        }
    }
}
