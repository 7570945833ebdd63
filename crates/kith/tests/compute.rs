//! Read compute against a real cluster: contract, reference answers, every way in, versions, faults of plans and records.

mod support;

use flate2::read::MultiGzDecoder;
use futures::StreamExt;
use kith_client::{BatchKeys, ComputeAt, QueryError, RouterClient};
use kith_ops::Record;
use kith_schema::{RecordView, Schema};
use kith_types::ErrorCode::BadRequest as BAD;
use kith_wire::v1;
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Read},
    path::Path,
};
use support::cluster::{Cluster, run_lines, signal};
use tonic::transport::Channel;

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
    let record = |title: &str, score: Value, bytes: f64, cos: Value, had: Value, n: u64| json!({"title": title, "score": score, "dot_bytes": bytes, "cos": cos, "had": had, "n": n});
    let one_record = record("one", json!(4.0), 3.0, json!(1.0), json!([2.0, -2.0]), 2);
    let found = |key: u64, record: Value| json!({"key": key, "state": "FOUND", "record": record});
    let expected = json!([
        found(4, record("four", json!(-5.5), 7.0, json!(-0.316227766016838), json!([-6.0, -0.5]), 2)),
        {"key": 9, "state": "ABSENT", "record": null},
        found(1, one_record.clone()),
        found(2, record("two", json!(0.0), -1.0, json!(0.4472135954999579), json!([0.0, -0.0]), 1)),
        found(3, record("three", Value::Null, 0.0, Value::Null, Value::Null, 0)),
        found(1, one_record),
    ]);
    let best = with(request.clone(), json!({"top_k": {"by": "score", "k": 3}}));
    let by_field =
        json!({"op": "compute", "store": "people", "keys": [1, 2, 3, 4, 5], "top_k": {"by": "age", "k": 10}});
    let mut first: Option<Vec<Value>> = None;
    for (way, at) in WAYS {
        let requests = [&request, &best, &by_field].map(|request| with(request.clone(), json!({"at": at})));
        let answers = ask(&cluster, way, &requests);
        let got = answers[0]["results"].clone();
        for (got, expected) in results(&answers[0]).iter().zip(expected.as_array().expect("a list")) {
            let close = |value: &Value| value["record"]["cos"].as_f64().map(|cos| (cos * 1e9).round());
            assert_eq!(
                (&got["key"], &got["state"], close(got)),
                (&expected["key"], &expected["state"], close(expected)),
                "{way:?} {at}"
            );
            for field in ["title", "score", "dot_bytes", "had", "n"] {
                assert_eq!(got["record"][field], expected["record"][field], "{way:?} {at}: {got}");
            }
        }
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
            Some(first) => assert_eq!(&answers, first, "{way:?} {at} differs from {got}"),
        }
    }
    let none = one(&cluster, with(request, json!({"keys": []})));
    assert_eq!((&none["results"], &none["footer"]["found"]), (&json!([]), &json!(0)));
}

