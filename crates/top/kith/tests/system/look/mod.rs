//! Looking at stores: records by the schema of the version that answered, where keys lie, damage reported file by file,
//! and everything out again.

mod export;
mod verify;

use crate::support;
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::MetadataExt,
    sync::atomic::{AtomicBool, Ordering},
};
use support::{
    cluster::{Cluster, text},
    disk::version_folder,
};

struct World {
    cluster: Cluster,
    folder: tempfile::TempDir,
}

impl World {
    fn start(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Self { cluster: Cluster::start(&[arguments, &["--scrub-rate", "off"]].concat()), folder }
    }

    fn write(&self, name: &str, content: &str) -> String {
        let path = self.folder.path().join(name);
        fs::write(&path, content).expect("written");
        path.to_str().expect("UTF-8").to_owned()
    }

    fn create(&self, store: &str, arguments: &[&str]) {
        self.cluster.must(&[&["store", "create", store], arguments].concat());
    }

    fn push(&self, store: &str, arguments: &[&str]) {
        self.cluster.must(&[&["store", "push", store], arguments].concat());
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.cluster.must(&[arguments, &["-o", "json"]].concat())).expect("JSON")
    }

    /// The lines of an export, sorted.
    fn export(&self, arguments: &[&str]) -> Vec<String> {
        let printed = self.cluster.must(&[&["store", "export"], arguments].concat());
        let mut lines: Vec<String> = printed.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    }

    /// The findings of `kith store verify` about node 0, and its exit code.
    fn verify(&self, arguments: &[&str]) -> (Value, Option<i32>) {
        let all = [&["store", "verify"], arguments, &["-o", "json"]].concat();
        let output = self.cluster.kith(&all).output().expect("kith runs");
        (
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output))),
            output.status.code(),
        )
    }
}

