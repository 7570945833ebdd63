//! Manifests decode to what was encoded, and nothing else decodes.

use super::*;
use crate::manifest::{Compression, KeyType, ValueCounts, ValueType};
use kith_schema::{Column, ColumnKind};
use proptest::prelude::*;

fn entry(name: &str, bytes: u64, first: Option<u64>) -> FileEntry {
    FileEntry {
        name: name.to_owned(),
        pack: 0,
        offset: 0,
        bytes,
        records: 7,
        blake3: blake3::hash(name.as_bytes()).to_hex().to_string(),
        crc32c: 0xfeed_beef,
        first_position: first.map(|position| format!("{position:016x}")),
    }
}

fn graph() -> Manifest {
    let content = Content::Graph(GraphContent {
        graph: "people".to_owned(),
        role: KindRole::Undirected,
        columns: vec![Column { name: "created_ms".to_owned(), kind: ColumnKind::Time }],
        counts: Counts { members: 10, edges: 20, entities: 0 },
    });
    let files = vec![entry("p00000.both.data", 1_234, Some(u64::MAX)), entry("p00000.both.index", 500, None)];
    let count = PartitionCount::new(24).unwrap();
    Manifest::new("connection".to_owned(), StoreVersion(3), count, content, files)
}

fn values() -> Manifest {
    let content = Content::Values(ValuesContent {
        key: KeyType::String,
        value: ValueType::Record,
        schema: Some(r#"{"fields":[{"name":"age","type":"i32"}]}"#.to_owned()),
        compression: Some(Compression::Zstd(3)),
        counts: ValueCounts { records: 2, key_bytes: 9, value_bytes: 100 },
    });
    let files = vec![
        entry("p00001.index", 500, None),
        entry("p00000.data", 3 << 20, Some(5)),
        entry("dictionary", 300, None),
    ];
    Manifest::new("people".to_owned(), StoreVersion(9), PartitionCount::new(2).unwrap(), content, files)
}

#[test]
fn a_manifest_comes_back_as_it_was() {
    for manifest in [graph(), values()] {
        let back = Manifest::decode(&manifest.encode()).unwrap();
        assert_eq!(back, manifest);
        assert_eq!(back.hash(), manifest.hash());
    }
    let places: Vec<_> = values().files.iter().map(|file| (file.pack, file.offset)).collect();
    assert_eq!(places, [(0, 0), (1, 0), (2, 0)], "a large partition has its own pack");
}

#[test]
fn any_other_byte_length_or_end_is_refused() {
    for bytes in [graph().encode(), values().encode()] {
        for at in 0..bytes.len() {
            for flip in [1, 0x20, 0x80] {
                let mut changed = bytes.clone();
                changed[at] ^= flip;
                assert!(Manifest::decode(&changed).is_err(), "byte {at} ^ {flip}");
            }
            assert!(Manifest::decode(&bytes[..at]).is_err(), "cut at {at}");
        }
        assert!(Manifest::decode(&[bytes.as_slice(), b"\n"].concat()).is_err());
    }
}

proptest! {
    #[test]
    fn hostile_bytes_are_refused_without_a_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        from in any::<prop::sample::Index>(),
        to in any::<prop::sample::Index>(),
    ) {
        prop_assert!(Manifest::decode(&bytes).is_err());
        // Arbitrary bytes in place of a part of a valid manifest. They may happen to equal that part.
        let whole = values().encode();
        let (from, to) = (from.index(whole.len()), to.index(whole.len()));
        let spliced = [&whole[..from.min(to)], &bytes, &whole[from.max(to)..]].concat();
        prop_assert!(Manifest::decode(&spliced).is_err() || spliced == whole);
    }

    /// Even a correctly sealed manifest must not make a reader overflow or leave the folder.
    #[test]
    fn sealed_nonsense_is_refused_or_harmless(bytes in any::<u64>(), offset in any::<u64>(), pack in any::<u32>()) {
        let mut manifest = values();
        manifest.files[1].bytes = bytes;
        (manifest.files[2].offset, manifest.files[2].pack) = (offset, pack);
        if let Ok(back) = Manifest::decode(&manifest.encode()) {
            prop_assert_eq!(back, manifest);
        }
    }
}

#[test]
fn other_formats_are_distinguished_from_damage() {
    for got in [0, 2, 3] {
        let other = format!(r#"{{"kith_manifest": {got}, "something": "else"}}"#);
        let error = Manifest::decode(other.as_bytes()).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("manifest.json has format version {got}, but this release reads version 1")
        );
    }
}

#[test]
fn file_names_cannot_lead_out_of_the_folder() {
    let mut manifest = graph();
    manifest.files[0].name = "../p00000.both.data".to_owned();
    assert!(Manifest::decode(&manifest.encode()).is_err());
}

#[test]
fn a_dictionary_is_listed_exactly_if_values_are_compressed() {
    let mut manifest = values();
    manifest.files.remove(0);
    let without = Manifest::new(
        manifest.component,
        manifest.version,
        manifest.partition_count,
        manifest.content,
        manifest.files,
    );
    assert!(Manifest::decode(&without.encode()).is_err());
}
