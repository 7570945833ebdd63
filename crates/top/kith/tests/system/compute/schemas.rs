//! Plans over versions of other schemas, and plans that bring the schema of their reader.

use super::{BAD, one, people, push, results};
use crate::support::cluster::Cluster;
use futures::StreamExt;
use kith_client::{BatchKeys, ComputeAt, ComputeBuilder, RouterClient};
use kith_operators::Record;
use kith_schema::{RecordView, Schema};
use serde_json::json;
use std::{fs, path::Path};

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
                let plan = || {
                    ComputeBuilder::new(&router, "people").project("title").with_schema(reader.clone()).at(at)
                };
                let message = plan().execute(ids.clone()).await.expect_err("it does not fit");
                assert!(message.code() == BAD && message.to_string().contains("does not fit"), "{message}");
                assert!(!message.to_string().contains("node"), "{message}");
                let (plan, keys) = (plan(), BatchKeys::Ids(ids));
                let items: Vec<_> = plan.stream(&keys).collect().await;
                assert!(matches!(&items[..], [Err(error)] if error.code() == BAD), "{items:?}");
            }
        }
    });
}

const OLD: &str = r#"{"fields":[{"name":"n","type":"i32"},{"name":"t","type":"text"}]}"#;
const NEW: &str = r#"{"fields":[{"name":"t","type":"text"},{"name":"n","type":"i64"},{"name":"v","type":"vector<f32,2>","default":[1,1]},
    {"name":"w","type":"list<f32>","nullable":true}]}"#;

/// Pushes a version of one row with a schema to the store `s`.
fn push_version(cluster: &Cluster, folder: &Path, version: &str, schema: &str, row: &str) {
    let file = |end: &str, content: &str| {
        let path = folder.join(format!("{version}.{end}"));
        fs::write(&path, content).expect("written");
        path
    };
    let schema = file("json", schema);
    let arguments = ["--schema", schema.to_str().expect("UTF-8"), "--version", version];
    push(cluster, "s", &file("jsonl", &format!("{row}\n")), &arguments);
}

/// RC-1: missing fields, another order of fields, widened and nullable ones, several schemas of one store.
#[test]
fn versions_of_other_schemas_answer_by_the_readers() {
    let folder = tempfile::tempdir().expect("a folder");
    let cluster = Cluster::start(&["--nodes", "2", "--groups", "2"]);
    cluster.must(&["store", "create", "s", "--key", "id", "--value", "record", "--key-field", "id"]);
    push_version(&cluster, folder.path(), "1", OLD, r#"{"id":1,"n":7,"t":"a"}"#);
    push_version(&cluster, folder.path(), "2", NEW, r#"{"id":1,"n":8,"t":"b","v":[2,3],"w":[1]}"#);
    let request = json!({"op": "compute", "store": "s", "keys": [1], "project": ["n"], "dot": [{"field": "v", "query": [1, 10], "as": "d"}]});
    assert_eq!(results(&one(&cluster, request.clone()))[0]["record"], json!({"n": 8, "d": 32.0}));
    cluster.must(&["store", "rollback", "s"]);
    let reply = one(&cluster, request);
    assert_eq!(reply["error"]["code"], "unknown_field", "the version that serves has no such field");

    let reader: Schema = NEW.parse().expect("a schema");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let addr = cluster.ready()["router"].as_str().expect("an address").to_owned();
        let client = RouterClient::connect(&[addr]).await.expect("the router answers");
        for at in [ComputeAt::Nodes, ComputeAt::Client] {
            let asked = ComputeBuilder::new(&client, "s")
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
