//! Loads that run beside others, and pushes whose router dies.

use super::Stars;
use crate::support::{
    self,
    cluster::{signal, text},
};
use serde_json::Value;
use std::process::{Child, Stdio};

#[test]
fn two_edge_types_loaded_at_once_both_stand() {
    let stars = Stars::start(&["--nodes", "1", "--processes", "--routers", "2"]);
    stars.load(2);
    let topology = stars.cluster.ready();
    let routers = topology["routers"].as_array().expect("a list").iter();
    let routers: Vec<String> =
        routers.map(|router| router["addr"].as_str().expect("text").to_owned()).collect();
    let file = stars.file(7).display().to_string();
    // Loads of one graph keep each other out on one machine: until the one before has ended.
    let load = |name: &str, router: &str| loop {
        let arguments = ["load", "graph", &file, "--graph", "star", "--edge-type", name, "--router", router];
        let output = support::cluster::kith(&arguments).output().expect("kith runs");
        if output.status.success() {
            return;
        }
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(stderr.contains("error[load_running]"), "{stderr}");
    };
    std::thread::scope(|scope| {
        scope.spawn(|| load("follows", &routers[0]));
        scope.spawn(|| load("likes", &routers[1]));
    });
    let graph = stars.json(&["graph", "describe", "star"]);
    let names: Vec<&str> = graph["components"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|component| component["name"].as_str().expect("text"))
        .filter(|name| *name != "members")
        .collect();
    assert!(
        names.contains(&"follows") && names.contains(&"likes") && names.contains(&"connection"),
        "{names:?}"
    );
    assert_eq!(stars.states().iter().filter(|(_, state)| state == "current").count(), 1);
}

fn load_in_background(stars: &Stars, rays: u64, router: &str) -> Child {
    let file = stars.file(rays).display().to_string();
    let arguments = ["load", "graph", &file, "--graph", "star", "--router", router];
    let mut command = support::cluster::kith(&arguments);
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("kith runs")
}

#[test]
fn a_push_whose_router_is_killed_is_taken_back_and_one_version_serves() {
    let mut stars = Stars::start(&["--processes", "--routers", "2", "--groups", "2", "--nodes", "1"]);
    let first = stars.load(10);
    let ready = stars.cluster.ready();
    let (victim, other) = (&ready["routers"][0], &ready["routers"][1]);
    let other = other["addr"].as_str().expect("text").to_owned();
    // A node that does not move keeps the push where it is: begun, and not ready everywhere.
    let node = stars.cluster.node_pids(1)[0];
    signal(node, "STOP");
    let load = load_in_background(&stars, 20, victim["addr"].as_str().expect("text"));
    let describe = |what: &str| {
        let arguments = ["store", what, "star", "-o", "json", "--router", &other];
        let output = support::cluster::kith(&arguments).output().expect("kith runs");
        serde_json::from_slice::<Value>(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output)))
    };
    stars.cluster.wait_until("the push has begun", |_| describe("describe")["running"].is_object());
    let running = describe("describe")["running"]["version"].as_u64().expect("a version");
    assert_eq!(stars.refused(&["store", "drop", "star", "--yes"]), "push_running");
    assert_eq!(stars.refused(&["store", "swap", "star", &running.to_string()]), "version_not_kept");
    signal(victim["pid"].as_u64().expect("a pid") as u32, "KILL");
    stars.cluster.wait_until("the push is taken back", |_| describe("describe")["running"].is_null());
    signal(node, "CONT");
    let load = load.wait_with_output().expect("it ends");
    assert!(!load.status.success(), "it never heard that its version serves");
    let stderr = String::from_utf8_lossy(&load.stderr).into_owned();
    assert!(stderr.contains("error[publication_lost]: the connection to the router was lost"), "{stderr}");
    assert!(
        stderr.contains("look at `kith store versions star`") && stderr.contains("repeat it"),
        "{stderr}"
    );
    stars.assert_states(&[(first, "current"), (running, "failed")]);
    assert_eq!(stars.rays(), 10);
    let history = describe("history");
    let last = history.as_array().and_then(|history| history.last()).expect("an entry");
    assert!(last["result"].as_str().is_some_and(|result| result.contains("took the push back")), "{last}");
    // And the way is free, for numbers that were not used.
    let third = stars.load(30);
    assert!(running < third);
    assert_eq!(stars.rays(), 30);
}
