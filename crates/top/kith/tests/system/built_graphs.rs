//! Graphs that a program built by the library, into a folder or a bucket, and that a cluster then loads.

use crate::support;
use kith_build::{GraphBuilder, GraphOptions};
use kith_files::testing::S3;
use kith_schema::KindRole;
use kith_types::{PartitionCount, StoreVersion};
use serde_json::{Value, json};
use std::{fs, path::Path};
use support::cluster::{Cluster, text};

const PARTITIONS: u32 = 8;

/// A component's name, role and edges.
type Built<'a> = (&'a str, KindRole, &'a [(u64, u64)]);

/// Builds components of the graph `village` in the folder `out`.
fn build(out: &Path, version: u64, partitions: u32, components: &[Built<'_>]) {
    let partitions = PartitionCount::new(partitions).expect("it is not 0");
    let options = GraphOptions::new("village", StoreVersion(version), partitions, out.to_owned());
    let mut graph = GraphBuilder::new(options).expect("a name");
    for (name, role, edges) in components {
        let mut rows = graph.component(name, *role, &[]).expect("it begins");
        edges.iter().for_each(|(src, dst)| rows.edge(*src, *dst, &[]).expect("a good row"));
        rows.finish(&mut |_| {}).expect("it is built");
    }
    graph.finish().expect("it has components");
}

fn load_of<'a>(path: &'a str, graph: &'a str) -> [&'a str; 8] {
    ["load", "graph", "--built", path, "--graph", graph, "-o", "json"]
}

fn load(cluster: &Cluster, path: &str) -> Value {
    serde_json::from_str(&cluster.must(&load_of(path, "village"))).expect("one line of JSON")
}

/// A load that must fail with this code.
fn assert_refused(cluster: &Cluster, path: &str, graph: &str, code: &str) {
    let output = cluster.kith(&load_of(path, graph)).output().expect("kith runs");
    assert!(
        !output.status.success() && text(&output).contains(code),
        "{code} was expected: {}",
        text(&output)
    );
}

fn connections(cluster: &Cluster, edge_type: &str, id: u64) -> Value {
    let request = json!({"op": "connections", "graph": "village", "edge_type": edge_type, "id": id});
    let (answers, code) = cluster.run(&[request], 1);
    assert_eq!(code, 0, "{}", answers[0]);
    answers[0]["ids"].clone()
}

/// The names of the loaded components.
fn names(reply: &Value) -> Vec<&str> {
    let components = reply["components"].as_array().expect("a list").iter();
    components.map(|component| component["name"].as_str().expect("text")).collect()
}

#[test]
fn a_folder_with_a_built_graph_is_loaded_like_files_and_replaces_what_it_has() {
    let cluster = Cluster::start(&["--groups", "1", "--nodes", "1", "--partitions", &PARTITIONS.to_string()]);
    let folder = tempfile::tempdir().expect("a folder");
    let (out, other) = (folder.path().join("out"), folder.path().join("other"));
    let (path, other_place) = (out.to_str().expect("UTF-8"), other.to_str().expect("UTF-8"));
    assert_refused(&cluster, path, "village", "nothing_to_load");

    let connection = KindRole::Undirected;
    build(
        &out,
        5,
        PARTITIONS,
        &[("connection", connection, &[(1, 2), (2, 3)]), ("school", KindRole::Entity, &[(1, 70)])],
    );
    let first = load(&cluster, path);
    assert_eq!(names(&first), ["connection", "school"]);
    assert_eq!((&first["components"][0]["edges"], &first["files"]), (&json!(2), &json!([])));
    assert_eq!(connections(&cluster, "connection", 2), json!([1, 3]));
    let copy = cluster.data().join("objects/village/connection/5");
    assert!(copy.join("manifest.json").is_file(), "the cluster has a copy of its own");
    assert_refused(&cluster, path, "hamlet", "nothing_to_load");

    // The same version again changes nothing.
    let again = load(&cluster, path);
    assert!(first["version"].as_u64() < again["version"].as_u64(), "{again}");
    assert_eq!(connections(&cluster, "connection", 2), json!([1, 3]));

    // A newer version replaces the components that it has, and leaves the others.
    build(&out, 6, PARTITIONS, &[("connection", connection, &[(2, 9)])]);
    assert_eq!(names(&load(&cluster, path)), ["connection"]);
    assert_eq!(connections(&cluster, "connection", 2), json!([9]));
    assert!(cluster.must(&["graph", "describe", "village"]).contains("school"));

    // Another version under the number of one that is served, another number of partitions, and damage.
    build(&other, 6, PARTITIONS, &[("connection", connection, &[(2, 4)])]);
    assert_refused(&cluster, other_place, "village", "version_taken");
    build(&other, 7, PARTITIONS + 1, &[("connection", connection, &[(2, 4)])]);
    assert_refused(&cluster, other_place, "village", "other_store");
    build(&other, 8, PARTITIONS, &[("connection", connection, &[(2, 4)])]);
    let built = other.join("village/connection/8");
    let mut files = fs::read_dir(&built).expect("a folder").map(|entry| entry.expect("an entry").path());
    let pack = files.find(|path| path.extension().is_some_and(|end| end != "json")).expect("a pack");
    let mut bytes = fs::read(&pack).expect("a file");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&pack, bytes).expect("written");
    assert_refused(&cluster, other_place, "village", "version_damaged");
    assert!(!cluster.data().join("objects/village/connection/8").exists(), "nothing of it is left");
    assert_eq!(connections(&cluster, "connection", 2), json!([9]));
}

