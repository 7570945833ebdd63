//! The errors that callers get when a rebalance is refused.

use kith_routing::rebalance::{BeginRefusal, PlanRefusal};
use kith_types::ErrorCode;
use kith_wire::documents::{PhaseDocument, RebalanceDocument, RunningDocument};
use tonic::Status;

/// The shape is impossible for this cluster.
pub(super) fn plan_status(refusal: &PlanRefusal) -> Status {
    let help = match refusal {
        PlanRefusal::NoDonor { .. } => {
            "start the node that has it (see `kith cluster status`), then plan again"
        }
        _ => "nothing has changed; `kith cluster status` shows groups and nodes",
    };
    kith_wire::status(ErrorCode::ShapeRefused, refusal.to_string(), help)
}

/// The request names a node, group or shape that does not exist.
pub(super) fn bad_shape(message: String, help: &str) -> Status {
    kith_wire::status(ErrorCode::BadShape, message, help)
}

/// A group that should serve reads again is behind the others.
pub(super) fn behind(group: u32, lack: String, help: &str) -> Status {
    let message = format!("group {group} cannot take reads yet: {lack}");
    kith_wire::status(ErrorCode::GroupBehind, message, help)
}

pub(super) fn begin_status(refusal: &BeginRefusal, settle: Status) -> Status {
    match refusal {
        BeginRefusal::NotSettled { .. } => settle,
        other => kith_wire::status(ErrorCode::ShapeRefused, other.to_string(), "plan again"),
    }
}

pub(super) fn not_settled(left: usize) -> Status {
    let message = format!("the last rebalance has {left} given-up partitions to free");
    let help = "wait until their grace has passed: `kith cluster rebalance --status` shows how many are left";
    kith_wire::status(ErrorCode::RebalanceNotSettled, message, help)
}

pub(super) fn push_running(store: &str, push: &RunningDocument) -> Status {
    let RunningDocument { push, version, who, .. } = push;
    let message = format!("{push} of store {store:?} is running: version {version}, by {who}");
    let help =
        format!("wait until {push} ends; if its router is gone, another router takes it back within seconds");
    kith_wire::status(ErrorCode::PushRunning, message, help)
}

pub(super) fn running(document: &RebalanceDocument) -> Status {
    let is_stopped = matches!(document.phase, PhaseDocument::Stopped { .. });
    let (state, help) = if is_stopped {
        (
            "has stopped and waits for an operator",
            "`kith cluster rebalance --status` shows why it stopped; continue it with --continue, or end it with --abort",
        )
    } else {
        ("is running", "wait until it ends, or end it with `kith cluster rebalance --abort`")
    };
    let message = format!("rebalance {} of {} {state}", document.id, document.who);
    kith_wire::status(ErrorCode::RebalanceRunning, message, help)
}

/// The rebalance stopped because another process changed the cluster.
pub(super) fn cannot_continue(document: &RebalanceDocument) -> Status {
    let message = format!(
        "rebalance {} cannot continue, because the cluster was changed by another process meanwhile",
        document.id
    );
    let help = "end it with `kith cluster rebalance --abort`, then plan the change again";
    kith_wire::status(ErrorCode::RebalanceStopped, message, help)
}

/// No router has read a user's command.
pub(super) fn not_heard(what: &str) -> Status {
    let message = format!("no router has carried out the command to {what} the rebalance yet");
    let help = "if it was stored, the router that runs the rebalance reads it as soon as it can; look at \
                `kith cluster rebalance --status`, and repeat the command if it has had no effect";
    kith_wire::status(ErrorCode::Unavailable, message, help)
}

pub(super) fn no_rebalance() -> Status {
    let help = "`kith cluster add-node`, `drain` and their like begin one";
    kith_wire::status(ErrorCode::NoRebalance, "no rebalance is under way", help)
}

pub(super) fn conflict() -> Status {
    let message = "the cluster kept changing meanwhile";
    kith_wire::status(ErrorCode::Conflict, message, "look at it again, then try again")
}
