//! A rebalance in the metadata, and back: what is stored is data of its own (`kith_wire::documents`).

use kith_api::topology::{
    BadTopology, cluster_document, listed_document, listed_entry, role_of_group, role_text, table_parts,
};
use kith_rebalance::{
    AddedGroup, Batch, Ending, Move, MovedStore, NodeTotals, PairTotals, Phase, RebalanceParts,
    RebalancePlan, Reclaim, Roster, StopReason, StoreSizes, TargetShape, Transfer, TransferState,
};
use kith_routing::{GroupEntry, GroupIndex, RoutingTable, TableError, TableParts, placement::OwnerChange};
use kith_types::{Epoch, GroupId, NodeId, PartitionId, Timestamp};
use kith_wire::documents::{
    AddedGroupDocument, BatchDocument, ClusterDocument, MoveDocument, NodeTotalsDocument, PairTotalsDocument,
    PhaseDocument, PlanDocument, RebalanceDocument, ReclaimDocument, RosterDocument, ShapeDocument,
    SizedStoreDocument, StopDocument, TransferDocument,
};
use std::time::Duration;
use thiserror::Error;

/// A stored rebalance cannot be read.
#[derive(Debug, Error)]
pub(super) enum BadRecord {
    /// A table in it makes no sense.
    #[error(transparent)]
    Topology(#[from] BadTopology),
    /// It contradicts itself.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A copy stands as no release says.
    #[error("unknown state of a copy {0:?}")]
    State(String),
}

const STATES: [(TransferState, &str); 4] = [
    (TransferState::Pending, "pending"),
    (TransferState::Running, "running"),
    (TransferState::Copied, "copied"),
    (TransferState::Replaced, "replaced"),
];

/// As a table hands it out, so that parts can be compared.
pub(super) fn settled(cluster: &ClusterDocument) -> Result<TableParts, BadRecord> {
    Ok(RoutingTable::new(table_parts(cluster)?)?.to_parts())
}

/// Puts the state into a record; `cluster` says what a table does not.
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

/// The state of a record.
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

pub(super) fn plan_document(plan: &RebalancePlan, cluster: &ClusterDocument) -> PlanDocument {
    let store = |store: &StoreSizes| SizedStoreDocument {
        name: store.name.clone(),
        replication: store.replication,
        required_reads: store.required_reads,
        excluded: store.excluded.iter().map(|node| node.0).collect(),
    };
    PlanDocument {
        shape: shape_document(&plan.shape),
        before: cluster_document(&plan.before, cluster),
        announced: roster_document(&plan.announced),
        closing: roster_document(&plan.closing),
        added: plan.added.as_ref().map(|added| AddedGroupDocument {
            group: added.group.0,
            owners: added.owners.iter().map(|node| node.0).collect(),
        }),
        batches: plan.batches.iter().map(batch_document).collect(),
        stores: plan.stores.iter().map(store).collect(),
        pairs: plan.pairs.iter().map(pair_document).collect(),
        nodes: plan.nodes.iter().map(node_document).collect(),
    }
}

fn plan_of(document: &PlanDocument) -> Result<RebalancePlan, BadRecord> {
    let store = |store: &SizedStoreDocument| StoreSizes {
        name: store.name.clone(),
        replication: store.replication,
        required_reads: store.required_reads,
        bytes: Vec::new(),
        excluded: store.excluded.iter().copied().map(NodeId).collect(),
    };
    Ok(RebalancePlan {
        shape: shape_of(&document.shape),
        before: settled(&document.before)?,
        announced: roster_of(&document.announced)?,
        closing: roster_of(&document.closing)?,
        added: document.added.as_ref().map(|added| AddedGroup {
            group: GroupId(added.group),
            owners: added.owners.iter().copied().map(NodeId).collect(),
        }),
        batches: document.batches.iter().map(batch_of).collect(),
        stores: document.stores.iter().map(store).collect(),
        pairs: document.pairs.iter().map(pair_of).collect(),
        nodes: document.nodes.iter().map(node_of).collect(),
    })
}

fn roster_document(roster: &Roster) -> RosterDocument {
    RosterDocument {
        groups: roster.groups.iter().map(|group| (group.id.0, role_text(group.role).to_owned())).collect(),
        nodes: roster.nodes.iter().map(listed_document).collect(),
    }
}

fn roster_of(document: &RosterDocument) -> Result<Roster, BadRecord> {
    let group = |(id, role): &(u32, String)| {
        Ok::<_, BadTopology>(GroupEntry { id: GroupId(*id), role: role_of_group(role)? })
    };
    Ok(Roster {
        groups: document.groups.iter().map(group).collect::<Result<_, _>>()?,
        nodes: document.nodes.iter().map(listed_entry).collect(),
    })
}

fn batch_document(batch: &Batch) -> BatchDocument {
    BatchDocument {
        moves: batch.moves.iter().map(move_document).collect(),
        changes: batch.changes.iter().map(|it| (it.group.0, it.partition.0, it.node.0)).collect(),
    }
}

fn batch_of(document: &BatchDocument) -> Batch {
    let change = |&(group, partition, node): &(u32, u32, u32)| OwnerChange {
        group: GroupIndex(group),
        partition: PartitionId(partition),
        node: NodeId(node),
    };
    Batch {
        moves: document.moves.iter().map(move_of).collect(),
        changes: document.changes.iter().map(change).collect(),
    }
}

fn move_document(copy: &Move) -> MoveDocument {
    MoveDocument {
        partition: copy.partition.0,
        group: copy.group.0,
        donor: copy.donor.0,
        stealer: copy.stealer.0,
        secondary: copy.is_secondary,
        stores: copy.stores.iter().map(|store| (store.store, store.bytes)).collect(),
    }
}

fn move_of(document: &MoveDocument) -> Move {
    Move {
        partition: PartitionId(document.partition),
        group: GroupId(document.group),
        donor: NodeId(document.donor),
        stealer: NodeId(document.stealer),
        is_secondary: document.secondary,
        stores: document.stores.iter().map(|&(store, bytes)| MovedStore { store, bytes }).collect(),
    }
}

pub(super) fn pair_document(pair: &PairTotals) -> PairTotalsDocument {
    let PairTotals { donor, stealer, moves, secondary_moves, bytes } = *pair;
    PairTotalsDocument { donor: donor.0, stealer: stealer.0, moves, secondary_moves, bytes }
}

fn pair_of(document: &PairTotalsDocument) -> PairTotals {
    let PairTotalsDocument { donor, stealer, moves, secondary_moves, bytes } = *document;
    PairTotals { donor: NodeId(donor), stealer: NodeId(stealer), moves, secondary_moves, bytes }
}

pub(super) fn node_document(totals: &NodeTotals) -> NodeTotalsDocument {
    NodeTotalsDocument {
        node: totals.node.0,
        group: totals.group.0,
        partitions_before: totals.partitions_before,
        partitions_after: totals.partitions_after,
        bytes_before: totals.bytes_before,
        bytes_after: totals.bytes_after,
        bytes_in: totals.bytes_in,
    }
}

fn node_of(document: &NodeTotalsDocument) -> NodeTotals {
    NodeTotals {
        node: NodeId(document.node),
        group: GroupId(document.group),
        partitions_before: document.partitions_before,
        partitions_after: document.partitions_after,
        bytes_before: document.bytes_before,
        bytes_after: document.bytes_after,
        bytes_in: document.bytes_in,
    }
}

fn shape_document(shape: &TargetShape) -> ShapeDocument {
    let ids = |nodes: &[NodeId]| nodes.iter().map(|node| node.0).collect();
    match shape {
        TargetShape::AddNodes(nodes) => {
            ShapeDocument::AddNodes { nodes: nodes.iter().map(listed_document).collect() }
        }
        TargetShape::RemoveNodes(nodes) => ShapeDocument::RemoveNodes { nodes: ids(nodes) },
        TargetShape::DrainNodes(nodes) => ShapeDocument::DrainNodes { nodes: ids(nodes) },
        TargetShape::ReplaceNode { old, new } => {
            ShapeDocument::ReplaceNode { old: old.0, new: listed_document(new) }
        }
        TargetShape::AddGroup { group, nodes } => {
            ShapeDocument::AddGroup { group: group.0, nodes: nodes.iter().map(listed_document).collect() }
        }
        TargetShape::DrainGroup(group) => ShapeDocument::DrainGroup { group: group.0 },
        TargetShape::RestoreGroup(group) => ShapeDocument::RestoreGroup { group: group.0 },
        TargetShape::Even => ShapeDocument::Even,
    }
}

fn shape_of(document: &ShapeDocument) -> TargetShape {
    let ids = |nodes: &[u32]| nodes.iter().copied().map(NodeId).collect();
    match document {
        ShapeDocument::AddNodes { nodes } => TargetShape::AddNodes(nodes.iter().map(listed_entry).collect()),
        ShapeDocument::RemoveNodes { nodes } => TargetShape::RemoveNodes(ids(nodes)),
        ShapeDocument::DrainNodes { nodes } => TargetShape::DrainNodes(ids(nodes)),
        ShapeDocument::ReplaceNode { old, new } => {
            TargetShape::ReplaceNode { old: NodeId(*old), new: listed_entry(new) }
        }
        ShapeDocument::AddGroup { group, nodes } => {
            TargetShape::AddGroup { group: GroupId(*group), nodes: nodes.iter().map(listed_entry).collect() }
        }
        ShapeDocument::DrainGroup { group } => TargetShape::DrainGroup(GroupId(*group)),
        ShapeDocument::RestoreGroup { group } => TargetShape::RestoreGroup(GroupId(*group)),
        ShapeDocument::Even => TargetShape::Even,
    }
}

fn phase_document(phase: &Phase) -> PhaseDocument {
    match phase {
        Phase::Working => PhaseDocument::Working,
        Phase::Committing => PhaseDocument::Committing,
        Phase::Stopped(reason) => PhaseDocument::Stopped { reason: stop_document(reason) },
        Phase::Undoing => PhaseDocument::Undoing,
        Phase::Ended(Ending::Finished) => PhaseDocument::Finished,
        Phase::Ended(Ending::Aborted) => PhaseDocument::Aborted,
    }
}

fn phase_of(document: &PhaseDocument) -> Phase {
    match document {
        PhaseDocument::Working => Phase::Working,
        PhaseDocument::Committing => Phase::Committing,
        PhaseDocument::Stopped { reason } => Phase::Stopped(stop_of(reason)),
        PhaseDocument::Undoing => Phase::Undoing,
        PhaseDocument::Finished => Phase::Ended(Ending::Finished),
        PhaseDocument::Aborted => Phase::Ended(Ending::Aborted),
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

/// When it may be freed is not stored: the clock of another process says nothing.
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
        told: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_rebalance::{Conditions, PlanOptions, RebalanceAction, RebalanceEvent, RebalanceState, plan};
    use kith_routing::{NodeEntry, placement::uniform_table};
    use kith_types::PartitionCount;
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

    /// Every state that an execution passes through comes back from its record, and goes on from there.
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
        ] {
            let options = PlanOptions { batch_size: 3, ..PlanOptions::default() };
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
                    (reclaim.told, reclaim.ready_at) = (false, Timestamp::ZERO);
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
