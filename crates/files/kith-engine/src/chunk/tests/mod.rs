//! Compares chunk sets with an ordered map, with positions that are forced to collide.

mod refused;

use super::writer::Options;
use super::{ChunkSetReader, ChunkSetWriter, KEY_BYTES_MAX, Position};
use crate::errors::WriteError;
use crate::files::{FileId, FileKind};
use crate::manifest::{Content, KeyType, Manifest, ValueCounts, ValueType, ValuesContent};
use crate::pack::{VersionFolder, seal_version};
use kith_types::{PartitionCount, PartitionId, StoreVersion, position_of_key};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

const PARTITION: PartitionId = PartitionId(0);

type Records = BTreeMap<Vec<u8>, Vec<u8>>;

fn constant(_: &[u8]) -> u64 {
    0x1234_5678_9abc_def0
}

/// Four positions, two of them with the same fingerprint.
fn crowded(key: &[u8]) -> u64 {
    [0, 7, 7 << 32, u64::MAX][usize::from(key.first().copied().unwrap_or(0)) % 4]
}

/// Positions whose fingerprints always collide, and which are rarely equal themselves.
fn same_fingerprint(key: &[u8]) -> u64 {
    position_of_key(key) | 0xffff_ffff
}

const POSITIONS: [Position; 4] = [position_of_key, constant, crowded, same_fingerprint];

fn write(dir: &Path, records: &Records, position: Position, data_bytes_max: u64) -> Manifest {
    write_as(dir, records, Options { key: KeyType::Bytes, position, data_bytes_max })
}

fn write_as(dir: &Path, records: &Records, options: Options) -> Manifest {
    let mut sorted: Vec<_> =
        records.iter().map(|(key, value)| ((options.position)(key), key, value)).collect();
    sorted.sort();
    let mut writer = ChunkSetWriter::create_with(dir, PARTITION, None, options).unwrap();
    for (_, key, value) in sorted {
        writer.append(key, value).unwrap();
    }
    let summary = writer.finish().unwrap();
    assert_eq!(summary.records, records.len() as u64);
    sealed(dir, options.key, summary.files)
}

/// Makes a version from the files in a folder.
fn sealed(dir: &Path, key: KeyType, files: Vec<crate::FileEntry>) -> Manifest {
    let (count, counts) = (PartitionCount::new(1).unwrap(), ValueCounts::default());
    let value = ValueType::Bytes;
    let content = Content::Values(ValuesContent { key, value, schema: None, compression: None, counts });
    let manifest = Manifest::new("plain".to_owned(), StoreVersion(1), count, content, files);
    seal_version(dir, &manifest).unwrap();
    manifest
}

fn open(dir: &Path, position: Position) -> Result<ChunkSetReader, crate::OpenError> {
    ChunkSetReader::open_with(&VersionFolder::open(dir)?, PARTITION, None, Some(position))
}

fn check(records: &Records, absent: &[Vec<u8>], position: Position, data_bytes_max: u64) {
    let are_ids = records.keys().all(|key| key.len() == 8);
    for key in [KeyType::Bytes, KeyType::Id].into_iter().take(if are_ids { 2 } else { 1 }) {
        check_as(records, absent, Options { key, position, data_bytes_max });
    }
}

fn check_as(records: &Records, absent: &[Vec<u8>], options: Options) {
    let dir = tempfile::tempdir().unwrap();
    write_as(dir.path(), records, options);
    let reader = open(dir.path(), options.position).unwrap();
    assert_eq!(reader.records(), records.len() as u64);
    for (key, value) in records {
        assert_eq!(reader.get(key).unwrap(), Some(value.as_slice()));
    }
    let keys: Vec<&Vec<u8>> = records.keys().chain(absent).collect();
    let mut answered = 0;
    reader
        .get_many(&keys, |index, value| {
            assert_eq!(index, answered);
            assert_eq!(value, records.get(keys[index]).map(Vec::as_slice));
            answered += 1;
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(answered, keys.len());
    check_candidates(&reader, &keys, records);
    let mut walked = Records::new();
    reader.for_each(|key, value| assert!(walked.insert(key.to_vec(), value.to_vec()).is_none())).unwrap();
    assert_eq!(&walked, records);
    reader.check().unwrap();
}

/// Checks that each present key has a candidate, and that every candidate is a record.
fn check_candidates(reader: &ChunkSetReader, keys: &[&Vec<u8>], records: &Records) {
    let mut starts = BTreeMap::new();
    reader
        .try_for_each(|found, key| {
            starts.insert((found.file().set, found.offset()), key.to_vec());
            Ok::<_, crate::ReadError>(ControlFlow::Continue(()))
        })
        .unwrap();
    let mut count = 0;
    reader.candidates(keys, |index, location| {
        assert_eq!(index, count);
        count += 1;
        let candidate = location.map(|(file, offset)| &starts[&(file.set, offset)]);
        assert!(candidate.is_some() || !records.contains_key(keys[index]));
        if let Some(candidate) = candidate {
            assert!(records.contains_key(candidate));
        }
    });
    assert_eq!(count, keys.len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_chunk_set_answers_as_a_map_does(
        records in prop::collection::btree_map(prop::collection::vec(any::<u8>(), 0..12), prop::collection::vec(any::<u8>(), 0..200), 0..400),
        absent in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..12), 0..100),
        position in prop::sample::select(POSITIONS.to_vec()),
        data_bytes_max in prop::sample::select(vec![1u64, 500, 4_000, 1 << 30]),
    ) {
        check(&records, &absent, position, data_bytes_max);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn ids_are_found_as_ids_and_as_bytes(
        records in prop::collection::btree_map(any::<u64>().prop_map(|id| id.to_le_bytes().to_vec()), prop::collection::vec(any::<u8>(), 0..200), 0..400),
        absent in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..12), 0..100),
        position in prop::sample::select(POSITIONS.to_vec()),
        data_bytes_max in prop::sample::select(vec![500u64, 4_000, 1 << 30]),
    ) {
        check(&records, &absent, position, data_bytes_max);
    }
}

