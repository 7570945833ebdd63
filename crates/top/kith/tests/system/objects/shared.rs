//! Several clusters and pushes in one bucket: prefixes, races, names of others.

use super::support::{
    self,
    cluster::{Cluster, text},
};
use super::{env, json_of, refused, rows, served, start};
use kith_files::testing::S3;
use serde_json::Value;
use std::{fs, path::Path, process::Stdio};

/// The folders that hold anything: the server leaves empty ones behind, which are nothing in a bucket.
fn built_below(folder: &Path) -> Vec<String> {
    let folders = fs::read_dir(folder).expect("a folder").flatten();
    let full =
        folders.filter(|entry| fs::read_dir(entry.path()).is_ok_and(|mut files| files.next().is_some()));
    full.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// A refused start: what it says.
fn does_not_start(server: &S3, objects: &str) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (data, ready) = (path("data"), path("ready.json"));
    let mut dev = support::cluster::dev(&["--groups", "1", "--nodes", "1", "--partitions", "8"]);
    dev.args(["--data", &data, "--ready-file", &ready, "--objects", objects]).envs(env(server));
    let output = dev.output().expect("kith runs");
    assert!(!output.status.success(), "{}", text(&output));
    text(&output)
}

#[test]
fn clusters_share_a_bucket_by_prefix_and_never_an_object_store() {
    let server = S3::start();
    let a = start(&server, &["--objects", "s3://bucket/a"]);
    let b = start(&server, &["--objects", "s3://bucket/b"]);
    for objects in ["s3://bucket/a", "s3://bucket/a/people"] {
        assert!(does_not_start(&server, objects).contains("object_store_taken"), "{objects}");
    }
    assert!(does_not_start(&server, "s3://bucket").contains("object_store_taken"), "it is not empty");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let csv = folder.path().join("rows.csv");
    let push = |cluster: &Cluster, version: u64| {
        fs::write(&csv, rows(version)).expect("written");
        cluster.must(&["store", "push", "people", csv.to_str().expect("UTF-8")]);
    };
    for cluster in [&a, &b] {
        cluster.must(&["store", "create", "people", "--key", "string", "--value", "text", "--retain", "1"]);
    }
    (1..=2).for_each(|version| push(&a, version));
    (3..=6).for_each(|version| push(&b, version));
    let versions = |prefix: &str| built_below(&server.file(&format!("{prefix}/people/values"))).len();
    assert_eq!((versions("a"), versions("b")), (2, 2), "what is served, and the one before");
    assert_eq!((served(&a).as_str(), served(&b).as_str()), ("2", "6"));
    // Somebody puts another cluster's name there: nothing is written or removed any more.
    fs::copy(server.file("b/kith-cluster.json"), server.file("a/kith-cluster.json")).expect("copied");
    let csv = csv.to_str().expect("UTF-8");
    refused(&a, &["store", "push", "people", csv], "object_store_taken");
    a.must(&["store", "drop", "people", "--yes"]);
    assert_eq!(versions("a"), 2, "it may be the other's");
}

#[test]
fn the_loser_of_a_race_for_a_version_takes_nothing_from_the_winner() {
    let server = S3::start();
    let cluster = start(&server, &["--objects", "s3://bucket/cluster"]);
    cluster.must(&["store", "create", "people", "--key", "string", "--value", "text"]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let rows_of = |name: &str, version: u64| {
        let path = folder.path().join(name);
        fs::write(&path, rows(version)).expect("written");
        path.to_str().expect("UTF-8").to_owned()
    };
    // The same rows twice are a job that was retried.
    let (one, other) = (rows_of("a.csv", 1), rows_of("b.csv", 2));
    for (number, inputs) in [(11, [&one, &other]), (12, [&one, &one]), (13, [&other, &one])] {
        let number = number.to_string();
        let pushes = inputs.map(|input| {
            let push = ["store", "push", "people", input, "--version", &number, "-o", "json"];
            let command = cluster.kith(&push).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
            command.expect("kith runs")
        });
        let ended = pushes.map(|push| push.wait_with_output().expect("it ends"));
        let won: Vec<Value> = ended
            .iter()
            .filter(|output| output.status.success())
            .map(|output| json_of(&String::from_utf8_lossy(&output.stdout)))
            .collect();
        assert_eq!(won.len(), 1, "{ended:?}");
        let mut built = built_below(&server.file("cluster/people/values"));
        built.retain(|folder| folder.starts_with(&number));
        let winner = format!("{number}-{}", won[0]["push"].as_str().expect("an id"));
        assert_eq!(built, [winner], "the winner's alone");
        let verified = cluster.must(&["store", "verify", "people", "--deep", "-o", "json"]);
        assert_eq!(json_of(&verified)["ok"], true);
    }
}
