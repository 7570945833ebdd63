//! The metadata store: who leads, and which nodes are alive. Everybody watches it, and hears of changes late.

use super::{Shared, World};
use kith_routing::Leaders;
use kith_types::{NodeId, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

/// A node that has not been heard of for this long is not alive.
const LEASE: Duration = Duration::from_secs(3);
/// A conditional write is tried so many times.
const ATTEMPTS_MAX: u32 = 4;

/// A copy of the leaders, and its revision.
pub(super) type Seen = (u64, Rc<Leaders>);

#[derive(Default)]
pub(super) struct Metadata {
    leaders: Seen,
    leases: BTreeMap<NodeId, Timestamp>,
}

impl Metadata {
    pub(super) fn leaders(&self) -> Seen {
        self.leaders.clone()
    }

    /// The nodes that are alive.
    pub(super) fn alive(&self, now: Timestamp) -> BTreeSet<NodeId> {
        self.leases.iter().filter(|(_, until)| now < **until).map(|(node, _)| *node).collect()
    }

    pub(super) fn renew_lease(&mut self, node: NodeId, now: Timestamp) {
        self.leases.insert(node, now + LEASE);
    }
}

impl World {
    /// Changes the leaders, if `decide` wants so, by a conditional write as `kith_process::change_leaders` does.
    pub(super) async fn change_leaders(
        self: &Shared,
        decide: impl Fn(&Leaders) -> Option<Leaders>,
    ) -> Option<bool> {
        for _ in 0..ATTEMPTS_MAX {
            let (revision, current) = self.metadata.borrow().leaders();
            self.back().await?;
            let Some(next) = decide(&current) else { return Some(false) };
            self.back().await?;
            if self.metadata.borrow().leaders.0 == revision {
                self.metadata.borrow_mut().leaders = (revision + 1, Rc::new(next));
                self.spread_news();
                // Whoever wrote it may not hear that it did.
                self.back().await?;
                return Some(true);
            }
        }
        None
    }

    /// Tells everybody of the leaders, each a little later.
    fn spread_news(self: &Shared) {
        (0..self.nodes.len()).for_each(|node| self.send_news(node));
        for router in 0..self.routers.borrow().len() {
            let seen = self.metadata.borrow().leaders();
            self.after(self.news_delay(), move |world| {
                let known = &mut world.routers.borrow_mut()[router];
                if known.0 < seen.0 {
                    *known = seen;
                }
            });
        }
    }

    /// Tells a node of the leaders, which it may have heard of already.
    pub(super) fn send_news(self: &Shared, node: usize) {
        let seen = self.metadata.borrow().leaders();
        let incarnation = self.nodes[node].borrow().incarnation;
        self.after(self.news_delay(), move |world| world.news_arrive(node, incarnation, seen));
    }

    fn news_delay(&self) -> Duration {
        let most = self.weather.get().news_delay.as_micros() as u64;
        Duration::from_micros(200 + self.below(most.max(3_000)))
    }
}
