//! Looking at stores: records by the schema of the version that answered, where keys lie, damage told file by file,
//! and everything out again.

mod support;

use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};
use support::{
    cluster::{Cluster, signal, text},
    disk::{flip, packs, remove_packs, truncate, version_folder},
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

    /// What `kith store verify` says of node 0, and its exit code.
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
                for (key, result) in (0..).zip(answer["results"].as_array().expect("a list")) {
                    let expected: Value = serde_json::from_str(&row(key, version)).expect("JSON");
                    assert_eq!(
                        (&result["state"], &result["value"]),
                        (&json!("FOUND"), &expected),
                        "{version}"
                    );
                }
            }
        }
        swaps.join().expect("the swaps end");
    });
    assert!(0 < seen[0] && 0 < seen[1], "both versions answered: {seen:?}");
}

#[test]
fn keys_are_given_as_arguments_and_what_is_held_is_described() {
    let world = World::start(&["--nodes", "1", "--groups", "1", "--partitions", "4"]);
    world.create("people", &["--key", "id", "--value", "record"]);
    let schema = r#"{"fields":[{"name":"name","type":"text"},{"name":"embed","type":"vector<f32,2>","nullable":true}]}"#;
    let schema = world.write("schema.json", schema);
    let rows = world.write("rows.jsonl", "{\"key\":7,\"value\":{\"name\":\"ada\",\"embed\":[1,2]}}\n");
    let unnamed = |arguments: &[&str]| {
        let mut command = world.cluster.kith(arguments);
        for variable in ["KITH_WHO", "USER", "LOGNAME"] {
            command.env_remove(variable);
        }
        assert!(command.status().expect("kith runs").success(), "{arguments:?}");
    };
    unnamed(&["store", "push", "people", &rows, "--schema", &schema]);

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
    let told = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(
        told.contains("\"7x\"") && told.contains("whole numbers from 0 to 18446744073709551615"),
        "{told}"
    );
    let profiled = world.json(&["get", "people", "7", "--profile"]);
    assert_eq!(
        (&profiled["state"], &profiled["profile"]["nodes"]),
        (&json!("FOUND"), &json!(1)),
        "{profiled}"
    );

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
    let wrong = world.cluster.kith(&["load", "graph", &table, "--graph", "people", "--src", "name"]).output();
    let told = text(&wrong.expect("kith runs"));
    assert!(told.contains("no column \"name\" for src (its columns: key, since, dst, src)"), "{told}");
}

#[test]
fn a_key_lies_where_it_is_told_to_lie() {
    let world = World::start(&["--processes", "--nodes", "2", "--groups", "2"]);
    world.create("words", &[]);
    let rows: String = (0..1_000).map(|key| format!("member {key},value of {key}!\n")).collect();
    let rows = world.write("rows.csv", &format!("key,value\n{rows}"));
    world.push("words", &[&rows, "--version", "3"]);
    let told = world.json(&["store", "where", "words", "member 77"]);
    assert_eq!((&told["version"], &told["key"]), (&json!(3), &json!("member 77")), "{told}");
    let replicas = told["replicas"].as_array().expect("a list");
    assert_eq!(replicas.len(), 2, "{told}");
    for replica in replicas {
        assert_eq!((&replica["state"], &replica["node_state"]), (&json!("FOUND"), &json!("up")), "{told}");
        let node = replica["node"].as_u64().expect("a node");
        let file =
            version_folder(&world.cluster, node, "words", 3).join(replica["file"].as_str().expect("a name"));
        let start = replica["offset"].as_u64().expect("an offset") as usize;
        let bytes = fs::read(&file).expect("the pack is there");
        let wanted = b"value of 77!";
        assert_eq!(replica["length"], wanted.len(), "{told}");
        let near = &bytes[start..(start + 64).min(bytes.len())];
        assert!(near.windows(wanted.len()).any(|window| window == wanted), "{told}");
    }
    assert!(replicas.iter().any(|replica| replica["node"] == told["answers"]), "{told}");
    let absent = world.json(&["store", "where", "words", "nobody"]);
    assert_eq!(absent["replicas"][0]["state"], "ABSENT", "{absent}");
    assert_eq!(absent["replicas"][0]["offset"], Value::Null, "{absent}");
}

