//! Values that are changed on their way, or on a node's disk: no answer has them, another replica is asked, and the node repairs
//! what it has.

use crate::support;
use kith_client::{BatchKeys, QueryOptions, RouterClient, Service, TransportKind};
use kith_operators::{Record, Records};
use kith_session::{Session, SessionSettings};
use kith_topology::Topology;
use kith_types::ErrorCode;
use serde_json::Value;
use std::{
    fs,
    os::unix::fs::FileExt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use support::{
    cluster::Cluster,
    streams::connect,
    values::create,
    words::{WORDS, push_version, value},
};
use tokio::{
    io::{self, AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    runtime::Runtime,
    sync::watch,
    task::{AbortHandle, JoinSet},
};

const PEOPLE: u64 = 500;
/// The end of every value (`support::words::value`): where it comes from a server, values are.
const WITHIN_VALUES: &[u8] = b"xxxxxxxx";
/// Flips every byte that it can.
const ALL: u64 = u64::MAX;

fn started() -> Cluster {
    let cluster =
        Cluster::start(&["--nodes", "1", "--groups", "2", "--partitions", "8", "--scrub-rate", "off"]);
    create(&cluster, "people", WORDS.0, WORDS.1);
    push_version(&cluster, "people", PEOPLE, 1);
    cluster
}

/// Stands in front of a process, and flips a bit in the values that it sends.
struct Flipper {
    addr: String,
    /// How many are to be flipped yet.
    left: Arc<AtomicU64>,
    flipped: Arc<AtomicU64>,
    accepting: AbortHandle,
}

impl Flipper {
    async fn before(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let addr = listener.local_addr().expect("an address").to_string();
        let (left, flipped) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
        let counts = (Arc::clone(&left), Arc::clone(&flipped));
        let accepting = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let (left, flipped) = counts.clone();
                connections.spawn(relay(client, server.clone(), left, flipped));
            }
        });
        Self { addr, left, flipped, accepting: accepting.abort_handle() }
    }

    /// Flips as many bits from now on; how many it has flipped before.
    fn flip(&self, count: u64) -> u64 {
        self.left.store(count, Ordering::SeqCst);
        self.flipped.swap(0, Ordering::SeqCst)
    }
}

