//! Damaged versions: every answer is right or an error, never a wrong "not found", and verification finds the damage.

use super::manifest::read;
use super::sealed::{chunk_set, graph, members, postings, version};
use super::{PARTITION, folder, one_partition};
use crate::properties::{Seed, take, take_word};
use kith_engine::{
    ComponentReader, KeyType, MANIFEST_NAME, Manifest, PostingsKeys, ValuesReader, VersionFolder,
    encode_list, fetch_component, verify_component,
};
use kith_files::{ValuesBuilder, ValuesOptions, ZstdOptions};
use kith_schema::KindRole;
use kith_types::{Direction, KeyRef, PartitionCount, PartitionId, StoreVersion, position_of_key};
use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::LazyLock;

type Records = BTreeMap<Vec<u8>, Vec<u8>>;

/// A version and its right answers.
struct Subject {
    /// The files of its folder.
    files: Vec<(String, Vec<u8>)>,
    manifest: Manifest,
    answers: Answers,
}

enum Answers {
    Values(KeyType, Records),
    /// The ids that each member follows.
    Graph(BTreeMap<u64, Vec<u64>>),
}

static SUBJECTS: LazyLock<Vec<Subject>> = LazyLock::new(|| {
    let words = b"a dictionary of sorts: words that come again and again in values of a store".to_vec();
    let zstd = ZstdOptions { level: 3, dictionary: Some(words) };
    vec![
        values(KeyType::String, 2, None, false),
        values(KeyType::Id, 1, None, true),
        values(KeyType::Id, 1, Some(zstd), false),
        directed(),
    ]
});

/// A store of sixty values, built or fetched.
fn values(key: KeyType, partitions: u32, compression: Option<ZstdOptions>, is_fetched: bool) -> Subject {
    let dir = folder();
    let count = PartitionCount::new(partitions).expect("few are a count");
    let options = ValuesOptions::new("people", StoreVersion(1), count, dir.path().join("people"));
    let options = ValuesOptions { key, compression, memory_bytes: 1 << 20, ..options };
    let mut builder = ValuesBuilder::new(options).expect("a build starts");
    let mut records = Records::new();
    for id in 0..60u64 {
        let name =
            if key == KeyType::Id { id.to_le_bytes().to_vec() } else { format!("member:{id}").into_bytes() };
        let value = format!("words that come again, {id}").repeat(id as usize % 7).into_bytes();
        builder.row(&name, &value).expect("a row of the store");
        records.insert(name, value);
    }
    let (manifest, _) = builder.finish(&mut |_| {}).expect("a version can be built");
    let mut path = dir.path().join("people/1");
    if is_fetched {
        let held = dir.path().join("held");
        let partitions: Vec<_> = count.iter().collect();
        fetch_component(&path, &held, &partitions, &mut |_| ControlFlow::Continue(()))
            .expect("it can be fetched");
        path = held;
    }
    Subject { files: read(&path), manifest, answers: Answers::Values(key, records) }
}

/// Thirty members, some of whom follow others.
fn directed() -> Subject {
    let ids: Vec<u64> = (0..30).map(|id| 1_000 + id * id * 3).collect();
    let mut lists: BTreeMap<u64, Vec<u64>> = ids.iter().map(|id| (*id, Vec::new())).collect();
    for (at, id) in ids.iter().enumerate().filter(|(at, _)| at % 4 != 0) {
        let list: Vec<u64> =
            ids.iter().copied().skip(at % 5).step_by(at % 7 + 1).filter(|other| other != id).collect();
        lists.insert(*id, list);
    }
    let table = members(&ids);
    let mut files = vec![table];
    let reversed: BTreeMap<u64, Vec<u64>> = ids
        .iter()
        .map(|id| (*id, ids.iter().copied().filter(|other| lists[other].contains(id)).collect()))
        .collect();
    for (list, of, holders) in [(Direction::Out, &lists, &reversed), (Direction::In, &reversed, &lists)] {
        let mut records: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        for (id, list) in of.iter().filter(|(_, list)| !list.is_empty()) {
            let mut bytes = Vec::new();
            encode_list(list, &[], &mut bytes);
            records.push((id.to_le_bytes().to_vec(), bytes));
        }
        records.sort_by_key(|(key, _)| (position_of_key(key), key.clone()));
        let ordinal = |id: &u64| ids.binary_search(id).expect("a member") as u32;
        let pairs: Vec<(u64, u32)> =
            holders.iter().flat_map(|(id, of)| of.iter().map(|holder| (*id, ordinal(holder)))).collect();
        files.extend(chunk_set(PARTITION, Some(list), KeyType::Id, &records));
        files.push(postings(list, PostingsKeys::Members(ids.len() as u32), &pairs));
    }
    let dir = folder();
    let manifest = version(dir.path(), graph(KindRole::Directed), &files.iter().collect::<Vec<_>>());
    Subject { files: read(dir.path()), manifest, answers: Answers::Graph(lists) }
}

