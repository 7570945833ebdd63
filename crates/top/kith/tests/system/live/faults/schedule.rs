//! The faults, which happen one at a time: processes are killed or frozen, the cluster changes its shape, or all processes
//! are restarted.

use super::world::World;
use crate::{
    live::site::Site,
    support::{
        cluster::Cluster,
        spare::{Spare, run_json},
        wait_until_or_tell,
    },
};
use rustix::process::{Pid, Signal, kill_process};
use std::{fs, thread, time::Duration};

/// The pause between two faults, in which the cluster runs without one.
const PAUSE: Duration = Duration::from_millis(700);
/// How long a process is frozen. It is longer than a lease and longer than any caller waits for an answer.
const FROZEN: Duration = Duration::from_secs(6);
/// The id of the first node that joins.
const JOINS: u32 = 100;

/// A process of the cluster, as the ready file lists it: its kind and its index.
pub type Victim = (&'static str, usize);

/// A fault, or a change of the cluster.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    Kill(Victim),
    Freeze(Victim),
    /// A node joins and takes over partitions, a group is drained and restored, and the node leaves.
    Reshape,
    /// All processes are killed at once, and started again.
    RestartAll,
}

/// Injects a fault, and returns when it is over.
pub fn bring(fault: Fault, turn: u32, world: &World, site: &mut Site) {
    let has_happened = match fault {
        Fault::Kill(victim) => kill(victim, site),
        Fault::Freeze(victim) => freeze(victim, site),
        Fault::Reshape => reshape(turn, &mut site.cluster),
        Fault::RestartAll => restart_all(world, site),
    };
    if has_happened {
        world.add(format!("fault: {fault:?}"));
    }
    thread::sleep(PAUSE);
}

/// Returns the process id of a victim, if the process runs and belongs to this cluster.
fn process(cluster: &Cluster, (of, index): Victim) -> Option<Pid> {
    let pid = cluster.ready()[of][index]["pid"].as_i64()?;
    let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let is_ours = String::from_utf8_lossy(&arguments).contains(cluster.data().to_str().expect("UTF-8"));
    Pid::from_raw(pid as i32).filter(|_| is_ours)
}

/// Kills a process, and waits until the cluster has started another one in its place. Returns whether it was killed.
fn kill(victim: Victim, site: &Site) -> bool {
    if victim.0 == "databases" && site.restart_server() {
        return true;
    }
    let Some(pid) = process(&site.cluster, victim) else { return false };
    // The process may have ended by itself in the meantime.
    let _ = kill_process(pid, Signal::KILL);
    let is_back = || process(&site.cluster, victim).is_some_and(|now| now != pid);
    wait_until_or_tell("a process is started again", is_back, || format!("{victim:?}"));
    true
}

/// A process that is stopped by a signal. It continues when this value is dropped.
struct Frozen(Pid);

impl Drop for Frozen {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::CONT);
    }
}

fn freeze(victim: Victim, site: &Site) -> bool {
    let server = if victim.0 == "databases" { site.server_pid() } else { None };
    let Some(pid) = server.or_else(|| process(&site.cluster, victim)) else { return false };
    if kill_process(pid, Signal::STOP).is_err() {
        return false;
    }
    let _frozen = Frozen(pid);
    thread::sleep(FROZEN);
    true
}

fn reshape(turn: u32, cluster: &mut Cluster) -> bool {
    let must = |cluster: &Cluster, command: &[&str]| {
        let ended = run_json(cluster, &[&["cluster"], command].concat());
        assert_eq!(ended["state"], "finished", "{command:?}: {ended}");
    };
    let folder = cluster.data().parent().expect("the data folder has a parent").to_owned();
    let node = (JOINS + turn).to_string();
    let spare = Spare::start(cluster, JOINS + turn, &folder);
    must(cluster, &["add-node", &spare.addr, "--grace", "0"]);
    let group = (turn % 2).to_string();
    must(cluster, &["drain-group", &group]);
    must(cluster, &["restore-group", &group]);
    must(cluster, &["remove-node", &node, "--grace", "0"]);
    true
}

fn restart_all(world: &World, site: &mut Site) -> bool {
    site.restart();
    world.moved_to(site.routers());
    true
}
