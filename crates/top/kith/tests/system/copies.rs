//! The findings of `kith store verify` about the object store's copy of a version: in a bucket of a real S3 server, in a folder, and elsewhere.

use crate::support;
use kith_files::testing::{S3, truncate};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};
use support::{cluster::Cluster, disk};

const SHAPE: [&str; 6] = ["--groups", "1", "--nodes", "2", "--partitions", "8"];
const QUICK: &[&str] = &[];
const DEEP: &[&str] = &["--deep"];

/// A cluster on a bucket; nodes give a store that is away up after a second.
fn on_bucket(server: &S3) -> Cluster {
    let mut env = server.settings();
    env.push(("KITH_OBJECTS_RETRY_SECONDS".to_owned(), "1".to_owned()));
    let more = ["--objects", "s3://bucket/cluster", "--read-from", "s3://bucket/built"];
    Cluster::start_in(&[&SHAPE[..], &more].concat(), &env)
}

/// Pushes rows large enough for several packs; the version.
fn push(cluster: &Cluster, store: &str) -> u64 {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let csv = folder.path().join("rows.csv");
    let rows: String = (0..3_000).map(|key| format!("{store} {key},{}\n", "x".repeat(4_000))).collect();
    fs::write(&csv, format!("key,value\n{rows}")).expect("written");
    cluster.must(&["store", "create", store, "--key", "string", "--value", "text"]);
    let output = cluster.must(&["store", "push", store, csv.to_str().expect("UTF-8"), "-o", "json"]);
    let report: Value = serde_json::from_str(output.lines().last().expect("a line")).expect("JSON");
    report["version"].as_u64().expect("a number")
}

/// The findings of `kith store verify`, and its exit code; that of nodes must be that they are whole.
fn verify(cluster: &Cluster, store: &str, depth: &[&str]) -> (Value, Option<i32>) {
    let all = [&["store", "verify", store, "-o", "json"], depth].concat();
    let output = cluster.kith(&all).output().expect("kith runs");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let nodes = report["nodes"].as_array().expect("nodes");
    assert!(nodes.len() == 2 && nodes.iter().all(|node| node["state"] == "ok"), "{report}");
    (report["object_store"].clone(), output.status.code())
}

/// The folder of the only version of a store of values in an object store.
fn version_in(objects: &Path, store: &str) -> PathBuf {
    let folders = fs::read_dir(objects.join(store).join("values")).expect("versions").flatten();
    let mut folders = folders.map(|entry| entry.path()).filter(|path| path.join("manifest.json").is_file());
    folders.next().expect("a version")
}

/// One way to break a copy.
struct Fault<'a> {
    what: &'a str,
    how: &'a dyn Fn(),
    /// The state that is reported then.
    state: &'a str,
    /// The object that is named.
    file: Option<&'a str>,
    /// Whether a quick look finds it.
    quick: bool,
}

impl<'a> Fault<'a> {
    fn damage(what: &'a str, how: &'a dyn Fn(), file: &'a str, quick: bool) -> Self {
        Self { what, how, state: "damaged", file: Some(file), quick }
    }
}

/// A whole copy is reported as whole, with all its objects; only a deep look reads their bytes.
fn assert_whole(cluster: &Cluster, packs: &[PathBuf]) {
    for depth in [QUICK, DEEP] {
        let (report, code) = verify(cluster, "words", depth);
        assert_eq!((&report["state"], code), (&json!("ok"), Some(0)), "{report}");
        let component = &report["components"][0];
        assert_eq!(component["files"], packs.len() + 1, "{report}");
        assert!(component["place"].as_str().expect("a place").contains("words/values/"), "{report}");
        let bytes: u64 = packs.iter().map(|pack| fs::metadata(pack).expect("it is there").len()).sum();
        assert_eq!(component["bytes"], if depth.is_empty() { 0 } else { bytes }, "{report}");
    }
}

/// A broken copy is reported as broken.
fn assert_found(cluster: &Cluster, &Fault { what, state, file, quick, .. }: &Fault<'_>, flipped: u64) {
    let (report, code) = verify(cluster, "words", QUICK);
    assert_eq!(code, Some(if quick { 3 } else { 0 }), "{what}: {report}");
    let (report, code) = verify(cluster, "words", DEEP);
    assert_eq!((&report["state"], code), (&json!(state), Some(3)), "{what}: {report}");
    let damage = &report["components"][0]["damages"][0];
    assert_eq!(damage["file"].as_str(), file, "{what}: {report}");
    if what == "a flipped byte" {
        let offset = damage["offset"].as_u64().expect("an offset");
        assert!((offset..offset + (64 << 10)).contains(&flipped), "{report}");
    }
}

