//! Dead nodes that are replaced, and dead donors that others stand in for.

use super::{PEOPLE, STORE, all_whole, owned, readers, reshape, start};
use crate::support::{
    cluster::{Cluster, signal},
    spare::{Spare, refused, run_json},
    stream::Stream,
    words::{assert_reads, push_version, read_on},
};
use serde_json::Value;
use std::{fs, path::Path};

#[test]
fn a_dead_node_is_replaced_and_dead_donors_are_stood_in_for() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut cluster = start(folder.path(), 1);
    for version in [1, 2] {
        push_version(&cluster, STORE, PEOPLE, version);
    }
    let [mut first, mut second, mut third] =
        [100, 101, 102].map(|node| Spare::start(&mut cluster, node, folder.path()));
    reshape(&cluster, &["add-group", "101"]);
    reshape(&cluster, &["add-node", "100", "--group", "0", "--grace", "0"]);
    follow(&mut cluster, is_settled);
    assert_eq!(owned(&cluster, 0), [(0, 12), (100, 12)]);
    let readers = readers(&cluster);

    // Nobody of its group has what a dead node had: the other group gives.
    first.kill();
    read_on(&mut cluster, &readers);
    reshape(&cluster, &["add-node", "102", "--replace", "100", "--grace", "0"]);
    follow(&mut cluster, is_settled);
    assert_eq!(owned(&cluster, 0), [(0, 12), (102, 12)]);
    [1, 2].into_iter().for_each(|version| all_whole(&cluster, version));
    read_on(&mut cluster, &readers);

    // A donor dies before it gives: the other group's replica does.
    let fourth = Spare::start(&mut cluster, 103, folder.path());
    signal(fourth.pid(), "STOP");
    let begun =
        run_json(&cluster, &["cluster", "add-node", "103", "--group", "0", "--grace", "0", "--detach"]);
    assert_eq!(begun["progress"]["moves"], 8, "{begun}");
    third.kill();
    signal(fourth.pid(), "CONT");
    follow(&mut cluster, is_settled);
    assert_eq!(owned(&cluster, 0), [(0, 8), (102, 8), (103, 8)]);
    read_on(&mut cluster, &readers);
    let answers = readers.map(Stream::end);
    eprintln!("{} single reads, {} of 500 keys", answers[0], answers[1]);

    let _fifth = waits_for_the_last_donor(&mut cluster, &mut second, folder.path());
    cannot_write(&mut cluster, folder.path());
}

/// No replica is left to give but that of `last`, which dies: the rebalance stops, says why, and goes on when it is back. Reads of what
/// nobody has fail meanwhile. Returns the node that took what was given, which has to live on.
fn waits_for_the_last_donor(cluster: &mut Cluster, last: &mut Spare, folder: &Path) -> Spare {
    let fifth = Spare::start(cluster, 104, folder);
    signal(fifth.pid(), "STOP");
    run_json(cluster, &["cluster", "add-node", "104", "--replace", "102", "--grace", "0", "--detach"]);
    last.kill();
    signal(fifth.pid(), "CONT");
    follow(cluster, |status| {
        let reason = status["reason"].as_str().unwrap_or_default();
        status["state"] == "stopped" && reason.contains("no live node can give partition")
    });
    assert_eq!(refused(cluster, &["cluster", "drain", "0"]).0, "rebalance_running");
    last.restart(cluster);
    follow(cluster, is_settled);
    assert_eq!(owned(cluster, 0), [(0, 8), (103, 8), (104, 8)]);
    fifth
}

/// A node that cannot write what it is to get: the rebalance stops, tells what the node said, and goes on when it is mended.
fn cannot_write(cluster: &mut Cluster, folder: &Path) {
    let sixth = Spare::start(cluster, 105, folder);
    let components = sixth.data.join("components");
    fs::write(&components, "in the way").expect("a file");
    let (code, reason) = refused(cluster, &["cluster", "add-node", "105", "--group", "0", "--grace", "0"]);
    assert_eq!(code, "rebalance_stopped", "{reason}");
    assert!(reason.contains("stealer n105 cannot take partition"), "{reason}");
    assert!(reason.contains("the last copy that failed, from n"), "{reason}");
    assert!(reason.contains("Not a directory"), "{reason}");
    fs::remove_file(&components).expect("the file");
    run_json(cluster, &["cluster", "rebalance", "--continue", "--detach"]);
    follow(cluster, is_settled);
    assert_eq!(owned(cluster, 0).len(), 4);
    [1, 2].into_iter().for_each(|version| all_whole(cluster, version));
    assert_reads(cluster, STORE, PEOPLE, 2);
}

/// Waits until the rebalance under way is there; one that stopped for another reason goes on.
fn follow(cluster: &mut Cluster, is_there: impl Fn(&Value) -> bool) {
    cluster.wait_until("the rebalance gets there", |cluster| {
        let status = run_json(cluster, &["cluster", "rebalance", "--status"]);
        let is_there = is_there(&status);
        if !is_there && status["state"] == "stopped" {
            run_json(cluster, &["cluster", "rebalance", "--continue", "--detach"]);
        }
        is_there
    });
}

fn is_settled(status: &Value) -> bool {
    status["state"] == "finished" && status["progress"]["reclaims_left"] == 0
}
