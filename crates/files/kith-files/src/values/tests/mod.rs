//! Compares builders with a map, and with each other.

mod delta;
mod partitions;

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

/// Reads all rows back in every possible way.
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

/// Rows that resemble those of a store.
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
fn rows_that_cannot_be_are_reported_by_their_key() {
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
        let location = reader.place_of(key).unwrap();
        let pack = std::fs::read(location.pack.unwrap()).unwrap();
        let record = &pack[location.pack_offset as usize..][..6 + key.len() + value.len()];
        assert_eq!((&record[6..6 + key.len()], &record[6 + key.len()..]), (key.as_slice(), value.as_slice()));
        assert_eq!(location.file.unwrap().partition, location.partition);
    }
    assert_eq!(reader.place_of(b"nobody").unwrap().file, None);
}
