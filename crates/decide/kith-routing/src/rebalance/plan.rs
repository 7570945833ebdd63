//! The plan: which partitions move between which nodes, batch by batch, and what its steps make of a table.

use crate::rebalance::{
    AddedGroup, Batch, Move, NodeTotals, PairTotals, PlanRefusal, PlanStep, Roster, StoreSizes, TargetShape,
};
use crate::{GroupEntry, RoutingTable, TableParts};
use kith_types::{Epoch, GroupId, NodeId, PartitionId};
use std::collections::BTreeSet;

/// The options of planning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanOptions {
    /// The number of partitions that change owners in one batch, that is at one epoch. If a batch fails, it is copied
    /// again.
    pub batch_size: usize,
    /// The seed for choosing the partitions to move if nothing else decides.
    pub seed: u64,
    /// The nodes that cannot be donors.
    pub dead: BTreeSet<NodeId>,
}

/// The default number of partitions per batch. With 1,536 partitions and groups of eleven nodes, a new node gets about 128.
const BATCH_SIZE_DEFAULT: usize = 64;

impl Default for PlanOptions {
    fn default() -> Self {
        Self { batch_size: BATCH_SIZE_DEFAULT, seed: 1, dead: BTreeSet::new() }
    }
}

/// The way of a cluster from one table to another. It is plain data: every field may be stored and read back, and
/// [`RebalancePlan::check`] checks whether it is still valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RebalancePlan {
    /// The requested shape.
    pub shape: TargetShape,
    /// The table it starts from.
    pub before: TableParts,
    /// The groups and nodes that are listed while data moves.
    pub announced: Roster,
    /// The groups and nodes that are listed at the end.
    pub closing: Roster,
    /// The group that joins, if any.
    pub added: Option<AddedGroup>,
    /// The batches, in order.
    pub batches: Vec<Batch>,
    /// The stores that move, without their sizes.
    pub stores: Vec<StoreSizes>,
    /// The moves and bytes per pair of nodes.
    pub pairs: Vec<PairTotals>,
    /// The data that each node has before, during and after the rebalance.
    pub nodes: Vec<NodeTotals>,
}

impl RebalancePlan {
    /// Returns all steps, in order.
    pub fn steps(&self) -> Vec<PlanStep> {
        let before = (&self.before.groups, &self.before.nodes);
        let mut steps = Vec::new();
        if before != (&self.announced.groups, &self.announced.nodes) {
            steps.push(PlanStep::Announce);
        }
        steps.extend((0..self.batches.len()).map(PlanStep::Batch));
        if self.announced != self.closing {
            steps.push(PlanStep::Close);
        }
        steps
    }

    /// Applies one step to a table, whose epoch increases if anything changed. Returns whether it did.
    ///
    /// # Errors
    /// If the step does not fit the table.
    pub fn apply(&self, step: PlanStep, parts: &mut TableParts) -> Result<bool, PlanRefusal> {
        let epoch = Epoch(parts.epoch.0 + 1);
        let roster = match step {
            PlanStep::Announce => &self.announced,
            PlanStep::Close => &self.closing,
            PlanStep::Batch(index) => return self.apply_batch(index, epoch, parts),
        };
        let added = self.added.as_ref().filter(|_| step == PlanStep::Announce);
        if let Some(AddedGroup { group, owners }) = added {
            let index = roster.groups.iter().position(|entry| entry.id == *group);
            let index = index.ok_or(PlanRefusal::UnknownGroup { group: *group })?;
            parts.owners.insert(index.min(parts.owners.len()), owners.clone());
        }
        let is_listed = |group: &GroupEntry| roster.groups.iter().any(|entry| entry.id == group.id);
        if let Some(index) = parts.groups.iter().position(|group| !is_listed(group)) {
            parts.owners.remove(index);
        }
        parts.groups.clone_from(&roster.groups);
        parts.nodes.clone_from(&roster.nodes);
        parts.epoch = epoch;
        Ok(true)
    }

    fn apply_batch(&self, index: usize, epoch: Epoch, parts: &mut TableParts) -> Result<bool, PlanRefusal> {
        let changes = &self.batches[index].changes;
        if changes.is_empty() {
            return Ok(false);
        }
        let groups: Vec<GroupId> = parts.groups.iter().map(|group| group.id).collect();
        let next = parts.strategy.placement(&groups).apply(&parts.owners, changes)?;
        let touched = touched(&parts.owners, &next);
        if parts.partition_epochs.is_empty() {
            parts.partition_epochs = vec![parts.epoch; parts.partition_count.get() as usize];
        }
        touched.iter().for_each(|partition| parts.partition_epochs[partition.index()] = epoch);
        parts.owners = next;
        parts.epoch = epoch;
        Ok(true)
    }

    /// Returns the table at the end of the plan.
    ///
    /// # Errors
    /// If a step does not fit, or a table is invalid.
    pub fn check(&self) -> Result<RoutingTable, PlanRefusal> {
        let mut parts = self.before.clone();
        for step in self.steps() {
            self.apply(step, &mut parts)?;
        }
        Ok(RoutingTable::new(parts)?)
    }

    /// Returns all moves, in the order of the batches.
    pub fn moves(&self) -> impl Iterator<Item = &Move> {
        self.batches.iter().flat_map(|batch| &batch.moves)
    }

    /// The number of bytes to copy.
    pub fn bytes(&self) -> u64 {
        self.moves().map(Move::bytes).sum()
    }
}

/// Returns the partitions whose owners differ, ascending.
pub(crate) fn touched(before: &[Vec<NodeId>], after: &[Vec<NodeId>]) -> Vec<PartitionId> {
    let count = before.first().map_or(0, Vec::len);
    let differs =
        |index: &usize| before.iter().zip(after).any(|(before, after)| before[*index] != after[*index]);
    (0..count).filter(differs).map(|index| PartitionId(index as u32)).collect()
}
