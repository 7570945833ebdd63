//! The same records as a chunk set and as the sorted table of Voldemort §5.1, and the keys to look up.

use kith_engine::{
    ChunkSetReader, ChunkSetWriter, Content, Counts, FileKind, GraphContent, KeyType, Manifest,
    VersionFolder, seal_version,
};
use kith_schema::KindRole;
use kith_types::{PartitionCount, PartitionId, StoreVersion, fmix64, position_of_key};
use std::sync::LazyLock;

/// The keys of one call, as many as a node looks up at once.
pub const BATCH: usize = 32;

/// The batches of one timing.
pub const BATCHES: usize = 10_000;

pub const VALUE_BYTES: usize = 32;

pub fn keys() -> u64 {
    std::env::var("KITH_BENCH_KEYS").ok().and_then(|text| text.parse().ok()).unwrap_or(10_000_000)
}

/// Both layouts over the same records. A key is the eight bytes of an id, and its value is the hash of the id, repeated.
pub struct BothLayouts {
    _dir: tempfile::TempDir,
    pub chunk_set: ChunkSetReader,
    pub index_bytes_per_key: f64,
    /// A copy of the data file, for the second step.
    pub data: Vec<u8>,
    /// Random words, as many bytes as the index has.
    pub noise: Vec<u64>,
    pub entries: Vec<[u8; 12]>,
    pub records: Vec<u8>,
}

pub static BOTH: LazyLock<BothLayouts> = LazyLock::new(|| {
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
    // Both layouts lie in memory, because page faults are not part of the comparison.
    chunk_set.warm(u64::MAX);
    BothLayouts { _dir: dir, chunk_set, index_bytes_per_key, data, noise, entries, records }
});

pub fn value_of(id: u64) -> [u8; VALUE_BYTES] {
    let mut value = [0; VALUE_BYTES];
    value.chunks_exact_mut(8).for_each(|part| part.copy_from_slice(&fmix64(id).to_le_bytes()));
    value
}

/// A batch of random ids, one in ten of them absent.
pub fn batch(round: usize) -> Vec<[u8; 8]> {
    let count = keys() + keys() / 10;
    let random = |index: usize| fmix64((round * BATCHES * BATCH + index) as u64 + 1) % count;
    (0..BATCHES * BATCH).map(|index| random(index).to_le_bytes()).collect()
}
