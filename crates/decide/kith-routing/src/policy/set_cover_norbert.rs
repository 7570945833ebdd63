//! Norbert's modified set cover: repeatedly takes any uncovered partition and, among *its* replicas, the one that covers the
//! most other partitions; equal ones in turn. It is cheaper to compute than the full greedy algorithm and worse for many
//! keys, because it mixes groups.

use crate::policy::{PlanResult, PolicyInputs, PolicyState, ReplicaPolicy};
use rand::Rng;

pub(super) struct SetCoverNorbert;

impl ReplicaPolicy for SetCoverNorbert {
    fn name(&self) -> &'static str {
        "set-cover-norbert"
    }

    fn summary(&self) -> &'static str {
        "set cover that looks only at one partition's replicas at a time"
    }

    fn plan(&self, inputs: &PolicyInputs<'_>, state: &mut PolicyState, _rng: &mut dyn Rng) -> PlanResult {
        let PolicyInputs { ref view, keys, .. } = *inputs;
        let PolicyState { cursors, draft, cover, order, .. } = state;
        draft.begin(view, keys)?;
        cursors.fit(view);
        cover.begin(view, keys, draft);
        order.clear();
        order.extend(view.groups());
        while let Some(partition) = cover.any() {
            let first = cursors.turn(partition, order.len() as u32) as usize;
            let in_turn = (0..order.len()).map(|step| order[(first + step) % order.len()]);
            let replicas = in_turn.filter_map(|group| view.replica(partition, group));
            let best = cover.best_of(replicas).expect("an uncovered partition has a replica that gains");
            cover.take(best, view, draft);
        }
        draft.finish(self.name(), view)
    }
}
