//! Measures reads of 5,000 values of a kibibyte: a fast client over three node processes against a bare gather-and-send
//! of the same bytes by three processes, and against memcached. All run over loopback, in turn on the same keys, and
//! every value is checked. Then measures the CPU time of the nodes per key in reads of 1, 100 and 1,000 keys, with
//! three nodes and with one.
//!
//! `KITH_BENCH_PAIRS` sets the number of reads of each side, and `KITH_BENCH_BLOCKS` the number of blocks for which CPU
//! time is measured.

use crate::{
    rig::{
        self,
        cpu::{self, Parts},
        gather::Gather,
        memcached::Memcached,
        reads,
        turns::{Amount, Check, Side, interval_text, take_turns},
    },
    support::{cluster::Cluster, values},
};
use futures::{StreamExt, stream};
use kith_client::{BatchKeys, QueryOptions, Service};
use kith_engine::{KeyType, ValueType};
use kith_terminal::bench::stats::median_interval;
use kith_types::fmix64;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::runtime::Runtime;

const ROWS: u64 = 100_000;
const KEYS: usize = 5_000;
const NODES: usize = 3;
const TYPES: (KeyType, ValueType) = (KeyType::Id, ValueType::Bytes);
const STORE: &str = "pages";
/// The number of different reads. Further reads repeat these.
const QUESTIONS: usize = 64;
/// The sizes of reads in keys, each with the number of reads of this size in a block. `IN_FLIGHT` is the number of them
/// at once.
const SIZES: [(usize, usize); 3] = [(1, 4_000), (100, 400), (1_000, 60)];
const IN_FLIGHT: [usize; 2] = [1, 16];

/// Runs the benchmark.
pub fn run() {
    let runtime = Runtime::new().expect("a runtime");
    let blocks = rig::setting("KITH_BENCH_BLOCKS", 15);
    let amount = Amount { pairs: rig::setting("KITH_BENCH_PAIRS", 150), blocks, block: 20 };
    let cluster = started(NODES);
    let service = runtime.block_on(reads::direct(&cluster.ready()));
    println!("{KEYS} keys of 1 KiB among {ROWS}, one read at a time, {} reads of each in turn", amount.pairs);
    against_others(&runtime, &service, &cluster, amount);
    println!("CPU a key, medians of {blocks} blocks");
    per_key(&runtime, &service, &cluster, NODES, blocks);
    drop((service, cluster));
    let alone = started(1);
    let service = runtime.block_on(reads::direct(&alone.ready()));
    per_key(&runtime, &service, &alone, 1, blocks);
}

fn started(nodes: usize) -> Cluster {
    let cluster = Cluster::start(&["--processes", "--groups", "1", "--nodes", &nodes.to_string()]);
    values::create(&cluster, STORE, TYPES.0, TYPES.1);
    values::push(&cluster, STORE, TYPES, 1, reads::rows(ROWS));
    cluster
}

fn questions(keys: usize) -> Vec<Vec<u64>> {
    let mut rng = StdRng::seed_from_u64(keys as u64);
    (0..QUESTIONS).map(|_| (0..keys).map(|_| rng.random_range(0..ROWS)).collect()).collect()
}

fn parts(servers: Vec<u32>) -> Parts {
    vec![("client", vec![std::process::id()]), ("servers", servers)]
}

/// Checks the values of a read.
fn check<'v>(ids: &[u64], check: Check, value: impl Fn(usize) -> &'v [u8]) {
    for (index, id) in ids.iter().enumerate() {
        glance(value(index), *id);
        assert!(check == Check::Glance || value(index) == reads::value(*id), "key {id}");
    }
}

/// Checks the length and the first word of a value.
fn glance(value: &[u8], id: u64) {
    let word = value.first_chunk::<8>().expect("a kibibyte");
    assert!(value.len() == 1_024 && u64::from_le_bytes(*word) == fmix64(id << 7), "key {id}");
}

fn against_others(runtime: &Runtime, service: &Arc<dyn Service>, cluster: &Cluster, amount: Amount) {
    let questions = questions(KEYS);
    let mut gather = Gather::start(NODES, ROWS);
    let mut memcached = Memcached::start((0..ROWS).map(|id| (id, reads::value(id))));
    let kith = kith_side(runtime, service, cluster, &questions);
    let mut sides = vec![kith, gather_side(&mut gather, &questions)];
    if let Some(memcached) = &mut memcached {
        memcached.choose_way(&questions[0]);
        println!("  memcached {}, quickest asked by {:?}", memcached.version, memcached.way);
        sides.push(memcached_side(memcached, &questions));
    }
    let seen = take_turns(&mut sides, amount);
    for side in &seen {
        println!("  {}: {}", side.name, side.describe());
    }
    for other in &seen[1..] {
        println!(
            "  Kith / {}: CPU {}, of servers {}, time {}",
            other.name,
            interval_text(seen[0].cpu_to(other)),
            interval_text(seen[0].server_cpu_to(other)),
            interval_text(seen[0].time_to(other))
        );
    }
}

