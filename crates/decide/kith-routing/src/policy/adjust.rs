//! Assignment adjustment (Moolle §III-C). It starts like `n-groups`; then keys move from nodes with many keys to nodes with
//! few keys inside the chosen groups. It never adds a request. With one group, each key has only one replica and nothing can
//! move.

use crate::policy::{PlanResult, PolicyInputs, PolicyState, ReplicaPolicy, balance, groups};
use rand::Rng;

pub(super) struct AdjustPolicy;

impl ReplicaPolicy for AdjustPolicy {
    fn name(&self) -> &'static str {
        "adjust"
    }

    fn summary(&self) -> &'static str {
        "n-groups, then keys move from heavily to lightly loaded nodes inside the groups"
    }

    fn plan(&self, inputs: &PolicyInputs<'_>, state: &mut PolicyState, rng: &mut dyn Rng) -> PlanResult {
        let count = groups::spread(inputs, state, rng)?;
        let PolicyState { draft, order, .. } = state;
        balance::even_out(inputs, &order[..count], draft);
        draft.finish(self.name(), &inputs.view)
    }
}
