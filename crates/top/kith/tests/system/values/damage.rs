//! Bytes of values that flip on the disks of nodes.

use super::{PEOPLE, assert_words, mget, one, started, value};
use crate::support::cluster::Cluster;
use serde_json::json;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The packs of a node's copy of a version.
fn packs(cluster: &Cluster, node: u64) -> Vec<PathBuf> {
    let data = cluster.ready_file.parent().expect("a folder").join("data");
    let mut found = Vec::new();
    find(&data, &format!("/node-{node:03}/"), &mut found);
    assert!(!found.is_empty(), "node {node} has packs in {}", data.display());
    found
}

fn find(folder: &Path, node: &str, found: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).expect("readable").flatten().map(|entry| entry.path()) {
        let name = path.to_string_lossy().into_owned();
        if path.is_dir() {
            find(&path, node, found);
        } else if name.contains(node) && name.contains("/words/") && name.ends_with(".pack") {
            found.push(path);
        }
    }
}

/// Flips bytes in the middle of each file: in mapped pages, where a node reads them.
fn flip(files: &[PathBuf]) {
    use std::os::unix::fs::FileExt;
    for path in files {
        let file = fs::File::options().read(true).write(true).open(path).expect("it opens");
        let length = file.metadata().expect("it has a length").len();
        for at in (length / 10..length / 10 * 9).step_by(512) {
            let mut byte = [0];
            file.read_exact_at(&mut byte, at).expect("read");
            file.write_all_at(&[!byte[0]], at).expect("written");
        }
    }
}

#[test]
fn damaged_records_are_answered_by_a_replica() {
    let mut cluster = started(&["--nodes", "1", "--groups", "2"]);
    let all = || 0..PEOPLE + 10;
    flip(&packs(&cluster, 0));
    // Which replica is asked is drawn by lot.
    cluster.wait_until("a read met the damage", |cluster| {
        assert_words(&one(cluster, mget(all())), all(), 1);
        cluster.metric("kith_node_damaged_reads_total").is_some_and(|reads| 0.0 < reads)
    });
}

#[test]
fn records_that_are_damaged_everywhere_are_errors() {
    let cluster = started(&["--nodes", "1", "--groups", "2", "--scrub-rate", "off"]);
    let all = || 0..PEOPLE + 10;
    // Nothing to repair from: neither the built version nor another replica.
    let data = cluster.ready_file.parent().expect("a folder").join("data");
    fs::rename(data.join("objects/words"), data.join("objects/away")).expect("moved");
    [0, 1].iter().for_each(|node| flip(&packs(&cluster, *node)));
    let refused = one(&cluster, mget(all()));
    assert_eq!(refused["error"]["code"], "damaged", "{refused}");
    let mut partial = mget(all());
    partial["partial"] = json!(true);
    let (answers, exit) = cluster.run(&[partial], 1);
    let (results, footer) = (answers[0]["results"].as_array().expect("a list"), &answers[0]["footer"]);
    assert_eq!(exit, 3);
    assert!(footer["error"].as_u64().is_some_and(|count| 0 < count), "{footer}");
    for (key, result) in all().zip(results) {
        match (result["state"].as_str().expect("text"), key < PEOPLE) {
            ("FOUND", true) => assert_eq!(result["value"], value(key, 1)),
            ("ABSENT", false) => {}
            ("ERROR", _) => assert_eq!(result["error"]["code"], "damaged"),
            _ => panic!("member {key}: {result}"),
        }
    }
    let sum = ["found", "absent", "error", "unanswered"].map(|name| footer[name].as_u64().expect("a count"));
    assert_eq!(sum.iter().sum::<u64>(), PEOPLE + 10);
}
