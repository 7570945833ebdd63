//! The end of a fan-out. Every key is accounted for.

use crate::execution::{FailureClass, HedgeCounts};
use kith_types::{ErrorCode, NodeId, PartitionId};
use std::fmt;

/// The end of a fan-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every key is answered, or enough keys to settle the query.
    Complete,
    /// Some keys are missing, and the caller accepts a partial answer.
    Incomplete,
    /// Some keys are missing, and the caller does not accept a partial answer.
    Failed,
    /// The caller disconnected.
    Cancelled,
}

/// The reason why keys have no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingReason {
    /// No replica could be asked.
    NoReplica,
    /// Time ran out before an answer came.
    Deadline,
    /// The last node asked failed with this class, and no other one could be asked.
    Failed(FailureClass),
}

impl MissingReason {
    /// Returns the code for a stream's footer. A whole read would fail for the same reason with this code.
    #[deny(clippy::wildcard_enum_match_arm)]
    pub fn code(self) -> ErrorCode {
        match self {
            MissingReason::NoReplica => ErrorCode::PartitionsUnavailable,
            MissingReason::Deadline => ErrorCode::DeadlineExceeded,
            MissingReason::Failed(class) => match class {
                FailureClass::Timeout | FailureClass::DeadlineExceeded => ErrorCode::DeadlineExceeded,
                FailureClass::Connection | FailureClass::NodeDown | FailureClass::Cancelled => {
                    ErrorCode::NodeUnreachable
                }
                FailureClass::NotOwner { .. } | FailureClass::VersionUnavailable { .. } => {
                    ErrorCode::VersionUnavailable
                }
                FailureClass::OtherPosition => ErrorCode::OtherPosition,
                FailureClass::Overloaded => ErrorCode::Overloaded,
                FailureClass::Throttled => ErrorCode::QuotaExceeded,
                FailureClass::Damaged => ErrorCode::Damaged,
                FailureClass::Unsupported => ErrorCode::UnsupportedOperation,
                FailureClass::BadRequest => ErrorCode::BadRequest,
                FailureClass::Internal => ErrorCode::Internal,
            },
        }
    }
}

impl fmt::Display for MissingReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MissingReason::NoReplica => f.write_str("no replica can serve"),
            MissingReason::Deadline => f.write_str("deadline"),
            MissingReason::Failed(class) => write!(f, "{class}"),
        }
    }
}

/// The missing keys of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingPart {
    /// The partition.
    pub partition: PartitionId,
    /// The number of the query's keys in it.
    pub keys: u32,
    /// The reason why the first of them has no answer.
    pub reason: MissingReason,
    /// The nodes that were asked and failed, in order.
    pub tried: Vec<NodeId>,
}

/// Keys that failed for the same reason at the same nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The partitions of the keys, ascending, distinct.
    pub partitions: Vec<PartitionId>,
    /// The number of keys.
    pub keys: u32,
    /// The reason: [`MissingReason::code`].
    pub code: ErrorCode,
    /// The nodes that were asked, in order. If there are several, the keys were retried.
    pub tried: Vec<NodeId>,
}

/// The outcome of a fan-out. `answered + missing_keys() + abandoned == keys`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The result in one word.
    pub verdict: Verdict,
    /// The number of keys of the query.
    pub keys: u32,
    /// The number of keys with an answer.
    pub answered: u32,
    /// The keys without an answer, by partition, ascending.
    pub missing: Vec<MissingPart>,
    /// The number of keys that were no longer needed when it ended.
    pub abandoned: u32,
    /// The number of requests sent.
    pub requests: u32,
    /// The number of these requests that repeat keys of a failed one.
    pub retries: u32,
    /// The hedges of late requests.
    pub hedges: HedgeCounts,
    /// Whether it ended early because the answers settled the query.
    pub stopped_early: bool,
}

impl Outcome {
    /// Returns the missing keys grouped by reason and by the nodes asked. O(partitions × entries).
    pub fn failures(&self) -> Vec<Failure> {
        let mut failures: Vec<Failure> = Vec::new();
        for missing in &self.missing {
            let code = missing.reason.code();
            let alike = |failure: &&mut Failure| failure.code == code && failure.tried == missing.tried;
            if let Some(failure) = failures.iter_mut().find(alike) {
                failure.partitions.push(missing.partition);
                failure.keys += missing.keys;
            } else {
                failures.push(Failure {
                    partitions: vec![missing.partition],
                    keys: missing.keys,
                    code,
                    tried: missing.tried.clone(),
                });
            }
        }
        failures
    }

    /// The number of missing keys.
    pub fn missing_keys(&self) -> u32 {
        self.missing.iter().map(|missing| missing.keys).sum()
    }
}
