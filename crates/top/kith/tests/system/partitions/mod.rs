//! A version built one partition at a time, as the tasks of a cluster do: equal to one built at once; tasks that are cut
//! off, killed, repeated or given wrong rows change nothing. In folders, and in a bucket of a real S3 server.

mod buckets;

use crate::support;
use kith_types::{PartitionCount, partition_of_key};
use serde_json::Value;
use std::{
    fs,
    io::Write,
    path::Path,
    process::{Command, Output, Stdio},
};

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
