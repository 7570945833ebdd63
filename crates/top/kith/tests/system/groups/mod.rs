//! Replica groups and nodes that come, go and die on a live cluster, under readers that do not pause: a group is filled
//! from a live one; pushes pass over a group that is taken out and down; a dead node is replaced; donors die.

mod ids;
mod replaced;

use crate::support;
use serde_json::{Value, json};
use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};
use support::{
    cluster::{Cluster, text},
    spare::{Spare, refused, run_json},
    stream::Stream,
    values::create,
    words::{WORDS, assert_reads, current, judge, mget, push_version, read_on, value},
};

const PEOPLE: u64 = 3_000;
const STORE: &str = "words";

/// One group of `nodes` nodes that are started again when they die; its data lies in `folder`.
fn start(folder: &Path, nodes: u32) -> Cluster {
    let (data, nodes) = (folder.join("data").display().to_string(), nodes.to_string());
    let cluster = Cluster::start(&["--processes", "--groups", "1", "--nodes", &nodes, "--data", &data]);
    create(&cluster, STORE, WORDS.0, WORDS.1);
    cluster
}

fn readers(cluster: &Cluster) -> [Stream; 2] {
    let single = (0..500).map(|turn| mget(STORE, [turn * 7 % PEOPLE].into_iter())).collect();
    let many = (0..10).map(|turn| mget(STORE, (0..500).map(move |key| (key * 5 + turn) % PEOPLE))).collect();
    [Stream::start(cluster, single, 2, judge), Stream::start(cluster, many, 1, judge)]
}

/// Changes the cluster's shape; it must end as asked.
fn reshape(cluster: &Cluster, arguments: &[&str]) {
    let ended = run_json(cluster, &[&["cluster"], arguments].concat());
    assert_eq!(ended["state"], "finished", "{arguments:?}: {ended}");
}

/// How many partitions each node of a group owns.
fn owned(cluster: &Cluster, group: u64) -> Vec<(u64, u64)> {
    let status = run_json(cluster, &["cluster", "status"]);
    let nodes = status["nodes"].as_array().expect("a list").iter().filter(|it| it["group"] == group);
    let number = |it: &Value, name: &str| it[name].as_u64().expect("a number");
    nodes.map(|it| (number(it, "node"), number(it, "partitions"))).collect()
}

/// Node → what a look at its files says of a version.
fn verified(cluster: &Cluster, version: u64) -> Vec<(u64, String)> {
    let version = version.to_string();
    let output =
        cluster.kith(&["store", "verify", STORE, "--version", &version, "--deep", "-o", "json"]).output();
    let output = output.expect("kith runs");
    let answer: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output)));
    let nodes = answer["nodes"].as_array().unwrap_or_else(|| panic!("{answer}")).iter();
    nodes
        .map(|it| (it["node"].as_u64().expect("a number"), it["state"].as_str().expect("text").to_owned()))
        .collect()
}

fn all_whole(cluster: &Cluster, version: u64) {
    let found = verified(cluster, version);
    assert!(found.iter().all(|(_, state)| state == "ok"), "version {version}: {found:?}");
}

/// The answer of `kith store push` for a version of the store.
fn pushed_by_command(cluster: &Cluster, folder: &Path, version: u64) -> Value {
    run_json(cluster, &["store", "push", STORE, &rows(folder, version), "--version", &version.to_string()])
}

/// A file with the rows of a version.
fn rows(folder: &Path, version: u64) -> String {
    let row = |key| json!({"key": key, "value": value(STORE, key, version)}).to_string() + "\n";
    let file = folder.join("rows.jsonl");
    fs::write(&file, (0..PEOPLE).map(row).collect::<String>()).expect("written");
    file.to_str().expect("UTF-8").to_owned()
}

#[test]
fn pushes_pass_over_a_group_that_is_taken_out_and_down() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut cluster = start(folder.path(), 2);
    for version in [1, 2] {
        push_version(&cluster, STORE, PEOPLE, version);
    }
    let readers = readers(&cluster);
    let mut spares = [100, 101].map(|node| Spare::start(&mut cluster, node, folder.path()));

    // The new group copies from the live one: the built versions are out of reach.
    let (built, away) = (folder.path().join("data/objects"), folder.path().join("away"));
    fs::rename(&built, &away).expect("renamed");
    reshape(&cluster, &["add-group", "100", "101"]);
    fs::rename(&away, &built).expect("renamed");
    assert_eq!(owned(&cluster, 1).iter().map(|(_, partitions)| partitions).sum::<u64>(), 24);
    [1, 2].into_iter().for_each(|version| all_whole(&cluster, version));
    read_on(&mut cluster, &readers);

    // The new group answers alone, of both versions.
    reshape(&cluster, &["drain-group", "0"]);
    assert_reads(&cluster, STORE, PEOPLE, 2);
    cluster.must(&["store", "rollback", STORE]);
    assert_reads(&cluster, STORE, PEOPLE, 1);
    cluster.must(&["store", "swap", STORE, "2", "--force"]);
    reshape(&cluster, &["restore-group", "0"]);
    read_on(&mut cluster, &readers);

    // Taken out but up: it is pushed to as ever.
    reshape(&cluster, &["drain-group", "1"]);
    push_version(&cluster, STORE, PEOPLE, 3);
    all_whole(&cluster, 3);

    spares.iter_mut().for_each(Spare::kill);
    is_pushed_past(&mut cluster, folder.path(), &readers);
    stays_out_while_behind(&mut cluster, &mut spares);
    spares[1].restart(&mut cluster);
    catches_up_and_takes_reads(&mut cluster, &readers);
    let answers = readers.map(Stream::end);
    eprintln!("{} single reads, {} of 500 keys", answers[0], answers[1]);
}

