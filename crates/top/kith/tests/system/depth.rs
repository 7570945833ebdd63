//! Values that are nested too deeply are refused on every way in.

use crate::support;
use kith_wire::v1;
use serde_json::Value;
use std::{fs, path::Path};
use support::cluster::Cluster;
use tonic::transport::Channel;

const WAYS: [&[&str]; 4] =
    [&[], &["--transport", "grpc"], &["--direct"], &["--direct", "--transport", "grpc"]];

/// Commands refuse a line whose condition is nested so deeply, on every way in.
fn commands_refuse(cluster: &Cluster, folder: &Path, depth: usize) {
    let condition = format!("{}{{\"lt\":18}}{}", "{\"and\":[".repeat(depth - 1), "]}".repeat(depth - 1));
    let request = format!(
        "{{\"op\":\"aggregate\",\"store\":\"people\",\"keys\":[1],\"count_by_bucket\":{{\"field\":\"age\",\"buckets\":[{{\"name\":\"x\",\"or\":[{condition}]}}]}}}}\n"
    );
    let lines = folder.join("lines");
    fs::write(&lines, request).expect("written");
    for way in WAYS {
        let mut command = cluster.kith(&["run", "--input", lines.to_str().expect("UTF-8")]);
        let output = command.args(way).output().expect("kith runs");
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(stdout.contains("\"bad_request\""), "{depth} {way:?}: {stdout}");
    }
}

/// A plan whose condition is nested so deeply.
fn nested(depth: usize) -> v1::AggregatePlan {
    let mut predicate =
        v1::Predicate { predicate: Some(v1::predicate::Predicate::Eq(v1::Operand::default())) };
    for _ in 1..depth {
        let inner = v1::Predicates { predicates: vec![predicate] };
        predicate = v1::Predicate { predicate: Some(v1::predicate::Predicate::And(inner)) };
    }
    let bucket = v1::Bucket { name: "x".to_owned(), predicate: Some(predicate) };
    let by = v1::aggregate_plan::By::Buckets(v1::Buckets { buckets: vec![bucket] });
    v1::AggregatePlan { field: "age".to_owned(), by: Some(by), ..Default::default() }
}

/// Conditions are nested so deeply and no deeper, whatever takes them in: commands, routers and nodes, in frames and over gRPC.
#[test]
fn conditions_that_are_nested_too_deeply_are_bad_requests_on_every_way_in() {
    let folder = tempfile::tempdir().expect("a folder");
    let rows = folder.path().join("people.jsonl");
    fs::write(&rows, "{\"id\":1,\"age\":17}\n").expect("written");
    let cluster = Cluster::start(&["--nodes", "1", "--groups", "1"]);
    cluster.must(&["store", "create", "people", "--key", "id", "--value", "record", "--key-field", "id"]);
    cluster.must(&["store", "push", "people", rows.to_str().expect("UTF-8"), "--version", "1"]);
    for depth in [17, 40, 60, 120, 1_000_000] {
        commands_refuse(&cluster, folder.path(), depth);
    }
    let ready = cluster.ready();
    let addr = |value: &Value| format!("http://{}", value.as_str().expect("an address"));
    let (router, node) = (addr(&ready["router"]), addr(&ready["nodes"][0]["addr"]));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let code = |status: tonic::Status| kith_wire::detail_of(&status).code;
    for depth in [17, 40, 60, 1_000] {
        let plan = nested(depth);
        let asked = v1::AggregateRequest {
            store: "people".to_owned(),
            ids: vec![1],
            plan: Some(plan.clone()),
            ..Default::default()
        };
        let evaluate = v1::EvaluateRequest {
            name: "people".to_owned(),
            version: 1,
            keys: vec![1],
            plan: Some(v1::Operator { op: Some(v1::operator::Op::Aggregate(plan)) }),
            ..Default::default()
        };
        let (of_router, of_node) = runtime.block_on(async {
            let channel =
                |addr: &str| Channel::from_shared(addr.to_owned()).expect("an address").connect_lazy();
            let router = v1::store_client::StoreClient::new(channel(&router)).aggregate(asked).await;
            let node = v1::node_client::NodeClient::new(channel(&node)).evaluate(evaluate).await;
            (router.expect_err("too deep"), node.expect_err("too deep"))
        });
        assert_eq!((code(of_router), code(of_node)), ("bad_request".into(), "bad_request".into()), "{depth}");
    }
}
