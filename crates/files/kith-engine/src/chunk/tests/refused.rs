//! Input and files that writers and readers refuse.

use super::*;
use crate::errors::WriteError;

#[test]
fn the_writer_refuses_disorder_repeats_and_oversize() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = ChunkSetWriter::create(dir.path(), PARTITION, None, KeyType::Bytes).unwrap();
    let (first, second) = (b"a".as_slice(), b"people".as_slice());
    assert!(position_of_key(second) < position_of_key(first));
    writer.append(second, b"").unwrap();
    writer.append(first, b"").unwrap();
    assert!(matches!(writer.append(first, b"x"), Err(WriteError::Duplicate { record: 2, .. })));
    assert!(matches!(writer.append(second, b""), Err(WriteError::OutOfOrder { record: 2, .. })));
    let long = vec![0; KEY_BYTES_MAX + 1];
    assert!(matches!(writer.append(&long, b""), Err(WriteError::TooLarge { what: "key", .. })));
    assert!(matches!(
        ChunkSetWriter::create(dir.path(), PARTITION, None, KeyType::Bytes),
        Err(WriteError::Io { .. })
    ));
}

/// Sets of another partition, list or number are refused even if all their bytes are intact.
#[test]
fn a_file_in_the_place_of_another_is_refused() {
    let records: Records = (0..50u64).map(|id| (id.to_le_bytes().to_vec(), vec![0; 50])).collect();
    let dir = tempfile::tempdir().unwrap();
    let manifest = write(dir.path(), &records, position_of_key, 900);
    let name = |kind, set| FileId { partition: PARTITION, list: None, kind, set }.to_string();
    let (first, second) = (name(FileKind::Data, 0), name(FileKind::Data, 1));
    let mut swapped = manifest.files.clone();
    let at = |name: &str| swapped.iter().position(|entry| entry.name == name).unwrap();
    let (a, b) = (at(&first), at(&second));
    (swapped[a].name, swapped[b].name) = (second, first);
    // Every byte moves to the place that the swapped manifest names.
    let pack = std::fs::read(dir.path().join("00000.pack")).unwrap();
    let other = tempfile::tempdir().unwrap();
    for entry in &swapped {
        let bytes = &pack[entry.offset as usize..][..entry.bytes as usize];
        std::fs::write(other.path().join(&entry.name), bytes).unwrap();
    }
    sealed(other.path(), KeyType::Bytes, swapped);
    assert!(open(other.path(), position_of_key).is_err());
}
