//! Builders against a map, and against each other.

use super::*;
use crate::version_dir;
use kith_engine::{Damage, FileEntry, ValueError, ValuesReader, verify_component};
use kith_engine::{KeyType, ValueType};
use kith_types::{PartitionCount, PartitionId, StoreVersion, fmix64, partition_of_key};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;

type Rows = Vec<(Vec<u8>, Vec<u8>)>;
type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn options(dir: &Path, partitions: u32) -> ValuesOptions {
    let partitions = PartitionCount::new(partitions).unwrap();
    ValuesOptions::new("people", StoreVersion(3), partitions, dir.join("people"))
}

fn build(options: ValuesOptions, rows: &Rows) -> Result<(Manifest, ValuesSummary), ValuesBuildError> {
    let mut builder = ValuesBuilder::new(options)?;
    for (key, value) in rows {
        builder.row(key, value)?;
    }
    builder.finish(&mut |_| {})
}

fn open(dir: &Path, version: u64) -> ValuesReader {
    let dir = version_dir(&dir.join("people"), StoreVersion(version));
    let all: Vec<PartitionId> = Manifest::read(&dir).unwrap().partition_count.iter().collect();
    ValuesReader::open(&dir, &all).unwrap()
}

/// Reads all back in every way there is.
fn check(reader: &ValuesReader, expected: &Map, absent: &[Vec<u8>]) {
    let keys: Vec<&Vec<u8>> = expected.keys().chain(absent).collect();
    let mut next = 0;
    reader.get_many(&keys, |index, value| {
        assert_eq!(index, next, "keys are answered once each, in order");
        assert_eq!(value.unwrap(), expected.get(keys[index]).map(Vec::as_slice));
        next += 1;
        ControlFlow::Continue(())
    });
    assert_eq!(next, keys.len());
    let mut walked = Map::new();
    for partition in reader.held() {
        let each = |key: &[u8], value: &[u8]| {
            assert_eq!(reader.partition_of(key).unwrap(), partition);
            assert!(walked.insert(key.to_vec(), value.to_vec()).is_none());
            ControlFlow::Continue(())
        };
        reader.for_each(partition, each).unwrap();
    }
    assert_eq!(&walked, expected);
    let counts = reader.manifest().values().unwrap().counts;
    assert_eq!(counts.records, expected.len() as u64);
    assert_eq!(counts.key_bytes, expected.keys().map(|key| key.len() as u64).sum::<u64>());
    assert_eq!(counts.value_bytes, expected.values().map(|value| value.len() as u64).sum::<u64>());
    assert!(verify_component(reader.dir(), None).unwrap().damages.is_empty());
}

fn zstd(dictionary: Option<Vec<u8>>) -> Option<ZstdOptions> {
    Some(ZstdOptions { level: 3, dictionary })
}

/// Rows that look like a store's.
fn people(count: u64) -> Rows {
    let value =
        |id: u64| format!("{{\"id\":{id},\"city\":\"{}\",\"score\":{}}}", id % 40, fmix64(id) % 1_000);
    (0..count).map(|id| (format!("member:{id}").into_bytes(), value(id).into_bytes())).collect()
}

