//! Two replicas, one of which is unruly: dead, hanging up, mute, slow or failing. It answers probes all the same, so nobody knows but by
//! what becomes of reads (Venice's ReplicaFailoverTest; RF-1 to RF-5 of the list in docs/design/0008-hedged-reads.md).

mod support;

use bytes::BytesMut;
use futures::future::join_all;
use kith_client::{
    BatchKeys, Caches, QueryOptions, Session, SessionSettings, StoreService, topology::Topology,
};
use kith_ops::Record;
use kith_wire::frame::{self, Frame, Op, PREFACE_BYTES};
use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};
use support::{
    cluster::Cluster,
    streams::connect,
    values::create,
    words::{WORDS, push_version, value},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{Mutex, watch},
    task::{AbortHandle, JoinSet},
};

const PEOPLE: u64 = 500;
/// Reads of one key each, of each round.
const READS: u64 = 200;
/// What a read may take, times as many as are under way: nine of ten do not take longer.
const BOUND: Duration = Duration::from_millis(50);
/// How late a slow replica is.
const LATE: Duration = Duration::from_millis(500);
/// This machine may have other work: one of so many rounds is within the bound. Answers are right in all of them.
const TRIES: u32 = 10;
/// Keys that are asked for before: a tenth of them may be asked for twice.
const ASKED: u64 = 8 * PEOPLE;

/// What a replica does with a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Orderly,
    /// Nobody listens, and who was connected is no more.
    Dead,
    /// Closes the connection over which it is asked.
    HangsUp,
    /// Drops it.
    Mute,
    /// Begins [`LATE`].
    Slow,
    /// Says that something went wrong.
    Fails,
}

/// Stands in front of a node, and does as it is told.
struct Unruly {
    addr: String,
    manner: watch::Sender<Manner>,
    accepting: AbortHandle,
}

impl Unruly {
    async fn before(node: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let addr = listener.local_addr().expect("an address").to_string();
        let manner = watch::Sender::new(Manner::Orderly);
        let told = manner.subscribe();
        let accepting = tokio::spawn(async move {
            // Dropped with this task: nobody is connected then.
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(relay(client, node.clone(), told.clone()));
            }
        });
        Self { addr, manner, accepting: accepting.abort_handle() }
    }

    fn turn(&self, manner: Manner) {
        self.manner.send_replace(manner);
        if manner == Manner::Dead {
            self.accepting.abort();
        }
    }
}

impl Drop for Unruly {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// One connection: all but reads pass.
async fn relay(client: TcpStream, node: String, manner: watch::Receiver<Manner>) -> io::Result<()> {
    let (mut from_client, to_client) = client.into_split();
    let (mut from_node, mut to_node) = TcpStream::connect(node).await?.into_split();
    let mut preface = [0; PREFACE_BYTES];
    from_client.read_exact(&mut preface).await?;
    to_node.write_all(&preface).await?;
    let (to_node, to_client) = (Arc::new(Mutex::new(to_node)), Arc::new(Mutex::new(to_client)));
    let replies = async {
        let mut bytes = vec![0; 64 << 10];
        loop {
            let count = from_node.read(&mut bytes).await?;
            if count == 0 {
                return io::Result::Ok(());
            }
            to_client.lock().await.write_all(&bytes[..count]).await?;
        }
    };
    tokio::select! {
        ended = replies => ended,
        ended = requests(from_client, &to_node, &to_client, manner) => ended,
    }
}

async fn requests(
    mut client: OwnedReadHalf,
    to_node: &Arc<Mutex<OwnedWriteHalf>>,
    to_client: &Mutex<OwnedWriteHalf>,
    manner: watch::Receiver<Manner>,
) -> io::Result<()> {
    let mut inbox = BytesMut::new();
    let mut late = JoinSet::new();
    loop {
        while let Some(frame) = frame::decode(&mut inbox).map_err(io::Error::other)? {
            let manner = *manner.borrow();
            match (frame.header.op == Op::Evaluate as u8, manner) {
                (true, Manner::HangsUp) => return Ok(()),
                (true, Manner::Mute) => {}
                (true, Manner::Fails) => {
                    let status = tonic::Status::internal("it is a bad day");
                    let mut bytes = BytesMut::new();
                    frame.header.encode_error(&status, &mut bytes);
                    to_client.lock().await.write_all(&bytes).await?;
                }
                (true, Manner::Slow) => {
                    let to_node = Arc::clone(to_node);
                    late.spawn(async move {
                        tokio::time::sleep(LATE).await;
                        pass_on(&frame, &to_node).await
                    });
                }
                _ => pass_on(&frame, to_node).await?,
            }
        }
        if client.read_buf(&mut inbox).await? == 0 {
            return Ok(());
        }
    }
}

async fn pass_on(frame: &Frame, to_node: &Mutex<OwnedWriteHalf>) -> io::Result<()> {
    let mut bytes = BytesMut::new();
    frame.header.encode_bytes(&frame.body, &mut bytes).map_err(io::Error::other)?;
    to_node.lock().await.write_all(&bytes).await
}

/// A fast client that knows the first of two nodes by the address of who stands in front of it.
struct Two {
    session: Session,
    unruly: Unruly,
    _topology: watch::Sender<Arc<Topology>>,
}

impl Two {
    async fn new(cluster: &Cluster) -> Self {
        let router = connect(cluster).await;
        let mut document = router.topology().await.expect("the router knows its topology");
        let unruly = Unruly::before(document.nodes[0].addr.clone()).await;
        document.nodes[0].addr.clone_from(&unruly.addr);
        let topology = Topology::from_document(Arc::new(document)).expect("it makes sense");
        let (sender, topology) = watch::channel(Arc::new(topology));
        let session = Session::new(topology, SessionSettings::default(), Caches::default());
        let session = session.expect("settings that make sense");
        session.warm().await;
        Self { session, unruly, _topology: sender }
    }

