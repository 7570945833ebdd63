//! Members of a loaded graph have the fields of a store of records as properties.

use crate::support;
use serde_json::{Value, json};
use std::{fs, path::Path};
use support::cluster::{Cluster, text};

fn file(folder: &Path, name: &str, content: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, content).expect("written");
    path.to_str().expect("UTF-8").to_owned()
}

/// Three friends, two of whom have a record, and stores that cannot be joined.
fn start(folder: &Path) -> Cluster {
    let cluster = Cluster::start(&["--groups", "2", "--nodes", "2"]);
    let edges = file(folder, "edges.csv", "src,dst\n1,2\n1,3\n");
    cluster.must(&["load", "graph", &edges, "--graph", "people", "--edge-type", "knows"]);
    let schema = r#"{"fields":[{"name":"name","type":"text"},{"name":"age","type":"i32","nullable":true},
        {"name":"seen","type":"timestamp"},{"name":"tags","type":"list<text>","default":[]}]}"#;
    let schema = file(folder, "profiles.json", schema);
    let create = ["store", "create", "profiles", "--key", "id", "--value", "record", "--key-field", "id"];
    cluster.must(&[&create[..], &["--schema", &schema]].concat());
    push(&cluster, folder, 29);
    cluster.must(&["store", "create", "words", "--key", "string", "--value", "record", "--key-field", "id"]);
    cluster.must(&["store", "create", "texts", "--key", "id", "--value", "text"]);
    cluster
}

fn push(cluster: &Cluster, folder: &Path, age: i32) {
    let rows = format!(
        "{}\n{}\n",
        json!({"id": 1, "name": "marko", "age": age, "seen": 1_500, "tags": ["a", "b"]}),
        json!({"id": 2, "name": "vadas", "age": null, "seen": 0}),
    );
    let rows = file(folder, "rows.jsonl", &rows);
    cluster.must(&["store", "push", "profiles", &rows]);
}

fn results(cluster: &Cluster, gremlin: &str) -> Value {
    let line = json!({"op": "gremlin", "graph": "people", "gremlin": gremlin});
    cluster.run(&[line], 1).0.remove(0)["result"].take()
}

#[test]
fn fields_of_records_are_properties_of_members() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cluster = start(folder.path());
    let names = "g.V().values('name').order().fold()";
    assert_eq!(results(&cluster, names), json!([[]]), "not joined yet");
    let joined = cluster.must(&["graph", "properties", "people", "--store", "profiles"]);
    assert!(joined.contains("properties of members from store profiles"), "{joined}");
    let rows = [
        (names, json!([["marko", "vadas"]])),
        ("g.V(1).out('knows').has('name', 'vadas').id()", json!([2])),
        ("g.V(1, 2, 3).has('age').id()", json!([1])),
        ("g.V(3).valueMap()", json!([{}])),
        (
            "g.V(1).elementMap()",
            json!([{"id": 1, "label": "member", "name": "marko", "age": 29, "seen": "1970-01-01T00:00:01.500Z", "tags": ["a", "b"]}]),
        ),
        ("g.V(1).values('none-such')", json!([])),
        ("g.V(1).values('age').asNumber(GType.INT).sum()", json!([29])),
        ("g.V(2).values('age')", json!([])),
        ("g.V(9).values('name')", json!([])),
        ("g.V(1, 2).order().by('name', desc).id()", json!([2, 1])),
    ];
    for (gremlin, expected) in rows {
        assert_eq!(results(&cluster, gremlin), expected, "{gremlin}");
    }
    // Only the fields that are named are asked for, in one fan-out.
    let profiled = ["gremlin", "g.V(1, 2, 3).values('name')", "-g", "people", "--profile", "-o", "json"];
    let json: Value = serde_json::from_str(&cluster.must(&profiled)).expect("JSON");
    let rounds = json["profile"]["rounds"].as_array().expect("rounds");
    let names: Vec<&str> = rounds.iter().map(|round| round["name"].as_str().unwrap_or_default()).collect();
    assert_eq!(names, ["vertices", "properties"], "{json}");
    assert_eq!((&json["steps"][1]["keys"], &json["steps"][1]["fan_outs"]), (&json!(3), &json!(1)), "{json}");
    let explained = cluster.must(&["explain", "--gremlin", "g.V(1).values('name')", "-g", "people"]);
    assert!(explained.contains("records of store profiles"), "{explained}");
    assert!(explained.contains("policy least-loaded"), "{explained}");
    // A later version serves at once, also to clients that ask nodes themselves.
    push(&cluster, folder.path(), 30);
    let direct = ["gremlin", "g.V(1).values('age')", "-g", "people", "--direct"];
    assert_eq!(cluster.must(&direct), "30\n");
}

#[test]
fn joins_are_shown_checked_and_removed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cluster = start(folder.path());
    let refused = |arguments: &[&str], parts: [&str; 2]| {
        let output = cluster.kith(arguments).output().expect("it runs");
        let said = text(&output);
        assert!(!output.status.success(), "{arguments:?}: {said}");
        parts.iter().for_each(|part| assert!(said.contains(part), "{arguments:?}: {said}"));
    };
    for (graph, store, code, part) in [
        ("people", "nothing", "unknown_store", "no store \"nothing\""),
        ("people", "words", "wrong_key_type", "of type string"),
        ("people", "texts", "not_records", "holds text"),
        ("people", "people", "not_values", "is a graph"),
        ("nobody", "profiles", "unknown_graph", "nobody"),
        ("profiles", "profiles", "not_a_graph", "store of values"),
    ] {
        refused(&["graph", "properties", graph, "--store", store], [code, part]);
    }
    refused(&["graph", "properties", "people"], ["required", "--store"]);
    cluster.must(&["graph", "properties", "people", "--store", "profiles"]);
    let described = || -> Value {
        let json = cluster.must(&["graph", "describe", "people", "-o", "json"]);
        serde_json::from_str(&json).expect("JSON")
    };
    assert_eq!(described()["properties"], "profiles");
    assert!(cluster.must(&["graph", "list"]).contains("profiles"));
    // A load keeps what was joined, and the store cannot go meanwhile.
    let edges = file(folder.path(), "more.csv", "src,dst\n1,2\n");
    cluster.must(&["load", "graph", &edges, "--graph", "people", "--edge-type", "likes"]);
    assert_eq!(described()["properties"], "profiles");
    refused(&["store", "drop", "profiles", "--yes"], ["store_in_use", "kith graph properties people --none"]);
    cluster.must(&["graph", "properties", "people", "--none"]);
    assert_eq!(described()["properties"], Value::Null);
    assert_eq!(results(&cluster, "g.V(1).values('name')"), json!([]));
    cluster.must(&["store", "drop", "profiles", "--yes"]);
}
