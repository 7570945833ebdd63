//! Ids of nodes and routers, which belong to the process that has them and lives.

use super::{PEOPLE, STORE, start};
use crate::support::{
    cluster::{Cluster, kith, signal, text},
    spare::{Spare, metadata_address, run_json},
    words::{assert_reads, push_version},
};
use serde_json::json;
use std::{fs, path::Path, process::Stdio};

/// Starts a process that must be refused; what it says.
fn refused_to_start(arguments: &[&str]) -> String {
    let output = kith(arguments).stdin(Stdio::null()).output().expect("kith runs");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    text(&output)
}

#[test]
fn an_id_belongs_to_the_process_that_has_it_and_lives() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut cluster = start(folder.path(), 1);
    push_version(&cluster, STORE, PEOPLE, 1);
    let mut first = Spare::start(&mut cluster, 100, folder.path());
    let metadata = metadata_address(&folder.path().join("data"));
    let other = folder.path().join("other").display().to_string();
    let at = ["--metadata", &metadata, "--data", &other];

    let said = refused_to_start(&[&["node", "--node", "100"], &at[..]].concat());
    assert!(
        said.contains("error[id_taken]: node 100 is already running") && said.contains(&first.addr),
        "{said}"
    );
    let router = cluster.ready()["router"].as_str().expect("text").to_owned();
    // Without --id it is router 0.
    let said = refused_to_start(&[&["router"], &at[..]].concat());
    assert!(
        said.contains("error[id_taken]: router 0 is already running") && said.contains(&router),
        "{said}"
    );
    assert_reads(&cluster, STORE, PEOPLE, 1);

    // One that does not move for long can be replaced, and does not take its id back.
    signal(first.pid(), "STOP");
    let mut second = first.start_beside(&mut cluster);
    signal(first.pid(), "CONT");
    let log = first.data.with_extension("log");
    cluster.wait_until("the first has noticed", |_| {
        fs::read_to_string(&log).expect("a log").contains("another process has the id of node 100")
    });
    second.wait_until_up(&mut cluster);
    // It steps in when the other is gone.
    second.kill();
    first.wait_until_up(&mut cluster);

    the_supervised_come_back_where_they_were(&mut cluster, folder.path());
}

/// A supervised node whose id another has taken while it was frozen says so in its log, and comes back on its own port.
fn the_supervised_come_back_where_they_were(cluster: &mut Cluster, folder: &Path) {
    let at = |cluster: &Cluster| run_json(cluster, &["cluster", "status"])["nodes"][0].clone();
    let (pid, before) = (cluster.node_pids(0)[0], at(cluster));
    assert_eq!((&before["node"], &before["pid"]), (&json!(0), &json!(pid)));
    signal(pid, "STOP");
    let mut outsider = Spare::start(cluster, 0, folder);
    signal(pid, "KILL");
    let log = folder.join("data/node-000.log");
    let times = |what: &str| fs::read_to_string(&log).expect("a log").matches(what).count();
    cluster.wait_until("it says so", |_| 2 <= times("error[id_taken]: node 0 is already running"));
    assert_eq!(times("port_in_use"), 0);
    outsider.kill();
    cluster.wait_until("it is back", |cluster| {
        let now = at(cluster);
        now["state"] == "up" && now["addr"] == before["addr"] && now["pid"] != before["pid"]
    });
    assert_reads(cluster, STORE, PEOPLE, 1);
}