/// Input: the number of a version, then seven bytes for each damage.
pub fn check(mut input: &[u8]) {
    let subject = &SUBJECTS[usize::from(take(&mut input)) % SUBJECTS.len()];
    let mut files: Vec<(String, Option<Vec<u8>>)> =
        subject.files.iter().map(|(name, bytes)| (name.clone(), Some(bytes.clone()))).collect();
    // Few, so that the fuzzer cannot forge a record: a CRC does not protect against that.
    for _ in 0..DAMAGES_MAX.min(input.len().div_ceil(7)) {
        damage(&mut files, &mut input);
    }
    let dir = folder();
    for (name, bytes) in &files {
        if let Some(bytes) = bytes {
            fs::write(dir.path().join(name), bytes).expect("a file can be written");
        }
    }
    match &subject.answers {
        Answers::Values(key, records) => ask_values(dir.path(), &subject.manifest, *key, records),
        Answers::Graph(lists) => ask_graph(dir.path(), lists),
    }
    let found = verify_component(dir.path(), None).map_or(true, |report| !report.damages.is_empty());
    match subject.is_hurt(&files) {
        Some(is_hurt) => assert_eq!(found, is_hurt, "verification finds damage, and nothing else"),
        None => assert!(found || VersionFolder::open(dir.path()).is_ok()),
    }
}

const DAMAGES_MAX: usize = 4;

/// Flips a bit, zeroes a range, copies bytes from elsewhere, cuts, extends or removes a file.
fn damage(files: &mut [(String, Option<Vec<u8>>)], input: &mut &[u8]) {
    let (file, kind) = (usize::from(take(input)) % files.len(), take(input));
    let (at, other) = (take_word::<3>(input) as usize, take_word::<2>(input) as usize);
    let content = &mut files[file].1;
    let Some(bytes) = content else { return };
    if bytes.is_empty() {
        return;
    }
    let at = at % bytes.len();
    match kind % 8 {
        0..=2 => bytes[at] ^= 1 << (other % 8),
        3 => {
            let end = bytes.len().min(at + other % 600);
            bytes[at..end].fill(0);
        }
        4 => {
            let (from, length) = (other % bytes.len(), 64);
            let end = bytes.len().min(from + length).min(from + bytes.len() - at);
            bytes.copy_within(from..end, at);
        }
        5 => bytes.truncate(at),
        6 => bytes.extend(std::iter::repeat_n(0, other % 100)),
        _ => *content = None,
    }
}

impl Subject {
    /// Whether a byte of a logical file or of the manifest has changed; `None` for a folder with a layout of its own.
    fn is_hurt(&self, files: &[(String, Option<Vec<u8>>)]) -> Option<bool> {
        let now =
            |name: &str| files.iter().find(|(other, _)| other == name).and_then(|(_, bytes)| bytes.as_ref());
        let packs = self.manifest.packs();
        if self.files.len() != packs.len() + 1 {
            return None;
        }
        let before =
            |name: &str| &self.files.iter().find(|(other, _)| other == name).expect("a file of it").1;
        if now(MANIFEST_NAME) != Some(before(MANIFEST_NAME)) {
            return Some(true);
        }
        let is_other_size =
            packs.iter().any(|pack| now(&pack.name).is_none_or(|bytes| bytes.len() as u64 != pack.bytes));
        let range = |file: &kith_engine::FileEntry| file.offset as usize..(file.offset + file.bytes) as usize;
        let is_other = |file: &kith_engine::FileEntry| {
            let name = &packs[file.pack as usize].name;
            now(name).and_then(|bytes| bytes.get(range(file))) != before(name).get(range(file))
        };
        Some(is_other_size || self.manifest.files.iter().any(is_other))
    }
}

