//! Conversion of a rebalance to its metadata document and back. The stored types are in `kith_wire::documents`.

mod plan;

pub(super) use plan::{node_document, pair_document, plan_document};

use kith_routing::rebalance::{
    Phase, RebalanceEnding, RebalanceParts, Reclaim, StopReason, Transfer, TransferState,
};
use kith_routing::{RoutingTable, TableError, TableParts};
use kith_topology::{BadTable, cluster_document, table_parts};
use kith_types::{Epoch, NodeId, PartitionId, Timestamp};
use kith_wire::documents::{
    ClusterDocument, PhaseDocument, RebalanceDocument, ReclaimDocument, StopDocument, TransferDocument,
};
use plan::{move_document, move_of, plan_of};
use std::time::Duration;
use thiserror::Error;

/// The reason why a stored rebalance cannot be read.
#[derive(Debug, Error)]
pub(super) enum BadRecord {
    /// A routing table in it is invalid.
    #[error(transparent)]
    Table(#[from] BadTable),
    /// The parts of a routing table contradict each other.
    #[error(transparent)]
    Parts(#[from] TableError),
    /// The state of a copy is unknown to this release.
    #[error("unknown state of a copy {0:?}")]
    State(String),
}

const STATES: [(TransferState, &str); 4] = [
    (TransferState::Pending, "pending"),
    (TransferState::Running, "running"),
    (TransferState::Copied, "copied"),
    (TransferState::Replaced, "replaced"),
];

/// Returns the parts of the cluster's table in the form that a table returns them, so that they can be compared.
pub(super) fn settled(cluster: &ClusterDocument) -> Result<TableParts, BadRecord> {
    Ok(RoutingTable::new(table_parts(cluster)?)?.to_parts())
}

/// Writes the state into the document. `cluster` has the facts that a table does not have.
pub(super) fn record(document: &mut RebalanceDocument, parts: &RebalanceParts, cluster: &ClusterDocument) {
    document.plan = plan_document(&parts.plan, cluster);
    document.steps_done = parts.steps_done;
    document.first_uncommitted = parts.first_uncommitted;
    document.table = cluster_document(&parts.table, cluster);
    document.phase = phase_document(&parts.phase);
    document.abort_asked = parts.abort_asked;
    document.transfers = parts.transfers.iter().map(transfer_document).collect();
    document.reclaims = parts.reclaims.iter().map(reclaim_document).collect();
}

/// Returns the state that the document holds.
///
/// # Errors
/// [`BadRecord`].
pub(super) fn parts_of(document: &RebalanceDocument) -> Result<RebalanceParts, BadRecord> {
    Ok(RebalanceParts {
        plan: plan_of(&document.plan)?,
        grace: Duration::from_millis(document.grace_ms),
        steps_done: document.steps_done,
        first_uncommitted: document.first_uncommitted,
        table: settled(&document.table)?,
        phase: phase_of(&document.phase),
        abort_asked: document.abort_asked,
        transfers: document.transfers.iter().map(transfer_of).collect::<Result<_, _>>()?,
        reclaims: document.reclaims.iter().map(reclaim_of).collect(),
    })
}

fn phase_document(phase: &Phase) -> PhaseDocument {
    match phase {
        Phase::Working => PhaseDocument::Working,
        Phase::Committing => PhaseDocument::Committing,
        Phase::Stopped(reason) => PhaseDocument::Stopped { reason: stop_document(reason) },
        Phase::Undoing => PhaseDocument::Undoing,
        Phase::Ended(RebalanceEnding::Finished) => PhaseDocument::Finished,
        Phase::Ended(RebalanceEnding::Aborted) => PhaseDocument::Aborted,
    }
}

fn phase_of(document: &PhaseDocument) -> Phase {
    match document {
        PhaseDocument::Working => Phase::Working,
        PhaseDocument::Committing => Phase::Committing,
        PhaseDocument::Stopped { reason } => Phase::Stopped(stop_of(reason)),
        PhaseDocument::Undoing => Phase::Undoing,
        PhaseDocument::Finished => Phase::Ended(RebalanceEnding::Finished),
        PhaseDocument::Aborted => Phase::Ended(RebalanceEnding::Aborted),
    }
}

fn stop_document(reason: &StopReason) -> StopDocument {
    match reason {
        StopReason::StealerDown { node } => StopDocument::StealerDown { node: node.0 },
        StopReason::StealerFailed { node, partition } => {
            StopDocument::StealerFailed { node: node.0, partition: partition.0 }
        }
        StopReason::NoDonor { partition, stealer } => {
            StopDocument::NoDonor { partition: partition.0, stealer: stealer.0 }
        }
        StopReason::CopyFailed { partition, donor, stealer } => {
            StopDocument::CopyFailed { partition: partition.0, donor: donor.0, stealer: stealer.0 }
        }
        StopReason::TableChanged { in_force } => StopDocument::TableChanged { in_force: in_force.0 },
        other => unreachable!("a reason to stop that is not stored: {other}"),
    }
}

fn stop_of(document: &StopDocument) -> StopReason {
    match *document {
        StopDocument::StealerDown { node } => StopReason::StealerDown { node: NodeId(node) },
        StopDocument::StealerFailed { node, partition } => {
            StopReason::StealerFailed { node: NodeId(node), partition: PartitionId(partition) }
        }
        StopDocument::NoDonor { partition, stealer } => {
            StopReason::NoDonor { partition: PartitionId(partition), stealer: NodeId(stealer) }
        }
        StopDocument::CopyFailed { partition, donor, stealer } => StopReason::CopyFailed {
            partition: PartitionId(partition),
            donor: NodeId(donor),
            stealer: NodeId(stealer),
        },
        StopDocument::TableChanged { in_force } => StopReason::TableChanged { in_force: Epoch(in_force) },
    }
}

fn transfer_document(transfer: &Transfer) -> TransferDocument {
    let state = STATES.iter().find(|(state, _)| *state == transfer.state).map_or("pending", |(_, name)| name);
    TransferDocument {
        copy: move_document(&transfer.copy),
        state: state.to_owned(),
        failures: transfer.failures,
        avoid: transfer.avoid.iter().map(|node| node.0).collect(),
    }
}

fn transfer_of(document: &TransferDocument) -> Result<Transfer, BadRecord> {
    let state = STATES.iter().find(|(_, name)| *name == document.state).map(|(state, _)| *state);
    Ok(Transfer {
        copy: move_of(&document.copy),
        state: state.ok_or_else(|| BadRecord::State(document.state.clone()))?,
        failures: document.failures,
        avoid: document.avoid.iter().copied().map(NodeId).collect(),
    })
}

/// The time at which the partition may be freed is not stored, because the clock of another process has no meaning here.
fn reclaim_document(reclaim: &Reclaim) -> ReclaimDocument {
    ReclaimDocument {
        node: reclaim.node.0,
        partition: reclaim.partition.0,
        stores: reclaim.stores.clone(),
        gone_since: reclaim.gone_since.0,
    }
}

fn reclaim_of(document: &ReclaimDocument) -> Reclaim {
    Reclaim {
        node: NodeId(document.node),
        partition: PartitionId(document.partition),
        stores: document.stores.clone(),
        gone_since: Epoch(document.gone_since),
        ready_at: Timestamp::ZERO,
        is_requested: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_routing::rebalance::{
        Conditions, PlanOptions, RebalanceAction, RebalanceEvent, RebalanceState, StoreSizes, TargetShape,
        plan,
    };
    use kith_routing::{NodeEntry, placement::uniform_table};
    use kith_types::{GroupId, PartitionCount};
    use kith_wire::documents::{DOCUMENT_FORMAT, Document};

    fn bare() -> ClusterDocument {
        ClusterDocument {
            format: DOCUMENT_FORMAT,
            cluster_id: "c".into(),
            epoch: 1,
            partitions: 24,
            groups: vec![],
            object_store: "o".into(),
            strategy: String::new(),
            listed: vec![],
            partition_epochs: vec![],
        }
    }

    fn begun_document(state: &RebalanceState, table: &ClusterDocument) -> RebalanceDocument {
        RebalanceDocument {
            format: DOCUMENT_FORMAT,
            id: "r".into(),
            who: "ada".into(),
            since: 1,
            driver: "router 0".into(),
            fence: 1,
            grace_ms: 0,
            bytes_per_second: 0,
            plan: plan_document(&state.parts().plan, table),
            steps_done: 0,
            first_uncommitted: 0,
            table: table.clone(),
            phase: PhaseDocument::Working,
            abort_asked: false,
            transfers: vec![],
            reclaims: vec![],
            last_failure: String::new(),
        }
    }

    /// Every state that an execution passes through can be read back from its document and continued.
    #[test]
    fn every_state_of_an_execution_comes_back_from_its_record() {
        let table = uniform_table(2, 3, PartitionCount::new(24).unwrap(), 7).unwrap();
        let bare = bare();
        let node =
            |id: u32, group: u32| NodeEntry { id: NodeId(id), group: GroupId(group), ..NodeEntry::default() };
        let sizes = StoreSizes { name: "people".into(), bytes: vec![10; 24], ..StoreSizes::default() };
        for shape in [
            TargetShape::AddNodes(vec![node(6, 0), node(7, 1)]),
            TargetShape::RemoveNodes(vec![NodeId(1)]),
            TargetShape::ReplaceNode { old: NodeId(4), new: node(8, 1) },
            TargetShape::AddGroup { group: GroupId(2), nodes: vec![node(9, 2)] },
            TargetShape::DrainGroup(GroupId(1)),
            TargetShape::RemoveGroup(GroupId(1)),
        ] {
            let options = PlanOptions { batch_size: 3, ..PlanOptions::default() };
            // Only a group that is taken out can be removed.
            let table = match shape {
                TargetShape::RemoveGroup(group) => {
                    let drained = plan(&table, &TargetShape::DrainGroup(group), &[], &options).unwrap();
                    drained.check().unwrap()
                }
                _ => table.clone(),
            };
            let plan = plan(&table, &shape, std::slice::from_ref(&sizes), &options).unwrap();
            let begun = RebalanceState::begin(plan, Duration::ZERO, &table, &Conditions::default());
            let (mut state, mut in_force) = (begun.unwrap(), table.clone());
            let mut document = begun_document(&state, &bare);
            for _ in 0..1_000 {
                let actions = state.next(Timestamp::ZERO);
                record(&mut document, state.parts(), &bare);
                let read = RebalanceDocument::decode(&document.encode()).unwrap();
                let parts = parts_of(&read).unwrap();
                let mut expected = state.parts().clone();
                for reclaim in &mut expected.reclaims {
                    (reclaim.is_requested, reclaim.ready_at) = (false, Timestamp::ZERO);
                }
                assert_eq!(parts, expected, "{shape}");
                RebalanceState::resume(parts, &in_force, Timestamp::ZERO).unwrap();
                if state.is_settled() {
                    break;
                }
                for action in actions {
                    let event = match action {
                        RebalanceAction::Copy(index) => RebalanceEvent::Copied(index),
                        RebalanceAction::Commit(parts) => {
                            in_force = RoutingTable::new(*parts).unwrap();
                            RebalanceEvent::Committed
                        }
                        RebalanceAction::Reclaim(node, partition, stores) => {
                            RebalanceEvent::Reclaimed(node, partition, stores)
                        }
                        _ => RebalanceEvent::InUse(in_force.epoch()),
                    };
                    state.on(event, Timestamp::ZERO);
                }
                state.on(RebalanceEvent::InUse(in_force.epoch()), Timestamp::ZERO);
            }
            assert!(state.is_settled(), "{shape}: {:?}", state.phase());
        }
    }
}
