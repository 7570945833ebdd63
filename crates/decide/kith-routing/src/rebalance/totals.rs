//! The cost of a plan per pair of nodes and per node.

use crate::rebalance::holdings::Holdings;
use crate::rebalance::{NodeTotals, PairTotals, PlanRefusal, RebalancePlan};
use kith_types::NodeId;
use std::collections::BTreeMap;

/// Returns the totals of a plan by pair of nodes and by node.
///
/// # Errors
/// If a step of the plan does not fit, or a table is invalid.
pub(crate) fn of(plan: &RebalancePlan) -> Result<(Vec<PairTotals>, Vec<NodeTotals>), PlanRefusal> {
    let after = plan.check()?.to_parts();
    let mut nodes: BTreeMap<NodeId, NodeTotals> = BTreeMap::new();
    for entry in plan.announced.nodes.iter().chain(&plan.before.nodes) {
        let totals = NodeTotals { node: entry.id, group: entry.group, ..NodeTotals::default() };
        nodes.insert(entry.id, totals);
    }
    let mut pairs: BTreeMap<(NodeId, NodeId), PairTotals> = BTreeMap::new();
    for step in plan.moves() {
        let fresh = PairTotals { donor: step.donor, stealer: step.stealer, ..PairTotals::default() };
        let pair = pairs.entry((step.donor, step.stealer)).or_insert(fresh);
        pair.moves += 1;
        pair.secondary_moves += u64::from(step.is_secondary);
        pair.bytes += step.bytes();
        nodes.entry(step.stealer).or_default().bytes_in += step.bytes();
    }
    weigh(&Holdings::of(&plan.before, &plan.stores), plan, |node, partitions, bytes| {
        let totals = nodes.entry(node).or_default();
        totals.partitions_before += partitions;
        totals.bytes_before += bytes;
    });
    weigh(&Holdings::of(&after, &plan.stores), plan, |node, partitions, bytes| {
        let totals = nodes.entry(node).or_default();
        totals.partitions_after += partitions;
        totals.bytes_after += bytes;
    });
    let mut nodes: Vec<NodeTotals> = nodes.into_values().collect();
    nodes.sort_by_key(|totals| (totals.group, totals.node));
    Ok((pairs.into_values().collect(), nodes))
}

fn weigh(held: &Holdings<'_>, plan: &RebalancePlan, mut add: impl FnMut(NodeId, u64, u64)) {
    for partition in plan.before.partition_count.iter() {
        held.any(partition).for_each(|node| add(node, 1, 0));
        for (store, sizes) in plan.stores.iter().enumerate() {
            held.of_store(store, partition).for_each(|node| add(node, 0, sizes.bytes[partition.index()]));
        }
    }
}