#[test]
fn ids_say_no_length() {
    let records: Records = (0..1_000u64).map(|id| (id.to_le_bytes().to_vec(), vec![7; 100])).collect();
    let data = FileId { partition: PARTITION, list: None, kind: FileKind::Data, set: 0 };
    let bytes = [KeyType::Bytes, KeyType::Id].map(|key| {
        let dir = tempfile::tempdir().unwrap();
        let manifest = write_as(dir.path(), &records, Options { key, ..Options::default() });
        manifest.entry(data).unwrap().bytes
    });
    assert_eq!(bytes[0] - bytes[1], 1_000);
    let dir = tempfile::tempdir().unwrap();
    let mut writer = ChunkSetWriter::create(dir.path(), PARTITION, None, KeyType::Id).unwrap();
    assert!(matches!(writer.append(b"seven b", b""), Err(WriteError::NoId { bytes: 7, .. })));
}

#[test]
fn lengths_of_keys_stand_where_keys_are_no_ids_and_nowhere_else() {
    let records = Records::from([(7u64.to_le_bytes().to_vec(), b"value".to_vec())]);
    for (written, stated) in [(KeyType::Bytes, KeyType::Id), (KeyType::Id, KeyType::Bytes)] {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = ChunkSetWriter::create(dir.path(), PARTITION, None, written).unwrap();
        records.iter().for_each(|(key, value)| writer.append(key, value).unwrap());
        sealed(dir.path(), stated, writer.finish().unwrap().files);
        let error = open(dir.path(), position_of_key).err().unwrap().to_string();
        assert_eq!(error, "p00000.data is damaged: type of keys differs from the manifest's");
    }
}

#[test]
fn no_record_and_one_record() {
    for position in POSITIONS {
        check(&Records::new(), &[b"a".to_vec(), Vec::new()], position, 1 << 30);
        check(&Records::from([(Vec::new(), Vec::new())]), &[b"a".to_vec()], position, 1 << 30);
    }
}

#[test]
fn keys_and_values_of_every_size() {
    let mut records = Records::new();
    for bytes in [0, 1, 127, 128, 4_096, 65_535, KEY_BYTES_MAX] {
        records.insert(vec![b'k'; bytes], vec![b'v'; bytes * 3]);
    }
    records.insert(b"large".to_vec(), vec![0; 5 << 20]);
    check(&records, &[vec![b'k'; 2], vec![b'k'; 65_534]], position_of_key, 1 << 30);
}

#[test]
fn a_hundred_thousand_keys_take_less_than_eleven_index_bytes_each() {
    let records: Records =
        (0..100_000u64).map(|id| (id.to_le_bytes().to_vec(), id.to_string().into_bytes())).collect();
    let dir = tempfile::tempdir().unwrap();
    let manifest = write(dir.path(), &records, position_of_key, 1 << 30);
    let index = FileId { partition: PARTITION, list: None, kind: FileKind::Index, set: 0 };
    let per_key = manifest.entry(index).unwrap().bytes as f64 / records.len() as f64;
    assert!(per_key < 11.0, "{per_key} bytes of index per key");
    let absent: Vec<Vec<u8>> = (100_000..110_000u64).map(|id| id.to_le_bytes().to_vec()).collect();
    check(&records, &absent, position_of_key, 1 << 30);
}

#[test]
fn keys_of_one_position_stay_in_one_set() {
    let records: Records = (0..100u64).map(|id| (id.to_le_bytes().to_vec(), vec![1; 100])).collect();
    let dir = tempfile::tempdir().unwrap();
    let manifest = write(dir.path(), &records, constant, 500);
    assert_eq!(manifest.files.len(), 2);
    let dir = tempfile::tempdir().unwrap();
    let manifest = write(dir.path(), &records, position_of_key, 500);
    assert!(manifest.files.len() >= 40, "a set of 500 bytes holds few records");
    let firsts: Vec<_> = manifest.files.iter().filter_map(|entry| entry.first_position.clone()).collect();
    assert!(firsts.is_sorted());
}

/// The line of these keys and many lines after it are full of other entries.
#[test]
fn keys_far_behind_their_line_are_found() {
    let records: Records = (0..400u32).map(|id| (id.to_le_bytes().to_vec(), vec![1; 10])).collect();
    let absent: Vec<_> = (400..500u32).map(|id| id.to_le_bytes().to_vec()).collect();
    check(&records, &absent, crowded, 1 << 30);
}

#[test]
fn breaking_off_ends_the_reading() {
    let records: Records = (0..100u64).map(|id| (id.to_le_bytes().to_vec(), Vec::new())).collect();
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &records, position_of_key, 1 << 30);
    let reader = open(dir.path(), position_of_key).unwrap();
    let keys: Vec<_> = records.keys().collect();
    let mut calls = 0;
    reader
        .get_many(&keys, |index, _| {
            calls += 1;
            if index == 40 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
    assert_eq!(calls, 41);
}
