//! Lookup of keys in batches of 32: chunk set against the sorted table of 12-byte entries of Voldemort §5.1, by binary
//! and by interpolation search (Voldemort §5.5).
//!
//! The three alternate over the same keys, all read the record and compare its key; only the chunk set also
//! proves it by checksum. Answers are compared. `KITH_BENCH_KEYS` changes the number of keys.

use divan::Bencher;
use kith_engine::{
    ChunkSetReader, ChunkSetWriter, Content, Counts, FileKind, GraphContent, Manifest, VersionFolder,
    seal_version,
};
use kith_ops::KindRole;
use kith_types::{PartitionCount, PartitionId, StoreVersion, fmix64, position_of_key};
use std::ops::ControlFlow;
use std::sync::LazyLock;

/// Keys of one call, as a node looks them up.
const BATCH: usize = 32;
/// Batches of one timing: long against the 4 ms tick at which Linux accounts a running thread.
const BATCHES: usize = 10_000;
const ROUNDS: usize = 41;
const VALUE_BYTES: usize = 32;

fn keys() -> u64 {
    std::env::var("KITH_BENCH_KEYS").ok().and_then(|text| text.parse().ok()).unwrap_or(10_000_000)
}

/// Both layouts over the same records: key = eight bytes of an id, value = its hash, repeated.
struct Both {
    _dir: tempfile::TempDir,
    chunk_set: ChunkSetReader,
    index_bytes_per_key: f64,
    entries: Vec<[u8; 12]>,
    records: Vec<u8>,
}

static BOTH: LazyLock<Both> = LazyLock::new(|| {
    let mut ids: Vec<u64> = (0..keys()).collect();
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
    let index_bytes_per_key = index.map(|entry| entry.bytes).sum::<u64>() as f64 / keys() as f64;
    let (role, count) = (KindRole::MembersOnly, PartitionCount::new(1).expect("one is a count"));
    let content = Content::Graph(GraphContent { role, columns: Vec::new(), counts: Counts::default() });
    let manifest = Manifest::new("bench".to_owned(), StoreVersion(1), count, content, files);
    seal_version(dir.path(), &manifest).expect("room for the pack");
    let folder = VersionFolder::open(dir.path()).expect("a whole folder");
    let chunk_set = ChunkSetReader::open(&folder, PartitionId(0), None).expect("whole files");
    // Both lie in memory; page faults are not what is compared.
    chunk_set.warm(u64::MAX);
    Both { _dir: dir, chunk_set, index_bytes_per_key, entries, records }
});

fn value_of(id: u64) -> [u8; VALUE_BYTES] {
    let mut value = [0; VALUE_BYTES];
    value.chunks_exact_mut(8).for_each(|part| part.copy_from_slice(&fmix64(id).to_le_bytes()));
    value
}

/// Random ids, one in ten absent.
fn batch(round: usize) -> Vec<[u8; 8]> {
    let count = keys() + keys() / 10;
    let random = |index: usize| fmix64((round * BATCHES * BATCH + index) as u64 + 1) % count;
    (0..BATCHES * BATCH).map(|index| random(index).to_le_bytes()).collect()
}

fn by_chunk_set(both: &Both, keys: &[[u8; 8]]) -> u64 {
    let mut sum = 0u64;
    let each = |_, value: Option<&[u8]>| {
        sum = sum.wrapping_add(value.map_or(1, first_word));
        ControlFlow::Continue(())
    };
    let mut each = each;
    for batch in keys.chunks(BATCH) {
        both.chunk_set.get_many(batch, &mut each).expect("whole files");
    }
    sum
}

/// Interpolation search over the uniform positions; ends with a binary search when few are left.
fn interpolation_search<'a>(both: &'a Both, key: &[u8; 8]) -> Option<&'a [u8]> {
    let wanted = position_of_key(key);
    let at = |index: usize| u64::from_be_bytes(*both.entries[index].first_chunk().expect("12 bytes"));
    let (mut low, mut high) = (0, both.entries.len());
    let (mut least, mut most) = (0u64, u64::MAX);
    while high - low > 8 {
        let share = (wanted - least) as f64 / (most - least) as f64;
        let guess = low + ((high - low - 1) as f64 * share) as usize;
        let found = at(guess);
        if found < wanted {
            (low, least) = (guess + 1, found);
        } else {
            (high, most) = (guess, found);
        }
        if wanted < least || most < wanted || least == most {
            break;
        }
    }
    let mut start = low;
    while start < both.entries.len() && at(start) < wanted {
        start += 1;
    }
    record_at(both, key, start)
}

fn by_interpolation_search(both: &Both, keys: &[[u8; 8]]) -> u64 {
    keys.iter().map(|key| interpolation_search(both, key).map_or(1, first_word)).fold(0, u64::wrapping_add)
}

fn by_binary_search(both: &Both, keys: &[[u8; 8]]) -> u64 {
    keys.iter().map(|key| binary_search(both, key).map_or(1, first_word)).fold(0, u64::wrapping_add)
}

fn binary_search<'a>(both: &'a Both, key: &[u8; 8]) -> Option<&'a [u8]> {
    let position = position_of_key(key).to_be_bytes();
    let start = both.entries.partition_point(|entry| entry[..8] < position[..]);
    record_at(both, key, start)
}

/// The record of a key among the entries from the first with its position on.
fn record_at<'a>(both: &'a Both, key: &[u8; 8], start: usize) -> Option<&'a [u8]> {
    let position = position_of_key(key).to_be_bytes();
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

/// Times all in turn, checks that they agree, and prints ratios to the chunk set.
fn paired() {
    let both = &*BOTH;
    let mut times: [Vec<f64>; 3] = Default::default();
    for round in 0..ROUNDS {
        let keys = batch(round);
        let mut sums = Vec::new();
        for (search, times) in
            [by_chunk_set, by_binary_search, by_interpolation_search].into_iter().zip(&mut times)
        {
            let start = nanoseconds_on_processor();
            sums.push(search(both, &keys));
            times.push((nanoseconds_on_processor() - start) as f64 / keys.len() as f64);
        }
        assert!(sums.iter().all(|sum| *sum == sums[0]), "all find the same");
    }
    let [ours, binary, interpolation] = &times;
    println!(
        "batches of {BATCH}, {} keys: {:.1} ns of processor per key (fastest {:.1}), {:.2} index bytes per key (sorted table: 12.00)",
        keys(),
        median(ours.clone())[1],
        ours.iter().copied().fold(f64::MAX, f64::min),
        both.index_bytes_per_key
    );
    for (name, theirs) in [("binary", binary), ("interpolation", interpolation)] {
        let ratios = theirs.iter().zip(ours).map(|(theirs, ours)| theirs / ours).collect();
        let [low, middle, high] = median(ratios);
        println!("{name} search / chunk set = {middle:.2} (95 %: {low:.2}-{high:.2})");
    }
}

/// Time that this thread had a processor, so that neighbours on the machine do not count but for the caches they share:
/// the first field of its `schedstat`, which moves in ticks of a few milliseconds.
fn nanoseconds_on_processor() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux keeps it");
    text.split(' ').next().and_then(|field| field.parse().ok()).expect("the first field is a number")
}

/// Median between the ends of its 95 % interval: ranks 14 and 28 of 41.
fn median(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [values[13], values[ROUNDS / 2], values[27]]
}

fn main() {
    paired();
    divan::main();
}
