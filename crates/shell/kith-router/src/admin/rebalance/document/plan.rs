//! Conversion of a rebalance plan to its document and back.

use super::{BadRecord, settled};
use kith_routing::rebalance::{
    AddedGroup, Batch, Move, MovedStore, NodeTotals, PairTotals, RebalancePlan, Roster, StoreSizes,
    TargetShape,
};
use kith_routing::{GroupEntry, GroupIndex, placement::OwnerChange};
use kith_topology::{BadTable, cluster_document, listed_document, listed_entry, role_of_group, role_text};
use kith_types::{GroupId, NodeId, PartitionId};
use kith_wire::documents::{
    AddedGroupDocument, BatchDocument, ClusterDocument, MoveDocument, NodeTotalsDocument, PairTotalsDocument,
    PlanDocument, RosterDocument, ShapeDocument, SizedStoreDocument,
};

pub(in crate::admin::rebalance) fn plan_document(
    plan: &RebalancePlan,
    cluster: &ClusterDocument,
) -> PlanDocument {
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

pub(super) fn plan_of(document: &PlanDocument) -> Result<RebalancePlan, BadRecord> {
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
        Ok::<_, BadTable>(GroupEntry { id: GroupId(*id), role: role_of_group(role)? })
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

pub(super) fn move_document(copy: &Move) -> MoveDocument {
    MoveDocument {
        partition: copy.partition.0,
        group: copy.group.0,
        donor: copy.donor.0,
        stealer: copy.stealer.0,
        secondary: copy.is_secondary,
        stores: copy.stores.iter().map(|store| (store.store, store.bytes)).collect(),
    }
}

pub(super) fn move_of(document: &MoveDocument) -> Move {
    Move {
        partition: PartitionId(document.partition),
        group: GroupId(document.group),
        donor: NodeId(document.donor),
        stealer: NodeId(document.stealer),
        is_secondary: document.secondary,
        stores: document.stores.iter().map(|&(store, bytes)| MovedStore { store, bytes }).collect(),
    }
}

pub(in crate::admin::rebalance) fn pair_document(pair: &PairTotals) -> PairTotalsDocument {
    let PairTotals { donor, stealer, moves, secondary_moves, bytes } = *pair;
    PairTotalsDocument { donor: donor.0, stealer: stealer.0, moves, secondary_moves, bytes }
}

fn pair_of(document: &PairTotalsDocument) -> PairTotals {
    let PairTotalsDocument { donor, stealer, moves, secondary_moves, bytes } = *document;
    PairTotals { donor: NodeId(donor), stealer: NodeId(stealer), moves, secondary_moves, bytes }
}

pub(in crate::admin::rebalance) fn node_document(totals: &NodeTotals) -> NodeTotalsDocument {
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
        TargetShape::RemoveGroup(group) => ShapeDocument::RemoveGroup { group: group.0 },
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
        ShapeDocument::RemoveGroup { group } => TargetShape::RemoveGroup(GroupId(*group)),
        ShapeDocument::RestoreGroup { group } => TargetShape::RestoreGroup(GroupId(*group)),
        ShapeDocument::Even => TargetShape::Even,
    }
}
