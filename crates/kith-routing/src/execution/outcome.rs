//! How a fan-out ended: every key accounted for.

use crate::execution::{FailureClass, HedgeCounts};
use kith_types::{ErrorCode, NodeId, PartitionId};
use std::fmt;

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every key is answered, or enough are to settle the query.
    Complete,
    /// Some keys are missing, and the caller takes a partial answer.
    Incomplete,
    /// Some keys are missing, and the caller does not.
    Failed,
    /// The caller went away.
    Cancelled,
}

/// Why keys have no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingReason {
    /// Nobody could be asked.
    NoReplica,
    /// Time ran out before an answer came.
    Deadline,
    /// The last node asked failed so, and no other could be asked.
    Failed(FailureClass),
}

impl MissingReason {
    /// The code for it in a stream's footer: the code with which a whole read would fail for the same reason.
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
pub struct Missing {
    /// The partition.
    pub partition: PartitionId,
    /// How many of the query's keys.
    pub keys: u32,
    /// Why the first of them has no answer.
    pub reason: MissingReason,
    /// The nodes that were asked for it and failed, in order.
    pub tried: Vec<NodeId>,
}

/// Keys that failed alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Their partitions, ascending, distinct.
    pub partitions: Vec<PartitionId>,
    /// How many.
    pub keys: u32,
    /// Why: [`MissingReason::code`].
    pub code: ErrorCode,
    /// The nodes that were asked, in order. More than one: it was tried again.
    pub tried: Vec<NodeId>,
}

/// How a fan-out ended. `answered + missing_keys() + abandoned == keys`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The end in one word.
    pub verdict: Verdict,
    /// Keys of the query.
    pub keys: u32,
    /// Keys with an answer.
    pub answered: u32,
    /// Keys without one, by partition, ascending.
    pub missing: Vec<Missing>,
    /// Keys that were no longer needed when it ended.
    pub abandoned: u32,
    /// Requests sent.
    pub requests: u32,
    /// Requests among them that repeat keys of a failed one.
    pub retries: u32,
    /// What was asked twice because it was late.
    pub hedges: HedgeCounts,
    /// Whether it ended because the answers settled the query.
    pub stopped_early: bool,
}

impl Outcome {
    /// What is missing, by what went wrong: one entry per reason and nodes asked. O(partitions × entries).
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

    /// How many keys have no answer although one was needed.
    pub fn missing_keys(&self) -> u32 {
        self.missing.iter().map(|missing| missing.keys).sum()
    }
}
