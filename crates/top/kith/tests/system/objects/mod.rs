//! Clusters whose versions lie in an object store: a real S3 server.

mod fetches;
mod shared;

use crate::support;
use kith_files::testing::{S3, truncate};
use serde_json::{Value, json};
use std::{fs, path::Path};
use support::cluster::{Cluster, text};

/// Enough for a pack that is more than a request.
const ROWS: u64 = 2_000;

/// Where versions are built that no cluster owns.
const BUILT: &str = "s3://bucket/built";

/// A node gives a store that is away up after so long.
const RETRY_SECONDS: &str = "2";

fn env(server: &S3) -> Vec<(String, String)> {
    let mut env = server.settings();
    env.push(("KITH_OBJECTS_RETRY_SECONDS".to_owned(), RETRY_SECONDS.to_owned()));
    env
}

fn start(server: &S3, more: &[&str]) -> Cluster {
    let mut arguments = vec!["--groups", "1", "--nodes", "2", "--partitions", "8"];
    arguments.extend(["--read-from", BUILT, "--read-from", "people=s3://bucket/v1"]);
    arguments.extend(["--read-from", "people=s3://bucket/v2", "--read-from", "people=s3://bucket/changed"]);
    arguments.extend(more);
    Cluster::start_in(&arguments, &env(server))
}

/// Rows whose values name the version.
fn rows(version: u64) -> String {
    let lines = (0..ROWS).map(|id| format!("member:{id},value {id} of {version} {}\n", "x".repeat(400)));
    format!("key,value\n{}", lines.collect::<String>())
}

fn put(server: &S3, object: &str, text: &str) {
    let path = server.file(object);
    fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
    fs::write(path, text).expect("it can be written");
}

/// The beginning of some values, through `kith run`; all must be found.
fn served(cluster: &Cluster) -> String {
    let keys: Vec<String> = (0..ROWS).step_by(37).map(|id| format!("member:{id}")).collect();
    let (answers, code) = cluster.run(&[json!({"op": "mget", "store": "people", "keys": keys})], 1);
    assert_eq!(code, 0, "{}", answers[0]);
    assert_eq!(answers[0]["footer"]["found"], keys.len());
    let results = answers[0]["results"].as_array().expect("results");
    let versions: Vec<String> = results
        .iter()
        .zip(&keys)
        .map(|(result, key)| {
            let mut words = result["value"].as_str().expect("text").split(' ');
            assert_eq!(format!("member:{}", words.nth(1).expect("a word")), *key);
            words.nth(1).expect("a word").to_owned()
        })
        .collect();
    assert!(versions.iter().all(|version| *version == versions[0]));
    versions[0].clone()
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text.lines().last().expect("a line")).expect("JSON")
}

/// A command that must fail with this code; its message.
fn refused(cluster: &Cluster, arguments: &[&str], code: &str) -> String {
    let output = cluster.kith(arguments).args(["-o", "json"]).output().expect("kith runs");
    let all = text(&output);
    assert!(!output.status.success() && all.contains(code), "{code} was expected: {all}");
    all
}

/// Builds version 3 into a bucket, from a pattern, and has nodes pull it from there; what the push says.
fn push_from_a_bucket(server: &S3, cluster: &Cluster) -> Value {
    put(server, "rows/b/part-0.csv", &rows(3));
    let build = ["store", "build", "people", "s3://bucket/rows/b/*.csv", "--out", BUILT, "-o", "json"];
    let out = json_of(&cluster.must(&build));
    assert_eq!(out["folder"], format!("{BUILT}/{}", out["version"]));
    let push = json_of(&cluster.must(&["store", "push", "people", BUILT, "-o", "json"]));
    assert_eq!(push["version"], out["version"]);
    assert_eq!(served(cluster), "3");
    push
}

