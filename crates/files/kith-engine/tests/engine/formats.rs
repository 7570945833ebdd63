//! Golden bytes of every file of a version: those that `testdata/formats/README.md` lists under *on disk*, as this release
//! writes and reads them. Files of another format version are refused with its number.

use crate::example::{Example, read_lists};
use kith_engine::{
    FetchOptions, FolderSource, KeyType, PATCH_NAME, ValueType, ValuesReader, fetch, fetch_component,
    verify_component,
};
use kith_files::{
    DeltaBuilder, DeltaOptions, PartitionBuilder, PartitionSummary, SUMMARY_NAME, ValuesBuilder,
    ValuesOptions, ZstdOptions,
};
use kith_schema::KindRole;
use kith_sim::golden;
use kith_types::{Direction, PartitionCount, PartitionId, StoreVersion, crc32c, partition_of_key};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

const SCHEMA: &str = r#"{"kith_schema":1,"fields":[{"name":"name","type":"text"},{"name":"age","type":"i32","nullable":true}]}"#;
const PARTITIONS: u32 = 3;

fn examples() -> [Example; 4] {
    [
        Example::new("connection", KindRole::Undirected, 2, 30, 60),
        Example::new("follows", KindRole::Directed, 2, 12, 30),
        Example::new("school", KindRole::Entity, 2, 12, 20),
        Example::new("members", KindRole::MembersOnly, 1, 5, 0),
    ]
}

#[test]
fn components_of_a_graph() {
    for example in examples() {
        let made = tempfile::tempdir().unwrap();
        example.write(made.path());
        let dir = golden::folder(&format!("graph/{}", example.name), made.path());
        assert!(verify_component(&dir, None).unwrap().damages.is_empty());
        let source = example.open(&dir).unwrap();
        let keys: Vec<u64> =
            example.members.iter().copied().chain(5_000_000..5_000_020).chain(0..9).collect();
        for direction in [Direction::Out, Direction::In] {
            let got = read_lists(&source, &example.selector(direction, 0), &keys).unwrap();
            for (&key, got) in keys.iter().zip(got) {
                let expected = example.answer(direction, key, 0, &example.members);
                assert_eq!(got, expected, "{}: {key}", example.name);
            }
        }
    }
}

