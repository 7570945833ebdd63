//! Chooses the groups that take part, and spreads keys over them. The cluster-aware policies share this (Moolle §III-C).
//!
//! The predecessor drew groups without regard to health, so a group with a dead node was drawn as often as others, and part
//! of its requests went to the rest. Here, groups that can serve every key of the query come first.

use crate::policy::{PlanError, PolicyInputs, PolicyState};
use crate::{Candidates, GroupIndex};
use kith_types::PartitionId;
use rand::{Rng, RngExt};

/// Orders all groups by preference: first by the number of keys of this query that they cannot serve, then by the number
/// that they would serve from outside the caller's zone; equal groups are in random order. The first `count` groups are
/// chosen, and sorted.
fn choose(
    order: &mut Vec<GroupIndex>,
    view: &Candidates<'_>,
    keys: &[PartitionId],
    count: usize,
    rng: &mut dyn Rng,
) {
    order.clear();
    order.extend(view.groups());
    for end in (1..order.len()).rev() {
        order.swap(end, rng.random_range(0..=end));
    }
    if !view.all_complete() || view.has_zone() {
        let lacks = |group: &GroupIndex| match view.is_complete(*group) {
            true => 0,
            false => keys.iter().filter(|partition| view.replica(**partition, *group).is_none()).count(),
        };
        order.sort_by_cached_key(|group| (lacks(group), view.far_keys(*group, keys)));
    }
    order[..count].sort_unstable();
}

/// Chooses as many groups as the limit allows. Each key goes to the next replica in them, with one cursor step per key. A
/// key that none of them can serve goes to the first other group that can. Returns how many groups were chosen; the draft is
/// not finished.
pub(super) fn spread(
    inputs: &PolicyInputs<'_>,
    state: &mut PolicyState,
    rng: &mut dyn Rng,
) -> Result<usize, PlanError> {
    let PolicyInputs { ref view, keys, limit, .. } = *inputs;
    let PolicyState { cursors, draft, order, .. } = state;
    draft.begin(view, keys)?;
    cursors.fit(view);
    // If no group holds the store, there is nothing to choose.
    let count = (limit.0 as usize).max(1).min(view.group_count());
    choose(order, view, keys, count, rng);
    let (chosen, others) = order.split_at(count);
    for (key, partition) in keys.iter().enumerate() {
        if let Some(node) = cursors.take(view, *partition, chosen) {
            draft.assign(key, node);
        } else if let Some(node) = others.iter().find_map(|group| view.replica(*partition, *group)) {
            draft.spill(key, node);
        } else {
            draft.lose(*partition);
        }
    }
    Ok(count)
}
