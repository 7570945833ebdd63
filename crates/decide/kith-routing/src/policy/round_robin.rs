//! The naive strategy (Moolle §II-B): the replicas of each partition in turn, over all groups. It spreads keys best and
//! needs the most requests.

use crate::policy::{PlanResult, PolicyInputs, PolicyState, ReplicaPolicy};
use rand::Rng;

pub(super) struct RoundRobin;

impl ReplicaPolicy for RoundRobin {
    fn name(&self) -> &'static str {
        "round-robin"
    }

    fn summary(&self) -> &'static str {
        "each partition's replicas in turn, over all groups; ignores the limit"
    }

    fn plan(&self, inputs: &PolicyInputs<'_>, state: &mut PolicyState, _rng: &mut dyn Rng) -> PlanResult {
        let PolicyInputs { ref view, keys, .. } = *inputs;
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
