//! Layouts decode to what was encoded, and nothing else decodes.

use super::*;
use crate::manifest::{Content, Counts, GraphContent};
use crate::pack::local_pack_name;
use kith_schema::KindRole;
use kith_types::{PartitionCount, StoreVersion};
use proptest::prelude::*;

fn manifest(version: u64) -> Manifest {
    let entry = |name: &str, bytes| FileEntry {
        name: name.to_owned(),
        pack: 0,
        offset: 0,
        bytes,
        records: 1,
        blake3: "ab".repeat(32),
        crc32c: 7,
        first_position: None,
    };
    let content = Content::Graph(GraphContent {
        graph: "people".to_owned(),
        role: KindRole::MembersOnly,
        columns: Vec::new(),
        counts: Counts::default(),
    });
    let files = vec![entry("p00000.members", 200), entry("p00001.members", 300), entry("p00002.members", 5)];
    let count = PartitionCount::new(3).unwrap();
    Manifest::new("members".to_owned(), StoreVersion(version), count, content, files)
}

fn layout() -> Layout {
    let pack = |number, bytes| PackEntry { name: local_pack_name(number), bytes };
    let file = |name: &str, pack, offset| (name.to_owned(), PackPlace { pack, offset });
    Layout {
        packs: vec![pack(0, 264), pack(7, 300)],
        files: [file("p00000.members", 0, 64), file("p00001.members", 1, 0)].into(),
    }
}

#[test]
fn a_layout_comes_back_as_it_was() {
    let bytes = layout().encode(&manifest(1));
    assert_eq!(Layout::decode(&bytes, &manifest(1)).unwrap(), layout());
}

#[test]
fn the_layout_of_another_version_is_refused() {
    let bytes = layout().encode(&manifest(1));
    let error = Layout::decode(&bytes, &manifest(2)).unwrap_err();
    assert!(matches!(&error, OpenError::Damaged(Damage { fault: Fault::Foreign { .. }, .. })), "{error}");
}

#[test]
fn any_other_byte_length_or_end_is_refused() {
    let (bytes, manifest) = (layout().encode(&manifest(1)), manifest(1));
    for at in 0..bytes.len() {
        for flip in [1, 0x20, 0x80] {
            let mut changed = bytes.clone();
            changed[at] ^= flip;
            assert!(Layout::decode(&changed, &manifest).is_err(), "byte {at} ^ {flip}");
        }
        assert!(Layout::decode(&bytes[..at], &manifest).is_err(), "cut at {at}");
    }
}

#[test]
fn another_format_is_distinguished_from_damage() {
    for got in [0, 2] {
        let other = format!(r#"{{"kith_layout": {got}}}"#);
        let error = Layout::decode(other.as_bytes(), &manifest(1)).unwrap_err().to_string();
        assert_eq!(error, format!("layout.json has format version {got}, but this release reads version 1"));
    }
}

proptest! {
    #[test]
    fn hostile_bytes_are_refused_without_a_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        from in any::<prop::sample::Index>(),
        to in any::<prop::sample::Index>(),
    ) {
        let manifest = manifest(1);
        prop_assert!(Layout::decode(&bytes, &manifest).is_err());
        let whole = layout().encode(&manifest);
        let (from, to) = (from.index(whole.len()), to.index(whole.len()));
        let spliced = [&whole[..from.min(to)], &bytes, &whole[from.max(to)..]].concat();
        prop_assert!(Layout::decode(&spliced, &manifest).is_err() || spliced == whole);
    }

    /// Even with a correct seal, no file may lie outside of its pack, and no pack outside of the folder.
    #[test]
    fn sealed_nonsense_is_refused(pack in 0u32..4, offset in any::<u64>(), bytes in any::<u64>(), up: bool) {
        let mut layout = layout();
        layout.files.insert("p00002.members".to_owned(), PackPlace { pack, offset });
        layout.packs[1].bytes = bytes;
        if up {
            layout.packs[0].name = "../00000.pack".to_owned();
        }
        let decoded = Layout::decode(&layout.encode(&manifest(1)), &manifest(1));
        let ends = |position: &PackPlace, bytes: u64| position.offset.checked_add(bytes);
        let fits = !up && pack < 2 && offset % 64 == 0 && bytes >= 300
            && ends(&PackPlace { pack, offset }, 5).is_some_and(|end| end <= layout.packs[pack as usize].bytes);
        prop_assert_eq!(decoded.is_ok(), fits);
    }
}

#[test]
fn packs_without_files_are_dropped() {
    let mut layout = layout();
    assert_eq!(layout.retain(|name| name != "p00000.members"), [local_pack_name(0)]);
    assert_eq!(layout.find("p00001.members").unwrap().0.name, local_pack_name(7));
    assert_eq!((layout.packs.len(), layout.find("p00000.members")), (1, None));
}
