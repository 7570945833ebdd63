//! Results as they arrive.

use super::{WAYS, people};
use crate::support::cluster::Cluster;
use futures::StreamExt;
use kith_client::{BatchKeys, ComputeBuilder, QueryError, RouterClient};
use kith_wire::v1;
use serde_json::{Value, json};
use std::{fs, path::Path};
use tonic::transport::Channel;

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

/// A stream has the results of the whole answer and accounts for all keys; errors of keys are among them.
fn assert_stream_tells(cluster: &Cluster, way: &[&str], at: &str, plan: &[&str], keys: &Path) {
    let arguments = [way, &["--at", at], plan].concat();
    let (whole, footer, code) = computed(cluster, &arguments, keys);
    let (streamed, last, streamed_code) = computed(cluster, &[&arguments[..], &["--stream"]].concat(), keys);
    assert_eq!((streamed, streamed_code), (whole, code), "{way:?} {at}");
    assert_eq!((&last["footer"]["status"], code), (&json!("OK"), Some(0)), "{way:?} {at}");
    for count in ["found", "absent", "error", "unanswered", "versions"] {
        assert_eq!(last["footer"][count], footer["footer"][count], "{way:?} {at}");
    }
    // A list of another length fails its key alone: the exit code tells.
    let odd = [way, &["--at", at, "--dot", "any:[1,2]"]].concat();
    let (whole, _, code) = computed(cluster, &odd, keys);
    let (streamed, last, streamed_code) = computed(cluster, &[&odd[..], &["--stream"]].concat(), keys);
    assert_eq!((&streamed, streamed_code, code), (&whole, Some(3), Some(3)), "{way:?} {at}");
    assert_eq!((&last["footer"]["error"], &last["footer"]["status"]), (&json!(1), &json!("PARTIAL")));
}

/// A plan that makes no sense is refused with an error in place of all results, also if there are no keys.
fn assert_wrong_plans_are_reported(cluster: &Cluster, way: &[&str], at: &str, keys: &Path) {
    let refused = |plan: &[&str], keys: &Path| {
        let arguments = [way, &["--at", at, "--stream"], plan].concat();
        let (lines, error, code) = computed(cluster, &arguments, keys);
        assert_eq!((lines.len(), code), (0, Some(1)), "{error}");
        error["error"]["code"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(refused(&["--project", "nothing"], keys), "unknown_field", "{way:?} {at}");
    assert_eq!(refused(&["--dot", "embed:[1]"], keys), "dimension_mismatch", "{way:?} {at}");
    let none = keys.with_extension("none");
    fs::write(&none, "").expect("written");
    assert_eq!(refused(&["--project", "nothing"], &none), "unknown_field", "{way:?} {at}");
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
        assert_stream_tells(&cluster, way, at, &plan, &keys);
        assert_wrong_plans_are_reported(&cluster, way, at, &keys);
    }
    for arguments in [&["--stream", "--top-k", "1", "--by", "age"][..], &["--stream", "-o", "table"]] {
        let refused =
            cluster.kith(&[&["compute", "people", "--keys-from", "-"], arguments].concat()).output();
        assert_eq!(refused.expect("kith runs").status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn the_best_have_no_stream() {
    let folder = tempfile::tempdir().expect("a folder");
    let cluster = people(folder.path());
    let addr = cluster.ready()["router"].as_str().expect("an address").to_owned();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let router = RouterClient::connect(&[addr]).await.expect("it answers");
        let best = ComputeBuilder::new(&router, "people").top_k("age", 2);
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
