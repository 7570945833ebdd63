//! The JSON of `kith bench graph`, `kv` and `calibrate`: field names are a contract, numbers are not.

use crate::support;
use kith_engine::{KeyType, ValueType};
use serde_json::{Value, json};
use std::{fs, path::Path};
use support::{
    cluster::{Cluster, text},
    reference::Reference,
    values,
};

/// The form of a JSON value: numbers masked, the elements of a list laid over each other.
fn shape(value: &Value) -> Value {
    match value {
        Value::Number(_) => json!("number"),
        Value::Array(list) => {
            let whole = list.iter().map(shape).reduce(laid_over);
            Value::Array(whole.into_iter().collect())
        }
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), shape(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

fn laid_over(first: Value, second: Value) -> Value {
    match (first, second) {
        (Value::Object(mut first), Value::Object(second)) => {
            for (name, value) in second {
                let both = first.remove(&name).map_or(value.clone(), |before| laid_over(before, value));
                first.insert(name, both);
            }
            first.into()
        }
        (Value::Array(first), Value::Array(second)) => {
            Value::Array(first.into_iter().chain(second).reduce(laid_over).into_iter().collect())
        }
        (Value::String(first), Value::String(second)) if first != second => json!("text"),
        (Value::Null, other) | (other, _) => other,
    }
}

#[test]
fn the_json_of_a_benchmark_keeps_its_fields() {
    let cluster = Cluster::start(&["--groups", "2", "--nodes", "1"]);
    let load = Reference::open("kith-village").expect("it comes with the project").load_arguments();
    cluster.must(&load.iter().map(String::as_str).collect::<Vec<_>>());
    let flags =
        "bench graph --graph kith-village --rates 60 --seconds 3 --rounds 6 --policies one-group,round-robin";
    let output = cluster.must(&flags.split(' ').chain(["-o", "json"]).collect::<Vec<_>>());
    let report: Value = serde_json::from_str(&output).expect("JSON");
    assert!(report["answers"]["checked"].as_u64().is_some_and(|checked| 100 < checked), "{report}");
    matches_golden(&report, "bench-graph.json");
}

/// A busy machine may leave a limit in doubt: that is reported, and nothing is written.
#[test]
fn a_calibration_is_written_if_it_is_to_be_trusted_and_else_says_why_not() {
    let cluster = Cluster::start(&["--groups", "1", "--nodes", "1"]);
    let load = Reference::open("kith-village").expect("it comes with the project").load_arguments();
    cluster.must(&load.iter().map(String::as_str).collect::<Vec<_>>());
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("router.toml");
    let flags = format!("bench calibrate -g kith-village --step-seconds 0.1 -o json --out {}", out.display());
    let output = cluster.kith(&flags.split(' ').collect::<Vec<_>>()).output().expect("kith runs");
    let report: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output)));
    let doubts = ["client_doubt", "node_doubt"].map(|doubt| report[doubt].as_str());
    let is_trusted = report["steering"].is_object() && doubts == [None, None];
    assert_eq!(output.status.code(), Some(if is_trusted { 0 } else { 1 }), "{report}");
    assert_eq!(out.exists(), is_trusted, "{report}");
    assert_eq!(report["out"].is_string(), is_trusted, "{report}");
    for attempts in ["client_attempts", "node_attempts"].map(|attempts| report[attempts].as_u64()) {
        assert!(attempts.is_none_or(|attempts| (1..=3).contains(&attempts)), "{report}");
    }
}

fn matches_golden(report: &Value, file: &str) {
    let now = format!("{:#}\n", shape(report));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(file);
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &now).expect("written");
    }
    let expected = fs::read_to_string(&path).expect("the golden file");
    assert!(now == expected, "BLESS=1 rewrites {}\n--- now:\n{now}", path.display());
}

