//! The naive strategy (Moolle §II-B): each partition's replicas in turn, over
//! every group. Spreads keys best and costs the most requests.

use crate::policy::{PlanError, PolicyState, ReplicaPolicy};
use crate::{Candidates, FanOutPlan, GroupLimit, LoadSnapshot};
use kith_types::PartitionId;
use rand::Rng;

pub(super) struct RoundRobin;

impl ReplicaPolicy for RoundRobin {
    fn name(&self) -> &'static str {
        "round-robin"
    }

    fn summary(&self) -> &'static str {
        "each partition's replicas in turn, over all groups; ignores the limit"
    }

    fn plan(
        &self,
        view: &Candidates<'_>,
        keys: &[PartitionId],
        _limit: GroupLimit,
        state: &mut PolicyState,
        _load: &LoadSnapshot,
        _rng: &mut dyn Rng,
    ) -> Result<FanOutPlan, PlanError> {
        let PolicyState { cursors, draft, order, .. } = state;
        draft.begin(view, keys)?;
        cursors.fit(view);
        order.clear();
        order.extend(view.groups());
        for (key, partition) in keys.iter().enumerate() {
            match cursors.take(view, *partition, order) {
                Some(node) => draft.assign(key, node),
                None => draft.lose(*partition),
            }
        }
        draft.finish(self.name(), view)
    }
}
