//! Cluster-aware routing with `n` groups (Moolle §III-C). The limit sets `n`. Each key goes to the next replica of its
//! partition in these groups, so that the number of requests is that of equation 3.

use crate::policy::{PlanResult, PolicyInputs, PolicyState, ReplicaPolicy, groups};
use rand::Rng;

pub(super) struct NGroups;

impl ReplicaPolicy for NGroups {
    fn name(&self) -> &'static str {
        "n-groups"
    }

    fn summary(&self) -> &'static str {
        "keys in turn over as many groups as the limit says"
    }

    fn plan(&self, inputs: &PolicyInputs<'_>, state: &mut PolicyState, rng: &mut dyn Rng) -> PlanResult {
        groups::spread(inputs, state, rng)?;
        state.draft.finish(self.name(), &inputs.view)
    }
}
