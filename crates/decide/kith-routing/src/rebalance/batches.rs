//! Divides owner changes into batches, and decides what is copied before each change of the table.

use crate::placement::OwnerChange;
use crate::rebalance::donors::{Donors, Need};
use crate::rebalance::holdings::Holdings;
use crate::rebalance::plan::touched;
use crate::rebalance::shape::Target;
use crate::rebalance::{Batch, Move, MovedStore, PlanOptions, PlanRefusal, PlanStep, RebalancePlan};
use crate::{GroupEntry, GroupIndex, GroupRole, Strategy, TableParts};
use kith_types::{GroupId, NodeId, PartitionId};
use std::collections::{BTreeMap, VecDeque};

/// Returns the batches that fill a new group. No owners change, so a batch is only what is copied between two checkpoints.
pub(crate) fn filling(plan: &RebalancePlan, options: &PlanOptions) -> Result<Vec<Batch>, PlanRefusal> {
    let (mut announced, mut closed) = (plan.before.clone(), plan.before.clone());
    plan.apply(PlanStep::Announce, &mut announced)?;
    plan.apply(PlanStep::Announce, &mut closed)?;
    plan.apply(PlanStep::Close, &mut closed)?;
    let (held, wanted) = (Holdings::of(&announced, &plan.stores), Holdings::of(&closed, &plan.stores));
    let mut donors = Donors::new(&plan.announced.nodes, &plan.stores, &options.dead);
    let partitions: Vec<PartitionId> = plan.before.partition_count.iter().collect();
    let batch = |partitions: &[PartitionId]| {
        let mut moves = Vec::new();
        for partition in partitions {
            for need in needs(plan, &closed.groups, &held, &wanted, *partition) {
                moves.extend(donors.moves(&need, &held, &[])?);
            }
        }
        Ok(Batch { moves, changes: Vec::new() })
    };
    partitions.chunks(options.batch_size).map(batch).collect()
}

/// Returns the batches before a group leaves. Stores that only some groups hold get another group in its place, which first
/// receives them. No owners change.
pub(crate) fn leaving(
    plan: &RebalancePlan,
    group: GroupId,
    options: &PlanOptions,
) -> Result<Vec<Batch>, PlanRefusal> {
    let mut without = plan.before.clone();
    // A group that joins holds nothing, so this is what the others will hold.
    let its = without.groups.iter_mut().filter(|entry| entry.id == group);
    its.for_each(|entry| entry.role = GroupRole::Joining);
    let (held, wanted) = (Holdings::of(&plan.before, &plan.stores), Holdings::of(&without, &plan.stores));
    let mut donors = Donors::new(&plan.announced.nodes, &plan.stores, &options.dead);
    let mut moves = Vec::new();
    for partition in plan.before.partition_count.iter() {
        for need in needs(plan, &plan.before.groups, &held, &wanted, partition) {
            moves.extend(donors.moves(&need, &held, &[])?);
        }
    }
    let batch = |moves: &[Move]| Batch { moves: moves.to_vec(), changes: Vec::new() };
    Ok(moves.chunks(options.batch_size).map(batch).collect())
}

/// Returns the batches that change owners.
pub(crate) fn changing(
    plan: &RebalancePlan,
    target: &Target,
    options: &PlanOptions,
) -> Result<Vec<Batch>, PlanRefusal> {
    let groups: Vec<GroupId> = plan.before.groups.iter().map(|group| group.id).collect();
    let placement = plan.before.strategy.placement(&groups);
    let changes = match target.replaced {
        Some((old, new)) => takeover(&plan.before, old, new),
        None if target.groups.is_empty() => Vec::new(),
        None => {
            let mut changes =
                placement.rebalance(&plan.before.owners, &plan.announced.nodes, options.seed)?;
            changes.retain(|change| target.groups.contains(&groups[change.group.index()]));
            changes
        }
    };
    let changes = interleaved(changes, &plan.before.owners);
    let mut donors = Donors::new(&plan.announced.nodes, &plan.stores, &options.dead);
    let frame = Holdings::of(&plan.before, &plan.stores);
    let mut owners = plan.before.owners.clone();
    let mut batches = Vec::new();
    for changes in changes.chunks(options.batch_size) {
        let next = placement.apply(&owners, changes)?;
        let (held, wanted) = (frame.with_owners(&owners), frame.with_owners(&next));
        let mut moves = Vec::new();
        for partition in touched(&owners, &next) {
            for need in needs(plan, &plan.before.groups, &held, &wanted, partition) {
                moves.extend(donors.moves(&need, &held, &[])?);
            }
        }
        batches.push(Batch { moves, changes: changes.to_vec() });
        owners = next;
    }
    Ok(batches)
}

/// Returns the changes by which one node takes over everything that another owns. On a ring these are the first replicas;
/// the others follow.
fn takeover(before: &TableParts, old: NodeId, new: NodeId) -> Vec<OwnerChange> {
    let ranks = if before.strategy == Strategy::Ring { 1 } else { before.owners.len() };
    let of_group = |(group, owners): (usize, &Vec<NodeId>)| {
        let owned = before.partition_count.iter().filter(|partition| owners[partition.index()] == old);
        let change = |partition| OwnerChange { group: GroupIndex(group as u32), partition, node: new };
        owned.map(change).collect::<Vec<_>>()
    };
    before.owners[..ranks].iter().enumerate().flat_map(of_group).collect()
}

/// Takes the pairs of nodes in turn, so that each batch keeps as many pairs as possible busy.
fn interleaved(changes: Vec<OwnerChange>, owners: &[Vec<NodeId>]) -> Vec<OwnerChange> {
    let mut pairs: BTreeMap<(NodeId, NodeId), VecDeque<OwnerChange>> = BTreeMap::new();
    for change in changes {
        let owner = owners[change.group.index()][change.partition.index()];
        pairs.entry((owner, change.node)).or_default().push_back(change);
    }
    let mut ordered = Vec::new();
    while !pairs.is_empty() {
        ordered.extend(pairs.values_mut().filter_map(VecDeque::pop_front));
        pairs.retain(|_, left| !left.is_empty());
    }
    ordered
}

/// Returns what nodes need of a partition before the table may name them as its owners.
fn needs(
    plan: &RebalancePlan,
    groups: &[GroupEntry],
    held: &Holdings<'_>,
    wanted: &Holdings<'_>,
    partition: PartitionId,
) -> Vec<Need> {
    let mut losers: VecDeque<(usize, NodeId)> = held
        .replicas(partition)
        .filter(|(_, node)| !wanted.any(partition).any(|keeps| keeps == *node))
        .collect();
    let mut needs = Vec::new();
    for (index, stealer) in wanted.replicas(partition) {
        let lacks =
            |store: &usize| wanted.has(*store, partition, stealer) && !held.has(*store, partition, stealer);
        let moved = |store: usize| MovedStore {
            store: store as u32,
            bytes: plan.stores[store].bytes[partition.index()],
        };
        let stores: Vec<MovedStore> = (0..plan.stores.len()).filter(lacks).map(moved).collect();
        let is_new = !held.any(partition).any(|node| node == stealer);
        if stores.is_empty() && !is_new {
            continue;
        }
        // The loser is the node that the stealer replaces in its group or, on a ring, the node that drops out of the list.
        let same = losers.iter().position(|(group, _)| *group == index).unwrap_or(0);
        let loser = if is_new { losers.remove(same).map(|(_, node)| node) } else { None };
        let is_secondary = plan.before.strategy == Strategy::Ring && 0 < index;
        needs.push(Need { partition, group: groups[index].id, stealer, is_secondary, loser, stores });
    }
    needs
}
