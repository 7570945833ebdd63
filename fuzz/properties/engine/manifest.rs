//! The JSON documents of a version: manifest, layout, and the summary of a partition that a task built.

use super::sealed::{Sealed, chunk_set, graph, members, values, version};
use super::{PARTITION, folder};
use crate::properties::Seed;
use kith_engine::{
    ComponentReader, Compression, Content, FileEntry, FileId, KeyType, MANIFEST_NAME, Manifest, ValuesReader,
    VersionFolder, fetch_component, verify_component,
};
use kith_files::{Assembly, PartitionBuilder, PartitionSummary, SUMMARY_NAME, ValuesOptions};
use kith_schema::KindRole;
use kith_types::{PartitionCount, PartitionId, StoreVersion};
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::LazyLock;

const LAYOUT_NAME: &str = "layout.json";

/// Replaces the seal of a document by the valid one: BLAKE3 of the document with an empty seal.
fn seal(document: &[u8]) -> Vec<u8> {
    const BEFORE: &[u8] = b"\"seal\": \"";
    let Some(at) = document.windows(BEFORE.len()).rposition(|window| window == BEFORE) else {
        return document.to_vec();
    };
    let start = at + BEFORE.len();
    let Some(length) = document[start..].iter().position(|byte| *byte == b'"') else {
        return document.to_vec();
    };
    let (head, tail) = (&document[..start], &document[start + length..]);
    let hash = blake3::hash(&[head, tail].concat()).to_hex();
    [head, hash.as_bytes(), tail].concat()
}

/// Input: a manifest. It is also tried with a valid seal.
pub fn check(input: &[u8]) {
    for document in [input.to_vec(), seal(input)] {
        let Ok(manifest) = Manifest::decode(&document) else { continue };
        assert_eq!(manifest.encode(), document, "one content has one spelling");
        let packs = manifest.packs();
        for entry in &manifest.files {
            let id = entry.id().expect("every file is one of ours");
            assert_eq!(id.to_string(), entry.name);
            assert_eq!(FileId::parse(&entry.name), Some(id));
            let pack = &packs[entry.pack as usize];
            assert!(entry.offset + entry.bytes <= pack.bytes, "{} lies in its pack", entry.name);
        }
        let in_common = manifest.packs_in_common(&manifest);
        assert!(in_common.iter().all(|(ours, theirs)| ours == theirs));
        let partitions: Vec<_> = manifest.partition_count.iter().take(3).collect();
        assert!(manifest.bytes_of(&partitions) <= manifest.files.iter().map(|file| file.bytes).sum());
        opens_nothing(&document, &manifest);
    }
}

/// A version whose packs are missing cannot be opened, and verification lists every file.
fn opens_nothing(document: &[u8], manifest: &Manifest) {
    let dir = folder();
    fs::write(dir.path().join(MANIFEST_NAME), document).expect("a file can be written");
    let opened = match &manifest.content {
        Content::Graph(_) => ComponentReader::open(dir.path(), &[PARTITION]).is_ok(),
        Content::Values(_) => ValuesReader::open(dir.path(), &[PARTITION]).is_ok(),
    };
    assert!(!opened);
    let report = verify_component(dir.path(), None).expect("the manifest is whole");
    assert_eq!(report.damages.len(), manifest.files.len());
}

static LAID_OUT: LazyLock<LaidOut> = LazyLock::new(LaidOut::new);

/// A version that was fetched, hence has a layout.
struct LaidOut {
    manifest: Manifest,
    files: Vec<(String, Vec<u8>)>,
    key: Vec<u8>,
}

impl LaidOut {
    fn new() -> Self {
        let dir = folder();
        let (built, held) = (dir.path().join("built"), dir.path().join("held"));
        fs::create_dir(&built).expect("a folder can be made");
        let key = b"ada".to_vec();
        let files = chunk_set(PARTITION, None, KeyType::Bytes, &[(key.clone(), b"value".to_vec())]);
        version(&built, values(KeyType::Bytes, None), &[&files[0], &files[1]]);
        let manifest = fetch_component(&built, &held, &[PARTITION], &mut |_| ControlFlow::Continue(()));
        Self { manifest: manifest.expect("a version can be fetched"), files: read(&held), key }
    }
}

/// The names and contents of the files of a folder.
pub fn read(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let entries =
        fs::read_dir(dir).expect("a folder can be read").map(|entry| entry.expect("an entry can be read"));
    let mut files: Vec<_> = entries
        .map(|entry| {
            (
                entry.file_name().to_string_lossy().into_owned(),
                fs::read(entry.path()).expect("a file can be read"),
            )
        })
        .collect();
    files.sort();
    files
}

/// Input: the layout of a folder, which gets a valid seal.
pub fn layout(input: &[u8]) {
    let LaidOut { manifest, files, key } = &*LAID_OUT;
    let dir = folder();
    for (name, bytes) in files.iter().filter(|(name, _)| name != LAYOUT_NAME) {
        fs::write(dir.path().join(name), bytes).expect("a file can be written");
    }
    fs::write(dir.path().join(LAYOUT_NAME), seal(input)).expect("a file can be written");
    let Ok(opened) = VersionFolder::open(dir.path()) else { return };
    assert_eq!(opened.manifest(), manifest);
    if let Ok(reader) = ValuesReader::open_folder(opened, &[PARTITION])
        && let Ok(value) = reader.get(key)
    {
        assert_eq!(value.as_deref(), Some(&b"value"[..]), "a layout does not change what is read");
    }
    let _ = verify_component(dir.path(), None);
}

