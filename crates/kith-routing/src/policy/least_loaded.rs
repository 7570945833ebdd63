//! One group, the least loaded: by keys outstanding, ties drawn by pace (0008).
//!
//! Venice's group routing counts requests and breaks ties for the quickest group, which then gets
//! two fifths of everything (its issue 3009); a draw spreads them.

use crate::policy::{Draft, PlanResult, PolicyInputs, PolicyState, ReplicaPolicy};
use crate::{Candidates, GroupIndex, LoadSnapshot, NodeIndex};
use kith_types::PartitionId;
use rand::{Rng, RngExt};

pub(super) struct LeastLoaded;

/// Of more groups than this only two are compared, drawn at random: looking at all costs more than the better choice wins.
const GROUPS_COMPARED_MAX: usize = 16;
/// For so many keys the nodes that hold them are looked at; for more, all nodes of a group.
const KEYS_LOOKED_UP_MAX: usize = 64;
/// What a key that a group cannot serve counts for: one request more, and somebody else's load.
const BROKEN_KEY: u64 = 2;

/// A group, as far as this query is concerned.
#[derive(Clone, Copy, Debug)]
struct GroupLoad {
    group: GroupIndex,
    /// Keys outstanding where this query would go, and what is wrong with the group in keys.
    load: u64,
    /// Seconds per key of its slowest node that would be asked; `None` if nothing is known of any.
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

/// Two groups at random come first; the others stay for keys that those cannot serve.
fn draw_two(groups: &mut [GroupIndex], rng: &mut dyn Rng) {
    for place in 0..2 {
        groups.swap(place, rng.random_range(place..groups.len()));
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

/// Puts the chosen group first and orders the others by load, for keys that it cannot serve.
fn choose(standings: &mut [GroupLoad], rng: &mut dyn Rng) {
    let compared = standings.len().min(if GROUPS_COMPARED_MAX < standings.len() { 2 } else { usize::MAX });
    let Some(least) = standings[..compared].iter().map(|standing| standing.load).min() else { return };
    let tied: Vec<usize> = (0..compared).filter(|place| standings[*place].load == least).collect();
    let weights = weights(&tied.iter().map(|place| standings[*place].pace).collect::<Vec<_>>());
    let mut left = rng.random_range(0.0..1.0) * weights.iter().sum::<f64>();
    let drawn = weights.iter().position(|weight| {
        left -= weight;
        left < 0.0
    });
    let chosen = tied[drawn.unwrap_or(tied.len() - 1)];
    standings.swap(0, chosen);
    standings[1..].sort_by_key(|standing| standing.load);
}

/// 1/pace² of each; the mean of those for the unknown, which makes their share a fair one.
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
        let share = |paces: &[Option<f64>], place: usize| {
            let weights = weights(paces);
            weights[place] / weights.iter().sum::<f64>()
        };
        assert_eq!(share(&[None, None, None, None], 2), 0.25);
        assert!((share(&[Some(1.0), Some(3.0), None], 2) - 1.0 / 3.0).abs() < 1e-9);
        assert!((share(&[Some(1.0), None, None, Some(9.0)], 1) - 0.25).abs() < 1e-9);
        assert!((share(&[Some(1.0), Some(2.0)], 0) - 0.8).abs() < 1e-9);
    }
}
