//! Scratch space of the set cover policies: the partitions of a query that are not covered yet, and how many of them each
//! node would cover.
//!
//! A partition counts once, however many keys it has. The aim is few requests, and a node that holds a partition takes all
//! its keys.

use crate::policy::Draft;
use crate::{Candidates, NodeIndex};
use kith_types::PartitionId;

const NONE: u32 = u32::MAX;

#[derive(Clone, Debug, Default)]
pub(crate) struct Cover {
    /// The distinct partitions that no chosen node covers yet, each with its first key.
    uncovered: Vec<(PartitionId, u32)>,
    /// The next key of the same partition, by key.
    next_key: Vec<u32>,
    /// The last key seen of each partition; `NONE` for all of them between queries.
    last_key: Vec<u32>,
    /// The number of uncovered partitions that each node may serve.
    gain: Vec<u32>,
}

impl Cover {
    /// Starts with the partitions of `keys`. Partitions without a replica are lost at once.
    pub(super) fn begin(&mut self, view: &Candidates<'_>, keys: &[PartitionId], draft: &mut Draft) {
        self.group_keys(view, keys);
        self.gain.clear();
        self.gain.resize(view.node_count(), 0);
        self.uncovered.retain(|(partition, _)| {
            let mut served = false;
            for node in view.replicas(*partition) {
                self.gain[node.index()] += 1;
                served = true;
            }
            if !served {
                draft.lose(*partition);
            }
            served
        });
    }

    fn group_keys(&mut self, view: &Candidates<'_>, keys: &[PartitionId]) {
        self.uncovered.clear();
        self.next_key.clear();
        self.next_key.resize(keys.len(), NONE);
        self.last_key.resize(view.partition_count().get() as usize, NONE);
        for (key, partition) in keys.iter().enumerate() {
            match std::mem::replace(&mut self.last_key[partition.index()], key as u32) {
                NONE => self.uncovered.push((*partition, key as u32)),
                last => self.next_key[last as usize] = key as u32,
            }
        }
        self.uncovered.iter().for_each(|(partition, _)| self.last_key[partition.index()] = NONE);
    }

    pub(super) fn is_done(&self) -> bool {
        self.uncovered.is_empty()
    }

    /// Returns any uncovered partition.
    pub(super) fn any(&self) -> Option<PartitionId> {
        self.uncovered.last().map(|(partition, _)| *partition)
    }

    /// Returns the first of the nodes that cover the most partitions.
    pub(super) fn best_of(&self, nodes: impl Iterator<Item = NodeIndex>) -> Option<NodeIndex> {
        let mut best = None;
        let mut best_gain = 0;
        for node in nodes {
            let gain = self.gain[node.index()];
            if best_gain < gain {
                (best, best_gain) = (Some(node), gain);
            }
        }
        best
    }

    /// Assigns to a node every uncovered key that it may serve.
    pub(super) fn take(&mut self, node: NodeIndex, view: &Candidates<'_>, draft: &mut Draft) {
        let mut index = 0;
        while index < self.uncovered.len() {
            let (partition, first_key) = self.uncovered[index];
            if !view.serves(partition, node) {
                index += 1;
                continue;
            }
            self.uncovered.swap_remove(index);
            view.replicas(partition).for_each(|node| self.gain[node.index()] -= 1);
            let mut key = first_key;
            while key != NONE {
                draft.assign(key as usize, node);
                key = self.next_key[key as usize];
            }
        }
    }
}
