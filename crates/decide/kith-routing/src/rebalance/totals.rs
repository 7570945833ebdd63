//! The cost of a plan per pair of nodes and per node.

use crate::rebalance::holdings::Holdings;
use crate::rebalance::{PlanRefusal, RebalancePlan};
use kith_types::{GroupId, NodeId};
use std::collections::BTreeMap;

/// The data that one node gives to another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PairTotals {
    /// The node that gives.
    pub donor: NodeId,
    /// The node that receives.
    pub stealer: NodeId,
    /// The number of partitions copied, including secondary ones.
    pub moves: u64,
    /// The number of those that only follow from other moves.
    pub secondary_moves: u64,
    /// The number of bytes copied.
    pub bytes: u64,
}

/// The data that one node has before, during and after a rebalance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeTotals {
    /// The node.
    pub node: NodeId,
    /// Its group; on a ring, the group of all nodes.
    pub group: GroupId,
    /// The partitions before, including the replicas of a ring.
    pub partitions_before: u64,
    /// The partitions after.
    pub partitions_after: u64,
    /// The bytes before.
    pub bytes_before: u64,
    /// The bytes after, once what was given up is reclaimed.
    pub bytes_after: u64,
    /// The bytes copied to it.
    pub bytes_in: u64,
}

impl NodeTotals {
    /// The bytes at the worst moment: what it had and all that it receives, before anything is reclaimed.
    pub fn bytes_peak(&self) -> u64 {
        self.bytes_before + self.bytes_in
    }

    /// The bytes at the worst moment divided by the larger of before and after. 1 means that the change needs no additional
    /// space. 1 for a node that has nothing.
    pub fn overhead(&self) -> f64 {
        let settled = self.bytes_before.max(self.bytes_after);
        if settled == 0 { 1.0 } else { self.bytes_peak() as f64 / settled as f64 }
    }
}

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
