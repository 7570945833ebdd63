//! `kith store export`: what comes out is what went in, in parts too; damage leaves no file.

use super::World;
use crate::support::{
    cluster::signal,
    disk::{flip, version_folder},
};
use serde_json::{Value, json};

/// Exports a store of `rows` as JSON lines and as Parquet, and pushes both again: the records are those that were given.
fn assert_comes_back(world: &World, number: usize, kind: &[&str], rows: &str, options: &[&str]) {
    let (first, again, third) = (format!("s{number}"), format!("t{number}"), format!("u{number}"));
    for store in [&first, &again, &third] {
        world.create(store, kind);
    }
    let input = world.write("in.jsonl", rows);
    world.push(&first, &[&[input.as_str()], options].concat());
    let out = world.folder.path().join("out.jsonl").to_str().expect("UTF-8").to_owned();
    let report = world.json(&["store", "export", &first, "--out", &out, "--rate", "1GiB/s"]);
    assert_eq!(report["records"], 300, "{report}");
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

/// Four stores of three hundred records each: texts, bytes, JSON and records.
fn rows() -> [String; 4] {
    let mut rows = [String::new(), String::new(), String::new(), String::new()];
    for key in 0..300_u64 {
        let big = u64::MAX - key;
        rows[0] += &format!("{{\"key\":{big},\"value\":\"text \\\"{key}\\\" é\"}}\n");
        rows[1] += &format!("{{\"key\":\"{}\",\"value\":\"{}\"}}\n", base64(key), base64(key * 7));
        rows[2] += &format!("{{\"key\":\"k{key}\",\"value\":[{key},1.50,{{\"a\":null}}]}}\n");
        rows[3] += &format!("{{\"id\":{key},\"name\":\"n{key}\",\"score\":null,\"v\":[0.1,{key}.0]}}\n");
    }
    rows
}

#[test]
fn an_export_pushed_again_gives_the_same_records() {
    let mut world = World::start(&["--processes", "--nodes", "1", "--groups", "2", "--partitions", "8"]);
    let schema = r#"{"fields":[{"name":"name","type":"text"},{"name":"score","type":"f32","nullable":true},{"name":"v","type":"vector<f32,2>"}]}"#;
    let schema = world.write("schema.json", schema);
    let kinds: [&[&str]; 4] = [
        &["--key", "id", "--value", "text"],
        &["--key", "bytes", "--value", "bytes"],
        &["--key", "string", "--value", "json"],
        &["--key", "id", "--value", "record", "--key-field", "id"],
    ];
    for (index, (kind, rows)) in kinds.iter().zip(&rows()).enumerate() {
        let options: &[&str] = if index == 3 { &["--schema", &schema] } else { &[] };
        assert_comes_back(&world, index, kind, rows, options);
    }
    let whole = world.export(&["s0"]);
    let few = world.write("few.jsonl", "{\"key\":1,\"value\":\"one\"}\n");
    world.push("s0", &[&few]);
    let versions = world.json(&["store", "versions", "s0"]);
    let [older, current] = [0, 1].map(|position| versions[position]["version"].as_u64().expect("a version"));
    assert_comes_in_parts(&mut world, older, &whole);
    for node in [0, 1] {
        flip(&version_folder(&world.cluster, node, "s0", current), "data");
        flip(&version_folder(&world.cluster, node, "s0", older), "data");
    }
    assert_damage_leaves_no_file(&world, older);
}

/// In parts, from a version that is kept only, with one replica of each partition gone.
fn assert_comes_in_parts(world: &mut World, version: u64, whole: &[String]) {
    let victim = world.cluster.node_pids(0)[0];
    signal(victim, "STOP");
    let mut parts = Vec::new();
    for partition in 0..8 {
        let of = ["--version", &version.to_string(), "--partition", &partition.to_string()];
        parts.extend(world.export(&[&["s0"], &of[..]].concat()));
    }
    signal(victim, "CONT");
    parts.sort();
    assert_eq!(parts, whole);
    world.cluster.wait_until("the node is up again", |cluster| {
        !cluster.must(&["cluster", "status", "-o", "json"]).contains("\"down\"")
    });
}

/// Damage everywhere: no file, and the partition is named.
fn assert_damage_leaves_no_file(world: &World, version: u64) {
    let out = world.folder.path().join("damaged.jsonl");
    let mut command = world.cluster.kith(&["store", "export", "s0", "-o", "json"]);
    command.args(["--version", &version.to_string(), "--out"]).arg(&out);
    let output = command.output().expect("kith runs");
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&answer["error"]["code"], output.status.code()), (&json!("damaged"), Some(1)), "{answer}");
    assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains("partition")), "{answer}");
    assert!(!out.exists() && !out.with_extension("jsonl.partial").exists());
}

fn base64(number: u64) -> String {
    use base64::{Engine, engine::general_purpose::STANDARD};
    STANDARD.encode(number.to_be_bytes())
}
