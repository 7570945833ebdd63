//! Cluster-aware with `n` groups (Moolle §III-C): the limit says how many; each
//! key goes to its partition's next replica among them, so that the number of
//! requests is the one of equation 3.

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
