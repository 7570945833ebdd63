//! Routers. Each of them assigns leaders, and knows the current leaders.

use super::Shared;
use super::executor::Process;
use kith_types::NodeId;
use std::collections::BTreeSet;
use std::time::Duration;

/// The interval at which a router checks whether leadership must move.
const INTERVAL: Duration = Duration::from_secs(1);
/// The time that routers wait after the start for all nodes to be alive, before they assign leaders without them.
const START_WAIT: Duration = Duration::from_secs(2);

/// Starts a router, which assigns leaders as `kith-router/src/admin/live/leaders.rs` does.
pub(super) fn start(world: &Shared) {
    let own = world.clone();
    world.executor.spawn(Process::Outside, async move {
        loop {
            let now = own.executor.now();
            let alive = own.metadata.borrow().alive(now);
            let is_complete = alive.len() == own.nodes.len();
            if is_complete || START_WAIT <= now.0 {
                let leaving = own.leaving.get();
                let eligible: BTreeSet<NodeId> =
                    alive.into_iter().filter(|node| leaving != Some(*node)).collect();
                own.change_leaders(|leaders| leaders.next(&own.table, &eligible)).await;
            }
            let pause = if is_complete { INTERVAL } else { INTERVAL / 4 };
            own.executor.sleep(pause).await;
        }
    });
}