/// A graph with a column on its edges, then the same without it: from files and as a built version.
#[test]
fn a_load_that_lacks_columns_names_them_and_needs_leave() {
    let cluster = Cluster::start(&["--groups", "1", "--nodes", "1", "--partitions", &PARTITIONS.to_string()]);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("edges.csv");
    fs::write(&file, "src,dst,weight\n1,2,5\n").expect("written");
    let file = file.to_str().expect("UTF-8");
    let load = ["load", "graph", file, "--graph", "village"];
    cluster.must(&[&load[..], &["--columns", "weight"]].concat());
    let out = folder.path().join("out");
    build(&out, 5, PARTITIONS, &[("connection", KindRole::Undirected, &[(1, 3)])]);
    let built = ["load", "graph", "--built", out.to_str().expect("UTF-8"), "--graph", "village"];
    for load in [&load[..], &built] {
        let output = cluster.kith(load).output().expect("kith runs");
        let said = text(&output);
        assert!(!output.status.success() && said.contains("incompatible_schema"), "{said}");
        assert!(said.contains("\"weight\" of connection") && said.contains("--drop-columns"), "{said}");
        assert_eq!(connections(&cluster, "connection", 1), json!([2]), "a refused load changes nothing");
    }
    let output = cluster.kith(&[&built[..], &["--drop-columns"]].concat()).output().expect("kith runs");
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("column \"weight\" is gone"), "{}", text(&output));
    assert_eq!(connections(&cluster, "connection", 1), json!([3]));
}

/// Copies the files of a folder into a bucket.
fn upload(server: &S3, folder: &Path, object: &str) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if path.is_dir() {
            upload(server, &path, &format!("{object}/{name}"));
        } else {
            let target = server.file(&format!("{object}/{name}"));
            fs::create_dir_all(target.parent().expect("a folder")).expect("it can be made");
            fs::copy(&path, &target).expect("copied");
        }
    }
}

#[test]
fn nodes_pull_a_graph_from_the_bucket_that_it_was_built_into() {
    let server = S3::start();
    let partitions = PARTITIONS.to_string();
    let shape = ["--groups", "1", "--nodes", "2", "--partitions", &partitions];
    let places = ["--objects", "s3://bucket/cluster", "--read-from", "s3://bucket/built"];
    let cluster = Cluster::start_in(&[&shape[..], &places].concat(), &server.settings());
    let folder = tempfile::tempdir().expect("a folder");
    build(folder.path(), 5, PARTITIONS, &[("connection", KindRole::Undirected, &[(1, 2), (2, 3)])]);

    upload(&server, folder.path(), "built");
    load(&cluster, "s3://bucket/built");
    assert_eq!(connections(&cluster, "connection", 2), json!([1, 3]));
    assert!(!server.file("cluster/village/connection").exists(), "nobody copied it");

    // From a folder of this machine it is uploaded, and from a place that is not listed nothing is taken.
    build(folder.path(), 6, PARTITIONS, &[("connection", KindRole::Undirected, &[(2, 9)])]);
    load(&cluster, folder.path().to_str().expect("UTF-8"));
    assert_eq!(connections(&cluster, "connection", 2), json!([9]));
    build(folder.path(), 7, PARTITIONS, &[("connection", KindRole::Undirected, &[(2, 4)])]);
    upload(&server, folder.path(), "elsewhere");
    assert_refused(&cluster, "s3://bucket/elsewhere", "village", "url_not_allowed");
    assert_eq!(connections(&cluster, "connection", 2), json!([9]));
}