impl Drop for Flipper {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn relay(
    client: TcpStream,
    server: String,
    left: Arc<AtomicU64>,
    flipped: Arc<AtomicU64>,
) -> io::Result<()> {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = TcpStream::connect(server).await?.into_split();
    let replies = async {
        let mut bytes = vec![0; 64 << 10];
        loop {
            let count = from_server.read(&mut bytes).await?;
            if count == 0 {
                return io::Result::Ok(());
            }
            let found = bytes[..count].windows(WITHIN_VALUES.len()).position(|here| here == WITHIN_VALUES);
            let take = |left: u64| left.checked_sub(1);
            if let Some(at) = found
                && left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok()
            {
                bytes[at] ^= 0x20;
                flipped.fetch_add(1, Ordering::SeqCst);
            }
            to_client.write_all(&bytes[..count]).await?;
        }
    };
    tokio::select! {
        ended = replies => ended,
        ended = io::copy(&mut from_client, &mut to_server) => ended.map(|_| ()),
    }
}

/// A fast client that knows the first of two nodes by the address of who stands in front of it.
async fn session(cluster: &Cluster) -> (Session, Flipper, watch::Sender<Arc<Topology>>) {
    let mut document = connect(cluster).await.topology().await.expect("the router knows its topology");
    let flipper = Flipper::before(document.nodes[0].addr.clone()).await;
    document.nodes[0].addr.clone_from(&flipper.addr);
    let topology = Topology::from_document(Arc::new(document)).expect("it makes sense");
    let (sender, topology) = watch::channel(Arc::new(topology));
    let session = Session::new(topology, SessionSettings::default(), Vec::new());
    let session = session.expect("settings that make sense");
    session.warm().await;
    (session, flipper, sender)
}

/// Every key is there, with its value; two more are not.
fn assert_right(records: &Records) {
    assert_eq!(records.len() as u64, PEOPLE + 2);
    for (key, record) in (0..).zip(records.iter()) {
        let expected = value("people", key, 1);
        let expected = if key < PEOPLE { Record::Found(expected.as_bytes()) } else { Record::Absent };
        assert_eq!(record, expected, "key {key}");
    }
}

fn keys() -> BatchKeys {
    BatchKeys::Ids((0..PEOPLE + 2).collect())
}

#[test]
fn what_is_flipped_between_a_node_and_its_client_comes_from_a_replica() {
    let cluster = started();
    Runtime::new().expect("a runtime").block_on(async {
        let (session, flipper, _topology) = session(&cluster).await;
        let mut flipped = 0;
        // In turn from both nodes, whole and in parts.
        for _ in 0..4 {
            flipper.flip(ALL);
            let answer = session.multi_get("people", &keys(), &QueryOptions::default()).await;
            assert_right(&answer.expect("an answer").records);
            assert_eq!(streamed(&session).await.expect("a stream"), PEOPLE);
            flipped += flipper.flip(0);
        }
        assert!(0 < flipped, "nothing was flipped");
    });
    let damaged = cluster.metric("kith_node_damaged_reads_total");
    assert_eq!(damaged.unwrap_or(0.0), 0.0, "a client's word alone is no damage");
}

/// How many values a stream of all keys has, all of them right.
async fn streamed(service: &dyn Service) -> Result<u64, kith_client::QueryError> {
    use futures::StreamExt;
    let (keys, options) = (keys(), QueryOptions::default());
    let mut items = service.multi_get_stream("people", &keys, &options);
    let mut found = 0;
    while let Some(item) = items.next().await {
        if let kith_client::StreamItem::Piece(piece) = item? {
            for (&key, record) in piece.positions.iter().zip(piece.records.iter()) {
                if let Record::Found(bytes) = record {
                    assert_eq!(bytes, value("people", key.into(), 1).as_bytes(), "key {key}");
                    found += 1;
                }
            }
        }
    }
    Ok(found)
}

#[test]
fn what_is_flipped_behind_a_router_is_asked_again_once() {
    let cluster = started();
    Runtime::new().expect("a runtime").block_on(async {
        let router = cluster.ready()["router"].as_str().expect("an address").to_owned();
        for transport in [TransportKind::FramedTcp, TransportKind::Grpc] {
            let flipper = Flipper::before(router.clone()).await;
            let client =
                RouterClient::connect(std::slice::from_ref(&flipper.addr)).await.expect("it answers");
            let client = client.with_transport(transport);
            let read = || async { client.multi_get("people", &keys(), &QueryOptions::default()).await };
            flipper.flip(1);
            assert_right(&read().await.expect("an answer").records);
            assert_eq!(flipper.flip(ALL), 1, "{transport:?}");
            assert_eq!(read().await.expect_err("nothing holds").code(), ErrorCode::Damaged, "{transport:?}");
            let options = QueryOptions { partial: true, ..QueryOptions::default() };
            let part = client.multi_get("people", &keys(), &options).await.expect("a part");
            assert!(0 < part.counts().error && 0 < part.counts().absent, "{:?}", part.counts());
            assert!(streamed(&client).await.is_err(), "a stream whose values do not hold");
            assert!(0 < flipper.flip(0));
            assert_right(&read().await.expect("an answer").records);
        }
    });
}

/// Flips a byte within values of each pack of a node's copy.
fn damage(cluster: &Cluster, node: u64) {
    let data = cluster.ready_file.parent().expect("a folder").join("data");
    let mut packs = Vec::new();
    find(&data, &format!("/node-{node:03}/"), &mut packs);
    let mut flipped = 0;
    for path in packs {
        let bytes = fs::read(&path).expect("readable");
        let file = fs::File::options().write(true).open(&path).expect("it opens");
        let mut values = bytes.windows(WITHIN_VALUES.len()).enumerate();
        for (at, _) in values.by_ref().filter(|(_, here)| *here == WITHIN_VALUES).step_by(500) {
            file.write_all_at(b"X", at as u64).expect("written");
            flipped += 1;
        }
    }
    assert!(0 < flipped, "node {node} has no values in {}", data.display());
}

fn find(folder: &Path, node: &str, found: &mut Vec<std::path::PathBuf>) {
    for path in fs::read_dir(folder).expect("readable").flatten().map(|entry| entry.path()) {
        let name = path.to_string_lossy().into_owned();
        if path.is_dir() {
            find(&path, node, found);
        } else if name.contains(node) && name.contains("/people/") && name.ends_with(".pack") {
            found.push(path);
        }
    }
}

/// How many files the first node has repaired, and how many it knows to be damaged.
fn files(cluster: &Cluster) -> (u64, u64) {
    let status = cluster.must(&["cluster", "status", "-o", "json"]);
    let status: Value = serde_json::from_str(&status).expect("JSON");
    let count = |name: &str| status["nodes"][0][name].as_u64().expect("a count");
    (count("files_repaired"), count("files_damaged"))
}

#[test]
fn a_node_whose_values_do_not_hold_hears_of_it_and_repairs_them() {
    let mut cluster = started();
    let runtime = Runtime::new().expect("a runtime");
    let (session, _flipper, _topology) = runtime.block_on(session(&cluster));
    let router = runtime.block_on(connect(&cluster));
    let services: [&dyn Service; 2] = [&session, &router];
    let (asked, options) = (keys(), QueryOptions::default());
    for service in services {
        let (before, _) = files(&cluster);
        damage(&cluster, 0);
        // Nothing else looks: the scrubber is off.
        cluster.wait_until("the node has repaired what was reported to it", |cluster| {
            let answer = service.multi_get("people", &asked, &options);
            assert_right(&runtime.block_on(answer).expect("an answer").records);
            let (repaired, damaged) = files(cluster);
            before < repaired && damaged == 0
        });
    }
    let counted = |name| cluster.metric(name).unwrap_or(0.0);
    assert!(0.0 < counted("kith_node_damaged_reads_total"), "it has seen for itself");
    assert!(0.0 < counted("kith_client_mismatched_values_total"), "the router has seen it as well");
}