/// Exports a store of `rows` as JSON lines and as Parquet, and pushes both again: the records are those that were given.
fn assert_comes_back(world: &World, number: usize, kind: &[&str], rows: &str, options: &[&str]) {
    let (first, again, third) = (format!("s{number}"), format!("t{number}"), format!("u{number}"));
    for store in [&first, &again, &third] {
        world.create(store, kind);
    }
    let input = world.write("in.jsonl", rows);
    world.push(&first, &[&[input.as_str()], options].concat());
    let out = world.folder.path().join("out.jsonl").to_str().expect("UTF-8").to_owned();
    let told = world.json(&["store", "export", &first, "--out", &out, "--rate", "1GiB/s"]);
    assert_eq!(told["records"], 300, "{told}");
    world.push(&again, &[&[out.as_str()], options].concat());
    let exported = world.export(&[&again]);
    let mut given: Vec<&str> = rows.lines().collect();
    given.sort_unstable();
    assert_eq!(exported, given, "{kind:?}");
    assert_eq!(exported, world.export(&[&first]));
    let out = world.folder.path().join("out.parquet").to_str().expect("UTF-8").to_owned();
    world.json(&["store", "export", &first, "--format", "parquet", "--out", &out]);
    world.push(&third, &[&[out.as_str()], options].concat());
    assert_eq!(exported, world.export(&[&third]), "{kind:?} as Parquet");
}

#[test]
fn an_export_pushed_again_gives_the_same_records() {
    let mut world = World::start(&["--processes", "--nodes", "1", "--groups", "2", "--partitions", "8"]);
    let schema = r#"{"fields":[{"name":"name","type":"text"},{"name":"score","type":"f32","nullable":true},{"name":"v","type":"vector<f32,2>"}]}"#;
    let schema = world.write("schema.json", schema);
    let mut rows = [String::new(), String::new(), String::new(), String::new()];
    for key in 0..300_u64 {
        let big = u64::MAX - key;
        rows[0] += &format!("{{\"key\":{big},\"value\":\"text \\\"{key}\\\" é\"}}\n");
        rows[1] += &format!("{{\"key\":\"{}\",\"value\":\"{}\"}}\n", base64(key), base64(key * 7));
        rows[2] += &format!("{{\"key\":\"k{key}\",\"value\":[{key},1.50,{{\"a\":null}}]}}\n");
        rows[3] += &format!("{{\"id\":{key},\"name\":\"n{key}\",\"score\":null,\"v\":[0.1,{key}.0]}}\n");
    }
    let kinds: [&[&str]; 4] = [
        &["--key", "id", "--value", "text"],
        &["--key", "bytes", "--value", "bytes"],
        &["--key", "string", "--value", "json"],
        &["--key", "id", "--value", "record", "--key-field", "id"],
    ];
    for (index, (kind, rows)) in kinds.iter().zip(&rows).enumerate() {
        let options: &[&str] = if index == 3 { &["--schema", &schema] } else { &[] };
        assert_comes_back(&world, index, kind, rows, options);
    }
    // In parts, from a version that is kept only, with one replica of each partition gone.
    let whole = world.export(&["s0"]);
    let few = world.write("few.jsonl", "{\"key\":1,\"value\":\"one\"}\n");
    world.push("s0", &[&few]);
    let versions = world.json(&["store", "versions", "s0"]);
    let older = versions[0]["version"].to_string();
    let victim = world.cluster.node_pids(0)[0];
    signal(victim, "STOP");
    let mut parts = Vec::new();
    for partition in 0..8 {
        parts.extend(world.export(&["s0", "--version", &older, "--partition", &partition.to_string()]));
    }
    signal(victim, "CONT");
    parts.sort();
    assert_eq!(parts, whole);
    world.cluster.wait_until("the node is up again", |cluster| {
        !cluster.must(&["cluster", "status", "-o", "json"]).contains("\"down\"")
    });

    // Damage everywhere: no file, and the partition is named.
    for node in [0, 1] {
        let current = versions[1]["version"].as_u64().expect("a version");
        flip(&version_folder(&world.cluster, node, "s0", current), "data");
        flip(&version_folder(&world.cluster, node, "s0", older.parse().expect("a number")), "data");
    }
    let out = world.folder.path().join("damaged.jsonl");
    let arguments =
        ["store", "export", "s0", "--version", &older, "--out", out.to_str().expect("UTF-8"), "-o", "json"];
    let output = world.cluster.kith(&arguments).output().expect("kith runs");
    let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&told["error"]["code"], output.status.code()), (&json!("damaged"), Some(1)), "{told}");
    assert!(told["error"]["message"].as_str().is_some_and(|text| text.contains("partition")), "{told}");
    assert!(!out.exists() && !out.with_extension("jsonl.partial").exists());
}

fn base64(number: u64) -> String {
    use base64::{Engine, engine::general_purpose::STANDARD};
    STANDARD.encode(number.to_be_bytes())
}