/// Input: the summary of a partition. It is also tried with a valid seal. If it can be assembled with another partition, the
/// manifest of the version can be read.
pub fn summary(input: &[u8]) {
    for document in [input.to_vec(), seal(input)] {
        let Ok(summary) = PartitionSummary::decode(&document, Path::new("parts")) else { continue };
        let is_ours = |file: &FileEntry| file.id().is_some_and(|id| id.partition.0 == summary.partition);
        assert!(summary.files.iter().all(is_ours));
        let BuiltParts { options, summaries: [_, other], .. } = &*BUILT_PARTS;
        let parts = [("0".into(), summary), ("1".into(), other.clone())];
        if let Ok(assembly) = Assembly::new(options, &parts) {
            let manifest = assembly.manifest();
            assert_eq!(&Manifest::decode(&manifest.encode()).expect("a manifest that was made"), manifest);
        }
    }
}

static BUILT_PARTS: LazyLock<BuiltParts> = LazyLock::new(BuiltParts::new);

/// Both partitions of a store, built one by one.
struct BuiltParts {
    options: ValuesOptions,
    summaries: [PartitionSummary; 2],
    /// The file of the first summary.
    document: Vec<u8>,
}

impl BuiltParts {
    fn new() -> Self {
        let dir = folder();
        let count = PartitionCount::new(2).expect("two is a count");
        let options = ValuesOptions::new("people", StoreVersion(1), count, dir.path().join("out"));
        let options =
            ValuesOptions { scratch_dir: dir.path().join("scratch"), memory_bytes: 1 << 20, ..options };
        let build = |partition: PartitionId| {
            let target = dir.path().join(partition.to_string());
            let mut builder =
                PartitionBuilder::new(options.clone(), partition, &target).expect("a builder starts");
            let keys = (0..10u64).map(|id| format!("member:{id}"));
            for key in keys.filter(|key| KeyType::Bytes.partition(key.as_bytes(), count) == Some(partition)) {
                builder.row(key.as_bytes(), b"value").expect("a row of the partition");
            }
            let summary = builder.finish(&mut |_| {}).expect("a partition can be built");
            (summary, fs::read(target.join(SUMMARY_NAME)).expect("a summary can be read"))
        };
        let ((first, document), (second, _)) = (build(PartitionId(0)), build(PartitionId(1)));
        Self { options, summaries: [first, second], document }
    }
}

pub fn seeds() -> Vec<Seed> {
    let written = |content: Content, files: &[&Sealed]| version(folder().path(), content, files).encode();
    let [data, index] = chunk_set(PARTITION, None, KeyType::Bytes, &[(b"ada".to_vec(), b"value".to_vec())]);
    let dictionary = super::sealed::dictionary();
    let plain = written(values(KeyType::Bytes, None), &[&data, &index]);
    let text = String::from_utf8(plain.clone()).expect("JSON is text");
    let changed = |from: &str, to: &str| {
        assert!(text.contains(from), "{from} is in {text}");
        text.replacen(from, to, 1).into_bytes()
    };
    let compressed = values(KeyType::Id, Some(Compression::Zstd(3)));
    vec![
        ("values", plain),
        ("compressed", written(compressed, &[&data, &index, &dictionary])),
        ("graph", written(graph(KindRole::MembersOnly), &[&members(&[1, 2, 3])])),
        ("another-place", changed("\"offset\": 0", "\"offset\": 64")),
        ("huge", changed(&format!("\"bytes\": {}", data.bytes.len()), &format!("\"bytes\": {}", u64::MAX))),
        ("a-name-that-leads-elsewhere", changed("p00000.data", "../p00000.data")),
        ("a-later-format", changed("\"kith_manifest\": 1", "\"kith_manifest\": 2")),
        ("a-field-twice", changed("\"version\": 1", "\"version\": 1,\n  \"version\": 1")),
    ]
}

pub fn layout_seeds() -> Vec<Seed> {
    let held = &LAID_OUT.files;
    let (_, layout) =
        held.iter().find(|(name, _)| name == LAYOUT_NAME).expect("a fetched version has a layout");
    let text = String::from_utf8(layout.clone()).expect("JSON is text");
    let changed = |from: &str, to: &str| {
        assert!(text.contains(from), "{from} is in {text}");
        text.replacen(from, to, 1).into_bytes()
    };
    vec![
        ("fetched", layout.clone()),
        ("another-place", changed("\"offset\": 0", "\"offset\": 64")),
        ("a-place-beyond-64-bits", changed("\"offset\": 0", &format!("\"offset\": {}", u64::MAX - 63))),
        ("a-pack-that-is-not-there", changed("\"pack\": 0", "\"pack\": 4294967295")),
        ("a-pack-that-leads-elsewhere", changed("local-", "../local-")),
        ("a-later-format", changed("\"kith_layout\": 1", "\"kith_layout\": 2")),
    ]
}

pub fn summary_seeds() -> Vec<Seed> {
    let document = &BUILT_PARTS.document;
    let text = String::from_utf8(document.clone()).expect("JSON is text");
    let changed = |from: &str, to: &str| {
        assert!(text.contains(from), "{from} is in {text}");
        text.replacen(from, to, 1).into_bytes()
    };
    let records = BUILT_PARTS.summaries[0].counts.records;
    vec![
        ("built", document.clone()),
        ("another-partition", changed("\"partition\": 0", "\"partition\": 1")),
        ("a-file-that-leads-elsewhere", changed("p00000.data", "../../p00000.data")),
        (
            "more-records-than-can-be",
            changed(&format!("\"records\": {records}"), &format!("\"records\": {}", u64::MAX)),
        ),
        ("a-position-that-is-none", changed("\"first_position\": \"", "\"first_position\": \"x")),
        ("the-same-file-twice", changed("p00000.index", "p00000.data")),
    ]
}
