//! Partitions that are built into a bucket of an object store.

use super::support::cluster::Cluster;
use super::{PARTITIONS, build_to, json, kith, names, of, refusal, rows, rows_of};
use kith_files::testing::S3;
use serde_json::Value;
use std::{
    fs,
    process::{Command, Output, Stdio},
};

/// The objects below a prefix, with their bytes; empty folders are nothing in a bucket.
fn objects(server: &S3, prefix: &str) -> Vec<(String, Vec<u8>)> {
    let (root, mut found) = (server.file(prefix), Vec::new());
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(&root).expect("below it").display().to_string();
                found.push((name, fs::read(&path).expect("read")));
            }
        }
    }
    found.sort();
    found
}

/// A machine that runs tasks: its folder, and what lets it into the bucket.
struct Machine {
    folder: tempfile::TempDir,
    env: Vec<(String, String)>,
}

impl Machine {
    fn new(server: &S3) -> Self {
        let mut env = server.settings();
        env.push(("KITH_OBJECTS_RETRY_SECONDS".to_owned(), "1".to_owned()));
        Self { folder: tempfile::tempdir().expect("a temporary folder"), env }
    }

    fn run(&self, arguments: &[&str]) -> Command {
        let mut command = kith(self.folder.path(), arguments);
        command.envs(self.env.iter().cloned());
        command
    }

    fn must(&self, arguments: &[&str]) -> Value {
        let output = self.run(arguments).output().expect("kith runs");
        assert!(output.status.success(), "{output:?}");
        json(&output)
    }

    fn build(&self, out: &str, partition: u32, rows: &[(u32, String)]) -> Output {
        let ours: String =
            rows.iter().filter(|(at, _)| *at == partition).map(|(_, line)| line.as_str()).collect();
        build_to(self.folder.path(), &self.env, out, partition, &format!("{ours}.\n"))
    }

    fn build_all(&self, out: &str, rows: &[(u32, String)]) {
        for partition in 0..PARTITIONS {
            let built = self.build(out, partition, rows);
            assert_eq!(json(&built)["partition"], partition, "{built:?}");
        }
    }

    /// `kith store build` of the same rows, here.
    fn whole(&self, rows: &[(u32, String)]) -> Value {
        let all: String = rows.iter().map(|(_, line)| line.as_str()).collect();
        fs::write(self.folder.path().join("rows.json"), all).expect("written");
        self.must(&["build", "people", "rows.json", "--out", "whole"])
    }
}

#[test]
fn partitions_in_a_bucket_become_the_version_that_is_served() {
    let server = S3::start();
    let machine = Machine::new(&server);
    // Some packs are more than a request.
    let rows = rows_of(&"v".repeat(30_000), 2_000);
    let whole = machine.whole(&rows);
    let (parts, out) = ("s3://bucket/parts", "s3://bucket/built");
    // Twice, as tasks may be.
    machine.build_all(parts, &rows);
    let built = objects(&server, "parts");
    machine.build_all(parts, &rows);
    assert!(objects(&server, "parts") == built, "the same once more");
    let first = json(&machine.build(parts, 0, &rows));
    let folder = first["folder"].as_str().expect("a URL");
    assert!(folder.starts_with("s3://bucket/parts/p00000-"), "{folder}");
    for twice in 0..2 {
        let joined = machine.must(&["assemble", "people", parts, "--out", out]);
        assert_eq!(joined["folder"], "s3://bucket/built/3", "{twice}");
        for field in ["manifest_hash", "records", "bytes"] {
            assert_eq!(joined[field], whole[field], "{field}");
        }
    }
    let local = machine.folder.path().join("whole/3");
    for name in names(&local) {
        let both =
            [&local, &server.file("built/3")].map(|folder| fs::read(folder.join(&name)).expect("read"));
        assert!(both[0] == both[1], "{name} differs");
    }
    let here = machine.must(&["assemble", "people", parts, "--out", "joined"]);
    assert_eq!(here["manifest_hash"], whole["manifest_hash"], "from a bucket to a folder");
    assert_eq!(names(machine.folder.path()), ["joined", "rows.json", "whole"], "nothing else is here");

    let shape = ["--groups", "1", "--nodes", "2", "--partitions", "5", "--read-from", out];
    let cluster = Cluster::start_in(&shape, &machine.env);
    cluster.must(&["store", "create", "people", "--key", "string", "--value", "text"]);
    cluster.must(&["store", "push", "people", "s3://bucket/built/3"]);
    assert!(cluster.must(&["get", "people", "member:1007"]).trim().ends_with("v 1007."));
    fs::write(server.file("parts/other"), "somebody's").expect("written");
    let discard = ["store", "discard-parts", parts, "-o", "json"];
    let gone = cluster.must(&discard);
    assert!(gone.contains("\"removed\":5"), "{gone}");
    assert_eq!(objects(&server, "parts"), [("other".to_owned(), b"somebody's".to_vec())]);
    let output = cluster.must(&["store", "verify", "people", "--deep", "-o", "json"]);
    assert!(output.contains("\"place\":\"s3://bucket/built/3\""), "{output}");
}