fn load_a_graph(cluster: &Cluster, folder: &Path) {
    let edges = folder.join("edges.csv");
    fs::write(&edges, "src,dst\n1,2\n2,3\n").expect("written");
    cluster.must(&["load", "graph", edges.to_str().expect("UTF-8"), "--graph", "tiny"]);
    let (answers, _) = cluster.run(&[json!({"op": "connections", "graph": "tiny", "id": 2})], 1);
    assert_eq!(answers[0]["ids"], json!([1, 3]));
}

#[test]
fn rows_builds_and_graphs_go_through_an_object_store() {
    let server = S3::start();
    let cluster = start(&server, &["--objects", "s3://bucket/cluster"]);
    cluster.must(&["store", "create", "people", "--key", "string", "--value", "text", "--retain", "1"]);
    put(&server, "rows/a/people.csv", &rows(1));
    put(&server, "rows/a/_SUCCESS", "");
    let pushed = json_of(&cluster.must(&["store", "push", "people", "s3://bucket/rows/a/", "-o", "json"]));
    assert_eq!((&pushed["records"], &pushed["swapped"]), (&json!(ROWS), &json!(true)));
    assert_eq!(served(&cluster), "1");
    let built = |push: &Value| {
        let folder = format!("{}-{}", push["version"], push["push"].as_str().expect("an id"));
        server.file(&format!("cluster/people/values/{folder}/manifest.json"))
    };
    assert!(built(&pushed).is_file());
    // Changes of what lies there.
    let folder = tempfile::tempdir().unwrap();
    let changes = folder.path().join("changes.csv");
    fs::write(&changes, "key,value\nnew,value\n").unwrap();
    let push = ["store", "push", "people", changes.to_str().unwrap(), "--delta", "-o", "json"];
    let delta = json_of(&cluster.must(&push));
    assert_eq!(delta["records"], ROWS + 1);
    assert_eq!(cluster.must(&["get", "people", "new"]).trim(), "value");
    let elsewhere = push_from_a_bucket(&server, &cluster);
    assert!(!built(&elsewhere).exists(), "nobody copied it");
    // The first is beyond what is retained.
    assert!(!built(&pushed).exists() && built(&delta).is_file());
    cluster.must(&["store", "rollback", "people"]);
    assert_eq!(served(&cluster), "1");
    load_a_graph(&cluster, folder.path());
    cluster.must(&["store", "drop", "people", "--yes"]);
    assert!(!built(&delta).exists());
    let manifest = format!("built/{}/manifest.json", elsewhere["version"]);
    assert!(server.file(&manifest).is_file(), "what lies elsewhere stays");
}

/// Of two versions, what they have in common does not travel: the store copies it, and nodes have it.
#[test]
fn a_delta_moves_little_through_an_object_store() {
    let server = S3::start();
    let shape = ["--objects", "s3://bucket/cluster", "--groups", "2", "--nodes", "1", "--partitions", "4"];
    let cluster = Cluster::start_in(&shape, &server.settings());
    cluster.must(&["store", "create", "people", "--key", "string", "--value", "text"]);
    let folder = tempfile::tempdir().unwrap();
    let push = |name: &str, rows: String, flags: &[&str]| {
        let path = folder.path().join(name);
        fs::write(&path, format!("key,value\n{rows}")).unwrap();
        let path = path.to_str().expect("UTF-8");
        json_of(&cluster.must(&[&["store", "push", "people", path, "-o", "json"], flags].concat()))
    };
    let fetched = || cluster.metric("kith_node_fetched_bytes_total").expect("nodes count what they fetch");
    let whole = push("rows.csv", (0..8_000).map(|id| format!("member:{id},{id:0800}\n")).collect(), &[]);
    let bytes = whole["bytes"].as_f64().expect("a size");
    let (nodes, sent, received) = (fetched(), server.bytes_sent(), server.bytes_received());
    let delta = push("changes.csv", "member:7,other\n".to_owned(), &["--delta"]);
    assert_eq!((&delta["changes"]["replaced"], &delta["changes"]["partitions"]), (&json!(1), &json!(1)));
    let nodes = (fetched() - nodes) / bytes;
    assert!(nodes < 0.05, "two nodes fetched {nodes} of a version");
    let received = (server.bytes_received() - received) as f64 / bytes;
    assert!((0.2..0.4).contains(&received), "{received} of a version went up: one pack of four");
    // The builder reads the version before in full.
    let sent = (server.bytes_sent() - sent) as f64 / bytes;
    assert!((1.0..1.1).contains(&sent), "{sent} versions came down");
    assert_eq!(cluster.must(&["get", "people", "member:7"]).trim(), "other");
    cluster.must(&["store", "verify", "people", "--deep"]);
}

