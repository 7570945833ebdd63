//! Assignment adjustment (Moolle §III-C): as `n-groups`, then keys move from nodes
//! with many keys to nodes with few, inside the chosen groups. It never adds a
//! request. With one group each key has one home and nothing can move.

use crate::policy::{PlanError, PolicyState, ReplicaPolicy, balance, groups};
use crate::{Candidates, FanOutPlan, GroupLimit, LoadSnapshot};
use kith_types::PartitionId;
use rand::Rng;

pub(super) struct Adjust;

impl ReplicaPolicy for Adjust {
    fn name(&self) -> &'static str {
        "adjust"
    }

    fn summary(&self) -> &'static str {
        "n-groups, then keys move from heavily to lightly loaded nodes inside the groups"
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
        let count = groups::spread(view, keys, limit, state, rng)?;
        let PolicyState { draft, order, .. } = state;
        balance::even_out(view, keys, &order[..count], draft);
        draft.finish(self.name(), view)
    }
}