/// The keys of a question by its number. After the last question, the first follows again.
fn keys_of(questions: &[Vec<u64>], number: usize) -> &[u64] {
    &questions[number % QUESTIONS]
}

fn kith_side<'a>(
    runtime: &'a Runtime,
    service: &'a Arc<dyn Service>,
    cluster: &Cluster,
    questions: &'a [Vec<u64>],
) -> Side<'a> {
    let ask = move |question, how| {
        let ids = keys_of(questions, question);
        let keys = BatchKeys::Ids(ids.to_vec());
        let options = QueryOptions::default();
        let started = Instant::now();
        let answer = runtime.block_on(service.multi_get(STORE, &keys, &options)).expect("an answer");
        let took = started.elapsed();
        check(ids, how, |index| match answer.records.get(index) {
            Some(kith_operators::Record::Found(value)) => value,
            other => panic!("key {}: {other:?}", ids[index]),
        });
        took
    };
    Side { name: "Kith, fast client, 3 nodes", parts: parts(cluster.node_pids(0)), ask: Box::new(ask) }
}

fn gather_side<'a>(gather: &'a mut Gather, questions: &'a [Vec<u64>]) -> Side<'a> {
    let parts = parts(gather.pids());
    let ask = move |question, how| {
        let ids = keys_of(questions, question);
        let started = Instant::now();
        gather.read(ids);
        let took = started.elapsed();
        check(ids, how, |index| gather.value(index));
        took
    };
    Side { name: "gather and send, 3 processes", parts, ask: Box::new(ask) }
}

fn memcached_side<'a>(memcached: &'a mut Memcached, questions: &'a [Vec<u64>]) -> Side<'a> {
    let parts = parts(vec![memcached.pid()]);
    let ask = move |question, how| {
        let ids = keys_of(questions, question);
        let started = Instant::now();
        memcached.read(ids);
        let took = started.elapsed();
        check(ids, how, |index| memcached.value(index));
        took
    };
    Side { name: "memcached", parts, ask: Box::new(ask) }
}

/// Measures the CPU time per key of reads of each size, alone and many at once. Sizes take turns.
fn per_key(runtime: &Runtime, service: &Arc<dyn Service>, cluster: &Cluster, nodes: usize, blocks: usize) {
    let parts = parts(cluster.node_pids(0));
    let settings: Vec<(usize, usize, usize)> =
        SIZES.iter().flat_map(|&(keys, reads)| IN_FLIGHT.map(|in_flight| (keys, reads, in_flight))).collect();
    let asked = SIZES.map(|(keys, _)| (keys, questions(keys)));
    let mut used = vec![[Vec::new(), Vec::new()]; settings.len()];
    // The first block warms up.
    for block in 0..=blocks {
        for (&(keys, reads, in_flight), used) in settings.iter().zip(&mut used) {
            let questions = &asked.iter().find(|(size, _)| *size == keys).expect("asked").1;
            let before = cpu::now(&parts);
            runtime.block_on(read_many(service, questions, reads, in_flight));
            let after = cpu::now(&parts);
            for ((used, after), before) in used.iter_mut().zip(after).zip(before).filter(|_| 0 < block) {
                let spent: Duration = after.saturating_sub(before);
                used.push(spent.as_secs_f64() * 1e6 / (reads * keys) as f64);
            }
        }
    }
    for ((keys, _, in_flight), [client, servers]) in settings.iter().zip(&used) {
        let servers = median_interval(servers).expect("there are blocks");
        let client = median_interval(client).expect("there are blocks");
        println!(
            "  {nodes} nodes, reads of {keys}, {in_flight} at once: nodes {} us, client {:.2} us",
            interval_text(servers),
            client.median
        );
    }
}

async fn read_many(service: &Arc<dyn Service>, questions: &[Vec<u64>], reads: usize, in_flight: usize) {
    let options = QueryOptions::default();
    let calls = (0..reads).map(|read| {
        let ids = &questions[read % QUESTIONS];
        let options = &options;
        async move {
            let keys = BatchKeys::Ids(ids.clone());
            let answer = service.multi_get(STORE, &keys, options).await.expect("an answer");
            for (record, id) in answer.records.iter().zip(ids) {
                let kith_operators::Record::Found(value) = record else { panic!("key {id}: {record:?}") };
                glance(value, *id);
            }
        }
    });
    stream::iter(calls).buffer_unordered(in_flight).for_each(|()| std::future::ready(())).await;
}
