//! Streams that nobody reads: what they cost, and whom they stop.

use super::{MANY, TIMEOUT, patient, runtime, started_with};
use crate::support::{
    cluster::Cluster,
    streams::{TYPES, begun, connect, keys, read},
    values::{create, push},
};
use futures::{StreamExt, future::join_all};
use kith_client::{QueryOptions, Service, StreamFooter, StreamItem, StreamStatus, TransportKind};
use kith_operators::RecordCounts;
use kith_session::{Session, SessionSettings};
use kith_types::ErrorCode;
use serde_json::{Value, json};
use std::{fs, time::Duration};

/// Bytes of a process that are in memory.
fn resident(pid: u32) -> u64 {
    let statm = fs::read_to_string(format!("/proc/{pid}/statm")).expect("a process of this test");
    let pages: u64 = statm.split(' ').nth(1).expect("a number").parse().expect("a number");
    pages * 4_096
}

#[test]
fn readers_that_stop_cost_their_router_little_and_others_nothing() {
    const STREAMS: usize = 32;
    let mut cluster = started_with(&["--processes", "--nodes", "2", "--groups", "2"], MANY);
    let pid = cluster.ready()["routers"][0]["pid"].as_u64().expect("a pid") as u32;
    let runtime = runtime();
    let options = QueryOptions { deadline: Some(Duration::from_secs(15)), ..QueryOptions::default() };
    // A client of its own for each, half of them over gRPC.
    let kinds = (0..STREAMS).map(|at| [TransportKind::Framed, TransportKind::Grpc][at % 2]);
    let clients = kinds.map(|kind| {
        let router = connect(&cluster);
        async move { router.await.with_transport(kind) }
    });
    let clients = runtime.block_on(join_all(clients));
    let before = resident(pid);
    let streams = runtime.block_on(async {
        let mut streams = Vec::new();
        for client in &clients {
            streams.push(begun(client, "people", MANY, MANY, &options).await.0);
        }
        streams
    });
    // All of them stand still; nobody else does.
    let requests: Vec<Value> = (0..100)
        .map(|at| json!({"op": "mget", "store": "people", "keys": (at..at + 500).collect::<Vec<u64>>(), "deadline_ms": 50_000}))
        .collect();
    let (answers, exit) = cluster.run(&requests, 4);
    assert_eq!(exit, 0);
    assert!(answers.iter().all(|answer| answer["footer"]["found"] == 500));
    runtime.block_on(async {
        let other = connect(&cluster).await;
        read(&other, "people", MANY, MANY, &patient()).await.assert_accounted();
    });
    // Their answers are 640 MB together.
    let grown = resident(pid).saturating_sub(before);
    assert!(grown < 256 << 20, "the router has grown by {} MiB", grown >> 20);
    // And none of them stays for ever.
    cluster.wait_until("no stream is left", |cluster| cluster.metric("kith_router_streams") == Some(0.0));
    assert!(cluster.metric("kith_router_streams_cut_total").is_some_and(|cut| 0.0 < cut));
    drop(streams);
    let (_, exit) = cluster.run(&requests, 4);
    assert_eq!(exit, 0);
}

/// Reads the first record of `large`, stops until the deadline has passed, and reads the rest; what came, and the footer.
async fn stop_at_first(service: &dyn Service, records: u64) -> (RecordCounts, Box<StreamFooter>) {
    let deadline = Duration::from_secs(8);
    let options = QueryOptions { deadline: Some(deadline), partial: true, ..QueryOptions::default() };
    let mut stream = service.multi_get_stream("large", &keys(records), &options);
    let mut counts = RecordCounts::default();
    while let Some(item) = stream.next().await {
        match item.expect("records came before the deadline") {
            StreamItem::Piece(piece) if piece.records.counts().unanswered == 0 => {
                assert_eq!(piece.records.len(), 1, "a piece is as large as one record");
                if counts.found == 0 {
                    // Longer than the deadline and what is granted beyond it.
                    tokio::time::sleep(deadline + Duration::from_secs(1)).await;
                }
                counts.found += 1;
            }
            StreamItem::Piece(piece) => counts.unanswered += piece.records.counts().unanswered,
            StreamItem::Footer(footer) => return (counts, footer),
        }
    }
    panic!("no footer");
}

