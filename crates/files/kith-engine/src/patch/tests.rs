//! Reads patches, and refuses invalid ones.

use super::head::Section;
use super::*;
use crate::manifest::{Content, KeyType, Manifest, ValueCounts, ValueType, ValuesContent};
use crate::source::{ObjectError, Source};
use kith_types::{PartitionCount, PartitionId, StoreVersion, position_of_key};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// An object in memory.
struct Bytes(Vec<u8>);

impl Source for Bytes {
    fn read(&self, _: &str, offset: u64, into: &mut [u8]) -> Result<usize, ObjectError> {
        let rest = self.0.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

/// A manifest that lists files of `bytes` bytes.
fn manifest(version: u64, bytes: u64) -> Manifest {
    let content = Content::Values(ValuesContent {
        key: KeyType::Bytes,
        value: ValueType::Bytes,
        schema: None,
        compression: None,
        counts: ValueCounts::default(),
    });
    let entry = |partition| crate::FileEntry {
        name: format!("p{partition:05}.data"),
        pack: 0,
        offset: 0,
        bytes,
        records: 0,
        blake3: String::new(),
        crc32c: 0,
        first_position: None,
    };
    let partitions = PartitionCount::new(9).unwrap();
    Manifest::new(
        "people".to_owned(),
        StoreVersion(version),
        partitions,
        content,
        (0..9).map(entry).collect(),
    )
}

type Wanted = BTreeMap<PartitionId, BTreeMap<(u64, Vec<u8>), Option<Vec<u8>>>>;

/// Reads all changes of the partitions that `wanted` selects.
fn read(
    patch: &Bytes,
    new: &Manifest,
    wanted: &dyn Fn(PartitionId) -> bool,
) -> Result<Wanted, UnusablePatch> {
    let (head, mut bytes) = PatchBytes::open(patch, new)?;
    let mut found = Wanted::new();
    for (section, at) in bytes.want(&head, wanted) {
        let mut reader = SectionReader::open(&mut bytes, section, at)?;
        let changes = found.entry(section.partition).or_default();
        while let Some(change) = reader.change() {
            let stored = change.is_put.then(|| change.stored.clone());
            changes.insert((change.position, change.key.clone()), stored);
            reader.advance()?;
        }
    }
    Ok(found)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn what_was_written_is_read_and_nothing_else(
        changes in prop::collection::vec(
            (0u32..9, prop::collection::vec(any::<u8>(), 0..40),
             prop::option::of(prop_oneof![4 => 0usize..300, 1 => 0usize..70_000])), 1..60),
        only in prop::option::of(0u32..9),
        flipped: prop::sample::Index,
    ) {
        let mut expected = Wanted::new();
        for (partition, key, value) in changes {
            let value = value.map(|bytes| vec![key.len() as u8; bytes]);
            expected.entry(PartitionId(partition)).or_default().insert((position_of_key(&key), key), value);
        }
        let (base, new) = (manifest(1, 1 << 30), manifest(2, 1 << 30));
        let dir = tempfile::tempdir().unwrap();
        let mut writer = PatchWriter::new(dir.path()).unwrap();
        for (partition, changes) in &expected {
            writer.begin(*partition);
            for ((_, key), value) in changes {
                match value {
                    Some(value) => writer.put(key, value).unwrap(),
                    None => writer.delete(key).unwrap(),
                }
            }
        }
        let patched = writer.finish(&base, &new).unwrap();
        let mut patch = Bytes(std::fs::read(dir.path().join(PATCH_NAME)).unwrap());
        prop_assert_eq!(patched.bytes, patch.0.len() as u64);
        prop_assert_eq!(read(&patch, &new, &|_| true), Ok(expected.clone()));
        if let Some(only) = only {
            expected.retain(|partition, _| partition.0 == only);
            prop_assert_eq!(read(&patch, &new, &|partition| partition.0 == only), Ok(expected));
        }
        prop_assert_eq!(read(&patch, &base, &|_| true), Err(UnusablePatch), "of another version");
        let at = flipped.index(patch.0.len());
        patch.0[at] ^= 0x10;
        prop_assert_eq!(read(&patch, &new, &|_| true), Err(UnusablePatch));
        patch.0[at] ^= 0x10;
        patch.0.truncate(at);
        prop_assert_eq!(read(&patch, &new, &|_| true), Err(UnusablePatch));
    }
}

#[test]
fn sections_that_make_little_of_much_are_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = PatchWriter::new(dir.path()).unwrap();
    for (partition, bytes) in [(1, 2), (4, 600), (7, 300)] {
        writer.begin(PartitionId(partition));
        writer.put(b"key", &vec![7; bytes]).unwrap();
    }
    let (base, new) = (manifest(1, 1_000), manifest(2, 1_000));
    let patched = writer.finish(&base, &new).unwrap();
    assert_eq!(patched.partitions, [PartitionId(1), PartitionId(7)].into());
    let patch = Bytes(std::fs::read(dir.path().join(PATCH_NAME)).unwrap());
    let found = read(&patch, &new, &|_| true).unwrap();
    assert_eq!(found.keys().copied().collect::<Vec<_>>(), [PartitionId(1), PartitionId(7)]);
}

#[test]
fn heads_that_cannot_be_are_refused() {
    let section = |partition| Section { partition: PartitionId(partition), bytes: 5, blake3: [1; 32] };
    let hash = |version| manifest(version, 100).hash();
    let head = |sections| Head { base: hash(1), manifest: hash(2), sections };
    let sorted = head(vec![section(1), section(2)]);
    assert_eq!(Head::decode(&sorted.encode()), Ok(sorted.clone()));
    assert_eq!(Head::bytes_of(&sorted.encode(), 9), Ok(sorted.encode().len()));
    assert_eq!(Head::bytes_of(&sorted.encode(), 1), Err(UnusablePatch), "more sections than partitions");
    assert_eq!(Head::decode(&head(vec![section(2), section(2)]).encode()), Err(UnusablePatch));
    let mut newer = sorted.encode();
    newer[8] = 2;
    let (covered, crc) = newer.split_last_chunk_mut::<4>().unwrap();
    *crc = kith_types::crc32c(covered).to_le_bytes();
    assert_eq!(Head::decode(&newer), Err(UnusablePatch), "another format version");
    // A section larger than all files of the version would be read into memory.
    let large = Section { bytes: 1 << 40, ..section(1) };
    let patch = Bytes(head(vec![large]).encode());
    assert!(PatchBytes::open(&patch, &manifest(2, 100)).is_err());
}
