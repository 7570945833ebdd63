//! What a node's failure means for retries, and what a failed fan-out tells the caller.

use crate::topology::Pinned;
use kith_api::QueryError;
use kith_routing::execution::{FailureClass, MissingReason, Outcome};
use kith_types::{Epoch, ErrorCode, PartitionId, StoreVersion};
use tonic::Status;

/// What a status means for retries: the node's own code where it gave one.
pub(super) fn class_of(status: &Status, version: u64) -> FailureClass {
    let detail = kith_wire::detail_of(status);
    FailureClass::of(ErrorCode::of_name(&detail.code), StoreVersion(version), Epoch(detail.epoch))
}

/// What a failed fan-out tells the caller. `said` is what nodes said, oldest first; `is_lost` tells whether no
/// replica of a partition seems to be up.
pub(super) fn query_error(
    outcome: &Outcome,
    pinned: &Pinned,
    deadline_ms: u64,
    said: &[String],
    is_lost: &dyn Fn(PartitionId) -> bool,
) -> QueryError {
    let Some(first) = outcome.missing.first() else {
        return QueryError::Internal { detail: "a fan-out failed without a reason".to_owned() };
    };
    let is_late = |reason: &MissingReason| {
        matches!(reason, MissingReason::Deadline | MissingReason::Failed(FailureClass::DeadlineExceeded))
    };
    if outcome.missing.iter().any(|missing| is_late(&missing.reason)) {
        let lost = outcome.missing.iter().map(|missing| missing.partition).filter(|p| is_lost(*p));
        let partitions: Vec<u32> = lost.map(|partition| partition.0).collect();
        if partitions.is_empty() {
            return QueryError::DeadlineExceeded { deadline_ms };
        }
        // More time would not help.
        let reason = format!("none answered within {deadline_ms} ms, and none seems to be up");
        return QueryError::PartitionsUnavailable { partitions, reason };
    }
    let lacks_version = |reason: &MissingReason| {
        let stale = FailureClass::VersionUnavailable { version: StoreVersion(pinned.version) };
        matches!(reason, MissingReason::Failed(class) if *class == stale)
            || matches!(reason, MissingReason::Failed(FailureClass::NotOwner { .. }))
    };
    // The query then starts anew, on the version that the nodes have and at the nodes that own the partitions.
    if outcome.missing.iter().any(|missing| lacks_version(&missing.reason)) {
        return QueryError::VersionUnavailable {
            what: pinned.what,
            name: pinned.name.clone(),
            version: pinned.version,
        };
    }
    let detail = said.last().cloned().unwrap_or_else(|| first.reason.to_string());
    match first.reason {
        MissingReason::Failed(FailureClass::Overloaded) => QueryError::Overloaded { detail },
        MissingReason::Failed(FailureClass::Unsupported) => QueryError::Unsupported { detail },
        MissingReason::Failed(FailureClass::BadRequest) => QueryError::BadRequest { detail },
        MissingReason::Failed(FailureClass::Damaged) if pinned.what == "store" => {
            QueryError::Damaged { store: pinned.name.clone(), detail }
        }
        _ => QueryError::PartitionsUnavailable {
            partitions: outcome.missing.iter().map(|missing| missing.partition.0).collect(),
            reason: detail,
        },
    }
}
