//! Patches. A patch is a hint: the fetched version is complete, whatever the patch says.

use super::folder;
use super::manifest::read;
use crate::properties::{Seed, take};
use kith_engine::{
    FetchOptions, KeyType, Manifest, ObjectError, PATCH_NAME, Source, fetch, fetch_component,
    verify_component,
};
use kith_files::{DeltaBuilder, DeltaOptions, ValuesBuilder, ValuesOptions};
use kith_types::{PartitionCount, PartitionId, StoreVersion, crc32c};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::LazyLock;
use tempfile::TempDir;

static VERSIONS: LazyLock<Versions> = LazyLock::new(Versions::new);

/// Two versions of a store. The second was built from the first, which a node holds.
struct Versions {
    _root: TempDir,
    held: PathBuf,
    partitions: Vec<PartitionId>,
    manifest: Manifest,
    /// The files of the second version and its patch.
    objects: BTreeMap<String, Vec<u8>>,
}

impl Versions {
    fn new() -> Self {
        let root = folder();
        let store = root.path().join("people");
        let count = PartitionCount::new(2).expect("two is a count");
        let options = ValuesOptions::new("people", StoreVersion(1), count, store.clone());
        let mut builder =
            ValuesBuilder::new(ValuesOptions { key: KeyType::Id, memory_bytes: 1 << 20, ..options })
                .expect("a build starts");
        for id in 0..60u64 {
            builder.row(&id.to_le_bytes(), &[b'v'; 60]).expect("a row of the store");
        }
        builder.finish(&mut |_| {}).expect("a version can be built");
        let options = DeltaOptions::new(StoreVersion(2), store.clone());
        let mut delta = DeltaBuilder::new(&store.join("1"), options).expect("a build starts");
        for id in [5u64, 6, 7, 20] {
            delta.put(&id.to_le_bytes(), b"another value").expect("a row of the store");
        }
        delta.put(&100u64.to_le_bytes(), b"one more").expect("a row of the store");
        delta.delete(&9u64.to_le_bytes()).expect("a key of the store");
        let (manifest, _) = delta.finish(&mut |_| {}).expect("a version can be built");
        let partitions: Vec<_> = count.iter().collect();
        let held = root.path().join("held");
        fetch_component(&store.join("1"), &held, &partitions, &mut |_| ControlFlow::Continue(()))
            .expect("a version can be fetched");
        let objects = read(&store.join("2")).into_iter().collect();
        Self { _root: root, held, partitions, manifest, objects }
    }

    fn patch(&self) -> &[u8] {
        self.objects.get(PATCH_NAME).expect("few changes make a patch")
    }
}

/// The files of the second version, with the patch of the input.
struct Patched<'a>(&'a Versions, &'a [u8]);

impl Source for Patched<'_> {
    fn read(&self, object: &str, offset: u64, into: &mut [u8]) -> Result<usize, ObjectError> {
        let bytes = match object {
            PATCH_NAME => Some(self.1),
            _ => self.0.objects.get(object).map(Vec::as_slice),
        };
        let bytes = bytes.ok_or_else(|| ObjectError::Missing { object: object.to_owned() })?;
        let rest = &bytes[bytes.len().min(offset as usize)..];
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

/// Input: flags, then a patch.
pub fn check(mut input: &[u8]) {
    let flags = take(&mut input);
    let versions = &*VERSIONS;
    let mut patch = input.to_vec();
    if flags & 1 == 0 {
        seal(&mut patch);
    }
    let dir = folder();
    let target = dir.path().join("fetched");
    let options = FetchOptions { held: vec![versions.held.clone()], ..FetchOptions::default() };
    let source = Patched(versions, &patch);
    let fetched = fetch(&source, &target, &versions.partitions, &options, &mut |_| ControlFlow::Continue(()));
    assert_eq!(fetched.expect("the version is fetched, whatever the patch is"), versions.manifest);
    let report = verify_component(&target, None).expect("what was fetched can be opened");
    assert_eq!(report.damages, []);
}

/// The offset of the first section, and the size of each.
const SECTIONS_AT: usize = 80;
const SECTION_BYTES: usize = 44;

/// Computes the hash of each section whose bytes are present, and the checksum of the head.
fn seal(patch: &mut [u8]) {
    let Some(count) = patch.get(12..16).and_then(|count| count.try_into().ok()).map(u32::from_le_bytes)
    else {
        return;
    };
    let Some(head) = (count as usize).checked_mul(SECTION_BYTES).map(|bytes| bytes + SECTIONS_AT) else {
        return;
    };
    if patch.len() < head + 4 {
        return;
    }
    let mut at = head + 4;
    for section in (SECTIONS_AT..head).step_by(SECTION_BYTES) {
        let bytes: [u8; 8] = patch[section + 4..section + 12].try_into().expect("eight bytes");
        let end = usize::try_from(u64::from_le_bytes(bytes)).ok().and_then(|bytes| at.checked_add(bytes));
        let Some(changes) = end.and_then(|end| patch.get(at..end)) else { break };
        let hash = *blake3::hash(changes).as_bytes();
        at += changes.len();
        patch[section + 12..section + SECTION_BYTES].copy_from_slice(&hash);
    }
    let crc = crc32c(&patch[..head]);
    patch[head..head + 4].copy_from_slice(&crc.to_le_bytes());
}

pub fn seeds() -> Vec<Seed> {
    let patch = VERSIONS.patch();
    let changed = |at: usize, bytes: &[u8]| {
        let mut patch = [&[0][..], patch].concat();
        patch[1 + at..][..bytes.len()].copy_from_slice(bytes);
        patch
    };
    let sections = u32::from_le_bytes(patch[12..16].try_into().expect("four bytes")) as usize;
    let head = SECTIONS_AT + sections * SECTION_BYTES + 4;
    vec![
        ("whole", changed(0, &[])),
        ("none", Vec::new()),
        ("not-sealed", [&[1][..], &patch[..patch.len() - 1]].concat()),
        ("sections-without-end", changed(12, &u32::MAX.to_le_bytes())),
        ("a-section-of-all-numbers", changed(SECTIONS_AT + 4, &u64::MAX.to_le_bytes())),
        ("another-partition", changed(SECTIONS_AT, &7u32.to_le_bytes())),
        ("a-key-without-end", changed(head, &[0xff, 0xff, 0xff, 0x7f])),
        ("of-another-version", changed(16, &[7; 32])),
    ]
}
