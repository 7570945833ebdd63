//! A version built one partition at a time, as the tasks of a cluster do: equal to one built at once; tasks that are cut
//! off, killed, repeated or given wrong rows change nothing. In folders, and in a bucket of a real S3 server.

#[path = "../../kith-objects/tests/support/s3.rs"]
mod s3;
mod support;

use kith_types::{PartitionCount, partition_of_key};
use s3::S3;
use serde_json::Value;
use std::{
    fs,
    io::Write,
    path::Path,
    process::{Command, Output, Stdio},
};
use support::cluster::Cluster;

const PARTITIONS: u32 = 5;
const SHARED: [&str; 6] = ["--version", "3", "--partitions", "5", "-o", "json"];

fn kith(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kith"));
    command.args(["store"]).args(arguments).args(SHARED).current_dir(folder).env_remove("KITH_ROUTER");
    command
}

fn rows() -> Vec<(u32, String)> {
    rows_of("value", 2_000)
}

fn rows_of(value: &str, count: u32) -> Vec<(u32, String)> {
    let partitions = PartitionCount::new(PARTITIONS).expect("a count");
    let row = |id: u32| {
        let key = format!("member:{id}");
        let line = format!("{{\"key\":\"{key}\",\"value\":\"{value} {id}.\"}}\n");
        (partition_of_key(key.as_bytes(), partitions).0, line)
    };
    (0..count).map(row).collect()
}

fn of(partition: u32) -> String {
    rows().into_iter().filter(|(at, _)| *at == partition).map(|(_, line)| line).collect()
}

/// Builds a partition from a pipe.
fn build(folder: &Path, partition: u32, input: &str) -> Output {
    build_to(folder, &[], "parts", partition, input)
}

/// As [`build`], to any place, which these variables let in.
fn build_to(folder: &Path, env: &[(String, String)], out: &str, partition: u32, input: &str) -> Output {
    let partition = partition.to_string();
    let arguments = ["build-partition", "people", "-", "--out", out, "--partition", &partition];
    let mut child = kith(folder, &arguments)
        .envs(env.iter().cloned())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("kith starts");
    // It may refuse the rows before it has read them all.
    let _ = child.stdin.take().expect("its input is piped").write_all(input.as_bytes());
    child.wait_with_output().expect("it ends")
}

fn json(output: &Output) -> Value {
    let text = String::from_utf8(output.stdout.clone()).expect("UTF-8");
    let line = text.lines().last().unwrap_or_default();
    let errors = String::from_utf8_lossy(&output.stderr);
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {text}\n{errors}"))
}

fn refusal(output: &Output) -> (String, String) {
    assert!(!output.status.success());
    let error = json(output)["error"].clone();
    let text = |field: &str| error[field].as_str().expect("a text").to_owned();
    (text("code"), text("message"))
}

fn assemble(folder: &Path) -> Output {
    kith(folder, &["assemble", "people", "parts", "--out", "joined"]).output().expect("kith runs")
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("it is there");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn partitions_built_one_by_one_are_the_version_built_at_once() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    let all: String = rows().into_iter().map(|(_, line)| line).collect();
    fs::write(folder.join("rows.json"), all).expect("written");
    let whole =
        kith(folder, &["build", "people", "rows.json", "--out", "whole"]).output().expect("kith runs");
    let whole = json(&whole);
    // Twice each, as tasks may be.
    for partition in (0..PARTITIONS).chain(0..PARTITIONS) {
        let built = build(folder, partition, &format!("{}.\n", of(partition)));
        assert_eq!(json(&built)["partition"], partition, "{built:?}");
    }
    assert_eq!(names(&folder.join("parts")).len(), PARTITIONS as usize, "nothing is left over");
    let joined = json(&assemble(folder));
    for field in ["manifest_hash", "records", "bytes"] {
        assert_eq!(joined[field], whole[field], "{field}");
    }
    let (whole, joined) = (folder.join("whole/3"), folder.join("joined/3"));
    assert_eq!(names(&whole), names(&joined));
    for name in names(&whole) {
        let same = fs::read(whole.join(&name)).expect("read") == fs::read(joined.join(&name)).expect("read");
        assert!(same, "{name} differs");
    }
}

#[test]
fn what_is_not_a_whole_partition_is_none() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    let whole = of(2);
    // The end of a row, and of no row: as whoever writes was killed. Values that end with a full stop end nothing.
    for cut in [whole.as_str(), &whole[..whole.len() / 2], ""] {
        let (code, message) = refusal(&build(folder, 2, cut));
        assert!(code == "bad_input" && message.contains("cut off"), "{code}: {message}");
    }
    let (code, message) = refusal(&build(folder, 2, &format!("{whole}{}.\n", of(3))));
    assert!(code == "build_failed" && message.contains("partition"), "{code}: {message}");
    assert_eq!(refusal(&build(folder, PARTITIONS, ".\n")).0, "usage");
    assert_eq!(names(&folder.join("parts")), [""; 0], "nothing of them is left");

    for partition in 0..PARTITIONS - 1 {
        assert!(build(folder, partition, &format!("{}.\n", of(partition))).status.success());
    }
    let (code, message) = refusal(&assemble(folder));
    assert!(code == "build_failed" && message.contains("partition 4 is missing"), "{code}: {message}");
    let (code, message) = refusal(&build(folder, 0, ".\n"));
    assert!(code == "build_failed" && message.contains("other rows"), "{code}: {message}");
    assert!(!folder.join("joined/3").exists());
}

#[test]
fn a_killed_task_leaves_nothing_that_counts() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    let arguments = ["build-partition", "people", "-", "--out", "parts", "--partition", "1"];
    let mut child = kith(folder, &arguments).stdin(Stdio::piped()).spawn().expect("kith starts");
    child.stdin.as_mut().expect("its input is piped").write_all(of(1).as_bytes()).expect("it reads");
    let begun = || fs::read_dir(folder.join("parts")).is_ok_and(|entries| 0 < entries.count());
    support::wait_until("the task has begun", begun);
    child.kill().expect("it can be killed");
    child.wait().expect("it can be waited for");
    assert!(names(&folder.join("parts")).iter().all(|name| name.starts_with('.')));
    for partition in 0..PARTITIONS {
        assert!(build(folder, partition, &format!("{}.\n", of(partition))).status.success());
    }
    assert_eq!(json(&assemble(folder))["records"], 2_000);
}

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
    let told = cluster.must(&["store", "verify", "people", "--deep", "-o", "json"]);
    assert!(told.contains("\"place\":\"s3://bucket/built/3\""), "{told}");
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
    let refused = |arguments: &[&str], place: &str| {
        let output = kith(folder.path(), arguments).output().expect("kith runs");
        let text =
            String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(2), "{text}");
        let scheme = place.split(':').next().unwrap_or_default();
        assert!(text.contains(&format!("{scheme}:// is not known; s3://, gs://, az://")), "{text}");
    };
    for place in ["hdfs://host/parts", "s3a://bucket/parts", "https://host/parts"] {
        refused(&["build-partition", "people", "-", "--partition", "0", "--out", place], place);
        refused(&["assemble", "people", "parts", "--out", place], place);
        refused(&["assemble", "people", place, "--out", "joined"], place);
    }
    assert_eq!(names(folder.path()), [""; 0], "nothing is written");
}