fn ask_values(dir: &Path, manifest: &Manifest, key_type: KeyType, records: &Records) {
    let partitions: Vec<_> = manifest.partition_count.iter().collect();
    let Ok(reader) = ValuesReader::open(dir, &partitions) else { return };
    assert_eq!(reader.manifest(), manifest);
    let absent = (1_000..1_030u64).map(|id| match key_type {
        KeyType::Id => id.to_le_bytes().to_vec(),
        _ => format!("member:{id}").into_bytes(),
    });
    let keys: Vec<Vec<u8>> = records.keys().cloned().chain(absent).collect();
    for key in &keys {
        if let Ok(value) = reader.get(key) {
            assert_eq!(value.as_ref(), records.get(key), "{}", key.escape_ascii());
        }
    }
    reader.get_many_with_proofs(&keys, |index, value| {
        let (key, expected) = (&keys[index], records.get(&keys[index]));
        let key_ref = match key_type {
            KeyType::Id => KeyRef::Id(u64::from_le_bytes(key.as_slice().try_into().expect("eight bytes"))),
            _ => KeyRef::Bytes(key),
        };
        match value {
            // The caller checks the proof, and refuses this value.
            Ok(Some(value)) if value.proof.is_some_and(|proof| !proof.holds(key_ref, value.bytes)) => {}
            Ok(value) => assert_eq!(value.map(|value| value.bytes), expected.map(Vec::as_slice)),
            Err(_) => {}
        }
        ControlFlow::Continue(())
    });
    for partition in partitions {
        walk_values(&reader, partition, key_type, records);
    }
}

/// A walk over a partition shows only what is right, and nothing is left out if it ends well.
fn walk_values(reader: &ValuesReader, partition: PartitionId, key_type: KeyType, records: &Records) {
    let mut walked = Records::new();
    let walk = reader.for_each(partition, |key, value| {
        assert_eq!(records.get(key).map(Vec::as_slice), Some(value), "{}", key.escape_ascii());
        walked.insert(key.to_vec(), value.to_vec());
        ControlFlow::Continue(())
    });
    if walk.is_ok() {
        let count = reader.manifest().partition_count;
        let of_it = records.keys().filter(|key| key_type.partition(key, count) == Some(partition));
        assert!(walked.keys().eq(of_it), "a walk that ends well leaves nothing out");
    }
}

fn ask_graph(dir: &Path, lists: &BTreeMap<u64, Vec<u64>>) {
    let Ok(component) = ComponentReader::open(dir, &[PARTITION]) else { return };
    let Some(partition) = component.partition(PARTITION) else { return };
    let members = partition.members();
    assert_eq!(one_partition(), component.manifest().partition_count);
    if let Ok(ids) = members.ids() {
        assert!(ids.iter().eq(lists.keys()));
    }
    let out = partition.list(Direction::Out).expect("a list of its role");
    let back = partition.list(Direction::In).expect("a list of its role");
    for id in lists.keys().copied().chain([0, 1_001, u64::MAX]) {
        let expected = lists.get(&id).map_or(&[][..], Vec::as_slice);
        if let Ok(is_there) = members.contains(id) {
            assert_eq!(is_there, lists.contains_key(&id), "member {id}");
        }
        if let Ok(list) = out.records.get(&id.to_le_bytes()) {
            let mut ids = Vec::new();
            list.map_or(Ok(()), |list| kith_engine::decode_list(list, 0, None, &mut ids))
                .expect("a proven list");
            assert_eq!(ids, expected, "list of {id}");
        }
        // The incoming lists that contain a member are those of the members that it follows.
        let mut keys = Vec::new();
        if back.postings.keys_of(id, members, &mut keys).is_ok() {
            assert_eq!(keys, expected, "postings of {id}");
        }
    }
}

pub fn seeds() -> Vec<Seed> {
    let of = |version: u8, damages: &[(u8, u8, u32, u16)]| {
        let mut input = vec![version];
        for (file, kind, at, other) in damages {
            input.extend_from_slice(&[*file, *kind]);
            input.extend_from_slice(&at.to_le_bytes()[..3]);
            input.extend_from_slice(&other.to_le_bytes());
        }
        input
    };
    vec![
        ("values", of(0, &[])),
        ("fetched", of(1, &[])),
        ("compressed", of(2, &[])),
        ("graph", of(3, &[])),
        ("a-bit-of-a-value", of(0, &[(0, 0, 300, 3)])),
        ("a-bit-of-the-manifest", of(0, &[(1, 0, 40, 0)])),
        ("zeros", of(3, &[(0, 3, 1_000, 512)])),
        ("bytes-of-elsewhere", of(1, &[(1, 4, 640, 128)])),
        ("cut", of(2, &[(0, 5, 2_000, 0)])),
        ("longer", of(3, &[(0, 6, 0, 64)])),
        ("lost", of(0, &[(0, 7, 0, 0)])),
        ("layout-lost", of(1, &[(0, 7, 0, 0)])),
    ]
}
