//! Set cover below about n keys, cluster-limited above, n being the nodes of a group.
//!
//! For few keys set cover needs a third fewer requests than one group does; for many
//! it needs as many and costs more to compute, and the limit says what is wanted.

use crate::policy::{PlanError, PolicyState, ReplicaPolicy, n_groups::NGroups, set_cover::SetCover};
use crate::{Candidates, FanOutPlan, GroupLimit, LoadSnapshot};
use kith_types::PartitionId;
use rand::Rng;

pub(super) struct Hybrid;

impl ReplicaPolicy for Hybrid {
    fn name(&self) -> &'static str {
        "hybrid"
    }

    fn summary(&self) -> &'static str {
        "set-cover for fewer keys than a group has nodes, n-groups above"
    }

    fn plan(
        &self,
        view: &Candidates<'_>,
        keys: &[PartitionId],
        limit: GroupLimit,
        state: &mut PolicyState,
        load: &LoadSnapshot,
        rng: &mut dyn Rng,
    ) -> Result<FanOutPlan, PlanError> {
        let few = keys.len() <= view.nodes_per_group();
        let policy: &dyn ReplicaPolicy = if few { &SetCover } else { &NGroups };
        let plan = policy.plan(view, keys, limit, state, load, rng)?;
        Ok(FanOutPlan { policy: self.name(), ..plan })
    }
}