fn map(rows: &Rows) -> Map {
    rows.iter().cloned().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_store_answers_as_a_map_does(
        rows in prop::collection::vec(
            (prop::collection::vec(any::<u8>(), 0..4), prop::collection::vec(any::<u8>(), 0..60)), 0..200),
        absent in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..4), 0..40),
        partitions in 1u32..9,
        compressed: bool,
        last: bool,
        threads in 1usize..3,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let duplicates = if last { Duplicates::Last } else { Duplicates::First };
        let compression = if compressed { zstd(None) } else { None };
        let options = ValuesOptions { duplicates, compression, threads, ..options(dir.path(), partitions) };
        let (_, summary) = build(options, &rows).unwrap();
        let mut expected = Map::new();
        for (key, value) in &rows {
            if last || !expected.contains_key(key) {
                expected.insert(key.clone(), value.clone());
            }
        }
        prop_assert_eq!(summary.duplicates, (rows.len() - expected.len()) as u64);
        check(&open(dir.path(), 3), &expected, &absent);
    }

    /// A delta gives what a build of everything gives, byte for byte.
    #[test]
    fn a_delta_equals_a_build_of_all_rows(
        base in prop::collection::btree_map(prop::collection::vec(0u8..6, 1..4), prop::collection::vec(any::<u8>(), 0..40), 0..80),
        changes in prop::collection::btree_map(
            prop::collection::vec(0u8..6, 1..4), prop::option::of(prop::collection::vec(any::<u8>(), 0..40)), 0..30),
        compressed: bool,
    ) {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let dictionary = || Some(b"words that come again and again".repeat(9));
        let compression = || if compressed { zstd(dictionary()) } else { None };
        let with = |dir: &Path, version| ValuesOptions {
            compression: compression(), version: StoreVersion(version), ..options(dir, 5)
        };
        let rows: Rows = base.clone().into_iter().collect();
        build(with(dir.path(), 3), &rows).unwrap();
        let store = dir.path().join("people");
        let mut delta = DeltaBuilder::new(&store.join("3"), DeltaOptions::new(StoreVersion(4), store.clone())).unwrap();
        let mut merged = base;
        let mut expected = DeltaSummary::default();
        for (key, change) in &changes {
            let before = merged.remove(key);
            match (change, before.is_some()) {
                (Some(_), false) => expected.added += 1,
                (Some(_), true) => expected.replaced += 1,
                (None, true) => expected.deleted += 1,
                (None, false) => expected.absent += 1,
            }
            match change {
                Some(value) => {
                    delta.put(key, value).unwrap();
                    merged.insert(key.clone(), value.clone());
                }
                None => delta.delete(key).unwrap(),
            }
        }
        let (manifest, summary) = delta.finish(&mut |_| {}).unwrap();
        prop_assert_eq!(
            (summary.added, summary.replaced, summary.deleted, summary.absent),
            (expected.added, expected.replaced, expected.deleted, expected.absent)
        );
        check(&open(dir.path(), 4), &merged, &[]);
        let all: Rows = merged.into_iter().collect();
        let (full, _) = build(with(other.path(), 4), &all).unwrap();
        prop_assert_eq!(&manifest, &full);
        // A node with the base makes the same of it and the patch, and moves nothing else.
        let all: Vec<PartitionId> = full.partition_count.iter().collect();
        let (before, after) = (dir.path().join("node/3"), dir.path().join("node/4"));
        kith_engine::fetch_component(&store.join("3"), &before, &all, &mut |_| ControlFlow::Continue(())).unwrap();
        let (source, mut last) = (kith_engine::FolderSource::new(&store.join("4")), kith_engine::FetchProgress::default());
        let held = kith_engine::FetchOptions { held: vec![before], ..kith_engine::FetchOptions::default() };
        kith_engine::fetch(&source, &after, &all, &held, &mut |progress| {
            last = progress.clone();
            ControlFlow::Continue(())
        }).unwrap();
        prop_assert_eq!(last.bytes_copied, summary.bytes_moved);
        prop_assert!(verify_component(&after, None).unwrap().damages.is_empty());
        prop_assert_eq!(kith_engine::Manifest::read(&after).unwrap(), full);
    }
}

#[test]
fn neither_order_nor_memory_nor_threads_show_in_a_byte() {
    let rows = people(6_000);
    let mut shuffled = rows.clone();
    shuffled.sort_by_key(|(key, _)| {
        fmix64(key.len() as u64 ^ u64::from(key[key.len() - 1]) << 8 ^ u64::from(key[7]))
    });
    let built = |rows: &Rows, memory_bytes, threads| {
        let dir = tempfile::tempdir().unwrap();
        let options =
            ValuesOptions { memory_bytes, threads, compression: zstd(None), ..options(dir.path(), 4) };
        let manifest = build(options, rows).unwrap().0;
        check(&open(dir.path(), 3), &map(rows), &[]);
        manifest.encode()
    };
    let first = built(&rows, 64 << 20, 1);
    assert_eq!(built(&shuffled, 1, 2), first);
}

