//! Looks up keys in batches of 32, and compares the chunk set with the sorted table of 12-byte entries of Voldemort §5.1,
//! by binary search and by interpolation search (Voldemort §5.5). It compares three steps:
//!
//! 1. the index alone, from a key to the offset of its record;
//! 2. also reading the record at that offset and comparing its key;
//! 3. also checking the checksum of the record, or for an absent key those of the index. Production does this. The sorted
//!    table has no checksums.
//!
//! The variants alternate over the same keys, and the answers of each step are compared. The floor is the same number of
//! independent reads from memory of the index's size. `KITH_BENCH_KEYS` changes the number of keys. With a name or a filter
//! as argument, only the small benchmarks below run, such as `chunk_set_index` or `chunk_set_proven` under a profiler.

mod both;
mod ways;

use both::{BATCH, BATCHES, BOTH, BothLayouts, batch, keys, value_of};
use divan::Bencher;
use kith_engine::{KeyType, ValuesReader};
use kith_files::{ValuesBuilder, ValuesOptions};
use kith_schema::{LookupKeys, ValueSource};
use kith_types::{ByteKeys, PartitionCount, PartitionId, StoreVersion, fmix64};
use std::ops::ControlFlow;
use ways::{
    binary_search, compared, first_word, floor, index_alone, index_by, interpolation_search, proven,
    record_by,
};

const ROUNDS: usize = 41;

#[divan::bench]
fn chunk_set_single_get(bencher: Bencher<'_, '_>) {
    let both = &*BOTH;
    bencher.bench(|| both.chunk_set.get(&77u64.to_le_bytes()).expect("whole files").map(first_word));
}

#[divan::bench]
fn chunk_set_index(bencher: Bencher<'_, '_>) {
    all_keys(bencher, index_alone);
}

#[divan::bench]
fn chunk_set_proven(bencher: Bencher<'_, '_>) {
    all_keys(bencher, proven);
}

/// Reads values as a node's operators do, with ids and with byte strings as keys: batches of 5,000 keys from 24 partitions.
#[divan::bench(args = [KeyType::Id, KeyType::Bytes])]
fn values_of_a_node(bencher: Bencher<'_, '_>, key: KeyType) {
    const KEYS: u64 = 5_000;
    let dir = tempfile::tempdir().expect("a temporary folder");
    let partitions = PartitionCount::new(24).expect("a count");
    let options = ValuesOptions::new("rows", StoreVersion(1), partitions, dir.path().join("rows"));
    let mut builder = ValuesBuilder::new(ValuesOptions { key, ..options }).expect("a build");
    (0..KEYS).for_each(|id| builder.row(&id.to_le_bytes(), &value_of(id)).expect("a row"));
    builder.finish(&mut |_| {}).expect("built");
    let all: Vec<PartitionId> = partitions.iter().collect();
    let reader = ValuesReader::open(&dir.path().join("rows/1"), &all).expect("a whole version");
    let ids: Vec<u64> = (0..KEYS).map(|index| fmix64(index) % KEYS).collect();
    let bytes: ByteKeys = ids.iter().map(|id| id.to_le_bytes()).collect();
    let keys = match key {
        KeyType::Id => LookupKeys::Ids(&ids),
        KeyType::String | KeyType::Bytes => LookupKeys::Bytes(&bytes),
    };
    bencher.counter(divan::counter::ItemsCount::new(ids.len())).bench_local(|| {
        let mut sum = 0u64;
        let each = &mut |_, value: Result<Option<&[u8]>, _>| {
            sum = sum.wrapping_add(value.expect("undamaged").map_or(1, first_word));
            ControlFlow::Continue(())
        };
        reader.values(keys, each).expect("all are held");
        sum
    });
}

fn all_keys(bencher: Bencher<'_, '_>, search: fn(&BothLayouts, &[[u8; 8]]) -> u64) {
    let (both, mut round) = (&*BOTH, 0);
    let bencher = bencher.counter(divan::counter::ItemsCount::new(BATCH * BATCHES));
    let input = move || {
        round += 1;
        batch(round)
    };
    bencher.with_inputs(input).bench_local_values(|keys| search(both, &keys));
}

