//! Measures the benefit of streams: how early the first of 5,000 records arrives, and how much sooner a consumer that
//! works on records as they arrive is done. The nodes are real processes. Whole reads and streams of the same keys take
//! turns, and every value is checked.
//!
//! `KITH_BENCH_PAIRS` sets the number of pairs of each kind, and `KITH_BENCH_WORK_US` the microseconds of work for each
//! record.

use crate::{
    rig::{self, reads},
    support::{cluster::Cluster, values},
};
use futures::StreamExt;
use kith_client::{BatchKeys, QueryOptions, Service, StreamItem};
use kith_engine::{KeyType, ValueType};
use kith_terminal::bench::stats::median_interval;
use kith_types::fmix64;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::{
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};

const ROWS: u64 = 50_000;
const KEYS: usize = 5_000;
const TYPES: (KeyType, ValueType) = (KeyType::Id, ValueType::Bytes);
const STORE: &str = "pages";

/// The time until the first record arrived, and until all were processed.
#[derive(Clone, Copy)]
struct Took {
    first: Duration,
    all: Duration,
}

/// Runs the benchmark.
pub fn run() {
    let cluster = Cluster::start(&["--processes", "--groups", "2", "--nodes", "3"]);
    values::create(&cluster, STORE, TYPES.0, TYPES.1);
    values::push(&cluster, STORE, TYPES, 1, reads::rows(ROWS));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let pairs = rig::setting("KITH_BENCH_PAIRS", 200) as u64;
    let work = Duration::from_micros(rig::setting("KITH_BENCH_WORK_US", 2) as u64);
    println!("{KEYS} keys of 1 KiB, 2 groups of 3 nodes");
    for (name, service) in [
        ("through a router", runtime.block_on(reads::routed(&cluster.ready()))),
        ("fast client", runtime.block_on(reads::direct(&cluster.ready()))),
    ] {
        for work in [Duration::ZERO, work] {
            let label = format!("{name}, {} us of work a record", work.as_micros());
            runtime.block_on(compare(&label, &service, pairs, work));
        }
    }
}

async fn compare(label: &str, service: &Arc<dyn Service>, pairs: u64, work: Duration) {
    let (mut whole, mut streamed) = (Vec::new(), Vec::new());
    for pair in 0..pairs + 5 {
        let mut rng = StdRng::seed_from_u64(pair);
        let ids: Vec<u64> = (0..KEYS).map(|_| rng.random_range(0..ROWS)).collect();
        let mut took = [None, None];
        for turn in [pair % 2, 1 - pair % 2] {
            took[turn as usize] = Some(match turn {
                0 => read_whole(&**service, &ids, work).await,
                _ => read_stream(&**service, &ids, work).await,
            });
        }
        let [Some(one), Some(other)] = took else { unreachable!("both took their turn") };
        // The first few reads open connections and fill caches.
        if 5 <= pair {
            whole.push(one);
            streamed.push(other);
        }
    }
    println!("{label}");
    ratio("  first record / all, streamed", &streamed, &streamed, |took| took.first, |took| took.all);
    ratio("  first record, streamed / whole", &streamed, &whole, |took| took.first, |took| took.first);
    ratio("  all, streamed / whole", &streamed, &whole, |took| took.all, |took| took.all);
    for (name, share) in [("p50", 0.5), ("p99", 0.99)] {
        let (streamed, whole) = (quantile(&streamed, share), quantile(&whole, share));
        let less = 100.0 * (1.0 - streamed.as_secs_f64() / whole.as_secs_f64());
        println!("  all, {name}: {streamed:.2?} streamed, {whole:.2?} whole: {less:.0} % less");
    }
}

fn ratio(
    name: &str,
    ours: &[Took],
    theirs: &[Took],
    of: impl Fn(&Took) -> Duration,
    to: impl Fn(&Took) -> Duration,
) {
    let ratios: Vec<f64> = ours
        .iter()
        .zip(theirs)
        .map(|(ours, theirs)| of(ours).as_secs_f64() / to(theirs).as_secs_f64())
        .collect();
    let ratio = median_interval(&ratios).expect("there are pairs");
    println!("{name}: {:.2} ({:.2} to {:.2}, {} pairs)", ratio.median, ratio.low, ratio.high, ratio.pairs);
}

fn quantile(took: &[Took], share: f64) -> Duration {
    let mut all: Vec<Duration> = took.iter().map(|took| took.all).collect();
    all.sort();
    all[((all.len() - 1) as f64 * share).round() as usize]
}

async fn read_whole(service: &dyn Service, ids: &[u64], work: Duration) -> Took {
    let keys = BatchKeys::Ids(ids.to_vec());
    let started = Instant::now();
    let answer = service.multi_get(STORE, &keys, &QueryOptions::default()).await.expect("an answer");
    let first = started.elapsed();
    for (index, id) in ids.iter().enumerate() {
        consume(&answer.records.value(index).expect("it is there"), *id, work);
    }
    Took { first, all: started.elapsed() }
}

async fn read_stream(service: &dyn Service, ids: &[u64], work: Duration) -> Took {
    let keys = BatchKeys::Ids(ids.to_vec());
    let options = QueryOptions::default();
    let started = Instant::now();
    let mut items = service.multi_get_stream(STORE, &keys, &options);
    let mut first = None;
    while let Some(item) = items.next().await {
        match item.expect("the stream goes on") {
            StreamItem::Piece(piece) => {
                first.get_or_insert_with(|| started.elapsed());
                for (index, position) in piece.positions.iter().enumerate() {
                    let value = piece.records.value(index).expect("it is there");
                    consume(&value, ids[*position as usize], work);
                }
            }
            StreamItem::Footer(footer) => assert_eq!(footer.counts.found, KEYS as u64),
        }
    }
    Took { first: first.expect("a record"), all: started.elapsed() }
}

/// Checks a value's first word, and keeps a core busy for this time.
fn consume(value: &[u8], id: u64, work: Duration) {
    let word = value.first_chunk::<8>().expect("a kibibyte");
    assert_eq!(u64::from_le_bytes(*word), fmix64(id << 7));
    let started = Instant::now();
    let mut sum = 0;
    while started.elapsed() < work {
        for byte in &value[..64] {
            sum = fmix64(sum ^ u64::from(*byte));
        }
    }
    black_box(sum);
}
