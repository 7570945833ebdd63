//! Fetches from an object store and from peers: slow sources, one copy for all groups, deaths under way.

use super::support::{
    cluster::{Cluster, is_alive, signal},
    disk,
};
use super::{BUILT, ROWS, env, rows, served};
use kith_files::testing::S3;
use serde_json::Value;
use std::{fs, process::Stdio};

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
        let (csv, version) = (csv.to_str().expect("UTF-8"), version.to_string());
        cluster.must(&["store", "build", "people", csv, "--out", BUILT, "--version", &version]);
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

/// Groups of one process each, whose fetches reads do not slow down.
fn unpaced(server: &S3, groups: &str, partitions: &str) -> Cluster {
    let shape = ["--processes", "--groups", groups, "--nodes", "1", "--partitions", partitions];
    let more = ["--fetch-p99", "off", "--read-from", BUILT];
    Cluster::start_in(&[&shape[..], &more].concat(), &server.settings())
}

#[test]
fn a_peer_that_dies_under_a_copy_is_replaced_by_the_object_store() {
    let server = S3::start();
    let mut cluster = unpaced(&server, "2", "8");
    // Three requests or so for each node.
    let bytes = built(&cluster, &server, 1, 10_000);
    let rate = |rate: &str| {
        let stdout = cluster.must(&["cluster", "fetch-rate", rate, "--node", "1", "-o", "json"]);
        let answer: Value = serde_json::from_str(&stdout).expect("JSON");
        (
            answer["nodes"][0]["bytes_fetched"].as_u64().expect("a number"),
            answer["nodes"][0]["waiting"].clone(),
        )
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
    let mut cluster = unpaced(&server, "1", "2");
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

/// The findings of `kith store verify --deep` about each node, in the order of nodes.
fn states(cluster: &Cluster) -> Vec<String> {
    let output =
        cluster.kith(&["store", "verify", "people", "--deep", "-o", "json"]).output().expect("kith runs");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let nodes = answer["nodes"].as_array().cloned().unwrap_or_default();
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
