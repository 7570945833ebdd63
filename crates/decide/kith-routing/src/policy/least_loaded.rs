//! Chooses the least loaded group: the one with the fewest keys outstanding. Ties are drawn at random with weights by pace
//! (0008).
//!
//! Venice's group routing counts requests and resolves ties in favour of the fastest group, which then gets two fifths of
//! all requests (its issue 3009). A random draw spreads them.

use crate::policy::{Draft, PlanResult, PolicyInputs, PolicyState, ReplicaPolicy};
use crate::{Candidates, GroupIndex, LoadSnapshot, NodeIndex};
use kith_types::PartitionId;
use rand::{Rng, RngExt};

pub(super) struct LeastLoaded;

/// If there are more groups than this, only two are compared, drawn at random. Checking all of them would cost more than the
/// better choice gains.
const GROUPS_COMPARED_MAX: usize = 16;
/// The number of keys up to which the nodes that hold them are checked. For more keys, all nodes of a group are.
const KEYS_LOOKED_UP_MAX: usize = 64;
/// The cost of a key that a group cannot serve, in keys: one more request, and load for another group.
const BROKEN_KEY: u64 = 2;

/// The state of a group for this query.
#[derive(Clone, Copy, Debug)]
struct GroupLoad {
    group: GroupIndex,
    /// The keys outstanding at the nodes that this query would ask, plus the cost of the keys that the group cannot serve.
    load: u64,
    /// The seconds per key of the slowest node that would be asked; `None` if nothing is known about any of them.
    pace: Option<f64>,
}

impl ReplicaPolicy for LeastLoaded {
    fn name(&self) -> &'static str {
        "least-loaded"
    }

    fn summary(&self) -> &'static str {
        "all keys in the group with the fewest keys outstanding, ties drawn by pace"
    }

    fn plan(&self, inputs: &PolicyInputs<'_>, state: &mut PolicyState, rng: &mut dyn Rng) -> PlanResult {
        let PolicyInputs { ref view, keys, load, .. } = *inputs;
        let draft = &mut state.draft;
        draft.begin(view, keys)?;
        let mut groups: Vec<GroupIndex> = view.groups().collect();
        if GROUPS_COMPARED_MAX < groups.len() {
            draw_two(&mut groups, rng);
        }
        let mut standings: Vec<GroupLoad> =
            groups.iter().map(|group| standing(view, *group, keys, load)).collect();
        choose(&mut standings, rng);
        assign(view, keys, &standings, draft);
        draft.finish(self.name(), view)
    }
}

/// Moves two random groups to the front. The others stay for keys that those two cannot serve.
fn draw_two(groups: &mut [GroupIndex], rng: &mut dyn Rng) {
    for index in 0..2 {
        groups.swap(index, rng.random_range(index..groups.len()));
    }
}

fn standing(
    view: &Candidates<'_>,
    group: GroupIndex,
    keys: &[PartitionId],
    load: &LoadSnapshot,
) -> GroupLoad {
    let mut nodes: Vec<NodeIndex> = if keys.len() <= KEYS_LOOKED_UP_MAX {
        keys.iter().filter_map(|key| view.replica(*key, group)).collect()
    } else {
        view.nodes_of(group).filter(|node| view.is_up(*node)).collect()
    };
    nodes.sort_unstable();
    nodes.dedup();
    let known = |node: &NodeIndex| load.node(view.node(*node).id);
    let outstanding: u64 = nodes.iter().filter_map(known).map(|node| node.outstanding_keys).sum();
    let paces = nodes.iter().filter_map(known).filter_map(|node| node.seconds_per_key);
    let broken = match view.is_complete(group) {
        true => 0,
        false => keys.iter().filter(|key| view.replica(**key, group).is_none()).count() as u64,
    };
    let load = outstanding + BROKEN_KEY * broken + view.far_keys(group, keys) as u64;
    GroupLoad { group, load, pace: paces.reduce(f64::max) }
}

/// Moves the chosen group to the front and orders the others by load, for keys that the chosen group cannot serve.
fn choose(standings: &mut [GroupLoad], rng: &mut dyn Rng) {
    let compared = standings.len().min(if GROUPS_COMPARED_MAX < standings.len() { 2 } else { usize::MAX });
    let Some(least) = standings[..compared].iter().map(|standing| standing.load).min() else { return };
    let tied: Vec<usize> = (0..compared).filter(|index| standings[*index].load == least).collect();
    let weights = weights(&tied.iter().map(|index| standings[*index].pace).collect::<Vec<_>>());
    let mut left = rng.random_range(0.0..1.0) * weights.iter().sum::<f64>();
    let drawn = weights.iter().position(|weight| {
        left -= weight;
        left < 0.0
    });
    let chosen = tied[drawn.unwrap_or(tied.len() - 1)];
    standings.swap(0, chosen);
    standings[1..].sort_by_key(|standing| standing.load);
}

/// Returns 1/pace² for each group. A group of unknown pace has the mean of the others, which gives it a fair share.
fn weights(paces: &[Option<f64>]) -> Vec<f64> {
    let weight = |pace: f64| 1.0 / pace.max(1e-12).powi(2);
    let known: Vec<f64> = paces.iter().flatten().map(|pace| weight(*pace)).collect();
    let mean = if known.is_empty() { 1.0 } else { known.iter().sum::<f64>() / known.len() as f64 };
    paces.iter().map(|pace| pace.map_or(mean, weight)).collect()
}

fn assign(view: &Candidates<'_>, keys: &[PartitionId], standings: &[GroupLoad], draft: &mut Draft) {
    let Some((chosen, others)) = standings.split_first() else {
        keys.iter().for_each(|partition| draft.lose(*partition));
        return;
    };
    for (key, partition) in keys.iter().enumerate() {
        if let Some(node) = view.replica(*partition, chosen.group) {
            draft.assign(key, node);
        } else if let Some(node) = others.iter().find_map(|other| view.replica(*partition, other.group)) {
            draft.spill(key, node);
        } else {
            draft.lose(*partition);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_group_gets_its_fair_share_at_most() {
        let share = |paces: &[Option<f64>], index: usize| {
            let weights = weights(paces);
            weights[index] / weights.iter().sum::<f64>()
        };
        assert_eq!(share(&[None, None, None, None], 2), 0.25);
        assert!((share(&[Some(1.0), Some(3.0), None], 2) - 1.0 / 3.0).abs() < 1e-9);
        assert!((share(&[Some(1.0), None, None, Some(9.0)], 1) - 0.25).abs() < 1e-9);
        assert!((share(&[Some(1.0), Some(2.0)], 0) - 0.8).abs() < 1e-9);
    }
}
