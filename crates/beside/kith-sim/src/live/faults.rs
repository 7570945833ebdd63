//! The faults of a run. They begin two seconds after the start, and all of them end at `LiveConfig::faults_end`.

use super::Shared;
use super::network::NetworkState;
use super::node;
use kith_types::Timestamp;
use std::time::Duration;

const BEGIN: Duration = Duration::from_secs(2);

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Schedules the faults of the run.
pub(super) fn schedule(world: &Shared) {
    let span = (world.config.faults_end - BEGIN).as_millis() as u64;
    for _ in 0..world.config.faults {
        let at = BEGIN + millis(world.network.below(span));
        world.executor.after(at, happen);
    }
    if world.config.fails_over {
        let copied = BEGIN + millis(world.network.below(span));
        let replaced = copied + millis(world.network.below(3_000));
        let replaced = replaced.min(world.config.faults_end);
        world.executor.after(copied, move |world| {
            let database = world.database.borrow();
            let copy = world.truth.borrow_mut().copied(&database);
            world.executor.after(replaced - copied, move |world| {
                let now = world.executor.now();
                world.truth.borrow_mut().replaced(copy, &mut world.database.borrow_mut(), now);
            });
        });
    }
}

fn happen(world: &Shared) {
    let node = world.network.below(world.nodes.len() as u64) as usize;
    let lasts = millis(100 + world.network.below(5_000));
    match world.network.below(9) {
        0 | 1 => {
            node::crash(world, node);
            world.executor.after(lasts / 2, move |world| node::restart(world, node));
        }
        2 | 3 => {
            let until = world.executor.now() + lasts;
            world.nodes[node].borrow_mut().frozen_until = until;
        }
        4 => {
            let until = world.executor.now() + lasts / 3;
            world.database.borrow_mut().down_until = until;
        }
        5 => {
            let lost_permille = 20 + world.network.below(250) as u32;
            world.network.state.set(NetworkState { lost_permille, ..world.network.state.get() });
            world.executor.after(lasts, |world| {
                world.network.state.set(NetworkState { lost_permille: 0, ..world.network.state.get() });
            });
        }
        6 => {
            world.network.state.set(NetworkState { news_delay: lasts, ..world.network.state.get() });
            world.executor.after(lasts, |world| {
                world
                    .network
                    .state
                    .set(NetworkState { news_delay: Duration::ZERO, ..world.network.state.get() });
            });
        }
        7 => {
            let leaving = world.table.nodes()[node].id;
            world.leaving.set(Some(leaving));
            world.executor.after(lasts, |world| world.leaving.set(None));
        }
        _ => world.database.borrow_mut().trim(),
    }
}

/// Ends all faults.
pub(super) fn end(world: &Shared) {
    world.network.state.set(NetworkState::default());
    world.leaving.set(None);
    world.database.borrow_mut().down_until = Timestamp::ZERO;
    for index in 0..world.nodes.len() {
        let now = world.executor.now();
        {
            let mut node = world.nodes[index].borrow_mut();
            node.frozen_until = node.frozen_until.min(now);
        }
        node::restart(world, index);
    }
}