#[test]
fn a_version_is_built_on_one_in_a_bucket_less_keys_that_are_named_there() {
    let server = S3::start();
    let cluster = start(&server, &[]);
    cluster.must(&["store", "create", "people", "--key", "string", "--value", "text"]);
    put(&server, "rows.csv", &rows(1));
    put(&server, "changes.csv", "key,value\nnew,value\n");
    put(&server, "gone.txt", "member:0\nmember:1\n");
    let build = |arguments: &[&str]| {
        json_of(&cluster.must(&[&["store", "build", "people", "-o", "json"], arguments].concat()))
    };
    let before = build(&["s3://bucket/rows.csv", "--out", "s3://bucket/built"]);
    let base = before["folder"].as_str().expect("a URL");
    let delete = ["--delete", "s3://bucket/gone.txt", "--out", "s3://bucket/changed"];
    let changed = build(&[&["s3://bucket/changes.csv", "--base", base], &delete[..]].concat());
    assert_eq!(changed["records"], ROWS - 1, "{changed}");
    assert_eq!((&changed["changes"]["added"], &changed["changes"]["deleted"]), (&json!(1), &json!(2)));
    let url = changed["folder"].as_str().expect("a URL");
    cluster.must(&["store", "push", "people", url]);
    assert_eq!(cluster.must(&["get", "people", "new"]).trim(), "value");
    let (answers, _) =
        cluster.run(&[json!({"op": "mget", "store": "people", "keys": ["member:1", "member:2"]})], 1);
    let states = (&answers[0]["results"][0]["state"], &answers[0]["results"][1]["state"]);
    assert_eq!(states, (&json!("ABSENT"), &json!("FOUND")));

    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().display().to_string();
    let nothing = "s3://bucket/nothing";
    let from = |base, delete| ["store", "build", "people", "--base", base, "--delete", delete, "--out", &out];
    assert!(refused(&cluster, &from(url, nothing), "bad_input").contains(nothing));
    assert!(refused(&cluster, &from(nothing, "s3://bucket/gone.txt"), "version_damaged").contains(nothing));
    let left: Vec<_> = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, [".lock"], "nothing was built");
}

#[test]
fn records_are_pushed_again_and_a_push_that_fails_under_way_leaves_nothing() {
    let mut server = S3::start();
    let cluster = start(&server, &["--objects", "s3://bucket/cluster"]);
    cluster.must(&["store", "create", "people", "--key", "id", "--value", "record", "--key-field", "id"]);
    let day =
        |day: &str| support::root().join(format!("testdata/profiles/{day}.parquet")).display().to_string();
    // It is built, and cannot be brought there.
    server.kill();
    let said = refused(&cluster, &["store", "push", "people", &day("today")], "object_store_unreachable");
    assert!(!said.contains("panicked"), "{said}");
    server.restart();
    cluster.must(&["store", "push", "people", &day("today")]);
    // Its schema is that of the version in the bucket.
    cluster.must(&["store", "push", "people", &day("tomorrow")]);
    assert!(cluster.must(&["get", "people", "1001"]).contains("Linus"));
    let versions = server.file("cluster/people/values");
    assert_eq!(
        fs::read_dir(versions).expect("a folder").count(),
        2,
        "nothing is left of the one that failed"
    );
}

