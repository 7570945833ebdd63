//! Random programs of pushes, swaps, rollbacks, drops and clean-ups, by several clients of two clusters that share a bucket, while
//! processes and clients die: whatever a cluster's metadata names can be fetched afterwards, byte for byte, and nothing that
//! nobody names stays for ever.
//!
//! `KITH_SEED` repeats the programs of a run, though not the moments at which they meet. `KITH_PROGRAM_OPERATIONS` says how many
//! operations there are; with `KITH_TEST_FULL` there are ten thousand.

mod check;
mod client;
mod model;
mod program;
mod push;
mod world;

use crate::support;
use client::Client;
use program::{Dice, program};
use std::{sync::Arc, time::Instant};
use world::World;

const CLIENTS: usize = 6;
/// Operations between two looks at everything.
const ROUND: usize = 400;
/// Nodes keep what queries may still ask for, for longer than a short run takes: only those of so many operations wait for that.
const IN_NODES_FROM: usize = 1_000;

fn operations() -> usize {
    match std::env::var("KITH_PROGRAM_OPERATIONS") {
        Ok(number) => number.parse().expect("KITH_PROGRAM_OPERATIONS is a number"),
        Err(_) if support::is_full() => 10_000,
        Err(_) => 120,
    }
}

fn seed() -> u64 {
    match std::env::var("KITH_SEED") {
        Ok(seed) => seed.parse().expect("KITH_SEED is a number"),
        Err(_) if support::is_full() => rand::random(),
        // The same programs each time, so that a short run fails for what was changed.
        Err(_) => 1,
    }
}

#[test]
fn what_is_named_can_be_fetched_and_nothing_else_stays_whatever_clients_and_processes_do() {
    let (operations, seed) = (operations(), seed());
    eprintln!("{operations} operations; repeat them with KITH_SEED={seed}");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let world = Arc::new(World::start(&runtime));
    runtime.block_on(run(&world, operations, seed));
    eprint!("{}", world.model.report());
}

async fn run(world: &Arc<World>, operations: usize, seed: u64) {
    let (mut done, mut dice, started) = (0, Dice::new(seed), Instant::now());
    while done < operations {
        let round = ROUND.min(operations - done);
        let clients = (0..CLIENTS).map(|client| {
            let steps = program(dice.number(), (round + client) / CLIENTS);
            tokio::spawn(Client::new(Arc::clone(world)).run(steps))
        });
        for client in clients.collect::<Vec<_>>() {
            client.await.expect("a client does not panic");
        }
        world.check().await;
        done += round;
        eprintln!("{done} of {operations} operations after {} s", started.elapsed().as_secs());
    }
    world.check_all_serve().await;
    eprintln!("every version that is named has served after {} s", started.elapsed().as_secs());
    world.check_nothing_left().await;
    eprintln!("nothing else is left in the bucket after {} s", started.elapsed().as_secs());
    if IN_NODES_FROM <= operations {
        world.check_nothing_held().await;
        eprintln!("nor at any node after {} s", started.elapsed().as_secs());
    }
    world.model.assert_right();
}
