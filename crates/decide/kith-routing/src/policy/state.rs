//! The state of policies between queries: round-robin cursors, and scratch space. With it, planning thousands of keys
//! allocates only the plan itself.

use crate::policy::{Draft, balance::Relief, cover::Cover};
use crate::{Candidates, GroupIndex, NodeIndex};
use kith_types::{PartitionId, fmix64};

/// The state of a client's policies. There is one per client, or one per thread of it.
#[derive(Clone, Debug)]
pub struct PolicyState {
    /// One cursor per partition.
    pub cursors: Cursors,
    /// The plan in the making.
    pub draft: Draft,
    /// The groups in this query's order of preference.
    pub(crate) order: Vec<GroupIndex>,
    /// The nodes in the order in which equal ones are taken.
    pub(crate) order_of_nodes: Vec<NodeIndex>,
    pub(crate) cover: Cover,
    pub(crate) relief: Relief,
}

impl PolicyState {
    /// Returns fresh state. Seeds should differ between clients, because otherwise their cursors move in step.
    pub fn new(seed: u64) -> Self {
        Self {
            cursors: Cursors { seed: Some(seed), next: Vec::new() },
            draft: Draft::default(),
            order: Vec::new(),
            order_of_nodes: Vec::new(),
            cover: Cover::default(),
            relief: Relief::default(),
        }
    }

    /// Returns fresh state with every cursor at the first group, for examples that a person can follow.
    pub fn at_first_group() -> Self {
        let mut state = Self::new(0);
        state.cursors.seed = None;
        state
    }
}

/// One round-robin cursor per partition (Moolle §II-B's queues of nodes).
///
/// For each *key*, a cursor advances past the node that it took. So the nodes that may serve are taken in exact cyclic
/// order, whichever others are skipped.
#[derive(Clone, Debug)]
pub struct Cursors {
    /// The seed of the scattered start positions. If all cursors started at one group, a client's first query would go to
    /// that group alone, and equation 3 would not hold.
    seed: Option<u64>,
    next: Vec<u32>,
}

impl Cursors {
    /// Makes room for every partition of the table.
    pub fn fit(&mut self, view: &Candidates<'_>) {
        let seed = self.seed;
        let start = |p: u64| seed.map_or(0, |seed| (fmix64(fmix64(seed) ^ (p + 1)) >> 40) as u32);
        for partition in self.next.len() as u64..u64::from(view.partition_count().get()) {
            self.next.push(start(partition));
        }
    }

    /// Returns the next replica of `partition` in `groups` that may serve now, in the cyclic order of `groups`. If there is
    /// none, returns `None` and leaves the cursor unchanged.
    ///
    /// # Panics
    /// If the partition does not exist or [`Cursors::fit`] was not called.
    #[inline]
    pub fn take(
        &mut self,
        view: &Candidates<'_>,
        partition: PartitionId,
        groups: &[GroupIndex],
    ) -> Option<NodeIndex> {
        let cursor = &mut self.next[partition.index()];
        let count = groups.len() as u32;
        let mut rank = *cursor % count.max(1);
        for step in 1..=count {
            if let Some(node) = view.replica(partition, groups[rank as usize]) {
                *cursor = cursor.wrapping_add(step);
                return Some(node);
            }
            rank = if rank + 1 == count { 0 } else { rank + 1 };
        }
        None
    }

    /// Returns where to start among a partition's `count` replicas. The next call starts one further.
    pub(crate) fn turn(&mut self, partition: PartitionId, count: u32) -> u32 {
        let cursor = &mut self.next[partition.index()];
        let rank = *cursor % count;
        *cursor = cursor.wrapping_add(1);
        rank
    }
}
