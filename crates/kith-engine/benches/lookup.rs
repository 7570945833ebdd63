//! Lookup of keys in batches of 32: chunk set against the sorted table of 12-byte entries of Voldemort §5.1, by binary
//! and by interpolation search (Voldemort §5.5), step by step:
//!
//! 1. the index alone, from key to the record's offset;
//! 2. with the record read at that offset and its key compared;
//! 3. with the record proven by its checksum, and each absence by those of the index: what production does. The sorted
//!    table proves nothing.
//!
//! All alternate over the same keys; answers of a step are compared. Beside them the floor: as many independent reads of
//! memory of the index's size. `KITH_BENCH_KEYS` changes the number of keys. With a name or a filter as argument, only the
//! small benchmarks behind these run: `chunk_set_index`, `chunk_set_proven` under a profiler.

use divan::Bencher;
use kith_engine::{
    ChunkSetReader, ChunkSetWriter, Content, Counts, FileKind, GraphContent, KeyType, Manifest, ValuesReader,
    VersionFolder, seal_version,
};
use kith_load::{ValuesBuilder, ValuesOptions};
use kith_ops::{KindRole, LookupKeys, ValueSource};
use kith_types::{ByteKeys, PartitionCount, PartitionId, StoreVersion, fmix64, position_of_key};
use std::ops::ControlFlow;
use std::sync::LazyLock;

/// Keys of one call, as a node looks them up.
const BATCH: usize = 32;
/// Batches of one timing.
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
    /// The data file's bytes, once more: what the second step reads.
    data: Vec<u8>,
    /// As many bytes as the index has, at random.
    noise: Vec<u64>,
    entries: Vec<[u8; 12]>,
    records: Vec<u8>,
}

static BOTH: LazyLock<Both> = LazyLock::new(|| {
    let mut ids: Vec<u64> = (0..keys()).collect();
    ids.sort_unstable_by_key(|id| position_of_key(&id.to_le_bytes()));
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut writer =
        ChunkSetWriter::create(dir.path(), PartitionId(0), None, KeyType::Id).expect("an empty folder");
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
    let [data_file, index_file] = &files[..] else { panic!("one chunk set") };
    assert!(index_file.name.ends_with(FileKind::Index.extension()));
    let index_bytes_per_key = index_file.bytes as f64 / keys() as f64;
    let noise = (0..index_file.bytes / 8).map(fmix64).collect();
    let data = std::fs::read(dir.path().join(&data_file.name)).expect("it was just written");
    let (role, count) = (KindRole::MembersOnly, PartitionCount::new(1).expect("one is a count"));
    let graph = "bench".to_owned();
    let content =
        Content::Graph(GraphContent { graph, role, columns: Vec::new(), counts: Counts::default() });
    let manifest = Manifest::new("bench".to_owned(), StoreVersion(1), count, content, files);
    seal_version(dir.path(), &manifest).expect("room for the pack");
    let folder = VersionFolder::open(dir.path()).expect("a whole folder");
    let chunk_set = ChunkSetReader::open(&folder, PartitionId(0), None).expect("whole files");
    // Both lie in memory; page faults are not what is compared.
    chunk_set.warm(u64::MAX);
    Both { _dir: dir, chunk_set, index_bytes_per_key, data, noise, entries, records }
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

/// The third step: found or absent, proven.
fn proven(both: &Both, keys: &[[u8; 8]]) -> u64 {
    let mut sum = 0u64;
    for batch in keys.chunks(BATCH) {
        let each = |_, value: Option<&[u8]>| {
            sum = sum.wrapping_add(value.map_or(1, first_word));
            ControlFlow::Continue(())
        };
        both.chunk_set.get_many(batch, each).expect("whole files");
    }
    sum
}

/// The second step: what a lookup would be if files could be trusted.
fn compared(both: &Both, keys: &[[u8; 8]]) -> u64 {
    let mut sum = 0u64;
    let mut places = [None; BATCH];
    for batch in keys.chunks(BATCH) {
        both.chunk_set.candidates(batch, |index, place| places[index] = place.map(|(_, offset)| offset));
        for (key, place) in batch.iter().zip(&places) {
            let value = place.map(|offset| record_of(&both.data[offset as usize..], key));
            // Another key with this one's fingerprint, one in some ten thousand: the place of the next is not told.
            let value = if value == Some(None) {
                both.chunk_set.get(key).expect("whole files")
            } else {
                value.flatten()
            };
            sum = sum.wrapping_add(value.map_or(1, first_word));
        }
    }
    sum
}

/// The value of a record of the data file if it is of this key.
fn record_of<'a>(bytes: &'a [u8], key: &[u8; 8]) -> Option<&'a [u8]> {
    // Checksum, one byte for the length of the key, one for that of the value.
    let (head, rest) = bytes.split_at(6);
    debug_assert_eq!(head[4..], [8, VALUE_BYTES as u8]);
    (rest[..8] == key[..]).then_some(&rest[8..8 + VALUE_BYTES])
}

