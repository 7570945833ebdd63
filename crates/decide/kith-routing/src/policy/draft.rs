//! A plan in the making: the node of each key, in reusable scratch space.

use crate::policy::PlanError;
use crate::{Assignment, Candidates, FanOutPlan, NodeIndex};
use kith_types::{GroupId, PartitionId};

const UNASSIGNED: u32 = u32::MAX;

/// Collects assignments key by key and turns them into a [`FanOutPlan`].
#[derive(Clone, Debug, Default)]
pub struct Draft {
    node_of_key: Vec<u32>,
    keys_on: Vec<u32>,
    /// The index of a node's assignment in the plan. Only `finish` uses it.
    slot_of_node: Vec<u32>,
    lost: Vec<PartitionId>,
    spilled: u32,
}

impl Draft {
    /// Starts a plan for `keys`.
    ///
    /// # Errors
    /// If a key names a partition that does not exist.
    pub fn begin(&mut self, view: &Candidates<'_>, keys: &[PartitionId]) -> Result<(), PlanError> {
        let partition_count = view.partition_count();
        if let Some(&partition) = keys.iter().find(|partition| partition_count.get() <= partition.0) {
            return Err(PlanError::UnknownPartition { partition, partition_count });
        }
        self.node_of_key.clear();
        self.node_of_key.resize(keys.len(), UNASSIGNED);
        self.keys_on.clear();
        self.keys_on.resize(view.node_count(), 0);
        self.lost.clear();
        self.spilled = 0;
        Ok(())
    }

    /// Assigns a key that has no node yet.
    #[inline]
    pub fn assign(&mut self, key: usize, node: NodeIndex) {
        debug_assert_eq!(self.node_of_key[key], UNASSIGNED, "a key has one node");
        self.node_of_key[key] = node.0;
        self.keys_on[node.index()] += 1;
    }

    /// Moves a key to another node.
    pub fn reassign(&mut self, key: usize, node: NodeIndex) {
        let from = std::mem::replace(&mut self.node_of_key[key], node.0);
        self.keys_on[from as usize] -= 1;
        self.keys_on[node.index()] += 1;
    }

    /// Assigns a key to a node outside the groups of the limit.
    pub fn spill(&mut self, key: usize, node: NodeIndex) {
        self.assign(key, node);
        self.spilled += 1;
    }

    /// Records that no replica of a partition may serve.
    pub fn lose(&mut self, partition: PartitionId) {
        self.lost.push(partition);
    }

    /// Returns the node of a key, if it has one.
    pub fn node_of(&self, key: usize) -> Option<NodeIndex> {
        Some(self.node_of_key[key]).filter(|node| *node != UNASSIGNED).map(NodeIndex)
    }

    /// The number of keys of a node.
    #[inline]
    pub fn keys_on(&self, node: NodeIndex) -> u32 {
        self.keys_on[node.index()]
    }

    /// The number of keys of the busiest node.
    pub fn busiest_keys(&self) -> u32 {
        self.keys_on.iter().copied().max().unwrap_or(0)
    }

    /// The mean number of keys per node that takes part, rounded up; 0 if there is none.
    pub fn mean_keys(&self) -> u32 {
        let busy = self.keys_on.iter().filter(|keys| 0 < **keys).count();
        self.keys_on.iter().sum::<u32>().div_ceil(busy.max(1) as u32)
    }

    /// Returns the finished plan.
    ///
    /// # Errors
    /// If a partition was lost.
    pub fn finish(&mut self, policy: &'static str, view: &Candidates<'_>) -> Result<FanOutPlan, PlanError> {
        if !self.lost.is_empty() {
            let mut partitions = std::mem::take(&mut self.lost);
            partitions.sort_unstable();
            partitions.dedup();
            return Err(PlanError::NoReplica { partitions });
        }
        let mut assignments = self.empty_assignments(view);
        for (key, node) in self.node_of_key.iter().enumerate() {
            assert!(*node != UNASSIGNED, "policy {policy} left out key {key}");
            assignments[self.slot_of_node[*node as usize] as usize].keys.push(key as u32);
        }
        Ok(FanOutPlan { policy, groups: self.groups(view), assignments, spilled_keys: self.spilled })
    }

    /// Returns an empty assignment for each node with keys, with exactly the capacity that it needs.
    fn empty_assignments(&mut self, view: &Candidates<'_>) -> Vec<Assignment> {
        self.slot_of_node.clear();
        let mut assignments = Vec::new();
        for (node, count) in self.keys_on.iter().enumerate() {
            self.slot_of_node.push(assignments.len() as u32);
            if 0 < *count {
                let node = view.node(NodeIndex(node as u32)).id;
                assignments.push(Assignment { node, keys: Vec::with_capacity(*count as usize) });
            }
        }
        assignments
    }

    fn groups(&self, view: &Candidates<'_>) -> Vec<GroupId> {
        let busy = |node: &usize| 0 < self.keys_on[*node];
        let nodes = (0..self.keys_on.len()).filter(busy);
        // The nodes of a group are adjacent, so equal groups are adjacent too.
        let mut groups: Vec<GroupId> = nodes.map(|node| view.node(NodeIndex(node as u32)).group).collect();
        groups.dedup();
        groups
    }
}
