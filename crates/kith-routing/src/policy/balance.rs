//! Evening out a draft: what `adjust` and `borrow` add to `n-groups` (Moolle §III-C).

use crate::policy::Draft;
use crate::{Candidates, GroupIndex, NodeIndex};
use kith_types::PartitionId;

/// Nodes borrowed at most, as a share of a group: each costs a request.
const BORROWED_SHARE: usize = 4;

/// The least number of keys worth a request to a borrowed node, as a share of the mean.
const WORTH_SHARE: u32 = 4;

/// The mean number of keys on the nodes that take part, rounded up.
fn mean_keys(view: &Candidates<'_>, keys: &[PartitionId], draft: &Draft) -> u32 {
    let busy = (0..view.node_count() as u32).filter(|node| 0 < draft.keys_on(NodeIndex(*node))).count();
    keys.len().div_ceil(busy.max(1)) as u32
}

/// Moves keys from nodes above the mean to nodes below it that take part already,
/// among the replicas in `groups`. One pass; each key moves at most once.
pub(super) fn even_out(
    view: &Candidates<'_>,
    keys: &[PartitionId],
    groups: &[GroupIndex],
    draft: &mut Draft,
) {
    let mean = mean_keys(view, keys, draft);
    move_keys(view, keys, groups, draft, mean, |draft, node| 0 < draft.keys_on(node));
}

/// Picks the nodes of `others` that could relieve the busy ones most, and moves keys to them.
pub(super) fn borrow(
    view: &Candidates<'_>,
    keys: &[PartitionId],
    others: &[GroupIndex],
    draft: &mut Draft,
    relief: &mut Vec<u32>,
) {
    let mean = mean_keys(view, keys, draft);
    relief.clear();
    relief.resize(view.node_count(), 0);
    for (key, partition) in keys.iter().enumerate() {
        let Some(node) = draft.node_of(key).filter(|node| mean < draft.keys_on(*node)) else { continue };
        for group in others {
            if let Some(other) = view.replica(*partition, *group).filter(|other| *other != node) {
                relief[other.index()] += 1;
            }
        }
    }
    let worth = (mean / WORTH_SHARE).max(1);
    let mut best: Vec<NodeIndex> = (0..view.node_count() as u32).map(NodeIndex).collect();
    best.retain(|node| worth <= relief[node.index()] && draft.keys_on(*node) == 0);
    best.sort_by_key(|node| std::cmp::Reverse(relief[node.index()]));
    best.truncate(view.nodes_per_group().div_ceil(BORROWED_SHARE));
    best.sort_unstable();
    let borrowed = |_: &Draft, node: NodeIndex| best.binary_search(&node).is_ok();
    move_keys(view, keys, others, draft, mean, borrowed);
}

fn move_keys(
    view: &Candidates<'_>,
    keys: &[PartitionId],
    groups: &[GroupIndex],
    draft: &mut Draft,
    mean: u32,
    may_take: impl Fn(&Draft, NodeIndex) -> bool,
) {
    for (key, partition) in keys.iter().enumerate() {
        let Some(from) = draft.node_of(key) else { continue };
        if draft.keys_on(from) <= mean {
            continue;
        }
        let replicas = groups.iter().filter_map(|group| view.replica(*partition, *group));
        let light = replicas.filter(|node| draft.keys_on(*node) < mean && may_take(draft, *node));
        if let Some(to) = light.min_by_key(|node| draft.keys_on(*node)) {
            draft.reassign(key, to);
        }
    }
}
