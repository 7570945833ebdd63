//! Clusters whose versions lie in an object store: a real S3 server.

#[path = "../../kith-objects/tests/support/s3.rs"]
mod s3;
mod support;

use s3::S3;
use serde_json::{Value, json};
use std::{fs, path::Path, process::Stdio};
use support::{
    cluster::{Cluster, is_alive, signal, text},
    disk,
};

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
    let delta = json_of(&cluster.must(&[
        "store",
        "push",
        "people",
        changes.to_str().unwrap(),
        "--delta",
        "-o",
        "json",
    ]));
    assert_eq!(delta["records"], ROWS + 1);
    assert_eq!(cluster.must(&["get", "people", "new"]).trim(), "value");
    // Built elsewhere, into a bucket, from a pattern; nodes pull it from there.
    put(&server, "rows/b/part-0.csv", &rows(3));
    let out = json_of(&cluster.must(&[
        "store",
        "build",
        "people",
        "s3://bucket/rows/b/*.csv",
        "--out",
        "s3://bucket/built",
        "-o",
        "json",
    ]));
    let version = out["version"].to_string();
    assert_eq!(out["folder"], format!("s3://bucket/built/{version}"));
    let url = json_of(&cluster.must(&["store", "push", "people", "s3://bucket/built", "-o", "json"]));
    assert_eq!(url["version"], out["version"]);
    assert_eq!(served(&cluster), "3");
    assert!(!built(&url).exists(), "nobody copied it");
    // The first is beyond what is retained.
    assert!(!built(&pushed).exists() && built(&delta).is_file());
    cluster.must(&["store", "rollback", "people"]);
    assert_eq!(served(&cluster), "1");
    let edges = folder.path().join("edges.csv");
    fs::write(&edges, "src,dst\n1,2\n2,3\n").unwrap();
    cluster.must(&["load", "graph", edges.to_str().unwrap(), "--graph", "tiny"]);
    let (answers, _) = cluster.run(&[json!({"op": "connections", "graph": "tiny", "id": 2})], 1);
    assert_eq!(answers[0]["ids"], json!([1, 3]));
    cluster.must(&["store", "drop", "people", "--yes"]);
    assert!(!built(&delta).exists());
    assert!(server.file(&format!("built/{version}/manifest.json")).is_file(), "what lies elsewhere stays");
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
    let place = changed["folder"].as_str().expect("a URL");
    cluster.must(&["store", "push", "people", place]);
    assert_eq!(cluster.must(&["get", "people", "new"]).trim(), "value");
    let (answers, _) =
        cluster.run(&[json!({"op": "mget", "store": "people", "keys": ["member:1", "member:2"]})], 1);
    let states = (&answers[0]["results"][0]["state"], &answers[0]["results"][1]["state"]);
    assert_eq!(states, (&json!("ABSENT"), &json!("FOUND")));

    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().display().to_string();
    let nothing = "s3://bucket/nothing";
    let from = |base, delete| ["store", "build", "people", "--base", base, "--delete", delete, "--out", &out];
    assert!(refused(&cluster, &from(place, nothing), "bad_input").contains(nothing));
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
        cluster.must(&[
            "store",
            "build",
            "people",
            csv.to_str().unwrap(),
            "--out",
            &out,
            "--version",
            &number,
        ]);
    }
    cluster.must(&["store", "push", "people", "s3://bucket/v1"]);
    let push = ["store", "push", "people", "s3://bucket/v2/2"];
    let fails = |cluster: &Cluster, code: &str, word: &str| {
        let said = refused(cluster, &push, code);
        assert!(said.contains(word), "{word} was expected: {said}");
        assert_eq!(served(cluster), "1");
    };
    let manifest = server.file("v2/2/manifest.json");
    let pack = fs::read_dir(manifest.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
    let pack =
        pack.filter(|path| *path != manifest).max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
    let whole = fs::read(&pack).unwrap();
    s3::truncate(&pack, whole.len() as u64 / 2);
    fails(&cluster, "version_damaged", "bytes");
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    fs::write(&pack, flipped).unwrap();
    fails(&cluster, "prepare_failed", "checksum");
    fs::remove_file(&pack).unwrap();
    fails(&cluster, "version_damaged", "missing");
    fs::write(&pack, &whole).unwrap();
    let text = fs::read(&manifest).unwrap();
    fs::write(&manifest, &text[..text.len() / 2]).unwrap();
    fails(&cluster, "version_damaged", "v2/2");
    fs::write(&manifest, text).unwrap();
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
fn a_source_that_is_slow_delays_no_other_stores_push() {
    let server = S3::start();
    let mut cluster = Cluster::start_in(
        &["--groups", "1", "--nodes", "2", "--partitions", "8", "--read-from", BUILT],
        &server.settings(),
    );
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("rows.csv");
    fs::write(&csv, rows(1)).unwrap();
    let csv = csv.to_str().unwrap();
    for store in ["people", "others"] {
        cluster.must(&["store", "create", store, "--key", "string", "--value", "text"]);
    }
    cluster.must(&["store", "build", "people", csv, "--out", "s3://bucket/built", "--version", "1"]);
    // Enough for all manifests, and for no node's packs.
    server.hold_after(200_000);
    let push = ["store", "push", "people", "s3://bucket/built/1"];
    let mut slow =
        cluster.kith(&push).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("kith runs");
    cluster.wait_until("an answer is held", |_| server.holds());

    cluster.must(&["store", "push", "others", csv]);
    assert!(cluster.must(&["get", "others", "member:7"]).starts_with("value 7"));
    // Another version, beside one that is served.
    cluster.must(&["store", "push", "others", csv]);
    cluster.must(&["store", "rollback", "others"]);
    assert!(server.holds() && slow.try_wait().expect("it can be waited for").is_none());
    assert!(!cluster.kith(&["get", "people", "member:7"]).output().expect("kith runs").status.success());

    server.go_on();
    assert!(slow.wait().expect("it ends").success());
    assert_eq!(served(&cluster), "1");
}

/// Builds versions 1 to `versions` to `s3://bucket/built`, with values of about so many bytes; bytes of the packs of one.
fn built(cluster: &Cluster, server: &S3, versions: u64, value_bytes: usize) -> u64 {
    cluster.must(&["store", "create", "people", "--key", "string", "--value", "text"]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let csv = folder.path().join("rows.csv");
    for version in 1..=versions {
        let lines =
            (0..ROWS).map(|id| format!("member:{id},value {id} of {version} {}\n", "x".repeat(value_bytes)));
        fs::write(&csv, format!("key,value\n{}", lines.collect::<String>())).expect("written");
        let (out, version) = ("s3://bucket/built", version.to_string());
        cluster.must(&[
            "store",
            "build",
            "people",
            csv.to_str().expect("UTF-8"),
            "--out",
            out,
            "--version",
            &version,
        ]);
    }
    let manifest = server.file("built/1/manifest.json");
    let folder = fs::read_dir(manifest.parent().expect("a folder")).expect("readable");
    let packs = folder.flatten().filter(|entry| entry.path() != manifest);
    packs.map(|entry| entry.metadata().expect("it is there").len()).sum()
}

#[test]
fn with_from_peers_one_copy_comes_from_the_object_store() {
    let server = S3::start();
    let shape = ["--groups", "3", "--nodes", "2", "--partitions", "8", "--read-from", BUILT];
    let cluster = Cluster::start_in(&shape, &server.settings());
    let bytes = built(&cluster, &server, 2, 400) as f64;
    let copies = |version: &str, flags: &[&str]| {
        let (before, url) = (server.bytes_sent(), format!("s3://bucket/built/{version}"));
        cluster.must(&[&["store", "push", "people", &url], flags].concat());
        assert_eq!(served(&cluster), version);
        (server.bytes_sent() - before) as f64 / bytes
    };
    let apart = copies("1", &[]);
    assert!((3.0..3.6).contains(&apart), "{apart} copies, one per group");
    let from_peers =
        || cluster.metric("kith_node_fetched_from_peers_bytes_total").unwrap_or_default() / bytes;
    assert_eq!(from_peers(), 0.0);
    let once = copies("2", &["--from-peers"]);
    assert!((1.0..1.4).contains(&once), "{once} copies for three groups");
    assert!((2.0..2.4).contains(&from_peers()), "{} copies from peers", from_peers());
    cluster.must(&["store", "verify", "people", "--deep"]);
}

#[test]
fn a_peer_that_dies_under_a_copy_is_replaced_by_the_object_store() {
    let server = S3::start();
    let shape = [
        "--processes",
        "--groups",
        "2",
        "--nodes",
        "1",
        "--partitions",
        "8",
        "--fetch-p99",
        "off",
        "--read-from",
        BUILT,
    ];
    let mut cluster = Cluster::start_in(&shape, &server.settings());
    // Three requests or so for each node.
    let bytes = built(&cluster, &server, 1, 10_000);
    let rate = |rate: &str| {
        let told = cluster.must(&["cluster", "fetch-rate", rate, "--node", "1", "-o", "json"]);
        let told: Value = serde_json::from_str(&told).expect("JSON");
        (told["nodes"][0]["bytes_fetched"].as_u64().expect("a number"), told["nodes"][0]["waiting"].clone())
    };
    rate("1MiB/s");
    let push = ["store", "push", "people", "s3://bucket/built/1", "--from-peers"];
    let mut push =
        cluster.kith(&push).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("kith runs");
    let peer = cluster.node_pids(0)[0];
    let started = std::time::Instant::now();
    // The second node has a part, and waits for its turn to ask for the next.
    while rate("1MiB/s").0 < 2 << 20 {
        assert!(started.elapsed().as_secs() < 90 && push.try_wait().expect("it can be waited for").is_none());
    }
    let sent = server.bytes_sent();
    // Frozen first: killed at once, it might be back under the same address.
    signal(peer, "STOP");
    rate("off");
    cluster.wait_until("the object store is asked instead", |_| sent + (1 << 20) < server.bytes_sent());
    assert!(server.bytes_sent() - sent < bytes, "what came from the peer is kept");
    signal(peer, "KILL");
    assert!(push.wait().expect("it ends").success());
    assert_eq!(served(&cluster), "1");
    cluster.wait_until("the dead one is back", |cluster| {
        let output = cluster.kith(&["store", "verify", "people", "--deep"]).output().unwrap();
        output.status.success()
    });
}

#[test]
fn a_node_that_is_killed_in_a_fetch_goes_on_where_it_was() {
    let server = S3::start();
    let shape = [
        "--processes",
        "--groups",
        "1",
        "--nodes",
        "1",
        "--partitions",
        "2",
        "--fetch-p99",
        "off",
        "--read-from",
        BUILT,
    ];
    let mut cluster = Cluster::start_in(&shape, &server.settings());
    // Files of several pieces each.
    let bytes = built(&cluster, &server, 1, 10_000);
    server.hold_after(bytes / 2);
    let push = ["store", "push", "people", "s3://bucket/built/1"];
    let mut push =
        cluster.kith(&push).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("kith runs");
    let staging = disk::version_folder(&cluster, 0, "people", 1).with_file_name(".1.fetching");
    // What is held in the middle of a piece is not staged; of half a version, one piece at least is.
    let piece = 4 << 20;
    cluster.wait_until("a piece is staged and an answer is held", |_| {
        server.holds() && piece <= disk::staged_bytes(&staging)
    });
    let node = cluster.node_pids(0)[0];
    signal(node, "KILL");
    cluster.wait_until("the node is gone", |_| !is_alive(node));
    let (staged, sent) = (disk::staged_bytes(&staging), server.bytes_sent());
    server.go_on();

    assert!(push.wait().expect("it ends").success());
    assert_eq!(served(&cluster), "1");
    // The manifest and the tails of the files are read again, and what was under way when the node died.
    let (again, most) = (server.bytes_sent() - sent, bytes - staged + (1 << 20));
    assert!(again <= most, "{again} bytes were fetched again, {staged} of {bytes} were staged");
    assert!(!staging.exists());
}

/// What `kith store verify --deep` says of each node, in the order of nodes.
fn states(cluster: &Cluster) -> Vec<String> {
    let output =
        cluster.kith(&["store", "verify", "people", "--deep", "-o", "json"]).output().expect("kith runs");
    let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let nodes = told["nodes"].as_array().cloned().unwrap_or_default();
    nodes.iter().map(|node| node["state"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn nodes_become_whole_from_their_peers_while_the_object_store_is_away() {
    let mut server = S3::start();
    // Damage is found by reads alone.
    let shape = ["--processes", "--groups", "3", "--nodes", "1", "--partitions", "4", "--scrub-rate", "off"];
    let places = ["--read-from", BUILT];
    let mut cluster = Cluster::start_in(&[&shape[..], &places].concat(), &env(&server));
    built(&cluster, &server, 1, 400);
    cluster.must(&["store", "push", "people", "s3://bucket/built/1"]);
    server.kill();
    let folders = [0, 1].map(|node| disk::version_folder(&cluster, node, "people", 1));
    // Several files of the first peer that node 0 asks.
    disk::flip(&folders[1], "data");
    let node = cluster.node_pids(0)[0];
    signal(node, "STOP");
    fs::remove_dir_all(folders[0].ancestors().nth(3).expect("components")).expect("removed");
    signal(node, "KILL");
    cluster.wait_until("node 0 is whole, of the third node's bytes", |cluster| {
        states(cluster) == ["ok", "damaged", "ok"]
    });
    let log = fs::read_to_string(cluster.data().join("node-000.log")).expect("its log");
    assert!(log.contains("a peer gave damaged bytes"), "{log}");

    cluster.wait_until("node 1 is whole", |cluster| {
        assert_eq!(served(cluster), "1");
        states(cluster) == ["ok"; 3]
    });
    // Without a manifest, nothing in the folder can be trusted.
    fs::write(folders[1].join("manifest.json"), "{}").unwrap();
    signal(cluster.node_pids(1)[0], "KILL");
    cluster.wait_until("node 1 is whole again", |cluster| states(cluster) == ["ok"; 3]);
    assert_eq!(served(&cluster), "1");
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
    assert!(said.contains("refused to us") && said.contains("AWS_SECRET_ACCESS_KEY"), "{said}");
    let let_in = |arguments: &[&str]| cluster.kith(arguments).envs(env(&server)).output().unwrap();
    let output = let_in(&build);
    assert!(output.status.success(), "{}", text(&output));
    let output = let_in(&["store", "push", "people", "s3://bucket/v2", "-o", "json"]);
    let said = text(&output);
    assert!(!output.status.success() && said.contains("object_store_unreachable"), "{said}");
    assert!(said.contains("check that routers can reach it") && said.contains("refused to us"), "{said}");
    assert_eq!(served(&cluster), "1");
}
