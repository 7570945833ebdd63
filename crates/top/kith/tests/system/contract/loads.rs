//! Loads of graphs: what they replace, what they refuse, and what is left of those that fail.

use super::{one, village};
use crate::support::{
    self,
    cluster::{Cluster, signal, text},
    reference::Reference,
};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::Stdio,
};

#[test]
fn a_load_replaces_its_edge_type_and_leaves_the_others() {
    let cluster = village(&[]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let follows = folder.path().join("follows.tsv");
    fs::write(&follows, "src\tdst\tsince\n9043\t1007\t5\n9043\t42\t9\n42\t42\t1\n9043\t1007\t7\n")
        .expect("written");
    let follows = follows.to_str().expect("UTF-8");
    let load = ["load", "graph", follows, "--graph", "kith-village", "--edge-type", "follows"];
    let load = [&load[..], &["--directed", "--columns", "since:time", "-o", "json"]].concat();
    let summary: Value = serde_json::from_str(&cluster.must(&load)).expect("JSON");
    let component = &summary["components"][0];
    assert_eq!(
        (&component["edges"], &component["self_loops"], &component["duplicates"]),
        (&json!(2), &json!(1), &json!(1)),
        "{summary}"
    );
    let follows = |direction: &str, id: u64| {
        one(
            &cluster,
            json!({"op": "connections", "graph": "kith-village", "id": id, "edge_type": "follows", "direction": direction}),
        )
    };
    assert_eq!(follows("out", 9043)["ids"], json!([42, 1007]));
    assert_eq!(follows("in", 42)["ids"], json!([9043]));
    assert_eq!(follows("both", 42)["ids"], json!([9043]));
    let degree =
        one(&cluster, json!({"op": "network", "graph": "kith-village", "id": 9043, "return": "size"}));
    assert_eq!(degree["degree"], 666, "the first edge type is untouched");
    let unasked = cluster.kith(&["graph", "drop", "kith-village"]).stdin(Stdio::null()).output();
    let unasked = unasked.expect("kith runs");
    assert_eq!(unasked.status.code(), Some(2), "{}", text(&unasked));
    assert!(cluster.must(&["graph", "list"]).contains("kith-village"), "nothing was dropped");
    cluster.must(&["graph", "drop", "kith-village", "--yes"]);
    let gone = one(&cluster, json!({"op": "connections", "graph": "kith-village", "id": 9043}));
    assert_eq!(gone["error"]["code"], "unknown_graph");
}

#[test]
fn bad_input_loads_nothing() {
    let cluster = village(&[]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, content).expect("written");
        path.display().to_string()
    };
    let gz = fs::read(support::root().join("testdata/kith-village/edges.csv.gz")).expect("it is there");
    let files = [
        file("negative.csv", b"src,dst\n1,2\n-3,4\n"),
        file("words.csv", b"src,dst\n1,two\n"),
        file("columns.csv", b"src,dst\n1\n"),
        file("large.csv", b"src,dst\n1,18446744073709551616\n"),
        file("half.csv.gz", &gz[..gz.len() / 2]),
        folder.path().join("absent.csv").display().to_string(),
    ];
    for path in &files {
        let output =
            cluster.kith(&["load", "graph", path, "--graph", "kith-village"]).output().expect("kith runs");
        assert_eq!(output.status.code(), Some(1), "{path}: {}", text(&output));
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(stderr.contains("error[") && stderr.contains("help:"), "{path}: {stderr}");
    }
    let degree =
        one(&cluster, json!({"op": "network", "graph": "kith-village", "id": 9043, "return": "size"}));
    assert_eq!(degree["degree"], 666, "the graph before still serves");
}

#[test]
fn a_load_that_is_killed_leaves_the_old_state_and_can_run_again() {
    let cluster = village(&[]);
    let load = Reference::open("kith-village").expect("it comes with the project").load_arguments();
    let load: Vec<&str> = load.iter().map(String::as_str).collect();
    for pause_ms in [5, 30, 80, 160] {
        let mut child = cluster
            .kith(&load)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("kith runs");
        std::thread::sleep(std::time::Duration::from_millis(pause_ms));
        let _ = child.kill();
        child.wait().expect("it ended");
        let size = one(
            &cluster,
            json!({"op": "network", "graph": "kith-village", "id": 9043, "return": "size", "cache": "bypass"}),
        );
        assert_eq!(size["net"], 4842, "{size}");
    }
    cluster.must(&load);
    let size = one(&cluster, json!({"op": "network", "graph": "kith-village", "id": 9043, "return": "size"}));
    assert_eq!(size["net"], 4842, "{size}");
}

#[test]
fn reloading_under_load_never_fails_or_mixes_versions() {
    let cluster = Cluster::start(&["--processes", "--nodes", "2"]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    // Two versions of one graph: a star of 40 or of 60. Any mixture has another size.
    let star = |rays: u64| {
        let lines: String =
            (1..=rays).flat_map(|ray| [format!("0,{ray}\n"), format!("{ray},{}\n", 1_000 + ray)]).collect();
        let path = folder.path().join(format!("star{rays}.csv"));
        fs::write(&path, format!("src,dst\n{lines}")).expect("written");
        path.display().to_string()
    };
    let (small, large) = (star(40), star(60));
    let load = |file: &str| cluster.must(&["load", "graph", file, "--graph", "star"]);
    load(&small);
    let request = json!({"op": "network", "graph": "star", "id": 0, "return": "size", "fan_out": "max"});
    let requests: Vec<Value> = (0..400)
        .map(|index| {
            let mut request = request.clone();
            request["cache"] = json!(if index % 2 == 0 { "use" } else { "bypass" });
            request
        })
        .collect();
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| (0..3).flat_map(|_| cluster.run(&requests, 8).0).collect::<Vec<Value>>());
        for file in [&large, &small, &large] {
            load(file);
        }
        for answer in asking.join().expect("it ends") {
            let sizes = (answer["degree"].as_u64(), answer["n2"].as_u64());
            assert!(sizes == (Some(40), Some(40)) || sizes == (Some(60), Some(60)), "{answer}");
        }
    });
}

