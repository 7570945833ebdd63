//! Changes of a version: what they make, what they need and what they move.

use super::{People, built, code, csv, left, refusal, write};
use crate::support::cluster::{kith, text};
use serde_json::{Value, json};
use std::{path::Path, process::Output};

/// Builds changes of a version.
fn changed(base: &str, out: &Path, arguments: &[&str]) -> Output {
    let out = out.to_str().expect("UTF-8");
    let all = [&["store", "build", "people", "--base", base, "--out", out, "-o", "json"], arguments].concat();
    kith(&all).output().expect("kith runs")
}

#[test]
fn a_delta_makes_the_version_that_all_rows_would() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str| write(folder.path(), name, content);
    let (out, whole) = (folder.path().join("out"), folder.path().join("whole"));
    let base = built(&out, &[&file("base.csv", &csv(500)), "--version", "1"]);
    let base = base["folder"].as_str().expect("a folder");
    let changes = file("changes.csv", "key,value\nmember:7,other\nmember:new,value\n");
    let delete = file("delete.txt", "\u{feff}member:3\r\nmember:4\nmember:nobody\n");
    let output = changed(base, &out, &[&changes, "--delete", &delete, "--version", "2"]);
    assert!(output.status.success(), "{}", text(&output));
    let reply: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(reply["records"], 499, "{reply}");
    let counts = ["added", "replaced", "deleted", "absent"].map(|name| reply["changes"][name].as_u64());
    assert_eq!(counts, [Some(1), Some(1), Some(2), Some(1)], "{reply}");
    assert!(reply["changes"]["bytes_changed"].as_u64() < reply["bytes"].as_u64(), "{reply}");
    let rows = csv(500).replace("member:7,value 7\n", "member:7,other\n");
    let rows = rows.replace("member:3,value 3\n", "").replace("member:4,value 4\n", "");
    let all = built(&whole, &[&file("all.csv", &(rows + "member:new,value\n")), "--version", "2"]);
    assert_eq!(reply["manifest_hash"], all["manifest_hash"]);

    let twice = file("twice.csv", "key,value\nmember:3,again\n");
    let bad = file("bad.txt", "member:1\n\n");
    let refused = |arguments: &[&str]| refusal(&changed(base, &out, arguments));
    assert_eq!(code(&refused(&[&twice, "--delete", &delete])), "duplicate_key");
    let error = refused(&["--delete", &bad]);
    assert_eq!(code(&error), "bad_rows");
    assert!(error["message"].as_str().unwrap().ends_with("bad.txt line 2: it is empty"), "{error}");
    assert_eq!(
        code(&refusal(&changed(folder.path().to_str().unwrap(), &out, &[&changes]))),
        "version_damaged"
    );
    let mut there = left(&out);
    there.sort();
    assert_eq!(there, ["1", "2"]);
}

#[test]
fn a_delta_needs_a_version_that_is_served() {
    let people = People::start(&[]);
    let rows = people.write("rows.csv", csv(5));
    assert_eq!(code(&people.refused(&[&rows, "--delta"])), "no_version");
    assert_eq!(code(&people.refused(&[&rows, "--delete", &rows])), "usage");
    assert_eq!((people.built(), people.states()), (vec![], vec![]));
}

#[test]
fn a_built_version_is_pushed_and_a_delta_follows_it() {
    let people = People::start(&["--drop-max", "10"]);
    let out = people.folder.path().join("out");
    built(&out, &[&people.write("rows.csv", csv(100)), "--version", "5"]);
    let reply = people.pushed(&[out.to_str().unwrap()]);
    assert_eq!((&reply["version"], &reply["records"]), (&json!(5), &json!(100)), "{reply}");
    // Again: the same files under a new number.
    let again = people.pushed(&[out.join("5").to_str().unwrap()]);
    let again = again["version"].as_u64().expect("a version");
    assert!(5 < again);
    assert_eq!(people.built(), [5]);
    let changes = people.write("changes.csv", "key,value\nmember:3,other\nmember:100,value\n");
    let delete = people.write("delete.txt", "member:4\n");
    let delta = people.pushed(&[&changes, "--delta", "--delete", &delete]);
    assert_eq!((&delta["records"], &delta["changes"]["deleted"]), (&json!(100), &json!(1)), "{delta}");
    let delta = delta["version"].as_u64().expect("a version");
    people.assert_states(&[(5, "retained"), (again, "retained"), (delta, "current")]);

    let few = people.write("few.csv", csv(89));
    assert_eq!(code(&people.refused(&[&few])), "records_dropped");
    people.assert_states(&[(5, "retained"), (again, "retained"), (delta, "current")]);
    assert_eq!(people.built(), [5, delta], "a refused push leaves nothing");
    let forced = people.pushed(&[&few, "--force"]);
    assert_eq!((&forced["records"], &forced["before"]), (&json!(89), &json!(delta)), "{forced}");
    assert_eq!(code(&people.refused(&[&few, "--version", "6"])), "version_not_newer");
}

/// The files that the two versions have in common lie on the nodes' disks already.
#[test]
fn a_delta_moves_what_changed_and_nothing_else() {
    let people = People::start(&[]);
    let rows: String = (0..40_000).map(|key| format!("member:{key},{key:0100}\n")).collect();
    let rows = people.write("rows.csv", format!("key,value\n{rows}"));
    let fetched =
        || people.cluster.metric("kith_node_fetched_bytes_total").expect("nodes count what they fetch");
    let whole = people.pushed(&[&rows]);
    let all = fetched();
    let bytes = whole["bytes"].as_f64().expect("a size");
    assert!(bytes <= all, "{all} bytes fetched of {bytes}");
    // One key in a thousand, in most partitions, with values of other lengths.
    let changes: String =
        (0..40_000).step_by(1_000).map(|key| format!("member:{key},other {key}\n")).collect();
    let changes = people.write("changes.csv", format!("key,value\n{changes}"));
    let delta = people.pushed(&[&changes, "--delta"]);
    assert_eq!((&delta["records"], &delta["changes"]["replaced"]), (&json!(40_000), &json!(40)), "{delta}");
    assert!(12 < delta["changes"]["partitions"].as_u64().expect("a number"), "{delta}");
    let bytes_moved = delta["changes"]["bytes_moved"].as_f64().expect("a size");
    assert!(0.0 < bytes_moved && bytes_moved < bytes / 100.0, "{delta}");
    // Patch and manifest, on each node.
    let moved = fetched() - all;
    assert!(bytes_moved < moved && moved < all / 20.0, "{moved} bytes fetched, {all} for all of it");
    let reused = people.cluster.metric("kith_node_reused_bytes_total").expect("nodes count what they reuse");
    assert!(bytes < reused, "{reused} bytes of {bytes} reused");
    for (key, value) in
        [("member:7000", "other 7000".to_owned()), ("member:19999", format!("{:0100}", 19_999))]
    {
        assert_eq!(people.cluster.must(&["get", "people", key]).trim_end(), value);
    }
}
