//! Two replicas, one of which is unruly: dead, hanging up, mute, slow or failing. It answers probes all the same, so nobody knows but by
//! what becomes of reads (Venice's ReplicaFailoverTest; RF-1 to RF-5 of the list in docs/design/0008-hedged-reads.md).

use crate::support::{self, unruly};
use futures::future::join_all;
use kith_client::{BatchKeys, QueryOptions, Service};
use kith_operators::Record;
use kith_session::{Session, SessionSettings};
use kith_topology::Topology;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use support::{
    cluster::Cluster,
    in_time,
    streams::connect,
    values::create,
    words::{WORDS, push_version, value},
};
use tokio::sync::watch;
use unruly::{Manner, UnrulyProxy};

const PEOPLE: u64 = 500;
/// Reads of one key each, of each round.
const READS: u64 = 200;
/// The time that a read may take, times as many as are under way: nine of ten do not take longer.
const BOUND: Duration = Duration::from_millis(50);
/// Keys that are asked for before: a tenth of them may be asked for twice.
const ASKED: u64 = 8 * PEOPLE;

/// A fast client that knows the first of two nodes by the address of who stands in front of it.
struct Two {
    session: Session,
    unruly: UnrulyProxy,
    _topology: watch::Sender<Arc<Topology>>,
}

impl Two {
    async fn new(cluster: &Cluster) -> Self {
        let router = connect(cluster).await;
        let mut document = router.topology().await.expect("the router knows its topology");
        let unruly = UnrulyProxy::before(document.nodes[0].addr.clone()).await;
        document.nodes[0].addr.clone_from(&unruly.addr);
        let topology = Topology::from_document(Arc::new(document)).expect("it makes sense");
        let (sender, topology) = watch::channel(Arc::new(topology));
        let session = Session::new(topology, SessionSettings::default(), Vec::new());
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
            // This machine may have other work: one of many rounds is within the bound. Answers are right in all of them.
            for () in in_time() {
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