/// Group 1, which is taken out and down: no push waits for it, and none fails.
fn is_pushed_past(cluster: &mut Cluster, folder: &Path, readers: &[Stream; 2]) {
    for version in [4, 5] {
        push_version(cluster, STORE, PEOPLE, version);
        read_on(cluster, readers);
        assert_eq!(current(cluster, STORE), version);
        assert_reads(cluster, STORE, PEOPLE, version);
    }
    // The command names the nodes that it went past.
    assert_eq!(pushed_by_command(cluster, folder, 6)["excluded"], json!([100, 101]));
    assert_reads(cluster, STORE, PEOPLE, 6);
}

/// Group 1, which is back: it fetches what it owes, then takes reads again.
fn catches_up_and_takes_reads(cluster: &mut Cluster, readers: &[Stream; 2]) {
    reshape(cluster, &["restore-group", "1"]);
    all_whole(cluster, 6);
    reshape(cluster, &["drain-group", "0"]);
    read_on(cluster, readers);
    assert_reads(cluster, STORE, PEOPLE, 6);
    let answer = run_json(cluster, &["store", "where", STORE, "17"]);
    assert!([json!(100), json!(101)].contains(&answer["answers"]), "{answer}");
    // Also what is kept for a rollback comes by itself.
    cluster.wait_until("the version before can be rolled back to", |cluster| {
        cluster.kith(&["store", "rollback", STORE]).output().expect("kith runs").status.success()
    });
    assert_reads(cluster, STORE, PEOPLE, 5);
}

/// The output of a command, whether or not it fails.
fn answer(mut command: Command) -> Value {
    let output = command.output().expect("kith runs");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output)))
}

/// A load of a graph gives a dead node up as well.
fn a_load_waits_as_long(cluster: &Cluster, folder: &Path) {
    let edges = folder.join("edges.csv");
    fs::write(&edges, "src,dst\n1,2\n").expect("written");
    let edges = edges.to_str().expect("UTF-8");
    let load = ["load", "graph", edges, "--graph", "village", "--node-wait", "100ms", "-o", "json"];
    let error = answer(cluster.kith(&load))["error"].clone();
    assert!(error["message"].as_str().is_some_and(|text| text.contains("after 0.1 s")), "{error}");
}

#[test]
fn a_push_waits_for_a_dead_node_as_long_as_its_flag_says() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut cluster = start(folder.path(), 1);
    push_version(&cluster, STORE, PEOPLE, 1);
    let mut spare = Spare::start(&mut cluster, 100, folder.path());
    reshape(&cluster, &["add-group", "100"]);
    spare.kill();
    let file = rows(folder.path(), 2);
    let push =
        |flags: &[&str]| cluster.kith(&[&["store", "push", STORE, &file, "-o", "json"], flags].concat());
    let error = &answer(push(&["--node-wait", "0"]))["error"];
    assert_eq!(error["code"], "node_unreachable", "{error}");
    let (message, help) = (error["message"].as_str().expect("text"), error["help"].as_str().expect("text"));
    assert!(message.contains("node 100 cannot be reached, after 0 s"), "{message}");
    assert!(help.contains("--node-wait"), "{help}");
    let pushed = answer(push(&["--node-wait", "0", "--allow-missing", "1"]));
    assert_eq!(pushed["excluded"], json!([100]), "{pushed}");
    a_load_waits_as_long(&cluster, folder.path());
    for (flags, expected) in [
        (&["--node-wait", "61m"][..], "an hour at most"),
        (&["--node-wait", "soon"], "a whole number with ms, s, m or h"),
    ] {
        let refused = push(flags).output().expect("kith runs");
        assert!(!refused.status.success() && text(&refused).contains(expected), "{}", text(&refused));
    }

    // Until it is back.
    let mut waiting = push(&["--node-wait", "1h"]);
    let mut waiting = waiting.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("kith runs");
    cluster.wait_until("the push has begun", |cluster| {
        run_json(cluster, &["store", "describe", STORE])["running"].is_object()
    });
    spare.restart(&mut cluster);
    assert!(waiting.wait().expect("it ends").success());
    all_whole(&cluster, current(&cluster, STORE));
}

/// Group 1, whose two nodes are down, is not taken back as long as one of them is behind; the first is started.
fn stays_out_while_behind(cluster: &mut Cluster, spares: &mut [Spare; 2]) {
    let restore = ["cluster", "restore-group", "1", "--wait", "0"];
    let (code, message) = refused(cluster, &restore);
    assert_eq!(code, "group_behind", "{message}");
    assert!(message.contains("node 100 does not answer"), "{message}");
    assert_eq!(refused(cluster, &[&restore[..], &["--plan"]].concat()).0, "group_behind");
    spares[0].restart(cluster);
    // Nodes are named in their order: the first one has caught up when the second one is.
    cluster.wait_until("node 100 has what it owed", |cluster| {
        let (code, message) = refused(cluster, &restore);
        assert_eq!(code, "group_behind", "{message}");
        message.contains("node 101 does not answer")
    });
}
