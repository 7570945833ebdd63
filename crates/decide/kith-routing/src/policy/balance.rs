//! Balances a draft, which `adjust` and `borrow` do after `n-groups` (Moolle §III-C).

use crate::policy::{Draft, PolicyInputs};
use crate::{Candidates, GroupIndex, NodeIndex};
use kith_types::PartitionId;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The largest number of borrowed nodes is a group's nodes divided by this. Each borrowed node costs a request.
const BORROWED_SHARE: usize = 4;

/// The fewest keys that are worth a request to a borrowed node are the mean divided by this.
const WORTH_SHARE: u32 = 4;

/// The number of nodes above the mean that are relieved, the heaviest first. For each of them, every node of the table
/// needs a count.
const HEAVY_MAX: usize = 256;

/// Moves each key to the node with the fewest keys among its replicas in `groups` that already take part, if this reduces
/// the difference between the two nodes. One pass; no request is added.
pub(super) fn even_out(inputs: &PolicyInputs<'_>, groups: &[GroupIndex], draft: &mut Draft) {
    let PolicyInputs { ref view, keys, .. } = *inputs;
    for (key, partition) in keys.iter().enumerate() {
        let Some(from) = draft.node_of(key) else { continue };
        let most = draft.keys_on(from).saturating_sub(2);
        let replicas = groups.iter().filter_map(|group| view.replica(*partition, *group));
        let light = replicas.filter(|node| (1..=most).contains(&draft.keys_on(*node)));
        if let Some(to) = light.min_by_key(|node| draft.keys_on(*node)) {
            draft.reassign(key, to);
        }
    }
}

/// The nodes that may be borrowed for the keys of a query.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lenders<'a> {
    pub view: &'a Candidates<'a>,
    pub keys: &'a [PartitionId],
    /// The groups that were not chosen.
    pub groups: &'a [GroupIndex],
}

impl Lenders<'_> {
    /// Returns the nodes that may be borrowed for a key of this partition.
    fn of(&self, partition: PartitionId) -> impl Iterator<Item = NodeIndex> {
        self.groups.iter().filter_map(move |group| self.view.replica(partition, *group))
    }

    fn nodes(&self) -> impl Iterator<Item = NodeIndex> + use<> {
        (0..self.view.node_count() as u32).map(NodeIndex)
    }
}

/// Moves keys of nodes above the mean to nodes that take no part yet. The mean is over the nodes that take part and the
/// nodes that may be borrowed: these take as many keys as the others keep. The first `start` choices are skipped, because
/// the best first node need not be among the best few.
pub(super) fn borrow(lenders: &Lenders<'_>, draft: &mut Draft, relief: &mut Relief, start: usize) {
    let busy = lenders.nodes().filter(|node| 0 < draft.keys_on(*node)).count();
    let borrowed_max = lenders.view.nodes_per_group().div_ceil(BORROWED_SHARE);
    let mean = lenders.keys.len().div_ceil(busy + borrowed_max) as u32;
    relief.count(lenders, draft, mean);
    relief.borrow(lenders, draft, borrowed_max, start);
}

/// The number of keys of each heavy node that each free node could take. This is scratch space of [`borrow`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Relief {
    /// The number of keys that each node should have.
    mean: u32,
    /// The index of each node among the heavy nodes, heaviest first, if it is one.
    heavy: Vec<Option<u32>>,
    /// The number of keys by which each heavy node is above the mean.
    excess: Vec<u32>,
    /// One row per node, with one count per heavy node. Rows of nodes that take part are not used.
    keys: Vec<u32>,
}

