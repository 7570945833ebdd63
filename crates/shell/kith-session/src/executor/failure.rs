//! Translates failures: a node's failure into a class for retries, and a failed fan-out into an error for the caller.

use kith_query::QueryError;
use kith_routing::execution::{FailureClass, MissingReason, Outcome};
use kith_topology::PinnedState;
use kith_types::{Epoch, ErrorCode, PartitionId, StoreVersion};
use tonic::Status;

/// Returns the failure class of a status, from the node's own error code if it has one.
pub(super) fn class_of(status: &Status, version: u64) -> FailureClass {
    let detail = kith_wire::detail_of(status);
    FailureClass::of(ErrorCode::of_name(&detail.code), StoreVersion(version), Epoch(detail.epoch))
}

/// Returns the caller's error for a failed fan-out. `said` holds the messages of nodes, oldest first; `is_lost` tells
/// whether all replicas of a partition seem to be down.
pub(super) fn query_error(
    outcome: &Outcome,
    pinned: &PinnedState,
    deadline_ms: u64,
    said: &[String],
    is_lost: &dyn Fn(PartitionId) -> bool,
) -> QueryError {
    let Some(first) = outcome.missing.first() else {
        return QueryError::Internal { detail: "a fan-out failed without a reason".to_owned() };
    };
    let any = |is: &dyn Fn(MissingReason) -> bool| outcome.missing.iter().any(|missing| is(missing.reason));
    if any(&is_late) {
        return late_error(outcome, deadline_ms, is_lost);
    }
    // The query then begins again, on the version that the nodes have and with the nodes that own the partitions.
    if any(&|reason| is_stale(reason, pinned.version())) {
        return QueryError::VersionUnavailable {
            what: pinned.what,
            name: pinned.name.clone(),
            version: pinned.version(),
        };
    }
    if any(&|reason| matches!(reason, MissingReason::Failed(FailureClass::OtherPosition))) {
        let reason = said.last().cloned().unwrap_or_default();
        return QueryError::OtherPosition { name: pinned.name.clone(), reason };
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

fn is_late(reason: MissingReason) -> bool {
    matches!(reason, MissingReason::Deadline | MissingReason::Failed(FailureClass::DeadlineExceeded))
}

/// Whether the node that was asked no longer has the version, or no longer owns the partition.
fn is_stale(reason: MissingReason, version: u64) -> bool {
    match reason {
        MissingReason::Failed(FailureClass::VersionUnavailable { version: lacked }) => lacked.0 == version,
        MissingReason::Failed(FailureClass::NotOwner { .. }) => true,
        _ => false,
    }
}

fn late_error(outcome: &Outcome, deadline_ms: u64, is_lost: &dyn Fn(PartitionId) -> bool) -> QueryError {
    let lost = outcome.missing.iter().map(|missing| missing.partition).filter(|p| is_lost(*p));
    let partitions: Vec<u32> = lost.map(|partition| partition.0).collect();
    if partitions.is_empty() {
        return QueryError::DeadlineExceeded { deadline_ms };
    }
    // A longer deadline would not help.
    let reason = format!("none answered within {deadline_ms} ms, and none seems to be up");
    QueryError::PartitionsUnavailable { partitions, reason }
}
