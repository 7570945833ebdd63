//! The life of versions against a real cluster: loads, rollbacks, swaps, holds, pushes whose router dies.

mod interrupted;

use crate::support;
use serde_json::{Value, json};
use std::{fs, path::PathBuf, process::Stdio};
use support::cluster::{Cluster, text};

/// Stars of different sizes are versions that cannot be taken for one another.
struct Stars {
    cluster: Cluster,
    folder: tempfile::TempDir,
}

impl Stars {
    fn start(arguments: &[&str]) -> Self {
        Self { cluster: Cluster::start(arguments), folder: tempfile::tempdir().expect("a temporary folder") }
    }

    fn file(&self, rays: u64) -> PathBuf {
        let path = self.folder.path().join(format!("star{rays}.csv"));
        let lines: String = (1..=rays).map(|ray| format!("0,{ray}\n")).collect();
        fs::write(&path, format!("src,dst\n{lines}")).expect("written");
        path
    }

    /// Loads a star; the version.
    fn load(&self, rays: u64) -> u64 {
        let path = self.file(rays);
        let load = ["load", "graph", path.to_str().expect("UTF-8"), "--graph", "star", "-o", "json"];
        let reply: Value = serde_json::from_str(&self.cluster.must(&load)).expect("JSON");
        reply["version"].as_u64().expect("a version")
    }

    /// How many rays are served, with the cache and around it.
    fn rays(&self) -> u64 {
        let ask = |cache: &str| {
            let request =
                json!({"op": "network", "graph": "star", "id": 0, "return": "size", "cache": cache});
            let (answers, _) = self.cluster.run(&[request], 1);
            answers[0]["degree"].as_u64().unwrap_or_else(|| panic!("{answers:?}"))
        };
        let rays = ask("use");
        assert_eq!(rays, ask("bypass"), "the cache serves what the nodes do");
        rays
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let arguments: Vec<&str> = arguments.iter().copied().chain(["-o", "json"]).collect();
        serde_json::from_str(&self.cluster.must(&arguments)).expect("JSON")
    }

    /// Version → state, oldest first.
    fn states(&self) -> Vec<(u64, String)> {
        let versions = self.json(&["store", "versions", "star"]);
        let versions = versions.as_array().expect("a list").iter();
        versions
            .map(|it| {
                (it["version"].as_u64().expect("a number"), it["state"].as_str().expect("text").to_owned())
            })
            .collect()
    }

    fn assert_states(&self, expected: &[(u64, &str)]) {
        let states = self.states();
        let states: Vec<(u64, &str)> =
            states.iter().map(|(version, state)| (*version, state.as_str())).collect();
        assert_eq!(states, expected);
    }

    /// The code that a command fails with.
    fn refused(&self, arguments: &[&str]) -> String {
        let arguments: Vec<&str> = arguments.iter().copied().chain(["-o", "json"]).collect();
        let output = self.cluster.kith(&arguments).output().expect("kith runs");
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert!(answer["error"]["help"].as_str().is_some_and(|help| !help.is_empty()), "{answer}");
        answer["error"]["code"].as_str().expect("a code").to_owned()
    }
}

