//! Cluster-aware with `n` groups (Moolle §III-C): the limit says how many; each
//! key goes to its partition's next replica among them, so that the number of
//! requests is the one of equation 3.

use crate::policy::{PlanError, PolicyState, ReplicaPolicy, groups};
use crate::{Candidates, FanOutPlan, GroupLimit, LoadSnapshot};
use kith_types::PartitionId;
use rand::Rng;

pub(super) struct NGroups;

impl ReplicaPolicy for NGroups {
    fn name(&self) -> &'static str {
        "n-groups"
    }

    fn summary(&self) -> &'static str {
        "keys in turn over as many groups as the limit says"
    }

    fn plan(
        &self,
        view: &Candidates<'_>,
        keys: &[PartitionId],
        limit: GroupLimit,
        state: &mut PolicyState,
        _load: &LoadSnapshot,
        rng: &mut dyn Rng,
    ) -> Result<FanOutPlan, PlanError> {
        groups::spread(view, keys, limit, state, rng)?;
        state.draft.finish(self.name(), view)
    }
}