#[test]
fn tasks_and_builds_that_fail_destroy_nothing_in_a_bucket() {
    let mut server = S3::start();
    let machine = Machine::new(&server);
    let (rows, others) = (rows(), rows_of("another value", 2_000));
    machine.build_all("s3://bucket/a", &rows);
    machine.build_all("s3://bucket/b", &others);
    let before = objects(&server, "a");
    // Another outcome of a partition; none of it.
    let (code, message) = refusal(&machine.build("s3://bucket/a", 0, &others));
    assert!(code == "build_failed" && message.contains("other rows"), "{code}: {message}");
    assert_eq!(refusal(&machine.build("s3://bucket/a", 1, &rows_of("x", 3))).0, "build_failed");
    let cut = build_to(machine.folder.path(), &machine.env, "s3://bucket/a", 0, &of(0));
    assert_eq!(refusal(&cut).0, "bad_input");
    server.kill();
    assert_eq!(refusal(&machine.build("s3://bucket/a", 1, &rows)).0, "object_store_unreachable");
    server.restart();
    assert!(objects(&server, "a") == before, "what others wrote is as it was");

    // Two versions of one number at the same time: one is made, of its own rows alone.
    let assemble = |parts| ["assemble", "people", parts, "--out", "s3://bucket/built"];
    let running = ["s3://bucket/a", "s3://bucket/b"].map(|parts| {
        let mut command = machine.run(&assemble(parts));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("kith starts")
    });
    let ended = running.map(|child| child.wait_with_output().expect("it ends"));
    let won: Vec<bool> = ended.iter().map(|output| output.status.success()).collect();
    assert_eq!(won.iter().filter(|won| **won).count(), 1, "{ended:?}");
    let (winner, loser) = if won[0] { (0, 1) } else { (1, 0) };
    assert_eq!(refusal(&ended[loser]).0, "version_taken");
    let made = objects(&server, "built/3");
    let again =
        machine.run(&assemble(["s3://bucket/a", "s3://bucket/b"][loser])).output().expect("kith runs");
    assert_eq!(refusal(&again).0, "version_taken");
    let whole = machine.whole([&rows, &others][winner]);
    assert_eq!(json(&ended[winner])["manifest_hash"], whole["manifest_hash"]);
    // The same version, built at once, is the same bytes; other rows are refused there too.
    let build = ["build", "people", "rows.json", "--out", "s3://bucket/built"];
    machine.must(&build);
    let all: String = [&rows, &others][loser].iter().map(|(_, line)| line.as_str()).collect();
    fs::write(machine.folder.path().join("rows.json"), all).expect("written");
    assert_eq!(refusal(&machine.run(&build).output().expect("kith runs")).0, "version_taken");
    assert!(objects(&server, "built/3") == made, "the version is as it was");
}

#[test]
fn what_is_damaged_or_missing_in_a_bucket_is_not_made_a_version() {
    let server = S3::start();
    let machine = Machine::new(&server);
    let rows = rows();
    machine.build_all("s3://bucket/parts", &rows);
    let assemble = || {
        let assemble = ["assemble", "people", "s3://bucket/parts", "--out", "s3://bucket/built"];
        machine.run(&assemble).output().expect("kith runs")
    };
    let data = objects(&server, "parts").into_iter().find(|(name, _)| name.ends_with(".data"));
    let (name, whole) = data.expect("a data file");
    let path = server.file("parts").join(&name);
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    fs::write(&path, flipped).expect("written");
    let (code, message) = refusal(&assemble());
    assert!(code == "version_damaged" && message.contains("checksum"), "{code}: {message}");
    fs::write(&path, &whole[..whole.len() / 2]).expect("written");
    assert!(refusal(&assemble()).1.contains("shorter"));
    fs::remove_file(&path).expect("removed");
    assert!(refusal(&assemble()).1.contains("lost"));
    // As of a task that was killed before its end.
    let summary = path.with_file_name("partition.json");
    let bytes = fs::read(&summary).expect("read");
    fs::remove_file(&summary).expect("removed");
    let (code, message) = refusal(&assemble());
    assert!(code == "build_failed" && message.contains("is missing"), "{code}: {message}");
    assert!(!server.file("built/3/manifest.json").exists());
    fs::write(&path, whole).expect("written");
    fs::write(&summary, bytes).expect("written");
    assert_eq!(json(&assemble())["records"], 2_000);
}

#[test]
fn places_of_schemes_that_nobody_knows_are_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let refused = |arguments: &[&str], url: &str| {
        let output = kith(folder.path(), arguments).output().expect("kith runs");
        let text =
            String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(2), "{text}");
        let scheme = url.split(':').next().unwrap_or_default();
        assert!(text.contains(&format!("{scheme}:// is not known; s3://, gs://, az://")), "{text}");
    };
    for url in ["hdfs://host/parts", "s3a://bucket/parts", "https://host/parts"] {
        refused(&["build-partition", "people", "-", "--partition", "0", "--out", url], url);
        refused(&["assemble", "people", "parts", "--out", url], url);
        refused(&["assemble", "people", url, "--out", "joined"], url);
    }
    assert_eq!(names(folder.path()), [""; 0], "nothing is written");
}
