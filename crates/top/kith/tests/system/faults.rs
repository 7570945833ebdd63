//! Files of a node that go wrong under it: every read is right, from another replica or after a repair, or it is an
//! error; never wrong, never silently missing. (The predecessor gave 250, 246 and 142 silent wrong answers.)

use crate::support;
use kith_engine::{KeyType, ValueType};
use serde_json::{Value, json};
use std::{cell::RefCell, fs, path::Path};
use support::{
    cluster::{Cluster, signal},
    disk::{flip, remove_packs, truncate, version_folder},
    values::{create, push},
    wait_until_or_tell,
};

const WORDS: (KeyType, ValueType) = (KeyType::String, ValueType::Text);
const PEOPLE: u64 = 4_000;
/// Read after each fault.
const KNOWN: u64 = 2_000;
const UNKNOWN: u64 = 200;
const VERSION: u64 = 2;

fn value(key: u64, version: u64) -> String {
    format!("value {key} of version {version}, {}", "x".repeat(200))
}

fn started(arguments: &[&str]) -> Cluster {
    let cluster = Cluster::start(arguments);
    for (store, versions) in [("words", 1..=VERSION), ("others", 1..=1)] {
        create(&cluster, store, WORDS.0, WORDS.1);
        for version in versions {
            let rows =
                (0..PEOPLE).map(|key| (format!("{key}").into_bytes(), value(key, version).into_bytes()));
            push(&cluster, store, WORDS, version, rows);
        }
    }
    cluster
}

/// The outcome of the known and the unknown keys. Panics at the first wrong or silently missing answer.
struct Read {
    right: u64,
    errors: u64,
}

fn read(cluster: &Cluster, what: &str, partial: bool) -> Read {
    let keys: Vec<u64> = (0..KNOWN).map(|key| key * 2).chain(PEOPLE..PEOPLE + UNKNOWN).collect();
    let requests: Vec<Value> = keys
        .chunks(100)
        .map(|keys| {
            let keys: Vec<String> = keys.iter().map(u64::to_string).collect();
            json!({"op": "mget", "store": "words", "keys": keys, "partial": partial, "deadline_ms": 60_000})
        })
        .collect();
    let (answers, _) = cluster.run(&requests, 4);
    let mut read = Read { right: 0, errors: 0 };
    for (keys, answer) in keys.chunks(100).zip(&answers) {
        let results = answer["results"].as_array().unwrap_or_else(|| panic!("{what}: {answer}"));
        assert_eq!(results.len(), keys.len());
        for (&key, result) in keys.iter().zip(results) {
            match (result["state"].as_str().expect("a state"), key < PEOPLE) {
                ("FOUND", true) => assert_eq!(result["value"], value(key, VERSION), "{what}: key {key}"),
                ("ABSENT", false) => {}
                ("ERROR" | "UNANSWERED", _) if partial => {
                    read.errors += 1;
                    continue;
                }
                _ => panic!("{what}: key {key}: {result}"),
            }
            read.right += 1;
        }
    }
    read
}

fn is_whole(cluster: &Cluster, deep: bool) -> (bool, Value) {
    let depth: &[&str] = if deep { &["--deep"] } else { &[] };
    let arguments = [&["store", "verify", "words", "-o", "json"], depth].concat();
    let output = cluster.kith(&arguments).output().expect("kith runs");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let code = output.status.code();
    assert_eq!(code, Some(if report["ok"] == true { 0 } else { 3 }), "{report}");
    (report["ok"] == true, report)
}

fn restart(cluster: &mut Cluster, node: u64) {
    let before = pid(cluster, node).expect("it runs");
    signal(before, "KILL");
    cluster.wait_until("the node is back", |cluster| pid(cluster, node).is_some_and(|now| now != before));
}

/// The process of a node that answers.
fn pid(cluster: &Cluster, node: u64) -> Option<u32> {
    let output = cluster.kith(&["cluster", "status", "-o", "json"]).output().expect("kith runs");
    let status: Value = serde_json::from_slice(&output.stdout).ok()?;
    let found = status["nodes"].as_array()?.iter().find(|entry| entry["node"] == node)?;
    (found["state"] == "up").then(|| found["pid"].as_u64().expect("a pid") as u32)
}

