//! Node borrow (Moolle §III-C). It starts like `adjust`; then a few nodes of groups that were not chosen take keys until
//! they have as many as the others. It improves the balance with a bounded number of additional requests.

use crate::policy::{
    PlanResult, PolicyInputs, PolicyState, ReplicaPolicy, balance, balance::Lenders, groups,
};
use rand::Rng;

/// The number of first nodes that are tried. If there are few partitions, the best node may hold the same ones as the
/// second.
const STARTS_MAX: usize = 4;
/// The search stops once the busiest node is above the mean by at most the mean divided by this, or by one key.
const EVEN_SHARE: u32 = 12;

pub(super) struct BorrowPolicy;

impl ReplicaPolicy for BorrowPolicy {
    fn name(&self) -> &'static str {
        "borrow"
    }

    fn summary(&self) -> &'static str {
        "adjust, then a few nodes outside the groups relieve the busiest"
    }

    fn plan(&self, inputs: &PolicyInputs<'_>, state: &mut PolicyState, rng: &mut dyn Rng) -> PlanResult {
        let count = groups::spread(inputs, state, rng)?;
        let PolicyState { draft, order, relief, .. } = state;
        let (chosen, others) = order.split_at(count);
        let lenders = Lenders { view: &inputs.view, keys: inputs.keys, groups: others };
        balance::even_out(inputs, chosen, draft);
        let spread = draft.clone();
        for start in 0..STARTS_MAX {
            let mut tried = spread.clone();
            balance::borrow(&lenders, &mut tried, relief, start);
            balance::even_out(inputs, order, &mut tried);
            if start == 0 || tried.busiest_keys() < draft.busiest_keys() {
                *draft = tried;
            }
            let mean = draft.mean_keys();
            if draft.busiest_keys() <= mean + (mean / EVEN_SHARE).max(1) {
                break;
            }
        }
        draft.finish(self.name(), &inputs.view)
    }
}