#[test]
fn a_list_of_another_length_fails_its_key_and_wrong_plans_fail_before_any_node_is_asked() {
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

    let refused = |fields: Value| {
        let request = with(json!({"op": "compute", "store": "people", "keys": [1]}), fields);
        let answers =
            [&[][..], &["--direct"]].map(|way| ask(&cluster, way, std::slice::from_ref(&request)).remove(0));
        assert_eq!(answers[0]["error"]["code"], answers[1]["error"]["code"]);
        assert!(answers[0]["error"]["help"].as_str().is_some_and(|help| !help.is_empty()), "{}", answers[0]);
        answers[0]["error"]["code"].as_str().unwrap_or_else(|| panic!("{}", answers[0])).to_owned()
    };
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
fn counts_are_exact_on_every_way_in() {
    let folder = tempfile::tempdir().expect("a folder");
    let cluster = people(folder.path());
    let keys = json!([1, 2, 3, 4, 5, 9]);
    let request = |fields: Value| with(json!({"op": "aggregate", "store": "people", "keys": keys}), fields);
    let by_tag = request(json!({"count_by_value": {"field": "tags", "top": 2}}));
    let by_age = request(json!({"count_by_value": {"field": "age", "top": 9}}));
    let buckets = json!([{"name": "young", "lt": 18}, {"name": "named", "any_of": [17, 30]}, {"name": "none", "gt": 17, "lt": 30},
        {"name": "either", "or": [{"eq": -1}, {"and": [{"ge": 30}, {"le": 30.5}]}]}]);
    let by_bucket = request(json!({"count_by_bucket": {"field": "age", "buckets": buckets}}));
    let footer = json!({"found": 5, "absent": 1, "error": 0, "unanswered": 0, "versions": [1]});
    let value = |value: Value, count: u64| json!({"value": value, "count": count});
    let expected = [
        json!({"counts": [value(json!("a"), 3), value(json!("b"), 1)], "distinct": 3, "truncated": false, "footer": footer}),
        json!({"counts": [value(json!(30), 2), value(json!(-1), 1), value(json!(17), 1)], "distinct": 3, "truncated": false, "footer": footer}),
        json!({"counts": [{"bucket": "young", "count": 2}, {"bucket": "named", "count": 3}, {"bucket": "none", "count": 0},
            {"bucket": "either", "count": 3}], "truncated": false, "footer": footer}),
    ];
    for (way, at) in WAYS {
        let requests = [&by_tag, &by_age, &by_bucket].map(|request| with(request.clone(), json!({"at": at})));
        assert_eq!(ask(&cluster, way, &requests), expected, "{way:?} {at}");
    }
    let code = |fields: Value| one(&cluster, request(fields))["error"]["code"].clone();
    assert_eq!(code(json!({"count_by_value": {"field": "embed", "top": 2}})), "wrong_field_type");
    assert_eq!(code(json!({"count_by_value": {"field": "agee", "top": 2}})), "unknown_field");
    assert_eq!(
        code(json!({"count_by_bucket": {"field": "age", "buckets": [{"name": "x", "eq": "old"}]}})),
        "wrong_field_type"
    );
    assert_eq!(code(json!({})), "bad_request");
}

#[test]
fn commands_print_what_was_worked_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let cluster = people(folder.path());
    let keys = folder.path().join("keys");
    fs::write(&keys, "4\n1\n5\n").expect("written");
    let best = [
        "--project",
        "title",
        "--dot",
        "score=embed:[2,1]",
        "--count",
        "tags",
        "--top-k",
        "2",
        "--by",
        "score",
    ];
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
    let counted = cluster.must(&[
        "aggregate",
        "people",
        "--keys-from",
        keys,
        "--count-by-bucket",
        "age",
        "--bucket",
        "young={\"lt\":18}",
        "-o",
        "json",
    ]);
    let counted: Value = serde_json::from_str(&counted).expect("JSON");
    assert_eq!(counted["counts"], json!([{"bucket": "young", "count": 2}]));
    let table =
        cluster.must(&["aggregate", "people", "--keys-from", keys, "--count-by-value", "tags", "--top", "1"]);
    let summary = "3 keys: 3 found, 0 absent, 0 failed, 0 unanswered; version 1";
    assert_eq!(table, format!("value  count\na          2\n{summary}\n"));
}

/// Lines of `kith compute`: in the order of their keys, and the footer.
fn computed(cluster: &Cluster, arguments: &[&str], keys: &Path) -> (Vec<Value>, Value, Option<i32>) {
    let mut command = cluster.kith(&["compute", "people", "-o", "json"]);
    let output = command.arg("--keys-from").arg(keys).args(arguments).output().expect("kith runs");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let last = lines.pop().unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    lines.sort_by_key(|line| line["key"].as_u64());
    (lines, last, output.status.code())
}

