//! The status of a rebalance, as users see it.

use super::document::{node_document, pair_document, parts_of};
use kith_cluster::metadata::records::other_release;
use kith_routing::rebalance::{
    Phase, PlanStep, Progress, RebalanceEnding, RebalanceParts, RebalancePlan, StopReason, TransferState,
};
use kith_wire::{
    documents::{ProgressDocument, RebalanceDocument, RebalanceStatusDocument},
    v1,
};
use tonic::Status;

/// Returns the status of a plan that has not begun.
pub(super) fn planned(plan: &RebalancePlan, who: &str) -> v1::RebalanceReply {
    let progress = Progress {
        batches: plan.batches.len(),
        moves: plan.moves().count(),
        bytes: plan.bytes(),
        ..Progress::default()
    };
    let mut status = of_plan(plan, progress);
    status.who = who.to_owned();
    reply(&status, plan)
}

/// Returns the status of a recorded rebalance.
///
/// # Errors
/// If the record was written by another release.
pub(super) fn recorded(document: &RebalanceDocument) -> Result<v1::RebalanceReply, Status> {
    let parts = parts_of(document).map_err(|error| other_release(error.to_string()))?;
    let mut status = of_plan(&parts.plan, progress(&parts));
    let (state, reason) = match &parts.phase {
        Phase::Stopped(_) if parts.abort_asked => ("aborting", None),
        Phase::Stopped(reason) => ("stopped", Some(reason_text(reason, &document.last_failure))),
        Phase::Ended(RebalanceEnding::Finished) => ("finished", None),
        Phase::Ended(RebalanceEnding::Aborted) => ("aborted", None),
        Phase::Undoing => ("aborting", None),
        Phase::Working | Phase::Committing if parts.abort_asked => ("aborting", None),
        Phase::Working | Phase::Committing => ("working", None),
    };
    status.id = Some(document.id.clone());
    state.clone_into(&mut status.state);
    status.reason = reason;
    status.who.clone_from(&document.who);
    status.driver = Some(document.driver.clone());
    status.epoch = parts.table.epoch.0;
    Ok(reply(&status, &parts.plan))
}

/// Returns why the rebalance is stopped. The error of the last failed copy is included, because it is often what has to be
/// repaired.
fn reason_text(reason: &StopReason, last_failure: &str) -> String {
    let is_of_copies = !matches!(reason, StopReason::TableChanged { .. });
    match last_failure {
        said if is_of_copies && !said.is_empty() => format!("{reason}; the last copy that failed, {said}"),
        _ => reason.to_string(),
    }
}

fn of_plan(plan: &RebalancePlan, progress: Progress) -> RebalanceStatusDocument {
    let Progress { batches_done, batches, moves_done, moves, bytes_done, bytes, reclaims_left } = progress;
    RebalanceStatusDocument {
        id: None,
        shape: plan.shape.to_string(),
        state: "planned".to_owned(),
        reason: None,
        who: String::new(),
        driver: None,
        epoch: plan.before.epoch.0,
        progress: ProgressDocument {
            batches_done,
            batches,
            moves_done,
            moves,
            bytes_done,
            bytes,
            reclaims_left,
        },
        overhead: plan.nodes.iter().map(|node| node.overhead()).fold(1.0, f64::max),
        pairs: plan.pairs.iter().map(pair_document).collect(),
        nodes: plan.nodes.iter().map(node_document).collect(),
    }
}

/// Counts the batches whose step is done, and the finished copies of the current batch.
fn progress(parts: &RebalanceParts) -> Progress {
    let plan = &parts.plan;
    let steps = plan.steps();
    let done = steps.iter().take(parts.steps_done).filter(|step| matches!(step, PlanStep::Batch(_))).count();
    let copied = parts.transfers.iter().filter(|transfer| transfer.state == TransferState::Copied);
    let copies = || {
        let finished = plan.batches.iter().take(done).flat_map(|batch| &batch.moves);
        finished.chain(copied.clone().map(|transfer| &transfer.copy))
    };
    let moves = plan.moves().count();
    Progress {
        batches_done: done,
        batches: plan.batches.len(),
        moves_done: copies().count().min(moves),
        moves,
        bytes_done: copies().map(kith_routing::rebalance::Move::bytes).sum(),
        bytes: plan.bytes(),
        reclaims_left: parts.reclaims.len(),
    }
}

fn reply(status: &RebalanceStatusDocument, plan: &RebalancePlan) -> v1::RebalanceReply {
    let json = serde_json::to_vec(status).expect("a status holds only strings, numbers and lists");
    v1::RebalanceReply { status: json.into(), text: plan.to_string() }
}