/// Damages version 2 in every way; each must fail a push with a code and a word of the reason. It is whole again afterwards.
fn damage_in_every_way(server: &S3, fails: impl Fn(&str, &str)) {
    let manifest = server.file("v2/2/manifest.json");
    let entries = fs::read_dir(manifest.parent().expect("a folder"))
        .expect("readable")
        .map(|entry| entry.expect("readable").path());
    let packs = entries.filter(|path| *path != manifest);
    let pack = packs.max_by_key(|path| fs::metadata(path).expect("there").len()).expect("a pack");
    let whole = fs::read(&pack).expect("readable");
    truncate(&pack, whole.len() as u64 / 2);
    fails("version_damaged", "bytes");
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    fs::write(&pack, flipped).expect("written");
    fails("prepare_failed", "checksum");
    fs::remove_file(&pack).expect("removed");
    fails("version_damaged", "missing");
    fs::write(&pack, &whole).expect("written");
    let text = fs::read(&manifest).expect("readable");
    fs::write(&manifest, &text[..text.len() / 2]).expect("written");
    fails("version_damaged", "v2/2");
    fs::write(&manifest, text).expect("written");
}

#[test]
fn whatever_the_object_store_does_the_old_version_serves() {
    let mut server = S3::start();
    let cluster = start(&server, &[]);
    cluster.must(&["store", "create", "people", "--key", "string", "--value", "text"]);
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("rows.csv");
    for version in [1, 2] {
        fs::write(&csv, rows(version)).unwrap();
        let (out, number) = (format!("s3://bucket/v{version}"), version.to_string());
        let build = ["store", "build", "people", csv.to_str().unwrap(), "--out", &out, "--version", &number];
        cluster.must(&build);
    }
    cluster.must(&["store", "push", "people", "s3://bucket/v1"]);
    let push = ["store", "push", "people", "s3://bucket/v2/2"];
    let fails = |cluster: &Cluster, code: &str, word: &str| {
        let said = refused(cluster, &push, code);
        assert!(said.contains(word), "{word} was expected: {said}");
        assert_eq!(served(cluster), "1");
    };
    damage_in_every_way(&server, |code, word| fails(&cluster, code, word));
    server.kill();
    fails(&cluster, "object_store_unreachable", "v2/2");
    server.restart();
    // A connection that breaks is no failure.
    // Early: what the pushes that failed have brought is not asked for again.
    server.cut_after(1_000);
    cluster.must(&push);
    assert!(server.has_cut());
    assert_eq!(served(&cluster), "2");
}

#[test]
fn nodes_that_are_not_let_in_say_so() {
    let server = S3::start();
    let mut wrong = env(&server);
    wrong
        .iter_mut()
        .filter(|(name, _)| name == "AWS_SECRET_ACCESS_KEY")
        .for_each(|(_, it)| *it = "wrong".to_owned());
    let places = ["--read-from", "s3://bucket/v2"];
    let shape = ["--groups", "1", "--nodes", "1", "--partitions", "8"];
    let cluster = Cluster::start_in(&[&shape[..], &places].concat(), &wrong);
    cluster.must(&["store", "create", "people", "--key", "string", "--value", "text"]);
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("rows.csv");
    fs::write(&csv, rows(1)).unwrap();
    let csv = csv.to_str().unwrap();
    cluster.must(&["store", "push", "people", csv]);
    let build = ["store", "build", "people", csv, "--out", "s3://bucket/v2"];
    let said = refused(&cluster, &build, "object_store_unreachable");
    assert!(said.contains("was refused") && said.contains("AWS_SECRET_ACCESS_KEY"), "{said}");
    let let_in = |arguments: &[&str]| cluster.kith(arguments).envs(env(&server)).output().unwrap();
    let output = let_in(&build);
    assert!(output.status.success(), "{}", text(&output));
    let output = let_in(&["store", "push", "people", "s3://bucket/v2", "-o", "json"]);
    let said = text(&output);
    assert!(!output.status.success() && said.contains("object_store_unreachable"), "{said}");
    assert!(said.contains("check that routers can reach it") && said.contains("was refused"), "{said}");
    assert_eq!(served(&cluster), "1");
}