#[test]
fn a_stream_of_results_tells_what_the_whole_answer_tells_on_every_way_in() {
    let folder = tempfile::tempdir().expect("a folder");
    let cluster = people(folder.path());
    let keys = folder.path().join("keys");
    // One that is absent, one that is asked for twice.
    fs::write(&keys, "4\n9\n1\n2\n3\n5\n1\n").expect("written");
    let plan =
        ["--project", "title", "--dot", "s=embed:[2,1]", "--hadamard", "half:[2,1]", "--count", "tags"];
    for (way, at) in WAYS {
        let arguments = [way, &["--at", at], &plan].concat();
        let (whole, footer, code) = computed(&cluster, &arguments, &keys);
        let (streamed, last, streamed_code) =
            computed(&cluster, &[&arguments[..], &["--stream"]].concat(), &keys);
        assert_eq!((streamed, streamed_code), (whole, code), "{way:?} {at}");
        assert_eq!((&last["footer"]["status"], code), (&json!("OK"), Some(0)), "{way:?} {at}");
        for count in ["found", "absent", "error", "unanswered", "versions"] {
            assert_eq!(last["footer"][count], footer["footer"][count], "{way:?} {at}");
        }
        // A list of another length fails its key alone: the exit code tells.
        let odd = [way, &["--at", at, "--dot", "any:[1,2]"]].concat();
        let (whole, _, code) = computed(&cluster, &odd, &keys);
        let (streamed, last, streamed_code) = computed(&cluster, &[&odd[..], &["--stream"]].concat(), &keys);
        assert_eq!((&streamed, streamed_code, code), (&whole, Some(3), Some(3)), "{way:?} {at}");
        assert_eq!((&last["footer"]["error"], &last["footer"]["status"]), (&json!(1), &json!("PARTIAL")));
        // What makes no sense is told in place of all.
        let refused = |plan: &[&str]| {
            let arguments = [way, &["--at", at, "--stream"], plan].concat();
            let (lines, error, code) = computed(&cluster, &arguments, &keys);
            assert_eq!((lines.len(), code), (0, Some(1)), "{error}");
            error["error"]["code"].as_str().unwrap_or_default().to_owned()
        };
        assert_eq!(refused(&["--project", "nothing"]), "unknown_field", "{way:?} {at}");
        // Of no keys too.
        let none = folder.path().join("none");
        fs::write(&none, "").expect("written");
        let (_, error, code) =
            computed(&cluster, &[way, &["--at", at, "--stream", "--project", "nothing"]].concat(), &none);
        assert_eq!((error["error"]["code"].as_str(), code), (Some("unknown_field"), Some(1)), "{way:?} {at}");
        assert_eq!(refused(&["--dot", "embed:[1]"]), "dimension_mismatch", "{way:?} {at}");
    }
    for arguments in [&["--stream", "--top-k", "1", "--by", "age"][..], &["--stream", "-o", "table"]] {
        let refused =
            cluster.kith(&[&["compute", "people", "--keys-from", "-"], arguments].concat()).output();
        assert_eq!(refused.expect("kith runs").status.code(), Some(2), "{arguments:?}");
    }
}

/// A plan may bring a schema of its own: one that the records cannot be read by is refused before any node is asked.
#[test]
fn a_schema_of_the_plan_that_does_not_fit_is_refused_on_every_way_in() {
    let folder = tempfile::tempdir().expect("a folder");
    let cluster = people(folder.path());
    let addr = cluster.ready()["router"].as_str().expect("an address").to_owned();
    let reader: Schema = r#"{"fields":[{"name":"title","type":"i64"}]}"#.parse().expect("a schema");
    tokio::runtime::Runtime::new().expect("a runtime").block_on(async {
        let router = RouterClient::connect(&[addr]).await.expect("it answers");
        for at in [ComputeAt::Nodes, ComputeAt::Client] {
            for ids in [vec![], vec![1, 2]] {
                let plan = || router.compute("people").project("title").with_schema(reader.clone()).at(at);
                let told = plan().execute(ids.clone()).await.expect_err("it does not fit");
                assert!(told.code() == BAD && told.to_string().contains("does not fit"), "{told}");
                assert!(!told.to_string().contains("node"), "{told}");
                let (plan, keys) = (plan(), BatchKeys::Ids(ids));
                let items: Vec<_> = plan.stream(&keys).collect().await;
                assert!(matches!(&items[..], [Err(error)] if error.code() == BAD), "{items:?}");
            }
        }
    });
}

