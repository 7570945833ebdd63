//! Chooses the replica of each partition with the fewest pending requests, without regard to groups. This is Venice's plain
//! rule ("the least-loaded replica based on the pending request count"). It exists for comparison: its fan-out grows with
//! the cluster.

use crate::NodeIndex;
use crate::policy::{PlanResult, PolicyInputs, PolicyState, ReplicaPolicy};
use rand::Rng;

pub(super) struct LeastPending;

impl ReplicaPolicy for LeastPending {
    fn name(&self) -> &'static str {
        "least-pending"
    }

    fn summary(&self) -> &'static str {
        "each partition at its replica with the fewest requests pending, whatever the group"
    }

    fn plan(&self, inputs: &PolicyInputs<'_>, state: &mut PolicyState, _rng: &mut dyn Rng) -> PlanResult {
        let PolicyInputs { ref view, keys, load, .. } = *inputs;
        let PolicyState { cursors, draft, .. } = state;
        draft.begin(view, keys)?;
        cursors.fit(view);
        let pending =
            |node: &NodeIndex| load.node(view.node(*node).id).map_or(0, |load| load.outstanding_requests);
        for (key, partition) in keys.iter().enumerate() {
            let replicas = view.replicas(*partition);
            let Some(least) = replicas.map(|node| pending(&node)).min() else {
                draft.lose(*partition);
                continue;
            };
            let tied: Vec<NodeIndex> =
                view.replicas(*partition).filter(|node| pending(node) == least).collect();
            draft.assign(key, tied[cursors.turn(*partition, tied.len() as u32) as usize]);
        }
        draft.finish(self.name(), view)
    }
}
