//! Reads work without the metadata store: a node starts from its copy on disk and serves.

use super::village;
use kith_cluster::metadata::{EmbeddedMetadata, RemoteMetadata};
use kith_node::{Node, NodeOptions};
use kith_query::{ConnectionsQuery, GraphAnswer, GraphQuery, Operation, QueryOptions, Service};
use kith_session::{Session, SessionSettings};
use kith_types::ErrorCode;
use std::{net::SocketAddr, sync::Arc};
use tokio_util::sync::CancellationToken;

/// Returns an address on which no process listens.
fn nobody() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_starts_and_serves_while_the_metadata_store_is_away() {
    let cluster = super::start(1, 1).await;
    cluster.load("village", &village("edges.csv.gz"), None).await;
    let addr: SocketAddr = cluster.ready().nodes[0].addr.parse().expect("an address");
    let data = cluster.data();
    // This ends the cluster but keeps its folder.
    let folder = cluster.end().await;

    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let options = NodeOptions {
        doors: Vec::new(),
        node: 0,
        labels: Default::default(),
        listen: addr,
        http: any,
        resp: None,
        data: data.join("node-000"),
        scrub_rate: None,
        fetch_rate: None,
        fetch_p99: None,
        warm_bytes: NodeOptions::WARM_BYTES_DEFAULT,
        databases: Default::default(),
        log_retention: NodeOptions::LOG_RETENTION_DEFAULT,
        connections: Default::default(),
        security: Default::default(),
    };
    // A node with its own process keeps a copy of the metadata.
    let (metadata, stop) = (EmbeddedMetadata::open(&data.join("metadata.json")), CancellationToken::new());
    let metadata = Arc::new(metadata.expect("the cluster's metadata"));
    let node = Node::start(options.clone(), metadata, stop.clone()).await.expect("the node starts");
    stop.cancel();
    node.ended().await;
    drop(node);

    let metadata = Arc::new(RemoteMetadata::connect(&nobody()).expect("an address"));
    let stop = CancellationToken::new();
    let node = Node::start(options, metadata, stop.clone()).await.expect("the node starts from its disk");

    let session = Session::connect(vec![node.addr.to_string()], SessionSettings::default()).await;
    let session = session.expect("the node tells its topology");
    let query = GraphQuery {
        operation: Operation::Connections(ConnectionsQuery { id: 9043 }),
        edge_type: None,
        direction: None,
        workflow: Default::default(),
    };
    let answered = session.query("village", &query, &QueryOptions::default()).await.expect("it is answered");
    let GraphAnswer::Ids(ids) = answered.answer else { panic!("connections are ids") };
    assert_eq!(ids.len(), 666);
    stop.cancel();
    drop(folder);
}

#[tokio::test]
async fn a_node_that_never_saw_a_topology_says_so() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let metadata = Arc::new(RemoteMetadata::connect(&nobody()).expect("an address"));
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let options = NodeOptions {
        doors: Vec::new(),
        node: 0,
        labels: Default::default(),
        listen: any,
        http: any,
        resp: None,
        data: folder.path().join("node-000"),
        scrub_rate: None,
        fetch_rate: None,
        fetch_p99: None,
        warm_bytes: NodeOptions::WARM_BYTES_DEFAULT,
        databases: Default::default(),
        log_retention: NodeOptions::LOG_RETENTION_DEFAULT,
        connections: Default::default(),
        security: Default::default(),
    };
    let error =
        Node::start(options, metadata, CancellationToken::new()).await.expect_err("it cannot know anything");
    assert_eq!(error.code(), ErrorCode::TopologyUnknown);
}