#[test]
fn the_best_have_no_stream() {
    let folder = tempfile::tempdir().expect("a folder");
    let cluster = people(folder.path());
    let addr = cluster.ready()["router"].as_str().expect("an address").to_owned();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let router = RouterClient::connect(&[addr]).await.expect("it answers");
        let best = router.compute("people").top_k("age", 2);
        let keys = BatchKeys::Ids(vec![1, 2]);
        let items: Vec<_> = best.stream(&keys).collect().await;
        assert!(matches!(&items[..], [Err(QueryError::BadRequest { .. })]), "{items:?}");
        // Nor does a router believe that its clients look.
        let request = v1::ComputeRequest {
            store: "people".to_owned(),
            ids: vec![1],
            plan: Some(v1::ComputePlan {
                top_k: Some(v1::TopK { by: "age".to_owned(), k: 1 }),
                ..Default::default()
            }),
            ..Default::default()
        };
        let channel = Channel::from_shared(format!("http://{}", router.addr())).expect("an address");
        let mut client = v1::store_client::StoreClient::new(channel.connect_lazy());
        let refused = client.compute_stream(request).await.expect_err("it has no stream");
        assert_eq!(kith_wire::detail_of(&refused).code, "bad_request");
    });
}

/// RC-1: missing fields, another order of fields, widened and nullable ones, several schemas of one store.
#[test]
fn versions_of_other_schemas_answer_by_the_readers() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, content: &str| {
        let path = folder.path().join(name);
        fs::write(&path, content).expect("written");
        path
    };
    let cluster = Cluster::start(&["--nodes", "2", "--groups", "2"]);
    cluster.must(&["store", "create", "s", "--key", "id", "--value", "record", "--key-field", "id"]);
    let schema = |name: &str, text: &str| file(name, text).to_str().expect("UTF-8").to_owned();
    let old = schema("old.json", r#"{"fields":[{"name":"n","type":"i32"},{"name":"t","type":"text"}]}"#);
    let new_text = r#"{"fields":[{"name":"t","type":"text"},{"name":"n","type":"i64"},{"name":"v","type":"vector<f32,2>","default":[1,1]},
        {"name":"w","type":"list<f32>","nullable":true}]}"#;
    let new = schema("new.json", new_text);
    push(
        &cluster,
        "s",
        &file("old.jsonl", "{\"id\":1,\"n\":7,\"t\":\"a\"}\n"),
        &["--schema", &old, "--version", "1"],
    );
    push(
        &cluster,
        "s",
        &file("new.jsonl", "{\"id\":1,\"n\":8,\"t\":\"b\",\"v\":[2,3],\"w\":[1]}\n"),
        &["--schema", &new, "--version", "2"],
    );
    let request = json!({"op": "compute", "store": "s", "keys": [1], "project": ["n"], "dot": [{"field": "v", "query": [1, 10], "as": "d"}]});
    assert_eq!(results(&one(&cluster, request.clone()))[0]["record"], json!({"n": 8, "d": 32.0}));
    cluster.must(&["store", "rollback", "s"]);
    assert_eq!(
        one(&cluster, request)["error"]["code"],
        "unknown_field",
        "the version that serves has no such field"
    );

    let reader: Schema = new_text.parse().expect("a schema");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let addr = cluster.ready()["router"].as_str().expect("an address").to_owned();
        let client = RouterClient::connect(&[addr]).await.expect("the router answers");
        for at in [ComputeAt::Nodes, ComputeAt::Client] {
            let asked = client
                .compute("s")
                .project("n")
                .dot("v", [1.0, 10.0])
                .named("d")
                .cosine("w", [1.0])
                .count("w");
            let answer = asked.with_schema(reader.clone()).at(at).execute(vec![1]).await.expect("an answer");
            let Some(Record::Found(bytes)) = answer.answer.records.get(0) else { panic!("{answer:?}") };
            let json = RecordView::new(&answer.result, bytes).expect("a record").to_json().expect("whole");
            assert_eq!(json, r#"{"n":7,"d":11.0,"cosine_w":null,"count_w":0}"#, "{at:?}");
            assert_eq!(answer.answer.served, [("s".to_owned(), 1)]);
        }
    });
}