#[test]
fn records_are_decoded_by_the_schema_of_the_version_that_answered() {
    let world = World::start(&["--nodes", "1", "--groups", "2", "--partitions", "8"]);
    world.create("people", &["--key", "id", "--value", "record"]);
    let narrow = world.write("1.json", r#"{"fields":[{"name":"name","type":"text"}]}"#);
    let wide = world.write(
        "2.json",
        r#"{"fields":[{"name":"age","type":"u64","nullable":true},{"name":"name","type":"text"}]}"#,
    );
    let row = |key: u64, version: u64| match version {
        1 => format!("{{\"name\":\"member {key}\"}}"),
        _ => format!("{{\"age\":{},\"name\":\"member {key} too\"}}", u64::MAX - key),
    };
    for (version, schema) in [(1, &narrow), (2, &wide)] {
        let rows: String =
            (0..500).map(|key| format!("{{\"key\":{key},\"value\":{}}}\n", row(key, version))).collect();
        let rows = world.write("rows.jsonl", &rows);
        world.push("people", &[&rows, "--schema", schema, "--version", &version.to_string()]);
    }
    assert_eq!(world.cluster.must(&["get", "people", "7"]), row(7, 2) + "\n");
    let one = world.json(&["get", "people", "7"]);
    assert_eq!(one["value"], serde_json::from_str::<Value>(&row(7, 2)).expect("JSON"));
    assert!(one["value_base64"].as_str().is_some_and(|text| !text.is_empty()), "{one}");
    let keys = world.write("keys.txt", "7\n500\n");
    let table = world.cluster.must(&["mget", "people", "--keys-from", &keys]);
    assert!(table.contains("member 7 too"), "{table}");

    let seen = read_while_versions_swap(&world, &row);
    assert!(0 < seen[0] && 0 < seen[1], "both versions answered: {seen:?}");
}

/// Reads all people while two versions take turns, and compares each answer with the rows of its version; how many answers each
/// version gave.
fn read_while_versions_swap(world: &World, row: &impl Fn(u64, u64) -> String) -> [u32; 2] {
    let request = json!({"op": "mget", "store": "people", "keys": (0..500).collect::<Vec<u64>>()});
    let done = AtomicBool::new(false);
    let mut seen = [0; 2];
    std::thread::scope(|scope| {
        let swaps = scope.spawn(|| {
            for version in ["1", "2"].into_iter().cycle().take(20) {
                world.cluster.must(&["store", "swap", "people", version]);
            }
            done.store(true, Ordering::Release);
        });
        // The first clients know neither schema; each lives through many swaps.
        while !done.load(Ordering::Acquire) {
            let (answers, exit) = world.cluster.run(&vec![request.clone(); 40], 2);
            assert_eq!(exit, 0);
            for answer in &answers {
                let version = answer["footer"]["versions"][0].as_u64().expect("a version");
                seen[version as usize - 1] += 1;
                assert_rows(answer, version, row);
            }
        }
        swaps.join().expect("the swaps end");
    });
    seen
}

fn assert_rows(answer: &Value, version: u64, row: &impl Fn(u64, u64) -> String) {
    for (key, result) in (0..).zip(answer["results"].as_array().expect("a list")) {
        let expected: Value = serde_json::from_str(&row(key, version)).expect("JSON");
        assert_eq!((&result["state"], &result["value"]), (&json!("FOUND"), &expected), "{version}");
    }
}

/// One person of a name and a vector, pushed by a user without a name.
fn one_person() -> World {
    let world = World::start(&["--nodes", "1", "--groups", "1", "--partitions", "4"]);
    world.create("people", &["--key", "id", "--value", "record"]);
    let schema = r#"{"fields":[{"name":"name","type":"text"},{"name":"embed","type":"vector<f32,2>","nullable":true}]}"#;
    let schema = world.write("schema.json", schema);
    let rows = world.write("rows.jsonl", "{\"key\":7,\"value\":{\"name\":\"ada\",\"embed\":[1,2]}}\n");
    let mut push = world.cluster.kith(&["store", "push", "people", &rows, "--schema", &schema]);
    for variable in ["KITH_WHO", "USER", "LOGNAME"] {
        push.env_remove(variable);
    }
    assert!(push.status().expect("kith runs").success());
    world
}

#[test]
fn keys_are_given_as_arguments() {
    let world = one_person();
    let lines = world.cluster.must(&["mget", "people", "7", "8", "-o", "json"]);
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(
        (&lines[0]["value"]["name"], &lines[1]["state"]),
        (&json!("ada"), &json!("ABSENT")),
        "{lines:?}"
    );
    let table = world.cluster.must(&["get", "people", "7", "8"]);
    assert!(table.contains("1 found, 1 absent"), "{table}");
    let keys = world.write("keys.txt", "7\n");
    let both =
        world.cluster.kith(&["mget", "people", "7", "--keys-from", &keys]).output().expect("kith runs");
    assert_eq!(both.status.code(), Some(2), "{}", text(&both));
    let wrong = world.cluster.kith(&["get", "people", "7x"]).output().expect("kith runs");
    let stderr = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(
        stderr.contains("\"7x\"") && stderr.contains("whole numbers from 0 to 18446744073709551615"),
        "{stderr}"
    );
    let profiled = world.json(&["get", "people", "7", "--profile"]);
    assert_eq!(
        (&profiled["state"], &profiled["profile"]["nodes"]),
        (&json!("FOUND"), &json!(1)),
        "{profiled}"
    );
}

#[test]
fn what_is_held_is_described() {
    let world = one_person();
    let described = world.cluster.must(&["store", "describe", "people"]);
    assert!(described.contains("records have 2 fields:\n"), "{described}");
    assert!(described.contains("embed  vector<f32,2>  may be null"), "{described}");
    let served = world.json(&["store", "describe", "people"])["served_schema"].clone();
    assert!(served.as_str().is_some_and(|schema| schema.contains("vector<f32,2>")), "{served}");

    let history = world.json(&["store", "history", "people"]);
    let pushed = &history.as_array().expect("a list").last().expect("the push");
    let uid = fs::metadata(world.folder.path()).map(|folder| MetadataExt::uid(&folder)).expect("it is ours");
    assert_eq!(pushed["who"], format!("uid {uid}"), "{history}");
    assert!(pushed["at"].is_u64(), "times in JSON stay numbers: {history}");
    for command in ["history", "versions"] {
        let table = world.cluster.must(&["store", command, "people"]);
        assert!(table.contains(" UTC") && table.contains("-") && table.contains(":"), "{table}");
    }
    let free = world.json(&["cluster", "status"])["nodes"][0]["disk_free"].as_u64();
    assert!(free.is_none_or(|free| 0 < free), "{free:?}");
}

#[test]
fn a_table_of_edges_is_loaded_as_a_graph() {
    let world = World::start(&["--nodes", "1", "--groups", "1", "--partitions", "4"]);
    world.create("edges", &["--key", "id", "--value", "record"]);
    let rows: String = (0..5_000_u64)
        .map(|row| {
            let (src, dst, since) = (row % 500, 1_000 + row, 1_766_000_000_000 + row);
            format!("{{\"key\":{row},\"value\":{{\"since\":{since},\"dst\":{dst},\"src\":{src}}}}}\n")
        })
        .collect();
    let rows = world.write("rows.jsonl", &rows);
    let schema = world.write(
        "schema.json",
        r#"{"fields":[{"name":"since","type":"timestamp"},{"name":"dst","type":"u64"},{"name":"src","type":"i64"}]}"#,
    );
    world.push("edges", &[&rows, "--schema", &schema]);
    let table = world.folder.path().join("edges.parquet").to_str().expect("UTF-8").to_owned();
    world.json(&["store", "export", "edges", "--format", "parquet", "--out", &table]);

    let load = ["load", "graph", &table, "--graph", "people", "--columns", "since:time"];
    let loaded = world.json(&load);
    assert_eq!(
        (&loaded["files"][0]["rows"], &loaded["components"][0]["edges"]),
        (&json!(5_000), &json!(5_000))
    );
    let connections = world.json(&["graph", "connections", "7", "--graph", "people"]);
    let expected: Vec<u64> = (0..10).map(|turn| 1_007 + 500 * turn).collect();
    assert_eq!(connections["ids"], json!(expected));
    let wrong = ["load", "graph", &table, "--graph", "people", "--src", "name", "--columns", "since:time"];
    let wrong = world.cluster.kith(&wrong).output();
    let output = text(&wrong.expect("kith runs"));
    assert!(output.contains("no column \"name\" for src (its columns: key, since, dst, src)"), "{output}");
}

#[test]
fn a_key_lies_where_the_command_says() {
    let world = World::start(&["--processes", "--nodes", "2", "--groups", "2"]);
    world.create("words", &[]);
    let rows: String = (0..1_000).map(|key| format!("member {key},value of {key}!\n")).collect();
    let rows = world.write("rows.csv", &format!("key,value\n{rows}"));
    world.push("words", &[&rows, "--version", "3"]);
    let report = world.json(&["store", "where", "words", "member 77"]);
    assert_eq!((&report["version"], &report["key"]), (&json!(3), &json!("member 77")), "{report}");
    let replicas = report["replicas"].as_array().expect("a list");
    assert_eq!(replicas.len(), 2, "{report}");
    for replica in replicas {
        assert_eq!((&replica["state"], &replica["node_state"]), (&json!("FOUND"), &json!("up")), "{report}");
        let node = replica["node"].as_u64().expect("a node");
        let file =
            version_folder(&world.cluster, node, "words", 3).join(replica["file"].as_str().expect("a name"));
        let start = replica["offset"].as_u64().expect("an offset") as usize;
        let bytes = fs::read(&file).expect("the pack is there");
        let wanted = b"value of 77!";
        assert_eq!(replica["length"], wanted.len(), "{report}");
        let near = &bytes[start..(start + 64).min(bytes.len())];
        assert!(near.windows(wanted.len()).any(|window| window == wanted), "{report}");
    }
    assert!(replicas.iter().any(|replica| replica["node"] == report["answers"]), "{report}");
    let absent = world.json(&["store", "where", "words", "nobody"]);
    assert_eq!(absent["replicas"][0]["state"], "ABSENT", "{absent}");
    assert_eq!(absent["replicas"][0]["offset"], Value::Null, "{absent}");
}
