//! Node borrow (Moolle §III-C): as `adjust`, then a few nodes of groups that were not
//! chosen take keys until they have as many as the others. It buys balance with a bounded
//! number of requests.

use crate::policy::{PlanError, PolicyState, ReplicaPolicy, balance, groups};
use crate::{Candidates, FanOutPlan, GroupLimit, LoadSnapshot};
use kith_types::PartitionId;
use rand::Rng;

pub(super) struct Borrow;

impl ReplicaPolicy for Borrow {
    fn name(&self) -> &'static str {
        "borrow"
    }

    fn summary(&self) -> &'static str {
        "adjust, then a few nodes outside the groups relieve the busiest"
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
        let PolicyState { draft, order, relief, .. } = state;
        let (chosen, others) = order.split_at(count);
        balance::even_out(view, keys, chosen, draft);
        balance::borrow(view, keys, others, draft, relief);
        balance::even_out(view, keys, order, draft);
        draft.finish(self.name(), view)
    }
}