/// Takes a copy of a folder's files and puts them back.
struct Saved {
    folder: PathBuf,
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl Saved {
    fn of(folder: &Path) -> Self {
        let paths = fs::read_dir(folder).expect("readable").flatten().map(|entry| entry.path());
        let files = paths.map(|path| (path.clone(), fs::read(path).expect("read"))).collect();
        Self { folder: folder.to_owned(), files }
    }

    fn restore(&self) {
        let _ = fs::remove_dir_all(&self.folder);
        fs::create_dir_all(&self.folder).expect("made");
        self.files.iter().for_each(|(path, bytes)| fs::write(path, bytes).expect("written"));
    }
}

#[test]
fn verify_tells_what_is_wrong_on_which_node() {
    let world = World::start(&["--nodes", "1", "--groups", "2", "--partitions", "8"]);
    for store in ["words", "others"] {
        world.create(store, &[]);
        // Large enough for several packs.
        let rows: String = (0..3_000).map(|key| format!("{store} {key},{}\n", "x".repeat(4_000))).collect();
        let rows = world.write("rows.csv", &format!("key,value\n{rows}"));
        world.push(store, &[&rows, "--version", "1"]);
    }
    for depth in [&[][..], &["--deep"]] {
        let (told, code) = world.verify(&[&["words"], depth].concat());
        assert_eq!((&told["ok"], code), (&json!(true), Some(0)), "{told}");
        assert_eq!(told["nodes"].as_array().map(Vec::len), Some(2), "{told}");
    }
    let folder = version_folder(&world.cluster, 0, "words", 1);
    let other = version_folder(&world.cluster, 0, "others", 1);
    assert!(1 < packs(&folder).len(), "packs to swap");
    let saved = Saved::of(&folder);
    // Name, fault, the state told, whether a quick look finds it.
    type Fault<'a> = (&'a str, &'a dyn Fn(), &'a str, bool);
    let faults: [Fault<'_>; 10] = [
        ("flipped data", &|| flip(&folder, "data"), "damaged", false),
        ("flipped indexes", &|| flip(&folder, "index"), "damaged", false),
        ("cut packs", &|| truncate(&folder), "damaged", true),
        ("no packs", &|| remove_packs(&folder), "damaged", true),
        ("swapped packs", &|| swap(&folder), "damaged", true),
        ("a file too many", &|| fs::write(folder.join("extra"), "x").expect("written"), "damaged", true),
        ("a manifest of another store", &|| copy(&other, &folder, "manifest.json"), "differs", true),
        ("no manifest", &|| fs::remove_file(folder.join("manifest.json")).expect("removed"), "damaged", true),
        (
            "a damaged manifest",
            &|| fs::write(folder.join("manifest.json"), "{").expect("written"),
            "damaged",
            true,
        ),
        ("no folder", &|| fs::remove_dir_all(&folder).expect("removed"), "missing", true),
    ];
    for (what, fault, state, quick) in faults {
        fault();
        let (told, code) = world.verify(&["words"]);
        assert_eq!(code, Some(if quick { 3 } else { 0 }), "{what}: {told}");
        let (told, code) = world.verify(&["words", "--deep"]);
        assert_eq!((code, &told["ok"]), (Some(3), &json!(false)), "{what}: {told}");
        assert_eq!(told["nodes"][0]["state"], state, "{what}: {told}");
        assert_eq!(told["nodes"][1]["state"], "ok", "{what}: {told}");
        if state == "damaged" {
            let damage = &told["nodes"][0]["components"][0]["damages"][0];
            assert!(damage["file"].is_string() && damage["fault"].is_string(), "{what}: {told}");
            assert!(!what.starts_with("flipped") || damage["offset"].is_u64(), "{what}: {told}");
        }
        saved.restore();
    }
    assert_eq!(world.verify(&["words", "--deep"]).1, Some(0));
    let (told, code) = world.verify(&["words", "--version", "9"]);
    assert_eq!((&told["error"]["code"], code), (&json!("version_not_kept"), Some(1)), "{told}");
}

fn copy(from: &Path, to: &Path, name: &str) {
    fs::copy(from.join(name), to.join(name)).expect("copied");
}

/// Two packs under each other's names.
fn swap(folder: &Path) {
    let packs = packs(folder);
    let aside = folder.join("aside");
    fs::rename(&packs[0], &aside).expect("renamed");
    fs::rename(&packs[1], &packs[0]).expect("renamed");
    fs::rename(&aside, &packs[1]).expect("renamed");
}
