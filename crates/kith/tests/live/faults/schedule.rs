//! Faults, one after the other: processes are killed and frozen, the cluster changes its shape, everything is restarted.

use super::world::World;
use crate::{
    site::Site,
    support::{
        cluster::Cluster,
        spare::{Spare, told},
        wait_until_or_tell,
    },
};
use rustix::process::{Pid, Signal, kill_process};
use std::{fs, thread, time::Duration};

/// A cluster has this long between two faults to do what it does when all is well.
const PAUSE: Duration = Duration::from_millis(700);
/// How long a process stands still: longer than a lease, and than anybody waits for an answer.
const FROZEN: Duration = Duration::from_secs(6);
/// The first node that joins.
const JOINS: u32 = 100;

/// Members of a cluster, as its ready file lists them: their kind and their index.
pub type Victim = (&'static str, usize);

/// One thing that goes wrong, or is changed.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    Kill(Victim),
    Freeze(Victim),
    /// A node joins and takes partitions over, a group is drained and restored, and the node leaves.
    Reshape,
    /// All processes are killed at once, and started again.
    RestartAll,
}

/// Brings a fault about, and returns when it is over.
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

/// The process of a member of the cluster, if it is there and is one of this cluster.
fn process(cluster: &Cluster, (of, index): Victim) -> Option<Pid> {
    let pid = cluster.ready()[of][index]["pid"].as_i64()?;
    let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let is_ours = String::from_utf8_lossy(&arguments).contains(cluster.data().to_str().expect("UTF-8"));
    Pid::from_raw(pid as i32).filter(|_| is_ours)
}

/// Kills a process, and waits until another one is started in its place.
fn kill(victim: Victim, site: &Site) -> bool {
    if victim.0 == "databases" && site.restart_server() {
        return true;
    }
    let Some(pid) = process(&site.cluster, victim) else { return false };
    // It may end by itself meanwhile.
    let _ = kill_process(pid, Signal::KILL);
    let is_back = || process(&site.cluster, victim).is_some_and(|now| now != pid);
    wait_until_or_tell("a process is started again", is_back, || format!("{victim:?}"));
    true
}

/// A process that stands still. It goes on when this is dropped.
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
        let ended = told(cluster, &[&["cluster"], command].concat());
        assert_eq!(ended["state"], "finished", "{command:?}: {ended}");
    };
    let folder = cluster.data().parent().expect("it is in a folder").to_owned();
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
