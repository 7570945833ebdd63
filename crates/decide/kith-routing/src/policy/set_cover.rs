//! Greedy set cover over all groups: repeatedly takes the node that holds the most uncovered partitions, until none is left
//! (Moolle §I-A). It makes the fewest requests for few keys. For many keys it takes the nodes of one group, one after
//! another.

use crate::policy::{PlanResult, PolicyInputs, PolicyState, ReplicaPolicy};
use crate::{Candidates, NodeIndex};
use rand::{Rng, RngExt};

pub(super) struct SetCover;

impl ReplicaPolicy for SetCover {
    fn name(&self) -> &'static str {
        "set-cover"
    }

    fn summary(&self) -> &'static str {
        "the fewest nodes that hold all keys, greedily; best for few keys"
    }

    fn plan(&self, inputs: &PolicyInputs<'_>, state: &mut PolicyState, rng: &mut dyn Rng) -> PlanResult {
        let PolicyInputs { ref view, keys, .. } = *inputs;
        let PolicyState { draft, cover, order_of_nodes, .. } = state;
        draft.begin(view, keys)?;
        cover.begin(view, keys, draft);
        in_turn(view, rng, order_of_nodes);
        while !cover.is_done() {
            let best = cover.best_of(order_of_nodes.iter().copied());
            let best = best.expect("an uncovered partition has a replica that gains");
            cover.take(best, view, draft);
        }
        draft.finish(self.name(), view)
    }
}

/// Fills in the order in which equal nodes are taken: group by group, starting at a random group, and in each group at a
/// random node. The nodes of a group never overlap, so staying in one group needs the fewest nodes. The random starts
/// prevent that one node is everyone's first choice.
fn in_turn(view: &Candidates<'_>, rng: &mut dyn Rng, order: &mut Vec<NodeIndex>) {
    let nodes = view.node_count() as u32;
    let first = NodeIndex(rng.random_range(0..nodes));
    let start = (0..nodes).find(|node| view.group_of(NodeIndex(*node)) == view.group_of(first)).unwrap_or(0);
    order.clear();
    order.extend((0..nodes).map(|step| NodeIndex((start + step) % nodes)));
    for group in order.chunk_by_mut(|a, b| view.group_of(*a) == view.group_of(*b)) {
        let length = group.len();
        group.rotate_left(first.index() % length);
    }
}