#[test]
fn a_file_without_an_edge_does_not_empty_an_edge_type() {
    let cluster = village(&[]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, content, code) in [
        ("empty.csv", "", "no_edges"),
        ("header.csv", "src,dst\n", "no_edges"),
        ("cr.csv", "src,dst\r1,2\r", "bad_input"),
        ("loops.csv", "1,1\n", "no_edges"),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, content).expect("written");
        let load = ["load", "graph", path.to_str().expect("UTF-8"), "--graph", "kith-village"];
        let output = cluster.kith(&load).output().expect("kith runs");
        assert_eq!(output.status.code(), Some(1), "{name}: {}", text(&output));
        assert!(
            String::from_utf8_lossy(&output.stderr).contains(&format!("error[{code}]")),
            "{name}: {}",
            text(&output)
        );
    }
    let wrong = folder.path().join("wrong.csv");
    fs::write(&wrong, "a,b,c\nd,e,f\n".repeat(500)).expect("written");
    let wrong = wrong.to_str().expect("UTF-8");
    let lenient = ["--graph", "kith-village", "--no-header", "--max-errors", "100000"];
    for (file, code) in [
        (&[wrong][..], "no_edges"),
        (&["--members", wrong], "no_members"),
        (&["--entities", wrong], "no_entities"),
    ] {
        let output =
            cluster.kith(&[&["load", "graph"], file, &lenient].concat()).output().expect("kith runs");
        assert_eq!(output.status.code(), Some(1), "{code}: {}", text(&output));
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            stderr.contains(&format!("error[{code}]")) && stderr.contains("1000 of which are wrong"),
            "{stderr}"
        );
    }
    let degree =
        one(&cluster, json!({"op": "network", "graph": "kith-village", "id": 9043, "return": "size"}));
    assert_eq!(degree["degree"], 666, "{degree}");
}

#[test]
fn a_load_names_the_node_it_waits_for() {
    let cluster = village(&["--processes", "--groups", "1", "--nodes", "2"]);
    let frozen = cluster.node_pids(0)[1];
    signal(frozen, "STOP");
    let load = Reference::open("kith-village").expect("it comes with the project").load_arguments();
    let load: Vec<&str> = load.iter().map(String::as_str).chain(["-o", "json"]).collect();
    let mut child =
        cluster.kith(&load).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("kith runs");
    let stderr = BufReader::new(child.stderr.take().expect("its errors are piped"));
    let mut lines = stderr.lines().map(|line| line.expect("they are text"));
    // Ends, with nothing found, when the load does.
    let waiting = lines.find(|line| line.contains("waiting for node 1, which cannot be reached"));
    signal(frozen, "CONT");
    lines.for_each(drop);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success() && waiting.is_some(), "{waiting:?} {}", text(&output));
    let summary: Value = serde_json::from_slice(&output.stdout).expect("progress does not touch the JSON");
    assert!(summary["version"].is_u64(), "{summary}");
}

/// The versions of each component in a cluster's object store.
fn built(store: &Path) -> Vec<String> {
    let folders = |path: &Path| {
        let entries = fs::read_dir(path).expect("a folder").flatten().map(|entry| entry.path());
        entries.filter(|path| path.is_dir()).collect::<Vec<_>>()
    };
    let mut names: Vec<String> = folders(store)
        .iter()
        .flat_map(|component| folders(component))
        .map(|version| version.display().to_string())
        .collect();
    names.sort();
    names
}

#[test]
fn a_load_that_cannot_be_published_leaves_no_files() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = folder.path().join("data");
    let cluster = village(&["--nodes", "1", "--data", data.to_str().expect("UTF-8")]);
    let before = built(&data.join("objects/kith-village"));
    assert!(!before.is_empty());
    // A file where a node wants a folder: it cannot pull the version.
    let component = data.join("node-001/components/kith-village/connection");
    assert!(component.is_dir(), "{}", component.display());
    let aside = data.join("aside");
    fs::rename(&component, &aside).expect("renamed");
    fs::write(&component, "in the way").expect("written");
    let load = Reference::open("kith-village").expect("it comes with the project").load_arguments();
    let load: Vec<&str> = load.iter().map(String::as_str).collect();
    let output = cluster.kith(&load).output().expect("kith runs");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert_eq!(built(&data.join("objects/kith-village")), before, "{}", text(&output));
    let size =
        json!({"op": "network", "graph": "kith-village", "id": 9043, "return": "size", "cache": "bypass"});
    assert_eq!(one(&cluster, size.clone())["net"], 4842, "the version before serves");
    fs::remove_file(&component).expect("removed");
    fs::rename(&aside, &component).expect("renamed");
    cluster.must(&load);
    assert_eq!(one(&cluster, size)["net"], 4842);
}