/// Far more than may lie between nodes and a reader: 60 MB in all, as much as an answer may have.
#[test]
fn large_records_that_nobody_reads_stay_where_they_are() {
    const RECORDS: u64 = 30;
    const RECORD_BYTES: usize = 2 << 20;
    let cluster = Cluster::start(&["--processes", "--nodes", "2", "--groups", "1"]);
    create(&cluster, "large", TYPES.0, TYPES.1);
    let rows = (0..RECORDS).map(|key| (key.to_le_bytes().to_vec(), vec![key as u8; RECORD_BYTES]));
    push(&cluster, "large", TYPES, 1, rows);
    runtime().block_on(async {
        let mut services: Vec<Box<dyn Service>> = Vec::new();
        for kind in [TransportKind::Framed, TransportKind::Grpc] {
            let router = connect(&cluster).await.with_transport(kind);
            let addrs = vec![router.addr().to_owned()];
            let settings = SessionSettings { transport: kind, ..SessionSettings::default() };
            services.push(Box::new(Session::connect(addrs, settings).await.expect("the cluster is up")));
            services.push(Box::new(router));
        }
        let stopping = services.iter().map(|service| stop_at_first(service.as_ref(), RECORDS));
        for (index, (counts, footer)) in join_all(stopping).await.into_iter().enumerate() {
            assert_eq!((footer.counts, footer.status), (counts, StreamStatus::Partial), "{index}");
            assert_eq!(counts.found + counts.unanswered, RECORDS, "{index}");
            assert!(
                footer.failures.iter().all(|failure| failure.code == ErrorCode::DeadlineExceeded),
                "{footer:?}"
            );
            let lost: u64 = footer.failures.iter().map(|failure| failure.keys).sum();
            assert_eq!(lost, counts.unanswered, "{index}");
        }
        // Whoever reads has them all, whatever they weigh.
        for service in &services {
            let items: Vec<_> = service.multi_get_stream("large", &keys(RECORDS), &patient()).collect().await;
            let Some(Ok(StreamItem::Footer(footer))) = items.last() else { panic!("no footer") };
            assert_eq!((footer.status, footer.counts.found), (StreamStatus::Ok, RECORDS));
        }
    });
}

/// HTTP/2 has a window for all that comes over a connection: streams that nobody reads must not fill it.
#[test]
fn streams_over_grpc_that_nobody_reads_stop_nobody() {
    const STREAMS: usize = 12;
    let folder = tempfile::tempdir().expect("a folder");
    let settings = folder.path().join("router.toml");
    fs::write(&settings, "[session]\ntransport = \"grpc\"\n").expect("written");
    let settings = settings.to_str().expect("UTF-8");
    let cluster = started_with(&["--processes", "--nodes", "1", "--groups", "1", "--config", settings], MANY);
    runtime().block_on(async {
        let router = connect(&cluster).await;
        let grpc = SessionSettings { transport: TransportKind::Grpc, ..SessionSettings::default() };
        let session =
            Session::connect(vec![router.addr().to_owned()], grpc).await.expect("the cluster is up");
        let over_grpc = connect(&cluster).await.with_transport(TransportKind::Grpc);
        // The router asks its node over gRPC too, over one connection for all of them.
        let services: [&dyn Service; 3] = [&router, &over_grpc, &session];
        let (one, options) = (keys(1), patient());
        for service in services {
            let mut streams = Vec::new();
            for _ in 0..STREAMS {
                streams.push(begun(service, "people", MANY, MANY, &options).await.0);
            }
            // As much as may come, has come.
            tokio::time::sleep(Duration::from_secs(1)).await;
            let soon = QueryOptions { deadline: Some(TIMEOUT / 5), ..QueryOptions::default() };
            let answer = service.multi_get("people", &one, &soon).await.expect("nobody waits for readers");
            assert_eq!(answer.counts().found, 1);
        }
    });
}
