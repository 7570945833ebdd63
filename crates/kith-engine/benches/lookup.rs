//! Lookup of keys in batches: chunk set against the sorted table of 12-byte entries of Voldemort §5.1.
//!
//! A and B alternate over the same keys, both read the record and compare its key; only the chunk set also
//! proves it by checksum. Answers are compared. Then each is timed by itself.

use divan::Bencher;
use kith_engine::{ChunkSetReader, ChunkSetWriter, Counts, FileKind, Manifest};
use kith_ops::KindRole;
use kith_types::{PartitionCount, PartitionId, StoreVersion, fmix64, position_of_key};
use std::ops::ControlFlow;
use std::sync::LazyLock;
use std::time::Instant;

const KEYS: u64 = 1_000_000;
const BATCH: usize = 5_000;
const ROUNDS: usize = 41;
const VALUE_BYTES: usize = 32;

/// Both layouts over the same records: key = eight bytes of an id, value = its hash, repeated.
struct Both {
    _dir: tempfile::TempDir,
    chunk_set: ChunkSetReader,
    index_bytes_per_key: f64,
    entries: Vec<[u8; 12]>,
    records: Vec<u8>,
}

static BOTH: LazyLock<Both> = LazyLock::new(|| {
    let mut ids: Vec<u64> = (0..KEYS).collect();
    ids.sort_unstable_by_key(|id| position_of_key(&id.to_le_bytes()));
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut writer = ChunkSetWriter::create(dir.path(), PartitionId(0), None).expect("an empty folder");
    let (mut entries, mut records) = (Vec::new(), Vec::new());
    for id in ids {
        let (key, value) = (id.to_le_bytes(), value_of(id));
        writer.append(&key, &value).expect("keys in order");
        let mut entry = [0; 12];
        entry[..8].copy_from_slice(&position_of_key(&key).to_be_bytes());
        entry[8..].copy_from_slice(&(records.len() as u32).to_be_bytes());
        entries.push(entry);
        records.extend_from_slice(&key);
        records.extend_from_slice(&value);
    }
    let files = writer.finish().expect("room for the files").files;
    let index = files.iter().filter(|entry| entry.name.ends_with(FileKind::Index.extension()));
    let index_bytes_per_key = index.map(|entry| entry.bytes).sum::<u64>() as f64 / KEYS as f64;
    let manifest = Manifest {
        component: "bench".to_owned(),
        version: StoreVersion(1),
        role: KindRole::MembersOnly,
        partition_count: PartitionCount::new(1).expect("one is a count"),
        columns: Vec::new(),
        counts: Counts::default(),
        files,
    };
    let chunk_set = ChunkSetReader::open(dir.path(), &manifest, PartitionId(0), None).expect("whole files");
    Both { _dir: dir, chunk_set, index_bytes_per_key, entries, records }
});

fn value_of(id: u64) -> [u8; VALUE_BYTES] {
    let mut value = [0; VALUE_BYTES];
    value.chunks_exact_mut(8).for_each(|part| part.copy_from_slice(&fmix64(id).to_le_bytes()));
    value
}

/// Random ids, one in ten absent.
fn batch(round: usize) -> Vec<[u8; 8]> {
    let random = |index: usize| fmix64((round * BATCH + index) as u64 + 1) % (KEYS + KEYS / 10);
    (0..BATCH).map(|index| random(index).to_le_bytes()).collect()
}

fn by_chunk_set(both: &Both, keys: &[[u8; 8]]) -> u64 {
    let mut sum = 0u64;
    let each = |_, value: Option<&[u8]>| {
        sum = sum.wrapping_add(value.map_or(1, first_word));
        ControlFlow::Continue(())
    };
    both.chunk_set.get_many(keys, each).expect("whole files");
    sum
}

fn by_binary_search(both: &Both, keys: &[[u8; 8]]) -> u64 {
    keys.iter().map(|key| binary_search(both, key).map_or(1, first_word)).fold(0, u64::wrapping_add)
}

fn binary_search<'a>(both: &'a Both, key: &[u8; 8]) -> Option<&'a [u8]> {
    let position = position_of_key(key).to_be_bytes();
    let start = both.entries.partition_point(|entry| entry[..8] < position[..]);
    let equal = both.entries[start..].iter().take_while(|entry| entry[..8] == position);
    equal.map(offset_of).find_map(|offset| {
        let record = &both.records[offset..offset + 8 + VALUE_BYTES];
        (record[..8] == key[..]).then_some(&record[8..])
    })
}

fn offset_of(entry: &[u8; 12]) -> usize {
    u32::from_be_bytes([entry[8], entry[9], entry[10], entry[11]]) as usize
}

fn first_word(value: &[u8]) -> u64 {
    u64::from_le_bytes(*value.first_chunk().expect("values have 32 bytes"))
}

#[divan::bench]
fn chunk_set_batch_of_5000(bencher: Bencher<'_, '_>) {
    let both = &*BOTH;
    bencher.with_inputs(|| batch(7)).bench_refs(|keys| by_chunk_set(both, keys));
}

#[divan::bench]
fn binary_search_of_5000(bencher: Bencher<'_, '_>) {
    let both = &*BOTH;
    bencher.with_inputs(|| batch(7)).bench_refs(|keys| by_binary_search(both, keys));
}

#[divan::bench]
fn chunk_set_single_get(bencher: Bencher<'_, '_>) {
    let both = &*BOTH;
    bencher.bench(|| both.chunk_set.get(&77u64.to_le_bytes()).expect("whole files").map(first_word));
}

#[divan::bench(args = [70, 700, 7_000])]
fn decode_list(bencher: Bencher<'_, '_>, count: u64) {
    // Lists as in a graph with ids up to 700,000, many of them, so that no branch can be learnt by heart.
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

/// Times both in turn, checks that they agree, and prints the ratio.
fn paired() {
    let both = &*BOTH;
    let mut ratios = Vec::new();
    let mut nanoseconds = Vec::new();
    for round in 0..ROUNDS {
        let keys = batch(round);
        let start = Instant::now();
        let ours = by_chunk_set(both, &keys);
        let middle = Instant::now();
        let theirs = by_binary_search(both, &keys);
        let (a, b) = ((middle - start).as_secs_f64(), middle.elapsed().as_secs_f64());
        assert_eq!(ours, theirs, "both find the same");
        ratios.push(b / a);
        nanoseconds.push(a * 1e9 / BATCH as f64);
    }
    ratios.sort_by(f64::total_cmp);
    nanoseconds.sort_by(f64::total_cmp);
    // Ranks of the 95 % interval of a median of 41: 14 and 28.
    println!(
        "batch lookup, {KEYS} keys: binary search / chunk set = {:.2} (95 %: {:.2}-{:.2}), {:.0} ns per key, \
         {:.2} index bytes per key (binary search: 12.00)",
        ratios[ROUNDS / 2],
        ratios[13],
        ratios[27],
        nanoseconds[ROUNDS / 2],
        both.index_bytes_per_key
    );
}

fn main() {
    paired();
    divan::main();
}
