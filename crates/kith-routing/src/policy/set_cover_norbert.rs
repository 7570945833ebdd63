//! Norbert's modified set cover: take any uncovered partition and, among *its*
//! replicas, the one that covers most of the rest; equals in turn. Cheaper to compute
//! than the full greedy one, and worse for many keys: it mixes groups.

use crate::policy::{PlanError, PolicyState, ReplicaPolicy};
use crate::{Candidates, FanOutPlan, GroupIndex, GroupLimit, LoadSnapshot};
use kith_types::PartitionId;
use rand::Rng;

pub(super) struct SetCoverNorbert;

impl ReplicaPolicy for SetCoverNorbert {
    fn name(&self) -> &'static str {
        "set-cover-norbert"
    }

    fn summary(&self) -> &'static str {
        "set cover that looks only at one partition's replicas at a time"
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
        let PolicyState { cursors, draft, cover, .. } = state;
        draft.begin(view, keys)?;
        cursors.fit(view);
        cover.begin(view, keys, draft);
        while let Some(partition) = cover.any() {
            let groups = view.group_count() as u32;
            let first = cursors.turn(partition, groups);
            let in_turn = (0..groups).map(|step| GroupIndex((first + step) % groups));
            let replicas = in_turn.filter_map(|group| view.replica(partition, group));
            let best = cover.best_of(replicas).expect("an uncovered partition has a replica that gains");
            cover.take(best, view, draft);
        }
        draft.finish(self.name(), view)
    }
}