/// One line of the reference answers.
struct Question {
    query: Vec<f32>,
    answer: Value,
}

fn norm(vector: &[f32]) -> f64 {
    vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>().sqrt()
}

fn questions(answers: &Path, vectors: &[Vec<f32>]) -> Vec<Question> {
    let file = BufReader::new(MultiGzDecoder::new(File::open(answers).expect("the answers are there")));
    let lines = file.lines().map(|line| serde_json::from_str::<Value>(&line.expect("text")).expect("JSON"));
    lines
        .map(|answer| {
            let query = match answer["q"].as_u64() {
                Some(row) => vectors[row as usize].clone(),
                None => {
                    let numbers = answer["qv"].as_array().expect("a vector").iter();
                    numbers.map(|number| number.as_f64().expect("a number") as f32).collect()
                }
            };
            Question { query, answer }
        })
        .collect()
}

/// The best are the reference's, where they are farther apart than the tolerance.
fn assert_best(answer: &Value, expected: &Value, tolerance: impl Fn(u64) -> f64) {
    let scores: Vec<(u64, f64)> = expected.as_array().expect("a list").iter().map(pair).collect();
    let got = results(answer);
    assert_eq!(got.len(), 20);
    for (place, result) in got.iter().enumerate() {
        let (id, score) =
            (result["key"].as_u64().expect("an id"), result["record"]["s"].as_f64().expect("a score"));
        let given = scores.iter().find(|(other, _)| *other == id);
        let (_, exact) = given.unwrap_or_else(|| panic!("{id} is not among the best: {expected}"));
        assert!((score - exact).abs() <= tolerance(id), "{id}: {score}, not {exact}");
        assert!((score - scores[place].1).abs() <= 2.0 * tolerance(id), "place {place}: {score}");
    }
}

fn pair(entry: &Value) -> (u64, f64) {
    (entry[0].as_u64().expect("an id"), entry[1].as_f64().expect("a score"))
}

#[test]
fn scores_of_pages_are_those_of_the_reference_on_every_way_in() {
    let Some(data) = support::data() else { return };
    let rows = data.join("facebook-pages/embeddings-64.f32le.gz");
    let mut bytes = Vec::new();
    MultiGzDecoder::new(File::open(&rows).expect("the rows are there"))
        .read_to_end(&mut bytes)
        .expect("read");
    let numbers: Vec<f32> = bytes.as_chunks::<4>().0.iter().map(|four| f32::from_le_bytes(*four)).collect();
    let vectors: Vec<Vec<f32>> = numbers.chunks_exact(64).map(<[f32]>::to_vec).collect();
    let cluster = Cluster::start(&["--nodes", "3", "--groups", "2"]);
    // Two replicas are asked for each key, and a difference of one bit would be an error.
    for (store, reads) in [("pages", "1"), ("agreeing", "2")] {
        cluster.must(&[
            "store",
            "create",
            store,
            "--key",
            "id",
            "--value",
            "record",
            "--required-reads",
            reads,
        ]);
        push(&cluster, store, &rows, &["--format", "f32le", "--dims", "64", "--version", "1"]);
    }
    let all: Vec<u64> = (0..vectors.len() as u64).collect();
    let questions = questions(&data.join("answers/facebook-pages.embed.jsonl.gz"), &vectors);
    assert_eq!((vectors.len(), questions.len()), (22_470, 100));
    let count = if support::is_full() { questions.len() } else { 12 };
    for (index, question) in questions.iter().take(count).enumerate() {
        let requests = requests_of(question, &all);
        let answers = ask(&cluster, &[], &requests);
        assert_near(question, &answers, &vectors);
        // All ways with all questions would take minutes; the bits do not depend on the question.
        if index < 3 {
            assert_equal_on_every_way(&cluster, &requests, &answers);
        }
    }
    assert_traffic(&cluster, &questions[0].query);
}