#[divan::bench(args = [70, 700, 7_000])]
fn decode_list(bencher: Bencher<'_, '_>, count: u64) {
    // The lists resemble those of a graph with ids up to 700,000. There are many, so that the branch predictor cannot learn
    // them.
    let lists: Vec<Vec<u8>> = (0..1_000_000 / count).map(|list| encoded_list(list, count)).collect();
    let mut out = Vec::new();
    bencher.counter(divan::counter::ItemsCount::new(lists.len() as u64 * count)).bench_local(|| {
        for list in &lists {
            kith_engine::decode_list(list, 0, None, &mut out).expect("a whole list");
            divan::black_box(&out);
        }
    });
}

fn encoded_list(list: u64, count: u64) -> Vec<u8> {
    let mut ids: Vec<u64> = (0..count).map(|index| fmix64(list << 32 | index) % 700_000).collect();
    ids.sort_unstable();
    ids.dedup();
    let mut bytes = Vec::new();
    kith_engine::encode_list(&ids, &[], &mut bytes);
    bytes
}

/// A way to look up a batch of keys. Its result must equal that of the other ways of its step, up to the step's tolerance.
type Side = (&'static str, fn(&BothLayouts, &[[u8; 8]]) -> u64);

/// The most absent keys of a timing that may match by fingerprint alone.
const FALSE_KEYS_MAX: u64 = (BATCHES * BATCH / 10_000) as u64;

const STEPS: [(u64, &[Side]); 3] = [
    (0, &[("floor: a read a key", floor)]),
    (
        FALSE_KEYS_MAX,
        &[
            ("index alone: chunk set", index_alone),
            ("index alone: binary search", |both, keys| index_by(binary_search, both, keys)),
            ("index alone: interpolation search", |both, keys| index_by(interpolation_search, both, keys)),
        ],
    ),
    (
        0,
        &[
            ("with the record, proven: chunk set", proven),
            ("with the record, compared: chunk set", compared),
            ("with the record, compared: binary search", |both, keys| record_by(binary_search, both, keys)),
            ("with the record, compared: interpolation search", |both, keys| {
                record_by(interpolation_search, both, keys)
            }),
        ],
    ),
];

/// Times all ways in turn, checks that those of a step agree, and prints times and the ratios to the first of each step.
fn paired() {
    let both = &*BOTH;
    let mut times = STEPS.map(|(_, sides)| vec![Vec::with_capacity(ROUNDS); sides.len()]);
    for round in 0..ROUNDS {
        let keys = batch(round);
        for ((difference, sides), times) in STEPS.iter().zip(&mut times) {
            let mut sums = Vec::new();
            for ((_, search), times) in sides.iter().zip(times) {
                let start = nanoseconds_on_processor();
                sums.push(search(both, &keys));
                times.push((nanoseconds_on_processor() - start) as f64 / keys.len() as f64);
            }
            assert!(sums.iter().all(|sum| sum.abs_diff(sums[0]) <= *difference), "all find the same");
        }
    }
    println!(
        "{} keys in batches of {BATCH}, one in ten absent; {:.2} index bytes per key (sorted table: 12.00)",
        keys(),
        both.index_bytes_per_key
    );
    println!(
        "nanoseconds of CPU time per key: median of {ROUNDS} rounds, fastest; ratio to the first (95 %)"
    );
    for ((_, sides), times) in STEPS.iter().zip(&times) {
        for ((name, _), theirs) in sides.iter().zip(times) {
            let ratios = theirs.iter().zip(&times[0]).map(|(theirs, first)| theirs / first).collect();
            let [low, middle, high] = median(ratios);
            let fastest = theirs.iter().copied().fold(f64::MAX, f64::min);
            println!(
                "{name:48} {:7.1} {fastest:7.1}   {middle:.2} ({low:.2} to {high:.2})",
                median(theirs.clone())[1]
            );
        }
    }
}

/// The CPU time of this thread, so that other processes on the machine affect it only through shared caches.
fn nanoseconds_on_processor() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The median between the ends of its 95 % interval: ranks 14 and 28 of 41.
fn median(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [values[13], values[ROUNDS / 2], values[27]]
}

fn main() {
    if std::env::args().skip(1).all(|argument| argument.starts_with("--")) {
        paired();
    }
    divan::main();
}
