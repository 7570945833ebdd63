//! Read compute against a real cluster: contract, reference answers, every way in, streams, versions, faults of plans and
//! records.

mod counts;
mod reference;
mod schemas;
mod streams;

use crate::support;
use kith_types::ErrorCode::BadRequest as BAD;
use serde_json::{Value, json};
use std::{fs, path::Path};
use support::cluster::{Cluster, run_lines, signal};

/// Every way in, and the fallback of both clients.
const WAYS: [(&[&str], &str); 6] = [
    (&[], "nodes"),
    (&["--transport", "grpc"], "nodes"),
    (&["--direct"], "nodes"),
    (&["--direct", "--transport", "grpc"], "nodes"),
    (&[], "client"),
    (&["--direct"], "client"),
];

fn ask(cluster: &Cluster, way: &[&str], requests: &[Value]) -> Vec<Value> {
    let mut command = cluster.kith(&["run", "--input", "-"]);
    command.args(way);
    run_lines(command, requests, usize::MAX, || ()).0
}

fn one(cluster: &Cluster, request: Value) -> Value {
    ask(cluster, &[], &[request]).remove(0)
}

fn with(mut request: Value, fields: Value) -> Value {
    for (name, value) in fields.as_object().expect("fields") {
        request[name] = value.clone();
    }
    request
}

fn push(cluster: &Cluster, store: &str, file: &Path, arguments: &[&str]) {
    let file = file.to_str().expect("UTF-8");
    cluster.must(&[&["store", "push", store, file, "-o", "json"], arguments].concat());
}

const PEOPLE: &str = r#"{"fields":[
    {"name":"title","type":"text"},
    {"name":"embed","type":"vector<f32,2>","nullable":true},
    {"name":"half","type":"vector<f16,2>"},
    {"name":"bytes","type":"vector<i8,2>"},
    {"name":"any","type":"list<f64>"}, {"name":"tags","type":"list<text>","default":[]},
    {"name":"age","type":"i32","nullable":true}]}"#;

/// Some people, and what is odd about them.
fn people(folder: &Path) -> Cluster {
    let rows = [
        json!({"id": 1, "title": "one", "embed": [1, 2], "half": [1, 2], "bytes": [1, 2], "any": [1, 2], "tags": ["a", "b"], "age": 17}),
        json!({"id": 2, "title": "two", "embed": [0, 0], "half": [0.5, 0], "bytes": [-128, 127], "any": [], "tags": ["a"], "age": 30}),
        json!({"id": 3, "title": "three", "embed": null, "half": [0, 0], "bytes": [0, 0], "any": [1, 2, 3], "age": null}),
        json!({"id": 4, "title": "four", "embed": [-3, 0.5], "half": [1, -1], "bytes": [3, 4], "any": [1e300, 0], "tags": ["c", "a"], "age": 30}),
        json!({"id": 5, "title": "five", "embed": [1, 2], "half": [1, 2], "bytes": [1, 2], "any": [3, 4], "tags": [], "age": -1}),
    ];
    let rows: String = rows.iter().map(|row| format!("{row}\n")).collect();
    fs::write(folder.join("people.jsonl"), rows).expect("written");
    fs::write(folder.join("people.json"), PEOPLE).expect("written");
    let cluster = Cluster::start(&["--nodes", "2", "--groups", "2"]);
    cluster.must(&["store", "create", "people", "--key", "id", "--value", "record", "--key-field", "id"]);
    let schema = folder.join("people.json");
    let schema = schema.to_str().expect("UTF-8");
    push(
        &cluster,
        "people",
        &folder.join("people.jsonl"),
        &["--schema", schema, "--version", "1", "--compress=3"],
    );
    cluster
}

fn results(answer: &Value) -> &Vec<Value> {
    answer["results"].as_array().unwrap_or_else(|| panic!("{answer}"))
}

/// The results of five operators for people 4, 9, 1, 2, 3 and 1.
fn five_operators() -> Value {
    let record = |title: &str, score: Value, bytes: f64, cos: Value, had: Value, n: u64| json!({"title": title, "score": score, "dot_bytes": bytes, "cos": cos, "had": had, "n": n});
    let one_record = record("one", json!(4.0), 3.0, json!(1.0), json!([2.0, -2.0]), 2);
    let found = |key: u64, record: Value| json!({"key": key, "state": "FOUND", "record": record});
    json!([
        found(4, record("four", json!(-5.5), 7.0, json!(-0.316227766016838), json!([-6.0, -0.5]), 2)),
        {"key": 9, "state": "ABSENT", "record": null},
        found(1, one_record.clone()),
        found(2, record("two", json!(0.0), -1.0, json!(0.4472135954999579), json!([0.0, -0.0]), 1)),
        found(3, record("three", Value::Null, 0.0, Value::Null, Value::Null, 0)),
        found(1, one_record),
    ])
}

