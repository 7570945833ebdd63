//! The metadata store: the leaders, and which nodes are alive. Nodes and routers watch it, and hear of changes late.

use super::node::Me;
use super::{Shared, World};
use kith_routing::Leaders;
use kith_types::{NodeId, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

/// A node is alive as long as it renewed its lease within this time.
const LEASE: Duration = Duration::from_secs(3);
/// The maximum number of attempts at a conditional write.
const ATTEMPTS_MAX: u32 = 4;

/// The revision of the leaders in the metadata store, and a copy of them.
pub(super) type SeenLeaders = (u64, Rc<Leaders>);

#[derive(Default)]
pub(super) struct Metadata {
    leaders: SeenLeaders,
    leases: BTreeMap<NodeId, Timestamp>,
}

impl Metadata {
    pub(super) fn leaders(&self) -> SeenLeaders {
        self.leaders.clone()
    }

    pub(super) fn alive(&self, now: Timestamp) -> BTreeSet<NodeId> {
        self.leases.iter().filter(|(_, until)| now < **until).map(|(node, _)| *node).collect()
    }

    pub(super) fn renew_lease(&mut self, node: NodeId, now: Timestamp) {
        self.leases.insert(node, now + LEASE);
    }
}

impl World {
    /// Changes the leaders to the result of `decide` with a conditional write, as `kith_cluster::change_leaders` does.
    /// Returns whether `decide` wanted a change; `None` if the outcome is unknown or other writers were faster in every
    /// attempt.
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
                // The answer may be lost although the write succeeded.
                self.back().await?;
                return Some(true);
            }
        }
        None
    }

    /// Sends the leaders to all nodes and routers. Each of them receives the news after its own delay.
    fn spread_news(self: &Shared) {
        (0..self.nodes.len()).for_each(|node| self.send_news(node));
        for router in 0..self.routers.borrow().len() {
            let seen = self.metadata.borrow().leaders();
            self.executor.after(self.network.news_delay(), move |world| {
                let known = &mut world.routers.borrow_mut()[router];
                if known.0 < seen.0 {
                    *known = seen;
                }
            });
        }
    }

    /// Sends the leaders to a node, which may know them already.
    pub(super) fn send_news(self: &Shared, node: usize) {
        let seen = self.metadata.borrow().leaders();
        let incarnation = self.nodes[node].borrow().incarnation;
        self.executor.after(self.network.news_delay(), move |world| {
            world.when_it_runs(Me { index: node, incarnation }, move |process| process.news_arrive(seen));
        });
    }
}
