//! Builds without a cluster: from every format, refused, killed, run again.

use super::{PARTITIONS, build, built, code, csv, left, refusal, write};
use crate::support::cluster::kith;
use serde_json::{Value, json};
use std::{
    fs::File,
    io::Write,
    process::{Command, Stdio},
};

#[test]
fn a_build_needs_no_cluster_and_is_the_same_every_time() {
    let folder = tempfile::tempdir().unwrap();
    let rows = write(folder.path(), "rows.csv", csv(500));
    let mut shuffled: Vec<String> = csv(500).lines().skip(1).map(str::to_owned).collect();
    shuffled.reverse();
    let shuffled = write(folder.path(), "shuffled.csv", format!("key,value\n{}\n", shuffled.join("\n")));
    let lines: String = (0..500)
        .map(|row| format!("{}\n", json!({"key": format!("member:{row}"), "value": format!("value {row}")})))
        .collect();
    let lines = write(folder.path(), "rows.jsonl", lines);
    let hashes = [&rows, &shuffled, &lines].map(|input| {
        let out = tempfile::tempdir().unwrap();
        let reply = built(out.path(), &[input, "--version", "7"]);
        assert_eq!((&reply["version"], &reply["records"]), (&json!(7), &json!(500)), "{reply}");
        assert!(out.path().join("7/manifest.json").is_file());
        assert_eq!(left(out.path()), ["7"]);
        reply["manifest_hash"].as_str().expect("a hash").to_owned()
    });
    assert!(hashes.iter().all(|hash| *hash == hashes[0]), "{hashes:?}");
    let out = tempfile::tempdir().unwrap();
    let smaller = built(out.path(), &[&rows, "--compress"]);
    assert!(smaller["version"].as_u64().is_some_and(|version| 1_700_000_000_000 < version), "{smaller}");
    let checked = built(&out.path().join("none"), &[&rows, "--dry-run"]);
    assert_eq!((&checked["version"], &checked["records"]), (&Value::Null, &json!(500)));
    assert!(!out.path().join("none").exists());
}

#[test]
fn every_kind_of_bad_input_is_refused_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &[u8]| write(folder.path(), name, content);
    let good = file("good.csv", csv(10).as_bytes());
    let missing = folder.path().join("missing.csv").display().to_string();
    let odd = file("odd.f32", &[0; 10]);
    let odd = [&odd, "--format", "f32le", "--dims", "2", "--key", "id", "--value", "record"];
    let cases: &[(&str, &[&str])] = &[
        ("bad_input", &[&missing]),
        ("bad_input", &[&file("cut.parquet", b"PAR1 and not much more")]),
        ("bad_input", &[&file("cut.gz", &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1, 2])]),
        ("bad_input", &[&good, "--format", "parquet"]),
        ("bad_input", &[&file("noheader.csv", b"a,b\nc,d\n")]),
        ("bad_input", &[&file("extra.csv", b"key,value,more\na,b,c\n")]),
        ("bad_input", &odd),
        ("bad_rows", &[&file("short.csv", b"key,value\na,b\nc\n")]),
        ("bad_rows", &[&file("lines.jsonl", b"{\"key\":\"a\",\"value\":\"b\"}\n{\"key\":\n")]),
        ("bad_rows", &[&file("ids.csv", b"key,value\n1,a\n-2,b\nx,c\n"), "--key", "id", "--header", "yes"]),
        ("duplicate_key", &[&file("twice.csv", b"key,value\na,b\na,c\n")]),
        ("bad_schema", &[&good, "--value", "record", "--schema", &missing]),
        ("bad_schema", &[&good, "--value", "record", "--schema", &file("s.json", b"{\"fields\":3}")]),
        ("usage", &[&good, "--schema", &file("t.json", b"{}")]),
    ];
    for (expected, arguments) in cases {
        let out = tempfile::tempdir().unwrap();
        let error = refusal(&build(out.path(), arguments));
        assert_eq!(code(&error), *expected, "{arguments:?}: {error}");
        assert_eq!(left(out.path()), Vec::<String>::new(), "{arguments:?}");
    }
}

#[test]
fn records_without_a_schema_say_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    for (rows, what_to_do) in [
        ("{\"id\":1,\"name\":\"ada\"}\n", "--key-field"),
        ("{\"key\":1,\"value\":{}}\n", "add one"),
        ("{\"key\":1,\"value\":{\"name\":null}}\n", "--schema"),
    ] {
        let file = write(folder.path(), "r.jsonl", rows);
        let error = refusal(&build(folder.path(), &[&file, "--key", "id", "--value", "record"]));
        let help = error["help"].as_str().expect("text");
        assert!(code(&error) == "bad_schema" && help.contains(what_to_do), "{rows}: {error}");
    }
}

#[test]
fn wrong_rows_are_shown_with_their_lines_and_dropped_if_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let rows: String = (0..15).map(|row| format!("x{row},b\n")).collect();
    let rows = write(folder.path(), "rows.csv", format!("key,value\n1,a\n{rows}2,c\n2,d\n"));
    let out = tempfile::tempdir().unwrap();
    let ids = ["--key", "id", rows.as_str()];
    let refused = build(out.path(), &ids);
    let shown = String::from_utf8_lossy(&refused.stderr).into_owned();
    for line in 3..13 {
        assert!(shown.contains(&format!("rows.csv line {line}: key \"x{}\" is no id", line - 3)), "{shown}");
    }
    assert!(!shown.contains("line 13:"), "{shown}");
    let allowed = [&ids[..], &["--max-errors", "15", "--duplicates", "last"]].concat();
    let reply = built(out.path(), &allowed);
    assert_eq!((&reply["records"], &reply["duplicates"]), (&json!(2), &json!(1)), "{reply}");
    assert_eq!(
        (&reply["dropped"][0]["reason"], &reply["dropped"][0]["count"]),
        (&json!("key is no id"), &json!(15))
    );
}

#[test]
fn a_killed_build_leaves_no_version_and_can_be_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    // A pipe that stays open: the build waits for more rows.
    let pipe = folder.path().join("rows.csv");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs").success());
    let arguments = ["store", "build", "people", "--partitions", PARTITIONS, "--format", "csv", "--out"];
    let mut child = kith(&arguments)
        .args([&out, &pipe])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("kith starts");
    let mut writer = File::options().write(true).open(&pipe).expect("the build opens the pipe");
    writer.write_all(csv(10).as_bytes()).expect("the build reads");
    while !out.join(".staging").exists() {
        assert!(child.try_wait().expect("it can be waited for").is_none(), "the build ended");
        std::thread::yield_now();
    }
    child.kill().expect("killed");
    child.wait().expect("it ends");
    assert!(out.join(".staging").exists() && left(&out).iter().all(|name| name.starts_with('.')));
    let rows = write(folder.path(), "again.csv", csv(10));
    let reply = built(&out, &[&rows, "--version", "3"]);
    assert_eq!(reply["records"], 10);
    assert_eq!(left(&out), ["3"]);
}