/// The record of a name and an age, as `docs/formats/record.md` draws it.
fn record(name: &str, age: Option<i32>) -> Vec<u8> {
    let mut bytes = vec![u8::from(age.is_none())];
    bytes.extend_from_slice(&(name.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&age.unwrap_or(0).to_le_bytes());
    bytes.extend_from_slice(name.as_bytes());
    bytes
}

/// Sixty people. In the second version one is renamed, one is deleted and one is added.
fn people(version: u64) -> Vec<(String, Vec<u8>)> {
    let person = |id: i32| match (version, id) {
        (2, 7) => Some(record("Ada", Some(36))),
        (2, 8) | (1, 60) => None,
        _ => Some(record(&format!("person {id}"), (id % 5 != 0).then_some(20 + id))),
    };
    (0..=60).filter_map(|id| Some((format!("p{id}"), person(id)?))).collect()
}

fn options(name: &str, out: &Path) -> ValuesOptions {
    let count = PartitionCount::new(PARTITIONS).unwrap();
    ValuesOptions {
        key: KeyType::String,
        value: ValueType::Record,
        schema: Some(SCHEMA.to_owned()),
        ..ValuesOptions::new(name, StoreVersion(1), count, out.to_owned())
    }
}

fn all() -> Vec<PartitionId> {
    (0..PARTITIONS).map(PartitionId).collect()
}

fn build(options: ValuesOptions) -> PathBuf {
    let folder = options.out_dir.join("1");
    let mut builder = ValuesBuilder::new(options).unwrap();
    people(1).iter().for_each(|(key, value)| builder.row(key.as_bytes(), value).unwrap());
    builder.finish(&mut |_| {}).unwrap();
    folder
}

/// Builds the second version from the first.
fn build_next(store: &Path) -> PathBuf {
    let (before, after) = (people(1), people(2));
    let options = DeltaOptions::new(StoreVersion(2), store.to_owned());
    let mut delta = DeltaBuilder::new(&store.join("1"), options).unwrap();
    for (key, value) in after.iter().filter(|entry| !before.contains(entry)) {
        delta.put(key.as_bytes(), value).unwrap();
    }
    for (key, _) in before.iter().filter(|(key, _)| after.iter().all(|(other, _)| other != key)) {
        delta.delete(key.as_bytes()).unwrap();
    }
    delta.finish(&mut |_| {}).unwrap();
    store.join("2")
}

/// Asserts that the version holds exactly these people in these partitions.
fn holds(dir: &Path, partitions: &[PartitionId], people: &[(String, Vec<u8>)]) {
    assert!(verify_component(dir, Some(partitions)).unwrap().damages.is_empty());
    let reader = ValuesReader::open(dir, partitions).unwrap();
    let count = PartitionCount::new(PARTITIONS).unwrap();
    let here = |key: &str| partitions.contains(&partition_of_key(key.as_bytes(), count));
    let expected: Vec<_> = people.iter().filter(|(key, _)| here(key)).collect();
    assert_eq!(reader.records(), expected.len() as u64);
    let keys: Vec<&str> = expected.iter().map(|(key, _)| key.as_str()).collect();
    reader.get_many(&keys, |index, value| {
        assert_eq!(value.unwrap(), Some(expected[index].1.as_slice()), "{}", keys[index]);
        ControlFlow::Continue(())
    });
}

#[test]
fn a_store_of_records_and_a_patch_to_its_next_version() {
    let root = tempfile::tempdir().unwrap();
    let store = root.path().join("people");
    let first = golden::folder("store/1", &build(options("people", &store)));
    holds(&first, &all(), &people(1));
    let second = golden::folder("store/2", &build_next(&store));
    holds(&second, &all(), &people(2));

    // A node that holds the first version makes the second one with the patch.
    let (held, made) = (root.path().join("node/1"), root.path().join("node/2"));
    fetch_component(&first, &held, &all(), &mut |_| ControlFlow::Continue(())).unwrap();
    let patched = root.path().join("patched");
    fs::create_dir(&patched).unwrap();
    for name in ["manifest.json", PATCH_NAME] {
        fs::copy(second.join(name), patched.join(name)).unwrap();
    }
    let holding = FetchOptions { held: vec![held], ..FetchOptions::default() };
    let source = FolderSource::new(&patched);
    fetch(&source, &made, &all(), &holding, &mut |_| ControlFlow::Continue(())).unwrap();
    holds(&made, &all(), &people(2));
}

#[test]
fn the_layout_of_a_node() {
    let root = tempfile::tempdir().unwrap();
    let store = root.path().join("people");
    let built = build(options("people", &store));
    let (held, partitions) = (root.path().join("node/1"), [PartitionId(0), PartitionId(2)]);
    for partition in partitions {
        fetch_component(&built, &held, &[partition], &mut |_| ControlFlow::Continue(())).unwrap();
    }
    holds(&golden::folder("store/held", &held), &partitions, &people(1));
}

#[test]
fn a_compressed_store() {
    let root = tempfile::tempdir().unwrap();
    let store = root.path().join("people");
    let dictionary = Some(b"person 10 person 20 person 30 person 40".to_vec());
    let compression = Some(ZstdOptions { level: 3, dictionary });
    let built = build(ValuesOptions { compression, ..options("people", &store) });
    holds(&golden::folder("store/compressed", &built), &all(), &people(1));
}

#[test]
fn the_summary_of_a_partition() {
    let root = tempfile::tempdir().unwrap();
    let options = options("people", &root.path().join("people"));
    let folder = root.path().join("p00001");
    let mut builder = PartitionBuilder::new(options.clone(), PartitionId(1), &folder).unwrap();
    for (key, value) in people(1) {
        if partition_of_key(key.as_bytes(), options.partitions) == PartitionId(1) {
            builder.row(key.as_bytes(), &value).unwrap();
        }
    }
    let summary = builder.finish(&mut |_| {}).unwrap();
    let bytes = golden::file("store/partition.json", &fs::read(folder.join(SUMMARY_NAME)).unwrap());
    assert_eq!(PartitionSummary::decode(&bytes, &folder).unwrap(), summary);
}

/// Copies the golden version. A reader opens the copy unless it is changed.
fn copied(root: &Path) -> PathBuf {
    let (from, to) = (golden::path("store/held"), root.join("held"));
    fs::create_dir(&to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
    to
}

/// The error of opening once the number of `what` is not 1.
fn refusal(dir: &Path, file: &str, what: &str, other: u32) -> String {
    let text = fs::read_to_string(dir.join(file)).unwrap();
    let (now, then) = (format!("\"{what}\": 1"), format!("\"{what}\": {other}"));
    assert!(text.contains(&now));
    fs::write(dir.join(file), text.replace(&now, &then)).unwrap();
    ValuesReader::open(dir, &[PartitionId(0)]).err().unwrap().to_string()
}

#[test]
fn another_version_of_a_file_is_refused_by_both_numbers() {
    for got in [0, 2] {
        for (file, what) in [("manifest.json", "kith_manifest"), ("layout.json", "kith_layout")] {
            let root = tempfile::tempdir().unwrap();
            let error = refusal(&copied(root.path()), file, what, got);
            let expected = format!("{file} has format version {got}, but this release reads version 1");
            assert_eq!(error, expected);
        }
        let text = fs::read_to_string(golden::path("store/partition.json")).unwrap();
        let other = text.replace("\"kith_partition\": 1", &format!("\"kith_partition\": {got}"));
        let error = PartitionSummary::decode(other.as_bytes(), Path::new("p00001")).unwrap_err().to_string();
        let expected = format!("partition.json has format version {got}, but this release reads version 1");
        assert!(error.contains(&expected), "{error}");
        // The first logical file of a pack is sealed by its own header.
        let root = tempfile::tempdir().unwrap();
        let pack = copied(root.path()).join("local-00000.pack");
        let mut bytes = fs::read(&pack).unwrap();
        bytes[8..12].copy_from_slice(&u32::to_le_bytes(got));
        let crc = crc32c(&bytes[..60]);
        bytes[60..64].copy_from_slice(&crc.to_le_bytes());
        fs::write(&pack, bytes).unwrap();
        let error = ValuesReader::open(&root.path().join("held"), &[PartitionId(0)]).err().unwrap();
        let expected = format!("p00000.data has format version {got}, but this release reads version 1");
        assert_eq!(error.to_string(), expected);
    }
}

/// A patch is a hint: a patch of another version is ignored, and the files are pulled.
#[test]
fn a_patch_of_another_version_is_not_used() {
    let root = tempfile::tempdir().unwrap();
    let held = root.path().join("node/1");
    fetch_component(&golden::path("store/1"), &held, &all(), &mut |_| ControlFlow::Continue(())).unwrap();
    let built = root.path().join("built");
    fs::create_dir(&built).unwrap();
    for entry in fs::read_dir(golden::path("store/2")).unwrap().flatten() {
        fs::copy(entry.path(), built.join(entry.file_name())).unwrap();
    }
    let moved = |to: &str| {
        let (options, mut bytes) = (FetchOptions { held: vec![held.clone()], ..FetchOptions::default() }, 0);
        let to = root.path().join(to);
        fetch(&FolderSource::new(&built), &to, &all(), &options, &mut |progress| {
            bytes = progress.bytes_copied;
            ControlFlow::Continue(())
        })
        .unwrap();
        holds(&to, &all(), &people(2));
        bytes
    };
    let with = moved("node/with");
    let patch = built.join(PATCH_NAME);
    let mut bytes = fs::read(&patch).unwrap();
    let sections = u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
    bytes[8..12].copy_from_slice(&2_u32.to_le_bytes());
    let crc_at = 80 + 44 * sections;
    let crc = crc32c(&bytes[..crc_at]);
    bytes[crc_at..crc_at + 4].copy_from_slice(&crc.to_le_bytes());
    fs::write(&patch, bytes).unwrap();
    assert!(with < moved("node/without"));
}