    /// So much is asked that every read of a round may be hedged.
    async fn ask_much(&self) {
        for _ in 0..ASKED / PEOPLE {
            let keys = BatchKeys::Ids((0..PEOPLE).collect());
            let answer = self.session.multi_get("people", &keys, &QueryOptions::default()).await;
            assert_eq!(answer.expect("an answer").counts().found, PEOPLE);
        }
    }

    /// How long a read took, whose answer is right; `None` if there was none by its deadline.
    async fn read(&self, key: u64) -> Option<Duration> {
        let started = Instant::now();
        let keys = BatchKeys::Ids(vec![key]);
        // What failed tells how.
        let options = QueryOptions { partial: true, profile: true, ..QueryOptions::default() };
        let answer = self.session.multi_get("people", &keys, &options).await;
        let took = started.elapsed();
        let answer = answer.unwrap_or_else(|error| panic!("key {key}: {error}"));
        match answer.records.get(0) {
            Some(Record::Unanswered) if *self.unruly.manner.borrow() == Manner::Mute => return None,
            Some(Record::Found(bytes)) => {
                assert!(key < PEOPLE && bytes == value("people", key, 1).as_bytes(), "key {key}");
            }
            other => {
                assert!(other == Some(Record::Absent) && PEOPLE <= key, "key {key}: {other:?}, {answer:?}");
            }
        }
        Some(took)
    }

    /// How many of a round's reads, so many at a time, were within the bound; none if one of them had no answer.
    async fn within_bound(&self, concurrency: u64) -> u64 {
        let mut within = 0;
        for first in (0..READS).step_by(concurrency as usize) {
            let reads = (first..first + concurrency).map(|at| self.read(at * 7 % (PEOPLE + 20)));
            let took: Option<Vec<Duration>> = join_all(reads).await.into_iter().collect();
            let Some(took) = took else { return 0 };
            within += took.iter().filter(|took| **took <= BOUND * concurrency as u32).count() as u64;
        }
        within
    }
}

/// One replica of two turns unruly: every read is answered, and right; nine of ten at once, one and twenty at a time.
fn check(manner: Manner) {
    let cluster = Cluster::start(&["--groups", "2", "--nodes", "1", "--partitions", "8"]);
    create(&cluster, "people", WORDS.0, WORDS.1);
    push_version(&cluster, "people", PEOPLE, 1);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        for concurrency in [1, 20] {
            let mut most = 0;
            for _ in 0..TRIES {
                let two = Two::new(&cluster).await;
                two.within_bound(concurrency).await;
                two.ask_much().await;
                two.unruly.turn(manner);
                most = most.max(two.within_bound(concurrency).await);
                if READS * 9 <= most * 10 {
                    break;
                }
            }
            assert!(READS * 9 <= most * 10, "{most} of {READS} at once, {concurrency} at a time");
        }
    });
}

#[test]
fn rf_1_a_replica_that_is_dead_fails_no_read() {
    check(Manner::Dead);
}

#[test]
fn rf_2_a_replica_that_hangs_up_fails_no_read() {
    check(Manner::HangsUp);
}

#[test]
fn rf_3_a_replica_that_drops_reads_fails_none() {
    check(Manner::Mute);
}

#[test]
fn rf_4_a_replica_that_is_half_a_second_slow_makes_few_reads_slow() {
    check(Manner::Slow);
}

#[test]
fn rf_5_a_replica_that_always_fails_fails_no_read() {
    check(Manner::Fails);
}