/// Breaks the copy of `words` in every way, and looks whether that is found; `other` is a version of another store.
fn break_and_verify(cluster: &Cluster, copy: &Path, other: &Path) {
    let packs = disk::packs(copy);
    assert!(1 < packs.len(), "several objects");
    let name = packs[0].file_name().and_then(|name| name.to_str()).expect("UTF-8");
    let (pack, manifest) = (&packs[0], copy.join("manifest.json"));
    let (whole, listed) = (fs::read(pack).expect("read"), fs::read(&manifest).expect("read"));
    let middle = whole.len() / 2;
    let flip = || {
        let mut flipped = whole.clone();
        flipped[middle] ^= 1;
        fs::write(pack, flipped).expect("written");
    };
    assert_whole(cluster, &packs);
    let unlist = || fs::remove_file(&manifest).expect("removed");
    let scribble = || fs::write(&manifest, "{").expect("written");
    let replace = || assert_ne!(fs::copy(other.join("manifest.json"), &manifest).expect("copied"), 0);
    for fault in [
        Fault::damage("a flipped byte", &flip, name, false),
        Fault::damage("a cut object", &|| truncate(pack, middle as u64), name, true),
        Fault::damage("no object", &|| fs::remove_file(pack).expect("removed"), name, true),
        Fault::damage("no manifest", &unlist, "manifest.json", true),
        Fault::damage("a damaged manifest", &scribble, "manifest.json", true),
        Fault { what: "another manifest", how: &replace, state: "differs", file: None, quick: true },
    ] {
        (fault.how)();
        assert_found(cluster, &fault, middle as u64);
        fs::write(pack, &whole).expect("written");
        fs::write(&manifest, &listed).expect("written");
    }
    fs::remove_dir_all(copy).expect("removed");
    let (report, code) = verify(cluster, "words", QUICK);
    assert_eq!((&report["state"], code), (&json!("missing"), Some(3)), "{report}");
    let text = cluster.kith(&["store", "verify", "words"]).output().expect("kith runs");
    let text = String::from_utf8(text.stdout).expect("UTF-8");
    assert!(text.contains("every replica is whole, but the object store's copy is not"), "{text}");
}

#[test]
fn verify_finds_what_a_bucket_lost_and_calls_one_that_is_away_unreachable() {
    let mut server = S3::start();
    let cluster = on_bucket(&server);
    push(&cluster, "words");
    push(&cluster, "others");
    let objects = server.file("cluster");
    break_and_verify(&cluster, &version_in(&objects, "words"), &version_in(&objects, "others"));
    server.kill();
    let (report, code) = verify(&cluster, "others", QUICK);
    assert_eq!((&report["state"], code), (&json!("unreachable"), Some(3)), "{report}");
    assert_eq!(report["error"]["code"], "object_store_unreachable", "{report}");
    server.restart();
    assert_eq!(verify(&cluster, "others", DEEP).1, Some(0));
}

#[test]
fn verify_finds_what_a_folder_lost_and_calls_one_that_is_not_there_unreachable() {
    let cluster = Cluster::start(&SHAPE);
    push(&cluster, "words");
    push(&cluster, "others");
    let objects = cluster.data().join("objects");
    break_and_verify(&cluster, &version_in(&objects, "words"), &version_in(&objects, "others"));
    // As a volume that is not mounted.
    let aside = cluster.data().join("aside");
    fs::rename(&objects, &aside).expect("renamed");
    let (report, code) = verify(&cluster, "others", QUICK);
    assert_eq!((&report["state"], code), (&json!("unreachable"), Some(3)), "{report}");
    assert_eq!(report["error"]["code"], "object_store_unreachable", "{report}");
    fs::rename(&aside, &objects).expect("renamed");
    assert_eq!(verify(&cluster, "others", DEEP).1, Some(0));
}

#[test]
fn verify_looks_where_a_version_was_built_and_at_every_component_of_a_graph() {
    let server = S3::start();
    let cluster = on_bucket(&server);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("written");
        path.to_str().expect("UTF-8").to_owned()
    };
    cluster.must(&["store", "create", "words", "--key", "string", "--value", "text"]);
    let rows = write("rows.csv", "key,value\na,1\nb,2\n");
    cluster.must(&["store", "build", "words", &rows, "--out", "s3://bucket/built", "--version", "7"]);
    cluster.must(&["store", "push", "words", "s3://bucket/built/7"]);
    let (report, code) = verify(&cluster, "words", DEEP);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["components"][0]["place"], "s3://bucket/built/7", "{report}");
    let edges = write("edges.csv", "src,dst\n1,2\n2,3\n");
    cluster.must(&["load", "graph", &edges, "--graph", "tiny"]);
    let (report, code) = verify(&cluster, "tiny", DEEP);
    let components = report["components"].as_array().expect("components");
    assert!(code == Some(0) && !components.is_empty(), "{report}");
    let url = components[0]["place"].as_str().expect("a place");
    let copy = server.file(url.strip_prefix("s3://bucket/").expect("in the bucket"));
    fs::remove_file(&disk::packs(&copy)[0]).expect("removed");
    assert_eq!(verify(&cluster, "tiny", QUICK).1, Some(3));
}

/// A check waits for its turn as fetches do; one whose asker has left is over.
#[test]
fn a_check_of_the_copy_keeps_to_the_rate_of_fetches() {
    let server = S3::start();
    let mut cluster = on_bucket(&server);
    push(&cluster, "words");
    let fetches = |cluster: &Cluster, rate: &[&str]| {
        let output = cluster.must(&[&["cluster", "fetch-rate", "-o", "json"], rate].concat());
        let answer: Value = serde_json::from_str(&output).expect("JSON");
        let nodes = answer["nodes"].as_array().expect("nodes");
        nodes.iter().filter_map(|node| node["waiting"].as_u64()).sum::<u64>()
    };
    fetches(&cluster, &["1"]);
    let sent = server.bytes_sent();
    let verify = ["store", "verify", "words", "--deep"];
    let mut two = [(); 2].map(|()| {
        let command = cluster.kith(&verify).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        command.expect("kith runs")
    });
    cluster.wait_until("it waits for its turn", |cluster| fetches(cluster, &[]) == 1);
    assert!(server.bytes_sent() - sent < 1 << 20, "nothing is read before its turn");
    for check in &mut two {
        check.kill().expect("it can be killed");
        check.wait().expect("it can be waited for");
    }
    cluster.wait_until("nobody waits", |cluster| fetches(cluster, &[]) == 0);
    fetches(&cluster, &["off"]);
    cluster.must(&verify);
}
