//! Checks which replicas of each store remain when a group stops serving.
//!
//! No other group takes over the group's partitions, because that would move data for a change of role that is soon
//! reverted, and then move it back. Instead, a group cannot stop serving if a store needs it.

use crate::rebalance::{PlanRefusal, StoreSizes};
use crate::{GroupIndex, GroupRole, RoutingTable, TableParts};
use kith_types::{GroupId, PartitionId};

/// Checks that every served store can still be read without a group. Replicas that a store lacks even with
/// the group are no reason to refuse. O(stores × partitions × groups) if nodes lack versions.
///
/// # Errors
/// The first store that needs the group.
pub(crate) fn check_stores_outlive(
    table: &RoutingTable,
    group: GroupId,
    stores: &[StoreSizes],
) -> Result<(), PlanRefusal> {
    let serving = |index: &GroupIndex| table.groups()[index.index()].role == GroupRole::Serving;
    let groups = (0..table.groups().len() as u32).map(GroupIndex);
    let serving: Vec<GroupIndex> = groups.filter(serving).collect();
    if serving.len() <= 1 {
        return Ok(());
    }
    for store in stores {
        let held = table.groups_of_store(&store.name, store.replication);
        let of_store: Vec<GroupIndex> =
            serving.iter().copied().filter(|index| held >> index.0 & 1 == 1).collect();
        let (its, rest): (Vec<_>, Vec<_>) =
            of_store.into_iter().partition(|index| table.groups()[index.index()].id == group);
        if !its.is_empty() {
            check_rest(table, group, store, &rest)?;
        }
    }
    Ok(())
}

/// Checks that each store can still give as many agreeing answers as it requires when a group is gone for good.
///
/// # Errors
/// The first store that cannot, and could before.
pub(crate) fn check_answers_remain(
    parts: &TableParts,
    group: GroupId,
    stores: &[StoreSizes],
) -> Result<(), PlanRefusal> {
    let groups = parts.groups.iter().filter(|entry| entry.role != GroupRole::Joining).count();
    for store in stores {
        let copies = |groups: usize| store.replication.map_or(groups, |copies| groups.min(copies as usize));
        let (required, left) = (store.required_reads.max(1) as usize, copies(groups.saturating_sub(1)));
        if left < required && required <= copies(groups) {
            return Err(PlanRefusal::AnswersMissing { store: store.name.clone(), group, left, required });
        }
    }
    Ok(())
}

fn check_rest(
    table: &RoutingTable,
    group: GroupId,
    store: &StoreSizes,
    rest: &[GroupIndex],
) -> Result<(), PlanRefusal> {
    let required = store.required_reads.max(1) as usize;
    if rest.is_empty() {
        return Err(PlanRefusal::StoreOnlyThere { store: store.name.clone(), group });
    }
    if rest.len() + 1 == required {
        let (store, left) = (store.name.clone(), rest.len());
        return Err(PlanRefusal::AnswersMissing { store, group, left, required });
    }
    if store.excluded.is_empty() {
        return Ok(());
    }
    let lacks = |partition: &PartitionId| {
        let nodes = rest.iter().map(|index| table.node_at(table.replicas(*partition)[index.index()]).id);
        nodes.filter(|node| !store.excluded.contains(node)).count() < required.min(rest.len())
    };
    match table.partition_count().iter().find(lacks) {
        Some(partition) => Err(PlanRefusal::StoreBehind { store: store.name.clone(), group, partition }),
        None => Ok(()),
    }
}