/// The first step. Of absent keys one in some ten thousand has a fingerprint of its line.
fn index_alone(both: &Both, keys: &[[u8; 8]]) -> u64 {
    let mut present = 0;
    for batch in keys.chunks(BATCH) {
        let mut offsets = 0u64;
        both.chunk_set.candidates(batch, |_, place| {
            present += u64::from(place.is_some());
            offsets = offsets.wrapping_add(place.map_or(0, |(_, offset)| offset));
        });
        divan::black_box(offsets);
    }
    present
}

/// The first entry at or behind the key's position, by halving.
fn binary_search(both: &Both, key: &[u8; 8]) -> usize {
    let position = position_of_key(key).to_be_bytes();
    both.entries.partition_point(|entry| entry[..8] < position[..])
}

/// The same by interpolation over the uniform positions; ends with single steps when few are left.
fn interpolation_search(both: &Both, key: &[u8; 8]) -> usize {
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
    while low < both.entries.len() && at(low) < wanted {
        low += 1;
    }
    low
}

type Search = fn(&Both, &[u8; 8]) -> usize;

/// The first step by a search of the sorted table.
fn index_by(search: Search, both: &Both, keys: &[[u8; 8]]) -> u64 {
    let present = keys.iter().map(|key| {
        let entry = both.entries.get(search(both, key));
        divan::black_box(entry.map(offset_of));
        u64::from(entry.is_some_and(|entry| entry[..8] == position_of_key(key).to_be_bytes()))
    });
    present.sum()
}

/// The second step by a search of the sorted table.
fn record_by(search: Search, both: &Both, keys: &[[u8; 8]]) -> u64 {
    let values = keys.iter().map(|key| record_at(both, key, search(both, key)).map_or(1, first_word));
    values.fold(0, u64::wrapping_add)
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

/// The floor: one read a key of memory of the index's size, those of a batch independent of each other, each batch behind
/// the one before.
fn floor(both: &Both, keys: &[[u8; 8]]) -> u64 {
    let mut sum = 0u64;
    for batch in keys.chunks(BATCH) {
        let before = sum;
        for key in batch {
            let random = u128::from(fmix64(before ^ u64::from_le_bytes(*key)));
            let at = (random * both.noise.len() as u128) >> 64;
            sum = sum.wrapping_add(both.noise[at as usize]);
        }
    }
    sum
}

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

/// Values as a node's operators read them, of ids and of keys that are bytes: batches of 5,000 out of 24 partitions, a key.
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

fn all_keys(bencher: Bencher<'_, '_>, search: fn(&Both, &[[u8; 8]]) -> u64) {
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

/// A way to look up a batch of keys; what it gives must be what the others of its step give, up to the step's difference.
type Side = (&'static str, fn(&Both, &[[u8; 8]]) -> u64);

/// The most keys of a timing of which fingerprints alone may say what is not so.
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

/// Times all in turn, checks that those of a step agree, and prints times and ratios to the first of each step.
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
        "{} keys in batches of {BATCH}, one in ten absent; {:.2} index bytes a key (sorted table: 12.00)",
        keys(),
        both.index_bytes_per_key
    );
    println!("nanoseconds of processor a key: median of {ROUNDS} rounds, fastest; ratio to the first (95 %)");
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

/// Time that this thread had a processor, so that neighbours on the machine do not count but for the caches they share.
fn nanoseconds_on_processor() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Median between the ends of its 95 % interval: ranks 14 and 28 of 41.
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
