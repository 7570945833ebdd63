//! The life of the processes of `kith dev`: their ready file, their end, and the data that they keep.

use super::{one, village};
use crate::support::{
    self,
    cluster::{Cluster, is_alive, signal, text},
};
use serde_json::json;
use std::fs;

#[test]
fn the_ready_file_names_distinct_processes_and_follows_them() {
    let mut cluster = Cluster::start(&["--processes", "--routers", "2", "--nodes", "2"]);
    let ready = cluster.ready();
    let fields: Vec<&String> = ready.as_object().expect("an object").keys().collect();
    assert_eq!(fields, ["data", "databases", "gremlin", "http", "nodes", "pid", "resp", "router", "routers"]);
    assert_eq!(ready["routers"][0]["addr"], ready["router"]);
    assert_eq!(ready["routers"][0]["resp"], ready["resp"]);
    assert_eq!(ready["routers"][0]["gremlin"], ready["gremlin"]);
    let mut pids: Vec<u64> = [&ready["nodes"], &ready["routers"], &ready["databases"]]
        .iter()
        .flat_map(|list| {
            list.as_array().expect("a list").iter().map(|entry| entry["pid"].as_u64().expect("a pid"))
        })
        .collect();
    pids.sort_unstable();
    pids.dedup();
    assert_eq!(pids.len(), 4 + 2 + 1);

    let victim = &ready["nodes"][1];
    signal(victim["pid"].as_u64().expect("a pid") as u32, "KILL");
    let (before, addr) = (victim["pid"].clone(), victim["addr"].clone());
    cluster.wait_until("the node is back", |cluster| cluster.ready()["nodes"][1]["pid"] != before);
    assert_eq!(cluster.ready()["nodes"][1]["addr"], addr, "a restarted node keeps its address");
}

#[test]
fn children_end_with_their_supervisor_however_it_ends() {
    let mut cluster = Cluster::start(&["--processes", "--nodes", "1"]);
    let pids: Vec<u32> = [cluster.node_pids(0), cluster.node_pids(1)].concat();
    signal(cluster.pid(), "KILL");
    cluster.wait_until("the children are gone", |_| !pids.iter().any(|pid| is_alive(*pid)));
}

/// Runs `kith dev` with arguments that it must refuse. Returns its standard error.
fn refused_to_start(arguments: &[&str]) -> String {
    let output =
        support::cluster::dev(arguments).stdin(std::process::Stdio::null()).output().expect("kith runs");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    String::from_utf8(output.stderr).expect("UTF-8")
}

#[test]
fn data_is_kept_across_restarts_and_the_directory_has_one_owner() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = folder.path().join("data").display().to_string();
    let first = village(&["--data", &data]);
    let ready = folder.path().join("r.json").display().to_string();
    let second = refused_to_start(&["--data", &data, "--ready-file", &ready]);
    assert!(second.contains("error[data_directory_in_use]"), "{second}");
    drop(first);
    let again = Cluster::start(&["--data", &data, "--processes"]);
    let size = one(&again, json!({"op": "network", "graph": "kith-village", "id": 9043, "return": "size"}));
    assert_eq!(size["net"], 4842, "{size}");
    drop(again);
    let other_shape = refused_to_start(&["--data", &data, "--groups", "5"]);
    assert!(other_shape.contains("error[topology_mismatch]"), "{other_shape}");
    fs::write(folder.path().join("data/kith.json"), r#"{"format":9,"cluster_id":"x","owner":"supervisor"}"#)
        .expect("written");
    let newer = refused_to_start(&["--data", &data]);
    assert!(newer.contains("error[data_directory_format]"), "{newer}");
}

#[test]
fn a_second_cluster_does_not_take_the_first_ones_ready_file() {
    let cluster = Cluster::start(&["--nodes", "1"]);
    let ready = cluster.ready_file.to_str().expect("UTF-8").to_owned();
    let second = support::cluster::dev(&["--ready-file", &ready]).stdin(std::process::Stdio::null()).output();
    let second = second.expect("kith runs");
    assert!(
        String::from_utf8_lossy(&second.stderr).contains("error[ready_file_in_use]"),
        "{}",
        text(&second)
    );
    assert!(cluster.ready_file.exists());
    cluster.must(&["cluster", "status"]);
}