/// The best twenty by either score, the scores of the entries that the reference gives, and one product.
fn requests_of(Question { query, answer }: &Question, all: &[u64]) -> [Value; 4] {
    let compute = |function: &str, fields: Value| {
        let mut request = json!({"op": "compute", "store": "pages", "keys": all});
        request[function] = json!([{"field": "vector", "query": query, "as": "s"}]);
        with(request, fields)
    };
    let best = json!({"top_k": {"by": "s", "k": 20}});
    let vals = answer["vals"].as_array().expect("a list");
    let ids: Vec<u64> = vals.iter().map(|val| val[0].as_u64().expect("an id")).collect();
    let cosines = json!({"cosine": [{"field": "vector", "query": query, "as": "c"}]});
    let scores = with(compute("dot", json!({"keys": ids})), cosines);
    let hadamard = compute("hadamard", json!({"keys": [answer["hadamard"][0]]}));
    [compute("dot", best.clone()), compute("cosine", best), scores, hadamard]
}

/// Within the tolerance that the reference states.
fn assert_near(Question { query, answer }: &Question, answers: &[Value], vectors: &[Vec<f32>]) {
    let bound = |id: u64| 1e-5 * f64::max(1.0, norm(query) * norm(&vectors[id as usize]));
    assert_best(&answers[0], &answer["top_dot"], bound);
    assert_best(&answers[1], &answer["top_cos"], |_| 1e-5);
    let vals = answer["vals"].as_array().expect("a list");
    let scored = results(&answers[2]);
    assert_eq!(scored.len(), vals.len());
    for (result, val) in scored.iter().zip(vals) {
        let id = val[0].as_u64().expect("an id");
        let near = |field: &str, place: usize, bound: f64| {
            let (got, exact) = (&result["record"][field], val[place].as_f64().expect("a score"));
            let difference = (got.as_f64().expect("a number") - exact).abs();
            assert!(difference <= bound, "{id} {field}: {got}, not {exact}");
        };
        near("s", 1, bound(id));
        near("c", 2, 1e-5);
    }
    let got = results(&answers[3])[0]["record"]["s"].as_array().expect("products");
    let exact = answer["hadamard"][1].as_array().expect("products");
    assert_eq!((got.len(), exact.len()), (64, 64));
    for (got, exact) in got.iter().zip(exact) {
        assert!((got.as_f64().expect("a number") - exact.as_f64().expect("a number")).abs() <= 1e-5);
    }
}

/// To the bit, and over replicas that must agree.
fn assert_equal_on_every_way(cluster: &Cluster, requests: &[Value; 4], answers: &[Value]) {
    for (way, at) in WAYS {
        for fan_out in ["min", "max"] {
            let again = requests.clone().map(|request| with(request, json!({"at": at, "fan_out": fan_out})));
            assert_eq!(ask(cluster, way, &again), answers, "{way:?} {at} {fan_out}");
        }
    }
    let agreeing = requests.clone().map(|request| with(request, json!({"store": "agreeing"})));
    assert_eq!(ask(cluster, &[], &agreeing), answers, "replicas agree to the bit");
}

/// What travels: profiles tell the bytes of every reply.
fn assert_traffic(cluster: &Cluster, query: &[f32]) {
    let bytes = |request: Value| {
        let answer =
            one(cluster, with(request, json!({"keys": (0..5_000).collect::<Vec<u64>>(), "profile": true})));
        let rounds =
            answer["profile"]["rounds"].as_array().unwrap_or_else(|| panic!("{answer:.200}")).clone();
        let requests =
            rounds.iter().flat_map(|round| round["requests"].as_array().expect("requests").clone());
        requests.map(|request| request["reply_bytes"].as_u64().expect("bytes")).sum::<u64>()
    };
    let dot =
        json!({"op": "compute", "store": "pages", "dot": [{"field": "vector", "query": query, "as": "s"}]});
    let whole = bytes(json!({"op": "mget", "store": "pages"}));
    let scores = bytes(dot.clone());
    let best = bytes(with(dot, json!({"top_k": {"by": "s", "k": 20}})));
    assert!(scores * 20 <= whole && best * 100 <= whole, "{best} and {scores} of {whole} bytes");
}
