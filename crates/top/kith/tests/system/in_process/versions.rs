//! Pushes that leave nodes out, and pushes that are requested twice.

use super::{Cluster, village};
use kith_build::{LoadOptions, load_graph};
use kith_query::{ConnectionsQuery, GraphAnswer, GraphQuery, Operation, QueryError, QueryOptions, Service};
use kith_routing::FanOutLimit;
use kith_session::{Session, SessionSettings};
use kith_types::{ErrorCode, PartitionCount, StoreVersion};
use kith_wire::{
    documents::{ComponentDocument, Document, StoreDocument},
    v1::{self, store_request::Command},
};
use std::{fs, path::PathBuf, time::Duration};

/// The interval between two checks of a condition.
const LOOK: Duration = Duration::from_millis(50);
/// The bound on every wait; far above what any of them takes.
const TIMEOUT: Duration = Duration::from_secs(90);

async fn described(cluster: &Cluster) -> StoreDocument {
    let command = Some(Command::Describe(v1::DescribeStore {}));
    let request = v1::StoreRequest { store: "village".to_owned(), who: "tests".to_owned(), command };
    let reply = cluster.router.store(request).await.expect("it is described");
    StoreDocument::decode(&reply.records[0]).expect("a record")
}

/// Builds the village's edges as a component version into the object store.
async fn built(cluster: &Cluster, version: u64) -> Vec<ComponentDocument> {
    let topology = cluster.router.topology().await.expect("the router knows its topology");
    let partitions = PartitionCount::new(topology.cluster.partitions).expect("a valid count");
    let store = PathBuf::from(&topology.cluster.object_store);
    let mut options = LoadOptions::new("village", StoreVersion(version), partitions, store);
    options.edges = vec![village("edges.csv.gz")];
    let report = tokio::task::spawn_blocking(move || load_graph(&options, &mut |_| {}));
    let report = report.await.expect("the load does not panic").expect("the load succeeds");
    report.components.iter().map(|(manifest, _)| super::component_document(manifest, 0)).collect()
}

async fn push(
    cluster: &Cluster,
    push: &str,
    components: &[ComponentDocument],
    missing_max: u32,
) -> Result<u64, QueryError> {
    let request = v1::PushRequest {
        store: "village".to_owned(),
        push: push.to_owned(),
        who: "tests".to_owned(),
        components: serde_json::to_vec(components).expect("documents are JSON").into(),
        missing_max,
        ..Default::default()
    };
    let mut progress = cluster.router.push_store(request).await?;
    loop {
        match progress.message().await {
            Ok(Some(step)) if step.committed_version != 0 => return Ok(step.committed_version),
            Ok(Some(_)) => {}
            Ok(None) => panic!("the push ended without a word"),
            Err(status) => return Err(QueryError::from_status(&status)),
        }
    }
}

/// Waits until `holds` is true for the store's record.
async fn wait_until(cluster: &Cluster, what: &str, holds: impl Fn(&StoreDocument) -> bool) {
    let looked = async {
        while !holds(&described(cluster).await) {
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::time::timeout(TIMEOUT, looked).await.unwrap_or_else(|_| panic!("waited too long until {what}"));
}

async fn assert_served(cluster: &Cluster) {
    let session = Session::connect(vec![cluster.ready().router.clone()], SessionSettings::default());
    let session = session.await.expect("the router tells its topology");
    let query = GraphQuery {
        operation: Operation::Connections(ConnectionsQuery { id: 9043 }),
        edge_type: None,
        direction: None,
        workflow: Default::default(),
    };
    for fan_out in [FanOutLimit::Min, FanOutLimit::Max, FanOutLimit::Auto] {
        for _ in 0..10 {
            let options = QueryOptions { fan_out: fan_out.into(), ..QueryOptions::default() };
            let answered = session.query("village", &query, &options).await.expect("it is answered");
            let GraphAnswer::Ids(ids) = answered.answer else { panic!("connections are ids") };
            assert_eq!(ids.len(), 666);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_a_push_left_out_is_not_asked_and_repairs_itself() {
    let cluster = super::start(2, 1).await;
    cluster.load("village", &village("edges.csv.gz"), None).await;
    let components = built(&cluster, 1_000_000).await;
    // Put a file where the second node wants to create the new version.
    let component = components.iter().find(|it| it.name == "connection").expect("edges");
    let folder = cluster.data().join("node-001/components/village/connection");
    let obstacle = folder.join(component.version.to_string());
    fs::write(&obstacle, "in the way").expect("written");

    let refused = push(&cluster, "strict", &components, 0).await.expect_err("one node cannot");
    assert_eq!(refused.code(), ErrorCode::PrepareFailed);
    assert_served(&cluster).await;
    let version = push(&cluster, "lenient", &components, 1).await.expect("the other one can");
    let current = described(&cluster).await.current().expect("a version serves").clone();
    assert_eq!((current.version, current.excluded.as_slice()), (version, &[1][..]));
    assert_served(&cluster).await;
    assert_eq!(push(&cluster, "lenient", &components, 1).await, Ok(version), "it has been done");

    fs::remove_file(&obstacle).expect("removed");
    wait_until(&cluster, "the node has repaired itself", |store| {
        store.current().is_some_and(|current| current.excluded.is_empty())
    })
    .await;
    assert_served(&cluster).await;
    let store = described(&cluster).await;
    let actions: Vec<(&str, bool)> =
        store.history.iter().map(|entry| (entry.action.as_str(), entry.failed.is_some())).collect();
    assert_eq!(actions, [("push", false), ("push", true), ("push", false), ("repair", false)]);
    assert_eq!(store.versions.iter().filter(|version| version.state == "current").count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_not_there_is_not_pushed_to() {
    let cluster = super::start(1, 1).await;
    let refused = push(&cluster, "p1", &[], 0).await.expect_err("there is no such store");
    assert_eq!(refused.code(), ErrorCode::UnknownStore);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_callers_write_into_a_record_is_bounded() {
    let cluster = super::start(1, 1).await;
    cluster.load("village", &village("edges.csv.gz"), None).await;
    let before = described(&cluster).await;
    let cancel = async |push: &str| {
        let command = Some(Command::Cancel(v1::CancelPush { push: push.to_owned() }));
        let request = v1::StoreRequest { store: "village".to_owned(), who: "tests".to_owned(), command };
        cluster.router.store(request).await
    };
    for odd in ["a\nb", "a\0b", "\u{1b}[2J", &"x".repeat(129), &"x".repeat(1_000_000)] {
        let refused = cancel(odd).await.expect_err("it is no id");
        assert_eq!(refused.code(), ErrorCode::BadRequest);
    }
    for id in 0..120 {
        cancel(&format!("made-up-{id}")).await.expect("it is remembered");
    }
    let refused = push(&cluster, "empty", &[], 0).await.expect_err("nothing is no version");
    assert_eq!(refused.code(), ErrorCode::BadRequest);
    let after = described(&cluster).await;
    assert_eq!(after.history, before.history, "nothing was pushed out");
    assert_eq!(after.version_last, before.version_last, "no number was used up");
    assert!(after.encode().len() < before.encode().len() + 2_048, "{}", after.encode().len());
    let components = built(&cluster, 1_000_000).await;
    let refused = push(&cluster, "made-up-119", &components, 0).await.expect_err("it was cancelled");
    assert_eq!(refused.code(), ErrorCode::PushCancelled);
}
