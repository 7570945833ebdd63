//! Versions whose every value says of which store, key and version it is, and reads that are judged by that.

use super::{cluster::Cluster, stream::Stream, values::push};
use kith_engine::{KeyType, ValueType};
use serde_json::{Value, json};

pub const WORDS: (KeyType, ValueType) = (KeyType::Id, ValueType::Text);

pub fn value(store: &str, key: u64, version: u64) -> String {
    format!("{store}: value {key} of version {version}, {}", "x".repeat(100))
}

/// The rows of a version: keys from 0 on.
pub fn rows(store: &str, people: u64, version: u64) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    (0..people).map(move |key| (key.to_le_bytes().to_vec(), value(store, key, version).into_bytes()))
}

pub fn push_version(cluster: &Cluster, store: &str, people: u64, version: u64) {
    push(cluster, store, WORDS, version, rows(store, people, version));
}

pub fn mget(store: &str, keys: impl Iterator<Item = u64>) -> Value {
    json!({"op": "mget", "store": store, "keys": keys.collect::<Vec<_>>(), "deadline_ms": 60_000})
}

/// Every key is there, with the value of the one version that the footer names.
pub fn judge(request: &Value, answer: &Value) -> Result<(), String> {
    let wrong =
        |what: &str| Err(format!("{what}: {}", answer.to_string().chars().take(600).collect::<String>()));
    let store = request["store"].as_str().expect("a name");
    let keys = request["keys"].as_array().expect("keys");
    let (Some(results), Some(versions)) =
        (answer["results"].as_array(), answer["footer"]["versions"].as_array())
    else {
        return wrong("not answered");
    };
    let [version] = versions.as_slice() else { return wrong("not one version") };
    let version = version.as_u64().expect("a number");
    if results.len() != keys.len() || answer["footer"]["found"] != keys.len() {
        return wrong("not found");
    }
    let mut all = keys.iter().zip(results);
    match all.find(|(key, result)| result["value"] != value(store, key.as_u64().expect("an id"), version)) {
        Some((key, result)) => wrong(&format!("version {version}, key {key}: {result}")),
        None => Ok(()),
    }
}

/// Reads every key, through a router and as a fast client; all must be there, of this version.
pub fn assert_reads(cluster: &Cluster, store: &str, people: u64, version: u64) {
    let request = mget(store, 0..people);
    for way in [&[][..], &["--direct"]] {
        let mut command = cluster.kith(&["run", "--input", "-"]);
        command.args(way);
        let requests = std::slice::from_ref(&request);
        let (answers, _) = super::cluster::run_lines(command, requests, usize::MAX, || ());
        judge(&request, &answers[0]).unwrap_or_else(|why| panic!("{store} {way:?}: {why}"));
        assert_eq!(answers[0]["footer"]["versions"], json!([version]), "{store} {way:?}");
    }
}

/// The versions of a store and their states.
pub fn states(cluster: &Cluster, store: &str) -> Vec<(u64, String)> {
    let output = cluster.must(&["store", "versions", store, "-o", "json"]);
    let versions: Vec<Value> = serde_json::from_str(&output).expect("JSON");
    let state = |it: &Value| it["state"].as_str().expect("text").to_owned();
    versions.iter().map(|it| (it["version"].as_u64().expect("a number"), state(it))).collect()
}

/// The one version that serves.
pub fn current(cluster: &Cluster, store: &str) -> u64 {
    let all = states(cluster, store);
    let current: Vec<u64> =
        all.iter().filter(|(_, state)| state == "current").map(|(version, _)| *version).collect();
    assert_eq!(current.len(), 1, "one version serves: {all:?}");
    current[0]
}

/// Waits until all readers have read on: what was done is under a read, not between two.
pub fn read_on(cluster: &mut Cluster, readers: &[Stream]) {
    let before: Vec<usize> = readers.iter().map(Stream::answers).collect();
    cluster.wait_until("readers read on", |_| {
        readers.iter().zip(&before).all(|(reader, before)| before + 4 < reader.answers())
    });
}