#[test]
fn partitions_built_one_by_one_make_the_same_version() {
    let rows = people(3_000);
    let dir = tempfile::tempdir().unwrap();
    let mut sample = DictionarySample::new(Duplicates::Refuse);
    rows.iter().for_each(|(key, value)| sample.add(key, value));
    let dictionary = sample.train();
    assert!(!dictionary.is_empty());
    let with = |out: &str, dictionary| ValuesOptions {
        compression: zstd(dictionary),
        key: KeyType::String,
        value: ValueType::Json,
        out_dir: dir.path().join(out),
        ..options(dir.path(), 6)
    };
    let whole = build(with("whole", None), &rows).unwrap().0;

    let parts = with("people", Some(dictionary));
    let mut folders = Vec::new();
    for partition in parts.partitions.iter() {
        // A task may run twice, and its outcome be listed twice.
        for attempt in 0..2 {
            let folder = dir.path().join(format!("parts/{}", partition.0));
            let mut builder = PartitionBuilder::new(parts.clone(), partition, &folder).unwrap();
            let mut ours: Vec<_> =
                rows.iter().filter(|(key, _)| partition_of_key(key, parts.partitions) == partition).collect();
            if attempt == 1 {
                ours.reverse();
            }
            ours.iter().for_each(|(key, value)| builder.row(key, value).unwrap());
            builder.finish(&mut |_| {}).unwrap();
            folders.push(folder);
        }
    }
    let assembled = assemble(&parts, &folders).unwrap();
    assert_eq!(assembled, whole);
    check(&open(dir.path(), 3), &map(&rows), &[b"nobody".to_vec()]);
    assert_eq!(std::fs::read_dir(dir.path().join("parts")).unwrap().count(), 6, "nothing is left over");

    let again = |version, folders: &[PathBuf]| {
        let options = ValuesOptions { version: StoreVersion(version), ..parts.clone() };
        assemble(&options, folders).unwrap_err().to_string()
    };
    assert!(again(4, &folders).contains("other options"));
    let next = ValuesOptions { out_dir: dir.path().join("next"), ..parts.clone() };
    let missing = assemble(&next, &folders[2..]).unwrap_err().to_string();
    assert!(missing.ends_with("partition 0 is missing"), "{missing}");
    // A torn file of a task.
    let torn = folders[0].join("p00000.data");
    let bytes = std::fs::read(&torn).unwrap();
    std::fs::write(&torn, &bytes[..bytes.len() - 9]).unwrap();
    let error = assemble(&next, &folders).unwrap_err().to_string();
    assert!(error.contains("p00000.data is damaged"), "{error}");
    assert!(!dir.path().join("next/3").exists());
}

#[test]
fn a_partition_refuses_rows_of_another_and_a_second_outcome() {
    let dir = tempfile::tempdir().unwrap();
    let options = options(dir.path(), 8);
    let rows = people(50);
    let here = |partition: u32| {
        rows.iter().find(|(key, _)| partition_of_key(key, options.partitions).0 == partition).unwrap()
    };
    let folder = dir.path().join("part");
    let mut builder = PartitionBuilder::new(options.clone(), PartitionId(2), &folder).unwrap();
    let (key, value) = here(3);
    let error = builder.row(key, value).unwrap_err();
    assert!(matches!(error, ValuesBuildError::OtherPartition { expected: 2, got: 3, .. }), "{error}");
    builder.row(&here(2).0, b"one").unwrap();
    builder.finish(&mut |_| {}).unwrap();
    let mut builder = PartitionBuilder::new(options.clone(), PartitionId(2), &folder).unwrap();
    builder.row(&here(2).0, b"two").unwrap();
    let error = builder.finish(&mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("of other rows or options"), "{error}");
    let compressed = ValuesOptions { compression: zstd(None), ..options };
    let error = PartitionBuilder::new(compressed, PartitionId(2), &folder).err().unwrap();
    assert!(matches!(error, ValuesBuildError::NoDictionary), "{error}");
}

#[test]
fn rows_that_cannot_be_are_told_by_their_key() {
    let dir = tempfile::tempdir().unwrap();
    let ids = ValuesOptions { key: KeyType::Id, ..options(dir.path(), 2) };
    let mut builder = ValuesBuilder::new(ids).unwrap();
    builder.row(&7u64.to_le_bytes(), b"").unwrap();
    assert!(matches!(builder.row(b"seven", b""), Err(ValuesBuildError::KeyLength { got: 5 })));
    let large = vec![0; (64 << 20) + 1];
    let error = builder.row(&8u64.to_le_bytes(), &large).unwrap_err().to_string();
    assert_eq!(error, "value of key 8 has 67108865 bytes, at most 67108864 are allowed");
    builder.row(&7u64.to_le_bytes(), b"again").unwrap();
    let error = builder.finish(&mut |_| {}).err().unwrap().to_string();
    assert_eq!(error, "key 7 comes twice");
    assert!(!dir.path().join("people/3").exists() && !dir.path().join("people/.staging").exists());
}