type Fault = (&'static str, fn(&Path));

/// The faults that can happen to a version's folder; its parent holds other versions, and beside that lie other stores.
const FAULTS: [Fault; 9] = [
    ("a missing chunk pair", remove_packs),
    ("flipped bytes in data", |folder| flip(folder, "data")),
    ("flipped bytes in indexes", |folder| flip(folder, "index")),
    ("truncated files", truncate),
    ("a stale manifest", |folder| copy(&folder.with_file_name("1"), folder, "manifest.json")),
    ("a manifest of another store", |folder| {
        let others = folder.ancestors().nth(3).expect("stores").join("others/values/1");
        copy(&others, folder, "manifest.json");
    }),
    ("a stale version in its place", |folder| {
        fs::remove_dir_all(folder).expect("removed");
        fs::create_dir(folder).expect("made");
        let older = folder.with_file_name("1");
        for entry in fs::read_dir(&older).expect("readable").flatten() {
            copy(&older, folder, entry.file_name().to_str().expect("UTF-8"));
        }
    }),
    ("a damaged layout", |folder| fs::write(folder.join("layout.json"), "{}").expect("written")),
    ("no folder at all", |folder| fs::remove_dir_all(folder).expect("removed")),
];

fn copy(from: &Path, to: &Path, name: &str) {
    fs::copy(from.join(name), to.join(name)).expect("copied");
}

#[test]
fn no_fault_of_a_replica_makes_an_answer_wrong_and_each_is_repaired() {
    let mut cluster = started(&[
        "--processes",
        "--nodes",
        "1",
        "--groups",
        "2",
        "--partitions",
        "8",
        "--scrub-rate",
        "off",
    ]);
    for (what, fault) in FAULTS {
        assert!(is_whole(&cluster, true).0, "before {what}");
        let folder = version_folder(&cluster, 0, "words", VERSION);
        fault(&folder);
        let (ok, report) = is_whole(&cluster, true);
        assert!(
            !ok && report["nodes"][0]["state"] != "ok" && report["nodes"][1]["state"] == "ok",
            "{what}: {report}"
        );
        // In turn from both groups: the damaged replica is met.
        for _ in 0..2 {
            assert_eq!(read(&cluster, what, false).right, KNOWN + UNKNOWN, "{what}");
        }
        restart(&mut cluster, 0);
        let what = format!("{what}, after a restart");
        let last = RefCell::new(Value::Null);
        let is_repaired = || {
            assert_eq!(read(&cluster, &what, false).right, KNOWN + UNKNOWN, "{what}");
            let (ok, report) = is_whole(&cluster, true);
            last.replace(report);
            ok
        };
        wait_until_or_tell(&format!("it is repaired: {what}"), is_repaired, || {
            format!("{}\n{}", last.borrow(), cluster.must(&["cluster", "status"]))
        });
    }
}

#[test]
fn damage_that_nothing_can_repair_is_an_error_and_never_an_absence() {
    let mut cluster = started(&[
        "--processes",
        "--nodes",
        "1",
        "--groups",
        "2",
        "--partitions",
        "8",
        "--scrub-rate",
        "off",
    ]);
    let folders = [0, 1].map(|node| version_folder(&cluster, node, "words", VERSION));
    let built = cluster.ready_file.parent().expect("a folder").join("data/objects/words/values/2");
    assert!(built.is_dir(), "{}", built.display());
    fs::rename(&built, built.with_file_name("away")).expect("moved");
    for (at, kind) in ["data", "index"].into_iter().enumerate() {
        folders.iter().for_each(|folder| flip(folder, kind));
        let first = read(&cluster, kind, true);
        assert!(0 < first.errors, "{kind}: {} right", first.right);
        restart(&mut cluster, at as u64);
        read(&cluster, kind, true);
        let report = is_whole(&cluster, true).1;
        for node in report["nodes"].as_array().expect("nodes") {
            assert_eq!(node["state"], "damaged", "{report}");
        }
    }
    // The source comes back: every node heals itself.
    fs::rename(built.with_file_name("away"), &built).expect("moved back");
    cluster.wait_until("all is repaired", |cluster| {
        read(cluster, "repair", true);
        is_whole(cluster, true).0
    });
    assert_eq!(read(&cluster, "repaired", false).right, KNOWN + UNKNOWN);
}

#[test]
fn the_scrubber_finds_what_nobody_reads_and_repairs_it() {
    let mut cluster =
        started(&["--nodes", "1", "--groups", "1", "--partitions", "8", "--scrub-rate", "1GiB/s"]);
    // Retained: nobody reads it, and it is a rollback away.
    flip(&version_folder(&cluster, 0, "words", 1), "data");
    cluster.wait_until("it is repaired", |cluster| {
        let status: Value =
            serde_json::from_str(&cluster.must(&["cluster", "status", "-o", "json"])).expect("JSON");
        let node = &status["nodes"][0];
        node["files_repaired"].as_u64().is_some_and(|files| 0 < files) && node["files_damaged"] == 0
    });
    let output = cluster.must(&["store", "verify", "words", "--version", "1", "--deep", "-o", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&output).expect("JSON")["ok"], true, "{output}");
}