impl Relief {
    /// Counts how many keys of the nodes above `mean` each lender could take. O(keys × groups).
    fn count(&mut self, lenders: &Lenders<'_>, draft: &Draft, mean: u32) {
        self.mean = mean;
        let node_count = lenders.view.node_count();
        let mut heavy: Vec<NodeIndex> = lenders.nodes().filter(|node| mean < draft.keys_on(*node)).collect();
        heavy.sort_by_key(|node| Reverse(draft.keys_on(*node)));
        heavy.truncate(HEAVY_MAX);
        self.heavy.clear();
        self.heavy.resize(node_count, None);
        self.excess.clear();
        for (index, node) in heavy.into_iter().enumerate() {
            self.heavy[node.index()] = Some(index as u32);
            self.excess.push(draft.keys_on(node) - mean);
        }
        self.keys.clear();
        self.keys.resize(node_count * self.excess.len(), 0);
        for (key, partition) in lenders.keys.iter().enumerate() {
            if let Some(heavy) = self.heavy_of(draft, key) {
                for node in lenders.of(*partition) {
                    self.keys[node.index() * self.excess.len() + heavy] += 1;
                }
            }
        }
    }

    /// Returns the index among the heavy nodes of a key's node, if it is one.
    fn heavy_of(&self, draft: &Draft, key: usize) -> Option<usize> {
        Some(self.heavy[draft.node_of(key)?.index()]? as usize)
    }

    /// Returns how many keys a node could take from each heavy node without leaving that node below the mean.
    fn takes(&self, node: NodeIndex) -> impl Iterator<Item = u32> {
        let width = self.excess.len();
        let row = &self.keys[node.index() * width..][..width];
        row.iter().zip(&self.excess).map(|(keys, excess)| *keys.min(excess))
    }

    /// Returns how much the sum of the squares of all excesses would fall if a node took what it could. A few keys of each
    /// heavy node are worth more than many of one.
    fn worth(&self, node: NodeIndex) -> u64 {
        let squares = |excess: u32, takes: u32| u64::from(takes) * u64::from(2 * excess - takes);
        self.excess.iter().zip(self.takes(node)).map(|(excess, takes)| squares(*excess, takes)).sum()
    }

    /// Borrows up to `borrowed_max` free nodes, each time the one with the greatest worth at that moment, without the first
    /// `start` ones.
    fn borrow(&mut self, lenders: &Lenders<'_>, draft: &mut Draft, borrowed_max: usize, start: usize) {
        if self.excess.is_empty() {
            return;
        }
        let takes_min = (self.mean / WORTH_SHARE).max(1);
        let free = lenders.nodes().filter(|node| draft.keys_on(*node) == 0);
        let mut best: BinaryHeap<(u64, Reverse<NodeIndex>)> =
            free.map(|node| (self.worth(node), Reverse(node))).collect();
        for _ in 0..start {
            best.pop();
        }
        let mut borrowed = 0;
        while borrowed < borrowed_max
            && let Some((once, Reverse(node))) = best.pop()
        {
            let takes: u32 = self.takes(node).sum();
            if takes < takes_min {
                continue;
            }
            // Worths only fall, so a node whose worth has not fallen since it was computed is the best.
            let now = self.worth(node);
            if now < once {
                best.push((now, Reverse(node)));
                continue;
            }
            self.give(lenders, draft, node, takes);
            borrowed += 1;
        }
    }

    /// Moves keys to a node: all `takes` keys that it could take or, if these are more than the mean, a proportional part of
    /// those of each heavy node.
    fn give(&mut self, lenders: &Lenders<'_>, draft: &mut Draft, node: NodeIndex, takes: u32) {
        let width = self.excess.len();
        let mut room = self.mean.min(takes);
        let share = |part: u32| (u64::from(part) * u64::from(room)).div_ceil(u64::from(takes));
        let mut parts: Vec<u32> = self.takes(node).map(|part| share(part) as u32).collect();
        for (key, partition) in lenders.keys.iter().enumerate() {
            if room == 0 {
                break;
            }
            let heavy = self.heavy_of(draft, key).filter(|heavy| 0 < parts[*heavy]);
            let Some(heavy) = heavy.filter(|_| lenders.view.serves(*partition, node)) else { continue };
            draft.reassign(key, node);
            room -= 1;
            parts[heavy] -= 1;
            self.excess[heavy] -= 1;
            for other in lenders.of(*partition) {
                self.keys[other.index() * width + heavy] -= 1;
            }
        }
    }
}
