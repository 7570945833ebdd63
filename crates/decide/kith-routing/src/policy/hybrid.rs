//! Set cover for up to n keys and cluster-limited routing for more, where n is the number of nodes of a group.
//!
//! For few keys, set cover needs a third fewer requests than one group. For many keys it needs as many and costs more to
//! compute, and the limit of groups applies.

use crate::FanOutPlan;
use crate::policy::{
    PlanResult, PolicyInputs, PolicyState, ReplicaPolicy, n_groups::NGroups, set_cover::SetCover,
};
use rand::Rng;

pub(super) struct Hybrid;

impl ReplicaPolicy for Hybrid {
    fn name(&self) -> &'static str {
        "hybrid"
    }

    fn summary(&self) -> &'static str {
        "set-cover for fewer keys than a group has nodes, n-groups above"
    }

    fn plan(&self, inputs: &PolicyInputs<'_>, state: &mut PolicyState, rng: &mut dyn Rng) -> PlanResult {
        let few = inputs.keys.len() <= inputs.view.nodes_per_group();
        let policy: &dyn ReplicaPolicy = if few { &SetCover } else { &NGroups };
        let plan = policy.plan(inputs, state, rng)?;
        Ok(FanOutPlan { policy: self.name(), ..plan })
    }
}