#[test]
fn a_graph_is_rolled_back_and_swapped_forward_again() {
    let stars = Stars::start(&["--processes", "--nodes", "1"]);
    let first = stars.load(10);
    assert_eq!(stars.refused(&["store", "rollback", "star"]), "nothing_older");
    let second = stars.load(20);
    assert!(first < second);
    stars.assert_states(&[(first, "retained"), (second, "current")]);
    assert_eq!(stars.rays(), 20);

    let output = stars.cluster.must(&["store", "rollback", "star"]);
    let undo = format!("undo: kith store swap star {second} --force\n");
    assert!(
        output
            .starts_with(&format!("store star serves version {first}; {second} is blocked; the flip took ")),
        "{output}"
    );
    assert!(output.ends_with(&undo), "{output}");
    assert_eq!(stars.rays(), 10);
    stars.assert_states(&[(first, "current"), (second, "blocked")]);

    let again = second.to_string();
    assert_eq!(stars.refused(&["store", "swap", "star", &again]), "version_blocked");
    assert_eq!(stars.rays(), 10, "a refusal changes nothing");
    let mut swapped = stars.json(&["store", "swap", "star", &again, "--force"]);
    let undo = format!("kith store swap star {first}");
    let flip_us = swapped.as_object_mut().and_then(|it| it.remove("flip_us")).and_then(|us| us.as_u64());
    assert!(flip_us.is_some_and(|us| 0 < us), "a write takes time");
    assert_eq!(
        swapped,
        json!({"store": "star", "version": second, "before": first, "before_state": "retained", "undo": undo,
               "routers": []})
    );
    assert_eq!(stars.rays(), 20);
    stars.cluster.must(&["store", "rollback", "star", "--to", &first.to_string()]);
    assert_eq!(stars.rays(), 10);
    assert_eq!(stars.refused(&["store", "swap", "star", "7"]), "unknown_version");
    assert_eq!(stars.refused(&["store", "rollback", "hamlet"]), "unknown_store");

    let history = stars.json(&["store", "history", "star"]);
    let actions: Vec<&str> =
        history.as_array().expect("a list").iter().map(|it| it["action"].as_str().expect("text")).collect();
    assert_eq!(actions, ["push", "push", "rollback", "swap", "rollback"]);
    // A load after a rollback builds on what is served.
    let third = stars.load(30);
    stars.assert_states(&[(first, "retained"), (second, "blocked"), (third, "current")]);
    assert_eq!(stars.rays(), 30);
}

/// Who is asked for a member's network: `hit`, `miss` or nobody, and the degree or the code of the error.
fn network_of(cluster: &Cluster, id: u64) -> (Value, Value) {
    let request = json!({"op": "network", "graph": "star", "id": id, "edge_type": "connection",
                         "return": "size", "profile": true});
    let answer = cluster.run(&[request], 1).0.remove(0);
    match answer.get("error") {
        Some(error) => (Value::Null, error["code"].clone()),
        None => (answer["profile"]["cache"].clone(), answer["degree"].clone()),
    }
}

#[test]
fn a_load_of_other_edges_leaves_the_network_cache_and_its_answers_right() {
    let stars = Stars::start(&[]);
    let load = |name: &str, rows: &str| {
        let path = stars.folder.path().join(format!("{name}.csv"));
        fs::write(&path, format!("src,dst\n{rows}")).expect("written");
        let path = path.to_str().expect("UTF-8");
        stars.cluster.must(&["load", "graph", path, "--graph", "star", "--edge-type", name]);
    };
    load("connection", "0,1\n0,2\n");
    load("follows", "7,8\n");
    assert_eq!(network_of(&stars.cluster, 0), (json!("miss"), json!(2)));
    assert_eq!(network_of(&stars.cluster, 7), (json!("miss"), json!(0)), "a member by its other edges");
    assert_eq!(network_of(&stars.cluster, 7).0, json!("hit"));
    load("follows", "1,2\n");
    assert_eq!(network_of(&stars.cluster, 0), (json!("hit"), json!(2)));
    assert_eq!(network_of(&stars.cluster, 7), (Value::Null, json!("member_not_found")), "no edges any more");
    load("connection", "0,1\n0,2\n0,7\n");
    assert_eq!(network_of(&stars.cluster, 0), (json!("miss"), json!(3)));
    stars.cluster.must(&["store", "rollback", "star"]);
    assert_eq!(network_of(&stars.cluster, 0).1, json!(2));
}

