//! Stores of values against a real cluster: built, pushed, refused, killed, rolled back.

mod support;

use serde_json::{Value, json};
use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::SystemTime,
};
use support::cluster::{Cluster, kith, text};

/// What every cluster of these tests has.
const PARTITIONS: &str = "24";

struct People {
    cluster: Cluster,
    folder: tempfile::TempDir,
}

/// Runs a command that must fail; its error.
fn refusal(output: &Output) -> Value {
    assert!(!output.status.success(), "{}", text(output));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(output)));
    assert!(told["error"]["help"].as_str().is_some_and(|help| !help.is_empty()), "{told}");
    told["error"].clone()
}

fn code(error: &Value) -> &str {
    error["code"].as_str().expect("a code")
}

fn write(folder: &Path, name: &str, content: impl AsRef<[u8]>) -> String {
    let path = folder.join(name);
    fs::write(&path, content).expect("written");
    path.to_str().expect("UTF-8").to_owned()
}

/// `count` rows as CSV.
fn csv(count: u64) -> String {
    let rows: String = (0..count).map(|row| format!("member:{row},value {row}\n")).collect();
    format!("key,value\n{rows}")
}

fn json_of(printed: &str) -> Value {
    serde_json::from_str(printed.lines().last().expect("a last line")).expect("JSON")
}

impl People {
    fn start(create: &[&str]) -> Self {
        let cluster = Cluster::start(&["--nodes", "1"]);
        let people = Self { cluster, folder: tempfile::tempdir().expect("a temporary folder") };
        people.cluster.must(&[&["store", "create", "people"], create].concat());
        people
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        write(self.folder.path(), name, content)
    }

    fn push(&self, arguments: &[&str]) -> Output {
        let all = [&["store", "push", "people", "-o", "json"], arguments].concat();
        self.cluster.kith(&all).output().expect("kith runs")
    }

    /// Pushes; what it ends with.
    fn pushed(&self, arguments: &[&str]) -> Value {
        let output = self.push(arguments);
        assert!(output.status.success(), "{}", text(&output));
        let printed = String::from_utf8(output.stdout).expect("UTF-8");
        serde_json::from_str(printed.lines().last().expect("a last line")).expect("JSON")
    }

    fn assert_states(&self, expected: &[(u64, &str)]) {
        let states = self.states();
        let states: Vec<(u64, &str)> =
            states.iter().map(|(version, state)| (*version, state.as_str())).collect();
        assert_eq!(states, expected);
    }

    fn refused(&self, arguments: &[&str]) -> Value {
        refusal(&self.push(arguments))
    }

    fn versions(&self) -> Value {
        let printed = self.cluster.must(&["store", "versions", "people", "-o", "json"]);
        serde_json::from_str(&printed).expect("JSON")
    }

    fn states(&self) -> Vec<(u64, String)> {
        let versions = self.versions();
        let versions = versions.as_array().expect("a list").iter();
        versions
            .map(|it| {
                (it["version"].as_u64().expect("a number"), it["state"].as_str().expect("text").to_owned())
            })
            .collect()
    }

    /// The folder of the store's built versions.
    fn values(&self) -> PathBuf {
        self.cluster.ready_file.parent().expect("a folder").join("data/objects/people/values")
    }

    /// The numbers of the versions that lie in the object store.
    fn built(&self) -> Vec<u64> {
        let Ok(entries) = fs::read_dir(self.values()) else { return Vec::new() };
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        let mut built: Vec<u64> = names.filter_map(|name| name.to_str()?.parse().ok()).collect();
        built.sort_unstable();
        built
    }
}

/// Builds without a cluster.
fn build(out: &Path, arguments: &[&str]) -> Output {
    let out = out.to_str().expect("UTF-8");
    let all =
        [&["store", "build", "people", "--partitions", PARTITIONS, "--out", out, "-o", "json"], arguments];
    kith(&all.concat()).output().expect("kith runs")
}