/// The results are those expected; cosines to nine digits.
fn assert_computed(answer: &Value, expected: &Value, way: &str) {
    let expected = expected.as_array().expect("a list");
    assert_eq!(results(answer).len(), expected.len(), "{way}: {answer}");
    for (got, expected) in results(answer).iter().zip(expected) {
        let close = |value: &Value| value["record"]["cos"].as_f64().map(|cos| (cos * 1e9).round());
        assert_eq!(
            (&got["key"], &got["state"], close(got)),
            (&expected["key"], &expected["state"], close(expected)),
            "{way}"
        );
        for field in ["title", "score", "dot_bytes", "had", "n"] {
            assert_eq!(got["record"][field], expected["record"][field], "{way}: {got}");
        }
    }
}

/// RC-1: five operators at once over compressed values, on every way in.
#[test]
fn answers_have_the_fields_of_the_contract_on_every_way_in() {
    let folder = tempfile::tempdir().expect("a folder");
    let cluster = people(folder.path());
    let request = json!({"op": "compute", "store": "people", "keys": [4, 9, 1, 2, 3, 1], "project": ["title"],
        "dot": [{"field": "embed", "query": [2, 1], "as": "score"}, {"field": "bytes", "query": [1, 1]}],
        "cosine": [{"field": "half", "query": [1, 2], "as": "cos"}],
        "hadamard": [{"field": "embed", "query": [2, -1], "as": "had"}],
        "count": [{"field": "tags", "as": "n"}]});
    let expected = five_operators();
    let best = with(request.clone(), json!({"top_k": {"by": "score", "k": 3}}));
    let by_field =
        json!({"op": "compute", "store": "people", "keys": [1, 2, 3, 4, 5], "top_k": {"by": "age", "k": 10}});
    let mut first: Option<Vec<Value>> = None;
    for (way, at) in WAYS {
        let requests = [&request, &best, &by_field].map(|request| with(request.clone(), json!({"at": at})));
        let answers = ask(&cluster, way, &requests);
        assert_computed(&answers[0], &expected, &format!("{way:?} {at}"));
        assert_eq!(
            answers[0]["footer"],
            json!({"found": 5, "absent": 1, "error": 0, "unanswered": 0, "versions": [1]})
        );
        let keys: Vec<u64> =
            results(&answers[1]).iter().map(|result| result["key"].as_u64().expect("a key")).collect();
        assert_eq!(keys, [1, 1, 2], "best first, only 3: {way:?} {at}");
        assert_eq!(answers[1]["footer"]["found"], 5, "the footer counts all keys");
        let ages: Vec<&Value> = results(&answers[2]).iter().map(|result| &result["record"]["age"]).collect();
        assert_eq!(ages, [30, 30, 17, -1], "ties by key, nulls never");
        assert_eq!(results(&answers[2])[0]["key"], 2);
        match &first {
            None => first = Some(answers),
            Some(first) => assert_eq!(&answers, first, "{way:?} {at}"),
        }
    }
    let none = one(&cluster, with(request, json!({"keys": []})));
    assert_eq!((&none["results"], &none["footer"]["found"]), (&json!([]), &json!(0)));
}

#[test]
fn a_list_of_another_length_fails_its_key_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let cluster = people(folder.path());
    let any = json!({"op": "compute", "store": "people", "keys": [1, 2, 3, 4], "dot": [{"field": "any", "query": [1, 0.5], "as": "s"}]});
    let (answers, code) =
        cluster.run(&[any.clone(), with(any, json!({"top_k": {"by": "s", "k": 9}, "at": "client"}))], 1);
    assert_eq!(code, 3, "an answer with an error is not whole");
    let states: Vec<(&Value, &Value)> =
        results(&answers[0]).iter().map(|key| (&key["state"], &key["record"]["s"])).collect();
    let (found, error) = (json!("FOUND"), json!("ERROR"));
    assert_eq!(
        states,
        [(&found, &json!(2.0)), (&found, &Value::Null), (&error, &Value::Null), (&found, &json!(1e300))]
    );
    assert_eq!(results(&answers[0])[2]["error"]["code"], "dimension_mismatch");
    assert_eq!(
        answers[0]["footer"],
        json!({"found": 3, "absent": 0, "error": 1, "unanswered": 0, "versions": [1]})
    );
    let best: Vec<&Value> = results(&answers[1]).iter().map(|key| &key["key"]).collect();
    assert_eq!((best, &answers[1]["footer"]["error"]), (vec![&json!(4), &json!(1)], &json!(1)));
}

/// The code that a plan over one person is refused with, by routers and nodes alike, and with help.
fn refused(cluster: &Cluster, fields: Value) -> String {
    let request = with(json!({"op": "compute", "store": "people", "keys": [1]}), fields);
    let answers =
        [&[][..], &["--direct"]].map(|way| ask(cluster, way, std::slice::from_ref(&request)).remove(0));
    assert_eq!(answers[0]["error"]["code"], answers[1]["error"]["code"]);
    assert!(answers[0]["error"]["help"].as_str().is_some_and(|help| !help.is_empty()), "{}", answers[0]);
    answers[0]["error"]["code"].as_str().unwrap_or_else(|| panic!("{}", answers[0])).to_owned()
}