#[test]
fn versions_have_the_fields_of_the_contract_and_old_ones_go() {
    let stars = Stars::start(&["--nodes", "1"]);
    let loaded: Vec<u64> = (1..=4).map(|rays| stars.load(rays)).collect();
    stars.assert_states(&[(loaded[1], "retained"), (loaded[2], "retained"), (loaded[3], "current")]);
    let versions = stars.json(&["store", "versions", "star"]);
    for (index, version) in versions.as_array().expect("a list").iter().enumerate() {
        assert_eq!(version["records"], index as u64 + 2, "{version}");
        assert!(version["bytes"].as_u64().is_some_and(|bytes| 0 < bytes), "{version}");
        let pushed_at = version["pushed_at"].as_u64().expect("milliseconds");
        assert!(1_700_000_000_000 < pushed_at, "{version}");
    }
    stars.cluster.must(&["store", "hold", "star", &loaded[1].to_string()]);
    let fifth = stars.load(5);
    let sixth = stars.load(6);
    stars.assert_states(&[
        (loaded[1], "retained"),
        (loaded[3], "retained"),
        (fifth, "retained"),
        (sixth, "current"),
    ]);
    stars.cluster.must(&["store", "rollback", "star", "--to", &loaded[1].to_string()]);
    assert_eq!(stars.rays(), 2, "a held version is whole");
    assert_eq!(stars.refused(&["store", "hold", "star", &loaded[0].to_string()]), "unknown_version");
}

#[test]
fn stores_of_values_are_made_listed_and_dropped_beside_graphs() {
    let stars = Stars::start(&["--nodes", "1"]);
    let version = stars.load(3);
    let create =
        ["store", "create", "people", "--key", "id", "--value", "json", "--retain", "1", "--owner", "ada"];
    stars.cluster.must(&create);
    assert_eq!(stars.refused(&create), "store_exists");
    assert_eq!(stars.refused(&["store", "create", "more", "--replication", "9"]), "bad_definition");
    let list = stars.json(&["store", "list"]);
    let names: Vec<(&Value, &Value)> =
        list.as_array().expect("a list").iter().map(|store| (&store["store"], &store["holds"])).collect();
    assert_eq!(names, [(&json!("people"), &json!("values")), (&json!("star"), &json!("graph"))]);
    let people = stars.json(&["store", "describe", "people"]);
    assert_eq!(
        (&people["version"], &people["retain"], &people["owner"]),
        (&json!(null), &json!(1), &json!("ada"))
    );
    assert_eq!(stars.json(&["store", "versions", "people"]), json!([]));
    assert_eq!(stars.refused(&["graph", "drop", "people", "--yes"]), "unknown_graph");
    let load =
        ["load", "graph", stars.file(1).to_str().expect("UTF-8"), "--graph", "people"].map(str::to_owned);
    assert_eq!(stars.refused(&load.each_ref().map(String::as_str)), "not_a_graph");
    let unasked = stars.cluster.kith(&["store", "drop", "people"]).stdin(Stdio::null()).output();
    let unasked = unasked.expect("kith runs");
    assert_eq!(unasked.status.code(), Some(2), "nobody was there to ask: {}", text(&unasked));
    stars.cluster.must(&["store", "describe", "people"]);
    stars.cluster.must(&["store", "drop", "people", "--yes"]);
    assert_eq!(stars.refused(&["store", "describe", "people"]), "unknown_store");
    // Numbers are not used again, also not by another store of the name.
    stars.cluster.must(&["store", "drop", "star", "--yes"]);
    assert!(version < stars.load(3));
}

#[test]
fn versions_and_rollbacks_survive_a_restart() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = folder.path().join("data").display().to_string();
    let stars = Stars::start(&["--data", &data, "--nodes", "1"]);
    let (first, second) = (stars.load(10), stars.load(20));
    stars.cluster.must(&["store", "rollback", "star"]);
    drop(stars);
    let stars = Stars::start(&["--data", &data, "--nodes", "1", "--processes"]);
    stars.assert_states(&[(first, "current"), (second, "blocked")]);
    assert_eq!(stars.rays(), 10);
    stars.cluster.must(&["store", "swap", "star", &second.to_string(), "--force"]);
    assert_eq!(stars.rays(), 20);
}