#[test]
fn the_largest_and_the_empty_value_are_ordinary() {
    let dir = tempfile::tempdir().unwrap();
    let rows: Rows = vec![
        (b"large".to_vec(), (0..64usize << 20).map(|at| (at / 7) as u8).collect()),
        (b"empty".to_vec(), Vec::new()),
        (vec![b'k'; kith_engine::KEY_BYTES_MAX], b"long key".to_vec()),
    ];
    build(ValuesOptions { memory_bytes: 1 << 20, ..options(dir.path(), 3) }, &rows).unwrap();
    check(&open(dir.path(), 3), &map(&rows), &[Vec::new()]);
}

#[test]
fn keys_of_partitions_that_are_not_here_are_never_absent() {
    let dir = tempfile::tempdir().unwrap();
    let rows = people(100);
    build(options(dir.path(), 4), &rows).unwrap();
    let reader = ValuesReader::open(&dir.path().join("people/3"), &[PartitionId(1)]).unwrap();
    for (key, value) in &rows {
        let partition = partition_of_key(key, PartitionCount::new(4).unwrap());
        match reader.get(key) {
            Ok(found) => assert_eq!((found.as_ref(), partition.0), (Some(value), 1)),
            Err(error) => assert_eq!(error, ValueError::NotHeld { partition }),
        }
    }
}

#[test]
fn a_place_leads_to_the_record() {
    let dir = tempfile::tempdir().unwrap();
    let rows = people(300);
    build(options(dir.path(), 4), &rows).unwrap();
    let reader = open(dir.path(), 3);
    for (key, value) in &rows {
        let place = reader.place_of(key).unwrap();
        let pack = std::fs::read(place.pack.unwrap()).unwrap();
        let record = &pack[place.pack_offset as usize..][..6 + key.len() + value.len()];
        assert_eq!((&record[6..6 + key.len()], &record[6 + key.len()..]), (key.as_slice(), value.as_slice()));
        assert_eq!(place.file.unwrap().partition, place.partition);
    }
    assert_eq!(reader.place_of(b"nobody").unwrap().file, None);
}

#[test]
fn a_delta_moves_what_changed_and_links_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    let rows: Rows = (0..64u64)
        .map(|id| {
            (id.to_le_bytes().to_vec(), (0..200_000u64).map(|at| fmix64(id << 32 | at) as u8).collect())
        })
        .collect();
    let (base, _) = build(ValuesOptions { key: KeyType::Id, ..options(dir.path(), 4) }, &rows).unwrap();
    let store = dir.path().join("people");
    let mut delta =
        DeltaBuilder::new(&store.join("3"), DeltaOptions::new(StoreVersion(4), store.clone())).unwrap();
    delta.put(&5u64.to_le_bytes(), b"short").unwrap();
    let (manifest, summary) = delta.finish(&mut |_| {}).unwrap();
    assert_eq!((summary.partitions, summary.replaced), (1, 1));
    let same = |file: &&FileEntry| base.files.iter().any(|old| old.blake3 == file.blake3);
    assert_eq!(manifest.files.iter().filter(same).count(), 3 * 2, "three of four partitions are as before");
    let total: u64 = manifest.files.iter().map(|file| file.bytes).sum();
    assert!(summary.bytes_changed < total / 2, "{summary:?} of {total}");
    use std::os::unix::fs::MetadataExt;
    let links = |version: &str| {
        let packs =
            std::fs::read_dir(store.join(version)).unwrap().map(|entry| entry.unwrap().metadata().unwrap());
        packs.filter(|pack| pack.nlink() == 2).count()
    };
    assert_eq!((links("3"), links("4")), (3, 3));
    let damaged = store.join("4/00003.pack");
    let mut bytes = std::fs::read(&damaged).unwrap();
    bytes[1_000_000] ^= 1;
    std::fs::write(&damaged, bytes).unwrap();
    let mut delta =
        DeltaBuilder::new(&store.join("4"), DeltaOptions::new(StoreVersion(5), store.clone())).unwrap();
    let changed: Vec<u64> = (0..64)
        .filter(|id: &u64| kith_types::partition_of_id(*id, manifest.partition_count).0 == 0)
        .collect();
    delta.delete(&changed[0].to_le_bytes()).unwrap();
    let error = delta.finish(&mut |_| {}).err().unwrap();
    assert!(
        matches!(&error, ValuesBuildError::Base(kith_engine::OpenError::Damaged(Damage { .. }))),
        "{error}"
    );
    assert!(!store.join("5").exists(), "damage is not carried into a new version");
}
