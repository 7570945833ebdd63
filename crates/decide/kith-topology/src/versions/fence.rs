//! Tracks which routers do not yet serve what was just made current. A router that has seen the change begins no query on
//! anything older. A router whose lease has ended knows that it may serve something older, and says so in its answers.

use std::collections::{BTreeMap, BTreeSet};
use strum::IntoStaticStr;

/// The state of one router.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum RouterProgress {
    /// It serves what was made current.
    Seen,
    /// Its lease ended before it had seen the change, so it reports that its metadata is stale.
    Expired,
    /// It holds a lease and has not reported that it has seen the change.
    Unknown,
}

impl RouterProgress {
    /// Returns the name of the state in replies.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Waits for the live routers.
#[derive(Clone, Debug)]
pub struct Fence {
    /// The metadata revision of the change.
    revision: u64,
    routers: BTreeMap<u32, RouterProgress>,
}

impl Fence {
    /// Returns a fence for a change at `revision` that knows no routers yet.
    pub fn new(revision: u64) -> Self {
        Self { revision, routers: BTreeMap::new() }
    }

    /// Takes in which routers hold a lease now.
    pub fn live(&mut self, routers: &BTreeSet<u32>) {
        for (router, followed) in &mut self.routers {
            *followed = match (*followed, routers.contains(router)) {
                (RouterProgress::Unknown, false) => RouterProgress::Expired,
                // It has a lease again, and may have an older topology.
                (RouterProgress::Expired, true) => RouterProgress::Unknown,
                (known, _) => known,
            };
        }
        for router in routers {
            self.routers.entry(*router).or_insert(RouterProgress::Unknown);
        }
    }

    /// Takes in that a router serves the metadata of a revision.
    pub fn serves(&mut self, router: u32, revision: u64) {
        if self.revision <= revision {
            self.routers.insert(router, RouterProgress::Seen);
        }
    }

    /// Returns the routers that are still waited for.
    pub fn waits_for(&self) -> Vec<u32> {
        let waiting = self.routers.iter().filter(|(_, followed)| **followed == RouterProgress::Unknown);
        waiting.map(|(router, _)| *router).collect()
    }

    /// Returns the state of each router.
    pub fn routers(&self) -> &BTreeMap<u32, RouterProgress> {
        &self.routers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn live(routers: &[u32]) -> BTreeSet<u32> {
        routers.iter().copied().collect()
    }

    #[test]
    fn a_router_is_waited_for_until_it_has_seen_the_change_or_its_lease_has_ended() {
        let mut fence = Fence::new(7);
        fence.live(&live(&[0, 1, 2]));
        fence.serves(0, 7);
        fence.serves(1, 6);
        assert_eq!(fence.waits_for(), [1, 2]);
        fence.live(&live(&[0, 1]));
        fence.serves(1, 9);
        assert!(fence.waits_for().is_empty());
        let names: Vec<&str> = fence.routers().values().map(|followed| followed.name()).collect();
        assert_eq!(names, ["seen", "seen", "expired"]);
        fence.live(&live(&[0, 1, 2]));
        assert_eq!(fence.waits_for(), [2], "it is back, and nobody knows with what");
    }

    proptest! {
        #[test]
        fn nobody_who_lives_and_has_not_seen_the_change_is_passed_over(
            steps in prop::collection::vec((prop::collection::btree_set(0u32..5, 0..5), 0u32..5, 5u64..9), 1..20),
        ) {
            let mut fence = Fence::new(7);
            let (mut seen, mut last) = (BTreeSet::new(), BTreeSet::new());
            for (lives, router, revision) in steps {
                fence.live(&lives);
                fence.serves(router, revision);
                if 7 <= revision {
                    seen.insert(router);
                }
                last = lives;
            }
            let expected: Vec<u32> = last.difference(&seen).copied().collect();
            prop_assert_eq!(fence.waits_for(), expected);
        }
    }
}
