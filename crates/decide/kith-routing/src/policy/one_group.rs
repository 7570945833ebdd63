//! Cluster-aware routing with one group (Moolle §III-C). It makes at most as many requests as the group has nodes, however
//! many keys there are.

use crate::GroupLimit;
use crate::policy::{PlanResult, PolicyInputs, PolicyState, ReplicaPolicy, groups};
use rand::Rng;

pub(super) struct OneGroup;

impl ReplicaPolicy for OneGroup {
    fn name(&self) -> &'static str {
        "one-group"
    }

    fn summary(&self) -> &'static str {
        "all keys in one group, the fewest requests that stay balanced"
    }

    fn plan(&self, inputs: &PolicyInputs<'_>, state: &mut PolicyState, rng: &mut dyn Rng) -> PlanResult {
        groups::spread(&PolicyInputs { limit: GroupLimit(1), ..*inputs }, state, rng)?;
        state.draft.finish(self.name(), &inputs.view)
    }
}
