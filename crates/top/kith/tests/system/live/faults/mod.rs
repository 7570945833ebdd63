//! Nodes, routers and databases are killed and frozen in turn while writers and readers run, the cluster changes its shape,
//! and all processes are restarted. No acknowledged write is lost, no write is invented, and no read is behind its ticket.

mod callers;
mod check;
mod history;
mod schedule;
mod world;

use self::{
    schedule::Fault::{self, Freeze, Kill, Reshape, RestartAll},
    world::{WRITERS, World},
};
use crate::{
    live::site::Site,
    support::{is_full, wait_until_or_tell},
};
use std::{
    thread,
    time::{Duration, Instant},
};

const READERS: usize = 2;
const SHAPE: [&str; 11] =
    ["--processes", "--groups", "2", "--nodes", "2", "--routers", "2", "--partitions", "8", "--threads", "2"];
/// The faults of a short run, for which CI has time.
const SHORT: [Fault; 9] = [
    Kill(("nodes", 0)),
    Freeze(("nodes", 3)),
    Kill(("databases", 0)),
    Freeze(("databases", 0)),
    Kill(("routers", 0)),
    Freeze(("routers", 1)),
    Reshape,
    RestartAll,
    Kill(("nodes", 1)),
];
/// The faults of a short run on MariaDB, which is slower to start.
const SHORT_ON_SERVER: [Fault; 4] =
    [Kill(("databases", 0)), Kill(("nodes", 0)), Freeze(("databases", 0)), Kill(("nodes", 3))];
/// The faults of a long run. They are repeated until the time is over.
const LONG: [Fault; 16] = [
    Kill(("nodes", 0)),
    Freeze(("nodes", 1)),
    Kill(("databases", 0)),
    Freeze(("routers", 0)),
    Kill(("nodes", 3)),
    Freeze(("databases", 0)),
    Reshape,
    Kill(("routers", 1)),
    Freeze(("nodes", 2)),
    Kill(("nodes", 1)),
    RestartAll,
    Freeze(("nodes", 0)),
    Kill(("routers", 0)),
    Kill(("nodes", 2)),
    Freeze(("routers", 1)),
    Freeze(("nodes", 3)),
];

/// The outcomes that must have occurred often at the end of a run.
const ENOUGH: [&str; 4] = ["write: done", "assoc_get: done", "assoc_range: done", "connections: done"];

/// Returns the duration of a long run; `None` for a short run.
fn time() -> Option<Duration> {
    let seconds = match std::env::var("KITH_FAULT_SECONDS") {
        Ok(number) => number.parse().expect("KITH_FAULT_SECONDS is a number"),
        Err(_) if is_full() => 300,
        Err(_) => return None,
    };
    Some(Duration::from_secs(seconds))
}

#[test]
fn no_acknowledged_write_is_lost_whatever_happens_to_processes() {
    check_under_faults(Site::start(&SHAPE), &SHORT);
}

#[test]
fn no_acknowledged_write_is_lost_whatever_happens_to_processes_and_mariadb() {
    check_under_faults(Site::start_on_mariadb(&SHAPE), &SHORT_ON_SERVER);
}

fn check_under_faults(mut site: Site, short: &[Fault]) {
    let world = &World::begin(&site);
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            scope.spawn(move || callers::write(world, writer));
        }
        for reader in 0..READERS {
            scope.spawn(move || callers::read(world, reader));
        }
        let brought = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            bring(short, world, &mut site);
            wait_until_enough(world);
        }));
        world.stop();
        brought.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    eprintln!("{:#?}", world.counts.lock());
    let wrong = world.wrong.lock();
    assert!(
        wrong.is_empty(),
        "{} answers are wrong:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(5)].join("\n")
    );
    check::check(world, &site);
}

/// Waits until each outcome of [`ENOUGH`] has occurred often enough for the test to mean something, which takes longer on a
/// busy machine.
fn wait_until_enough(world: &World) {
    let enough = || ENOUGH.iter().all(|what| 50 < world.count(what)) || !world.goes_on();
    wait_until_or_tell("enough reads and writes were done", enough, || format!("{:#?}", world.counts.lock()));
}

/// Injects the faults one after the other: all of them once in a short run, and repeatedly until the time is over in a long
/// one.
fn bring(short: &[Fault], world: &World, site: &mut Site) {
    let started = Instant::now();
    let faults = if time().is_some() { &LONG } else { short };
    for (turn, fault) in faults.iter().cycle().enumerate() {
        let is_over = faults.len() <= turn && time().is_none_or(|time| time < started.elapsed());
        if is_over || !world.goes_on() {
            return;
        }
        eprintln!("after {} s: {fault:?}", started.elapsed().as_secs());
        schedule::bring(*fault, turn as u32, world, site);
    }
}