fn built(out: &Path, arguments: &[&str]) -> Value {
    let output = build(out, arguments);
    assert!(output.status.success(), "{}", text(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Builds changes of a version.
fn changed(base: &str, out: &Path, arguments: &[&str]) -> Output {
    let out = out.to_str().expect("UTF-8");
    let all = [&["store", "build", "people", "--base", base, "--out", out, "-o", "json"], arguments].concat();
    kith(&all).output().expect("kith runs")
}

/// What lies in a folder that could be taken for a version, or is left of one.
fn left(out: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(out) else { return Vec::new() };
    let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    names.filter(|name| name != ".lock").collect()
}

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
    let cases: &[(&str, &[&str])] = &[
        ("bad_input", &[&missing]),
        ("bad_input", &[&file("cut.parquet", b"PAR1 and not much more")]),
        ("bad_input", &[&file("cut.gz", &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1, 2])]),
        ("bad_input", &[&good, "--format", "parquet"]),
        ("bad_input", &[&file("noheader.csv", b"a,b\nc,d\n")]),
        ("bad_input", &[&file("extra.csv", b"key,value,more\na,b,c\n")]),
        (
            "bad_input",
            &[
                &file("odd.f32", &[0; 10]),
                "--format",
                "f32le",
                "--dims",
                "2",
                "--key",
                "id",
                "--value",
                "record",
            ],
        ),
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
    for (rows, what_to_do) in [
        ("{\"id\":1,\"name\":\"ada\"}\n", "--key-field"),
        ("{\"key\":1,\"value\":{}}\n", "add one"),
        ("{\"key\":1,\"value\":{\"name\":null}}\n", "--schema"),
    ] {
        let error = refusal(&build(
            folder.path(),
            &[&file("r.jsonl", rows.as_bytes()), "--key", "id", "--value", "record"],
        ));
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

#[test]
fn what_does_not_fit_the_store_is_refused_before_anything_changes() {
    let people = People::start(&["--key", "string", "--value", "text"]);
    let rows = people.write("rows.csv", csv(20));
    let folder = people.folder.path();
    let other = |name: &str, arguments: &[&str]| {
        let out = folder.join(name);
        built(&out, &[&[rows.as_str(), "--version", "5"], arguments].concat())["folder"]
            .as_str()
            .expect("a folder")
            .to_owned()
    };
    let json_values = people.write("json.jsonl", "{\"key\":\"a\",\"value\":{}}\n");
    let of_json = folder.join("json");
    built(&of_json, &[&json_values, "--value", "json"]);
    assert_eq!(code(&people.refused(&[of_json.to_str().unwrap()])), "other_store");
    let whole = other("whole", &[]);
    assert_eq!(code(&people.refused(&[&whole, "--max-errors", "3"])), "usage");
    // One flipped byte in the last pack.
    let damaged = other("damaged", &[]);
    let pack = fs::read_dir(&damaged).unwrap().map(|entry| entry.unwrap().path());
    let pack = pack
        .filter(|path| path.file_name().is_some_and(|name| name != "manifest.json"))
        .max()
        .expect("a pack");
    let mut bytes = fs::read(&pack).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&pack, bytes).unwrap();
    assert_eq!(code(&people.refused(&[&damaged])), "version_damaged");
    fs::remove_file(&pack).unwrap();
    assert_eq!(code(&people.refused(&[&damaged])), "version_damaged");
    assert_eq!(
        code(&people.refused(&[&people.write("twice.csv", "key,value\na,b\na,c\n")])),
        "duplicate_key"
    );
    assert_eq!(code(&people.refused(&[folder.join("nothing").to_str().unwrap()])), "bad_input");
    assert_eq!(people.versions(), json!([]));
    assert_eq!((people.built(), left(&people.values())), (vec![], vec![]));
    let unknown = people.cluster.kith(&["store", "push", "nobody", &rows, "-o", "json"]).output().unwrap();
    assert_eq!(code(&refusal(&unknown)), "unknown_store");
    assert!(!people.values().ancestors().nth(2).unwrap().join("nobody").exists());
}

#[test]
fn a_second_push_of_a_store_is_refused_with_the_id_of_the_first() {
    let people = People::start(&[]);
    let pipe = people.folder.path().join("slow.csv");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs").success());
    let slow = ["store", "push", "people", "--format", "csv", pipe.to_str().expect("UTF-8")];
    let mut child =
        people.cluster.kith(&slow).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("kith starts");
    let mut writer = File::options().write(true).open(&pipe).expect("the push opens the pipe");
    writer.write_all(b"key,value\n").expect("the push reads");
    while !people.values().join(".staging").exists() {
        assert!(child.try_wait().expect("it can be waited for").is_none(), "the push ended");
        std::thread::yield_now();
    }
    let rows = people.write("rows.csv", csv(20));
    let error = people.refused(&[&rows]);
    assert_eq!(code(&error), "push_running");
    let running = fs::read_to_string(people.values().parent().unwrap().join(".lock")).unwrap();
    assert!(running.starts_with("push-") && error["message"].as_str().unwrap().contains(&running), "{error}");
    child.kill().expect("killed");
    child.wait().expect("it ends");
    assert!(people.values().join(".staging").exists());
    // What the killed one left is cleared away, also by a push that then fails.
    assert_eq!(
        code(&people.refused(&[&people.write("twice.csv", "key,value\na,b\na,c\n")])),
        "duplicate_key"
    );
    assert_eq!((people.built(), left(&people.values())), (vec![], vec![]));
}

#[test]
fn a_push_that_a_node_or_a_guard_refuses_leaves_what_was() {
    let people = People::start(&["--records-min", "15", "--retain", "1"]);
    let (few, enough) = (people.write("few.csv", csv(14)), people.write("enough.csv", csv(15)));
    let error = people.refused(&[&few]);
    assert_eq!(code(&error), "too_few_records", "{error}");
    assert_eq!((people.built(), people.states()), (vec![], vec![]));
    // Files where the nodes want to put the version.
    let data = people.cluster.ready_file.parent().expect("a folder").join("data");
    // An hour ahead of the clock: no push that is not told its number takes it meanwhile.
    let ahead = now_ms() + 3_600_000;
    for node in ["node-000", "node-001"] {
        let folder = data.join(node).join("components/people/values");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(ahead.to_string()), "in the way").unwrap();
    }
    let version = ahead.to_string();
    let error = people.refused(&[&few, "--force", "--version", &version]);
    assert_eq!(code(&error), "prepare_failed", "the guards were passed: {error}");
    assert_eq!((people.built(), people.states()), (vec![], vec![(ahead, "failed".to_owned())]));
    assert!(!people.values().parent().unwrap().join(".unfinished").exists());
    let error = people.refused(&[&enough, "--version", &version]);
    assert_eq!(code(&error), "version_not_newer", "{error}");
    let history = people.cluster.must(&["store", "history", "people", "-o", "json"]);
    let history: Value = serde_json::from_str(&history).expect("JSON");
    let last = history.as_array().expect("a list").last().expect("the push is noted").clone();
    assert!(last["push"].as_str().is_some_and(|push| push.starts_with("push-")), "{last}");
    assert!(last["result"].as_str().is_some_and(|result| result.starts_with("failed: ")), "{last}");
}

#[test]
fn a_graph_is_not_pushed_to_and_only_owners_push() {
    let people = People::start(&["--owner", "somebody else"]);
    let rows = people.write("rows.csv", csv(5));
    assert_eq!(code(&people.refused(&[&rows])), "store_owner");
    assert_eq!((people.built(), people.states()), (vec![], vec![]));
    let edges = people.write("edges.csv", "src,dst\n1,2\n");
    people.cluster.must(&["load", "graph", &edges, "--graph", "village"]);
    let push = people.cluster.kith(&["store", "push", "village", &rows, "-o", "json"]).output().unwrap();
    assert_eq!(code(&refusal(&push)), "not_values");
}

#[test]
fn a_delta_makes_the_version_that_all_rows_would() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str| write(folder.path(), name, content);
    let (out, whole) = (folder.path().join("out"), folder.path().join("whole"));
    let base = built(&out, &[&file("base.csv", &csv(500)), "--version", "1"]);
    let base = base["folder"].as_str().expect("a folder");
    let changes = file("changes.csv", "key,value\nmember:7,other\nmember:new,value\n");
    let delete = file("delete.txt", "member:3\r\nmember:4\nmember:nobody\n");
    let output = changed(base, &out, &[&changes, "--delete", &delete, "--version", "2"]);
    assert!(output.status.success(), "{}", text(&output));
    let reply: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(reply["records"], 499, "{reply}");
    let counts = ["added", "replaced", "deleted", "absent"].map(|name| reply["changes"][name].as_u64());
    assert_eq!(counts, [Some(1), Some(1), Some(2), Some(1)], "{reply}");
    assert!(reply["changes"]["bytes_changed"].as_u64() < reply["bytes"].as_u64(), "{reply}");
    let rows = csv(500).replace("member:7,value 7\n", "member:7,other\n");
    let rows = rows.replace("member:3,value 3\n", "").replace("member:4,value 4\n", "");
    let all = built(&whole, &[&file("all.csv", &(rows + "member:new,value\n")), "--version", "2"]);
    assert_eq!(reply["manifest_hash"], all["manifest_hash"]);

    let twice = file("twice.csv", "key,value\nmember:3,again\n");
    let bad = file("bad.txt", "member:1\n\n");
    let refused = |arguments: &[&str]| refusal(&changed(base, &out, arguments));
    assert_eq!(code(&refused(&[&twice, "--delete", &delete])), "duplicate_key");
    let error = refused(&["--delete", &bad]);
    assert_eq!(code(&error), "bad_rows");
    assert!(error["message"].as_str().unwrap().ends_with("bad.txt line 2: it is empty"), "{error}");
    assert_eq!(
        code(&refusal(&changed(folder.path().to_str().unwrap(), &out, &[&changes]))),
        "version_damaged"
    );
    let mut there = left(&out);
    there.sort();
    assert_eq!(there, ["1", "2"]);
}

#[test]
fn a_delta_needs_a_version_that_is_served() {
    let people = People::start(&[]);
    let rows = people.write("rows.csv", csv(5));
    assert_eq!(code(&people.refused(&[&rows, "--delta"])), "no_version");
    assert_eq!(code(&people.refused(&[&rows, "--delete", &rows])), "usage");
    assert_eq!((people.built(), people.states()), (vec![], vec![]));
}

#[test]
fn rows_of_every_format_are_pushed_listed_and_rolled_back() {
    let people = People::start(&["--key", "id", "--value", "record", "--key-field", "id"]);
    let csv = people.write("people.csv", "id,name,age\n7,Ada,36\n9,Bob,\n");
    let first = people.pushed(&[&csv]);
    let version = first["version"].as_u64().expect("a version");
    assert!(1_700_000_000_000 < version && first["bytes"].as_u64().is_some_and(|bytes| 0 < bytes), "{first}");
    let told = (&first["store"], &first["records"], &first["swapped"], &first["before"], &first["undo"]);
    assert!(first["flip_us"].as_u64().is_some_and(|us| 0 < us), "{first}");
    assert_eq!(told, (&json!("people"), &json!(2), &json!(true), &Value::Null, &Value::Null), "{first}");
    // The schema that the first push inferred holds for the next one.
    let lines = people.write("people.jsonl", "{\"id\":1,\"name\":\"Eve\",\"age\":1}\n");
    let second = people.pushed(&[&lines]);
    assert_eq!(
        (&second["before"], &second["undo"]),
        (&json!(version), &json!("kith store rollback people")),
        "{second}"
    );
    let odd = people.write("odd.jsonl", "{\"id\":1,\"name\":3,\"age\":1}\n");
    let refused = people.refused(&[&odd]);
    let help = refused["help"].as_str().expect("text");
    assert!(
        code(&refused) == "bad_rows" && help.contains("schema") && !help.contains("--max-errors"),
        "{help}"
    );
    let ahead = people.refused(&[&lines, "--version", "9007199254740991"]);
    assert_eq!(code(&ahead), "version_too_great", "{ahead}");
    let narrow = people
        .write("narrow.json", r#"{"fields":[{"name":"name","type":"text"},{"name":"age","type":"bool"}]}"#);
    assert_eq!(code(&people.refused(&[&lines, "--schema", &narrow])), "incompatible_schema");
    let second = second["version"].as_u64().expect("a version");
    people.assert_states(&[(version, "retained"), (second, "current")]);
    let versions = people.versions();
    for (index, records) in [2, 1].into_iter().enumerate() {
        let entry = &versions[index];
        assert_eq!(entry["records"], records, "{versions}");
        assert!(entry["bytes"].as_u64().is_some_and(|bytes| 0 < bytes), "{versions}");
        assert!(entry["pushed_at"].as_u64().is_some_and(|at| 1_700_000_000_000 < at), "{versions}");
    }
    people.cluster.must(&["store", "rollback", "people"]);
    people.assert_states(&[(version, "current"), (second, "blocked")]);
    assert_eq!(people.built(), [version, second]);

    people.cluster.must(&[
        "store",
        "create",
        "typed",
        "--key",
        "id",
        "--value",
        "record",
        "--key-field",
        "id",
    ]);
    let parquet = concat!(env!("CARGO_MANIFEST_DIR"), "/../kith-rows/testdata/pyarrow.parquet");
    let reply = people.cluster.must(&["store", "push", "typed", parquet, "-o", "json"]);
    let reply: Value = serde_json::from_str(&reply).expect("JSON");
    assert!(reply["records"].as_u64().is_some_and(|records| 0 < records), "{reply}");
}

#[test]
fn a_built_version_is_pushed_and_a_delta_follows_it() {
    let people = People::start(&["--drop-max", "10"]);
    let out = people.folder.path().join("out");
    built(&out, &[&people.write("rows.csv", csv(100)), "--version", "5"]);
    let reply = people.pushed(&[out.to_str().unwrap()]);
    assert_eq!((&reply["version"], &reply["records"]), (&json!(5), &json!(100)), "{reply}");
    // Again: the same files under a new number.
    let again = people.pushed(&[out.join("5").to_str().unwrap()]);
    let again = again["version"].as_u64().expect("a version");
    assert!(5 < again);
    assert_eq!(people.built(), [5]);
    let changes = people.write("changes.csv", "key,value\nmember:3,other\nmember:100,value\n");
    let delete = people.write("delete.txt", "member:4\n");
    let delta = people.pushed(&[&changes, "--delta", "--delete", &delete]);
    assert_eq!((&delta["records"], &delta["changes"]["deleted"]), (&json!(100), &json!(1)), "{delta}");
    let delta = delta["version"].as_u64().expect("a version");
    people.assert_states(&[(5, "retained"), (again, "retained"), (delta, "current")]);

    let few = people.write("few.csv", csv(89));
    assert_eq!(code(&people.refused(&[&few])), "records_dropped");
    people.assert_states(&[(5, "retained"), (again, "retained"), (delta, "current")]);
    assert_eq!(people.built(), [5, delta], "a refused push leaves nothing");
    let forced = people.pushed(&[&few, "--force"]);
    assert_eq!((&forced["records"], &forced["before"]), (&json!(89), &json!(delta)), "{forced}");
    assert_eq!(code(&people.refused(&[&few, "--version", "6"])), "version_not_newer");
}

#[test]
fn a_schema_that_a_store_is_made_with_holds_from_its_first_push_on() {
    let people = People::start(&[]);
    let cluster = &people.cluster;
    let schema = people.write(
        "schema.json",
        r#"{"fields":[{"name":"age","type":"i64","default":1},{"name":"name","type":"text"}]}"#,
    );
    let create = ["store", "create", "typed", "--key", "id", "--value", "record", "--schema", &schema];
    let told = json_of(&cluster.must(&[&create[..], &["-o", "json"]].concat()));
    assert!(told["schema"].as_str().is_some_and(|text| text.contains("\"age\"")), "{told}");
    let push = |rows: &str| {
        let push = cluster.kith(&["store", "push", "typed", rows, "-o", "json"]).output();
        push.expect("kith runs")
    };
    let odd = people.write("odd.csv", "key,name,age\n1,Ada,old\n");
    assert_eq!(code(&refusal(&push(&odd))), "bad_rows");
    let rows = people.write("rows.csv", "key,name\n1,Ada\n");
    let pushed = push(&rows);
    assert!(pushed.status.success(), "{}", text(&pushed));
    assert_eq!(cluster.must(&["get", "typed", "1"]).trim(), r#"{"age":1,"name":"Ada"}"#);
    for (arguments, expected) in [
        (["a", "--value", "text", "--schema", &schema], "usage"),
        (["b", "--value", "record", "--schema", "/nowhere"], "bad_schema"),
        (["c", "--value", "record", "--schema", &rows], "bad_schema"),
    ] {
        let all = [&["store", "create", "-o", "json"], &arguments[..]].concat();
        assert_eq!(code(&refusal(&cluster.kith(&all).output().expect("kith runs"))), expected);
    }
}

#[test]
fn a_chosen_number_leaves_room_for_those_that_come_after_it() {
    let people = People::start(&[]);
    let (few, more) = (people.write("few.csv", csv(3)), people.write("more.csv", csv(5)));
    let last: u64 = (1 << 53) - 1;
    for far in [last, now_ms() + 2 * 24 * 3_600_000] {
        let error = people.refused(&[&few, "--version", &far.to_string()]);
        assert_eq!(code(&error), "version_too_great", "{far}: {error}");
    }
    for beyond in [last + 1, u64::MAX] {
        let output = people.push(&[&more, "--version", &beyond.to_string()]);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    }
    assert_eq!((people.built(), people.states()), (vec![], vec![]), "a refused push leaves nothing");
    let ahead = now_ms() + 3_600_000;
    assert_eq!(people.pushed(&[&few, "--version", &ahead.to_string()])["version"], ahead);
    assert_eq!(people.pushed(&[&more])["version"], ahead + 1);
    assert_eq!(people.cluster.must(&["get", "people", "member:4"]).trim_end(), "value 4");
}

#[test]
fn a_folder_is_named_as_it_is_from_where_one_is() {
    let people = People::start(&[]);
    people.write("rows.csv", csv(7));
    let rows = people.folder.path().join("rows");
    fs::create_dir(&rows).expect("a folder");
    fs::rename(people.folder.path().join("rows.csv"), rows.join("a.csv")).expect("moved");
    for (name, records) in [("rows", 7), ("rows/", 7), ("./rows", 7)] {
        let mut push = people.cluster.kith(&["store", "push", "people", name, "-o", "json"]);
        let output = push.current_dir(people.folder.path()).output().expect("kith runs");
        assert!(output.status.success(), "{name}: {}", text(&output));
        let printed = String::from_utf8(output.stdout).expect("UTF-8");
        let reply: Value = serde_json::from_str(printed.lines().last().expect("a line")).expect("JSON");
        assert_eq!(reply["records"], records, "{name}");
    }
}

/// Milliseconds since 1970, as versions are numbered.
fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    u64::try_from(now.as_millis()).expect("it fits")
}

/// What the two versions have in common lies on the nodes' disks already.
#[test]
fn a_delta_moves_what_changed_and_nothing_else() {
    let people = People::start(&[]);
    let rows: String = (0..40_000).map(|key| format!("member:{key},{key:0100}\n")).collect();
    let rows = people.write("rows.csv", format!("key,value\n{rows}"));
    let fetched =
        || people.cluster.metric("kith_node_fetched_bytes_total").expect("nodes count what they fetch");
    let whole = people.pushed(&[&rows]);
    let all = fetched();
    let bytes = whole["bytes"].as_f64().expect("a size");
    assert!(bytes <= all, "{all} bytes fetched of {bytes}");
    // One key in a thousand, in most partitions, with values of other lengths.
    let changes: String =
        (0..40_000).step_by(1_000).map(|key| format!("member:{key},other {key}\n")).collect();
    let changes = people.write("changes.csv", format!("key,value\n{changes}"));
    let delta = people.pushed(&[&changes, "--delta"]);
    assert_eq!((&delta["records"], &delta["changes"]["replaced"]), (&json!(40_000), &json!(40)), "{delta}");
    assert!(12 < delta["changes"]["partitions"].as_u64().expect("a number"), "{delta}");
    let told = delta["changes"]["bytes_moved"].as_f64().expect("a size");
    assert!(0.0 < told && told < bytes / 100.0, "{delta}");
    // Patch and manifest, on each node.
    let moved = fetched() - all;
    assert!(told < moved && moved < all / 20.0, "{moved} bytes fetched, {all} for all of it");
    let reused = people.cluster.metric("kith_node_reused_bytes_total").expect("nodes count what they reuse");
    assert!(bytes < reused, "{reused} bytes of {bytes} reused");
    for (key, value) in
        [("member:7000", "other 7000".to_owned()), ("member:19999", format!("{:0100}", 19_999))]
    {
        assert_eq!(people.cluster.must(&["get", "people", key]).trim_end(), value);
    }
}