fn kv(cluster: &Cluster, flags: &str) -> (Value, Option<i32>) {
    let arguments: Vec<&str> = "bench kv".split(' ').chain(flags.split(' ')).chain(["-o", "json"]).collect();
    let output = cluster.kith(&arguments).output().expect("kith runs");
    let report = serde_json::from_slice(&output.stdout);
    (report.unwrap_or_else(|error| panic!("{flags}: {error}\n{}", text(&output))), output.status.code())
}

#[test]
fn reads_of_a_store_are_counted_timed_and_drawn() {
    let cluster = Cluster::start(&["--groups", "2", "--nodes", "2"]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    values::create(&cluster, "people", KeyType::Id, ValueType::Text);
    let rows = (0..500u64).map(|id| (id.to_le_bytes().to_vec(), format!("value of {id}").into_bytes()));
    values::push(&cluster, "people", (KeyType::Id, ValueType::Text), 7, rows);

    let out = folder.path().join("out");
    let flags =
        "people --distribution zipfian --exponent 0.9 --rate 80,40 --seconds 1.5 --keys 3 --check --out";
    let (mut report, code) = kv(&cluster, &format!("{flags} {}", out.display()));
    assert_eq!((code, &report["versions"], &report["keys"]), (Some(0), &json!([7]), &json!(500)), "{report}");
    for rate in report["rates"].as_array().expect("a list") {
        let requests = rate["requests"].as_u64().expect("a number");
        assert!(20 < requests && rate["found"] == 3 * requests && rate["wrong"] == 0, "{rate}");
        assert!(rate["server_cpu_us"].as_f64().is_some_and(|us| 0.0 < us), "{rate}");
    }
    let files = report.as_object_mut().and_then(|fields| fields.remove("files")).expect("files");
    let files: Vec<&str> = files.as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    assert_eq!(files.len(), 3, "{files:?}");
    let read = |end: &str| {
        let file = files.iter().find(|file| file.ends_with(end)).expect(end);
        fs::read_to_string(file).expect("it was written")
    };
    assert!(read("kv-people-zipfian.svg").contains("<svg"));
    assert!(read("kv-people-zipfian.csv").starts_with("quantity,series,rate,value\nlatency_us,p50,40,"));
    assert_eq!(read("kv-people-zipfian-rates.csv").lines().count(), 3);
    matches_golden(&report, "bench-kv.json");
}

#[test]
fn keys_that_are_not_there_are_wrong_only_if_a_flag_says_so_and_equal_seeds_ask_the_same() {
    let cluster = Cluster::start(&["--groups", "1", "--nodes", "1"]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    values::create(&cluster, "words", KeyType::String, ValueType::Text);
    let rows = ["a", "b", "c"].map(|key| (key.as_bytes().to_vec(), b"here".to_vec()));
    values::push(&cluster, "words", (KeyType::String, ValueType::Text), 1, rows);
    let keys = folder.path().join("keys");
    fs::write(&keys, "a\nb\nc\nnot there\n").expect("written");

    let flags = format!("words --keys-from {} --rate 200 --seconds 0.5", keys.display());
    let (report, code) = kv(&cluster, &flags);
    let rate = &report["rates"][0];
    let (found, absent) = (rate["found"].as_u64(), rate["absent"].as_u64());
    assert!(Some(0) < found && Some(0) < absent && rate["wrong"].is_null(), "{report}");
    assert_eq!(code, Some(0), "an absent key is an answer");

    let (checked, code) = kv(&cluster, &format!("{flags} --check"));
    let rate = &checked["rates"][0];
    assert_eq!((rate["found"].as_u64(), rate["wrong"].as_u64(), code), (found, absent, Some(3)), "{checked}");

    for (flags, error) in [
        ("words --rate 10", "usage"),
        ("nothing --rate 10", "unknown_store"),
        ("words --exponent 1 --rate 10", "usage"),
    ] {
        let (report, code) = kv(&cluster, flags);
        assert!(report["error"]["code"] == error && code != Some(0), "{flags}: {report}");
    }
}