#[test]
fn wrong_plans_are_refused_with_their_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let cluster = people(folder.path());
    let refused = |fields: Value| refused(&cluster, fields);
    let dot = |field: &str, query: Value| json!({"dot": [{"field": field, "query": query}]});
    assert_eq!(refused(json!({"project": ["titel"]})), "unknown_field");
    assert_eq!(refused(dot("embedd", json!([1, 2]))), "unknown_field");
    assert_eq!(refused(dot("embed", json!([1, 2, 3]))), "dimension_mismatch");
    assert_eq!(refused(dot("title", json!([1, 2]))), "wrong_field_type");
    assert_eq!(refused(json!({"count": [{"field": "title"}]})), "wrong_field_type");
    assert_eq!(
        refused(with(dot("embed", json!([1, 2])), json!({"top_k": {"by": "score", "k": 1}}))),
        "unknown_field"
    );
    assert_eq!(
        refused(with(dot("embed", json!([1, 2])), json!({"top_k": {"by": "dot_embed", "k": 0}}))),
        "out_of_range"
    );
    assert_eq!(refused(json!({})), "bad_request");
    assert_eq!(refused(json!({"dot": [{"field": "embed", "query": [1e39, 0]}]})), "bad_request");
    assert_eq!(refused(json!({"dots": []})), "bad_request");
    assert_eq!(refused(json!({"store": "nobody", "project": ["title"]})), "unknown_store");
    assert_eq!(refused(json!({"keys": ["one"], "project": ["title"]})), "wrong_key_type");
    cluster.must(&["store", "create", "words", "--key", "id", "--value", "text"]);
    fs::write(folder.path().join("words.csv"), "key,value\n1,one\n").expect("written");
    push(&cluster, "words", &folder.path().join("words.csv"), &[]);
    assert_eq!(refused(json!({"store": "words", "project": ["title"]})), "not_records");
    let counted =
        json!({"op": "aggregate", "store": "words", "keys": [1], "count_by_value": {"field": "a", "top": 1}});
    assert_eq!(one(&cluster, counted)["error"]["code"], "not_records");
}

#[test]
fn a_plan_is_refused_while_every_node_is_frozen() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("rows.f32le"), [1.0f32, 2.0].map(f32::to_le_bytes).concat())
        .expect("written");
    let cluster = Cluster::start(&["--processes", "--nodes", "1", "--groups", "2"]);
    cluster.must(&["store", "create", "v", "--key", "id", "--value", "record"]);
    push(&cluster, "v", &folder.path().join("rows.f32le"), &["--format", "f32le", "--dims", "2"]);
    let right =
        json!({"op": "compute", "store": "v", "keys": [0], "dot": [{"field": "vector", "query": [3, 4]}]});
    assert_eq!(results(&one(&cluster, right))[0]["record"], json!({"dot_vector": 11.0}));
    let nodes = [cluster.node_pids(0), cluster.node_pids(1)].concat();
    nodes.iter().for_each(|pid| signal(*pid, "STOP"));
    let wrong =
        json!({"op": "compute", "store": "v", "keys": [0], "dot": [{"field": "vektor", "query": [3, 4]}]});
    let answer = one(&cluster, wrong);
    nodes.iter().for_each(|pid| signal(*pid, "CONT"));
    assert_eq!(answer["error"]["code"], "unknown_field", "{answer}");
}

#[test]
fn commands_print_what_was_worked_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let cluster = people(folder.path());
    let keys = folder.path().join("keys");
    fs::write(&keys, "4\n1\n5\n").expect("written");
    let best = "--project title --dot score=embed:[2,1] --count tags --top-k 2 --by score";
    let best: Vec<&str> = best.split(' ').collect();
    let keys = keys.to_str().expect("UTF-8");
    let best = [&["compute", "people", "-o", "json", "--keys-from", keys][..], &best].concat();
    let lines: Vec<Value> =
        cluster.must(&best).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(
        lines[0],
        json!({"key": 1, "state": "FOUND", "record": {"title": "one", "score": 4.0, "count_tags": 2}})
    );
    assert_eq!((lines.len(), &lines[1]["key"], &lines[2]["footer"]["found"]), (3, &json!(5), &json!(3)));
    let table = cluster.must(&["compute", "people", "--keys-from", keys, "--cosine", "half:[1,0]"]);
    assert!(table.contains("cosine_half") && table.contains("3 keys: 3 found"), "{table}");
    let by_age = ["--count-by-bucket", "age", "--bucket", "young={\"lt\":18}", "-o", "json"];
    let counted = cluster.must(&[&["aggregate", "people", "--keys-from", keys], &by_age[..]].concat());
    let counted: Value = serde_json::from_str(&counted).expect("JSON");
    assert_eq!(counted["counts"], json!([{"bucket": "young", "count": 2}]));
    let table =
        cluster.must(&["aggregate", "people", "--keys-from", keys, "--count-by-value", "tags", "--top", "1"]);
    let summary = "3 keys: 3 found, 0 absent, 0 failed, 0 unanswered; version 1";
    assert_eq!(table, format!("value  count\na          2\n{summary}\n"));
}
