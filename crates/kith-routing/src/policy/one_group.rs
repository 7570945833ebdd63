//! Cluster-aware with one group (Moolle §III-C): at most as many requests as the
//! group has nodes, whatever the number of keys.

use crate::policy::{PlanError, PolicyState, ReplicaPolicy, groups};
use crate::{Candidates, FanOutPlan, GroupLimit, LoadSnapshot};
use kith_types::PartitionId;
use rand::Rng;

pub(super) struct OneGroup;

impl ReplicaPolicy for OneGroup {
    fn name(&self) -> &'static str {
        "one-group"
    }

    fn summary(&self) -> &'static str {
        "all keys in one group, the fewest requests that stay balanced"
    }

    fn plan(
        &self,
        view: &Candidates<'_>,
        keys: &[PartitionId],
        _limit: GroupLimit,
        state: &mut PolicyState,
        _load: &LoadSnapshot,
        rng: &mut dyn Rng,
    ) -> Result<FanOutPlan, PlanError> {
        groups::spread(view, keys, GroupLimit(1), state, rng)?;
        state.draft.finish(self.name(), view)
    }
}
