//! Packed bodies: ids, lists, keys and records inside messages.

use crate::properties::{Seed, take};
use bytes::Bytes;
use kith_types::{ByteKeys, ValueProof};
use kith_wire::body::{
    ListBody, ListsWriter, RecordBody, decode_keys, decode_lists, decode_records, decode_set, encode_keys,
    encode_records, encode_set, key_count,
};

/// Input: the kind of body, then the body.
pub fn check(mut input: &[u8]) {
    match take(&mut input) % 4 {
        0 => set(input),
        1 => lists(input),
        2 => keys(input),
        _ => records(input),
    }
}

fn set(input: &[u8]) {
    let Ok(ids) = decode_set(input) else { return };
    assert!(ids.is_sorted_by(|a, b| a < b));
    let body = encode_set(&ids);
    assert!(body.len() <= input.len());
    assert_eq!(decode_set(&body), Ok(ids));
}

fn lists(input: &[u8]) {
    let Ok(lists) = decode_lists(input) else { return };
    let mut writer = ListsWriter::default();
    for list in &lists {
        match list {
            ListBody::NotInGraph => writer.not_in_graph(),
            ListBody::Longer(count) => writer.longer(*count),
            ListBody::Ids(ids) => writer.ids(ids),
        }
    }
    let body = writer.finish();
    assert!(body.len() <= input.len());
    assert_eq!(decode_lists(&body), Ok(lists));
}

fn keys(input: &[u8]) {
    let count = key_count(input);
    assert!(count <= input.len());
    let Ok(keys) = decode_keys(input) else { return };
    assert_eq!(keys.len(), count);
    let body = encode_keys(&keys);
    assert!(body.len() <= input.len());
    assert_eq!(decode_keys(&body), Ok(keys));
}

fn records(input: &[u8]) {
    let body = Bytes::copy_from_slice(input);
    // A state takes half a byte.
    let entries_max = 2 * input.len();
    let Ok((entries, values)) = decode_records(&body, entries_max) else { return };
    if let Some(fewer) = entries.len().checked_sub(1) {
        assert!(decode_records(&body, fewer).is_err());
    }
    let mut rest = &values[..];
    let mut parts = Vec::new();
    for entry in &entries {
        if let RecordBody::Found(bytes) | RecordBody::FoundWith(bytes, _) = entry {
            let (value, behind) = rest.split_at(*bytes);
            parts.push(value);
            rest = behind;
        }
    }
    assert!(rest.is_empty(), "every byte is one of a value");
    let again = encode_records(&entries, parts.into_iter(), values.len());
    assert!(again.len() <= input.len());
    assert_eq!(decode_records(&again, entries_max), Ok((entries, values)));
}

pub fn seeds() -> Vec<Seed> {
    let of = |kind: u8, body: Bytes| [&[kind][..], &body].concat();
    let mut lists = ListsWriter::default();
    lists.not_in_graph();
    lists.longer(9);
    lists.ids(&[]);
    lists.ids(&[1, 1_005, u64::MAX]);
    let keys: ByteKeys = ["ab", "", "c"].iter().collect();
    let proof = ValueProof { seed: 0x0403_0201, crc32c: 0x0807_0605 };
    let entries = [
        RecordBody::Found(2),
        RecordBody::Absent,
        RecordBody::FoundWith(3, proof),
        RecordBody::Damaged,
        RecordBody::Unsuitable,
        RecordBody::Unanswered,
        RecordBody::Disagreeing,
        RecordBody::Dimensions { operator: 1, want: 64, got: 300 },
        RecordBody::Unsent,
    ];
    let values = [&b"ab"[..], b"cde"];
    vec![
        ("set", of(0, encode_set(&[5, 133, 1_000]))),
        ("lists", of(1, lists.finish())),
        ("keys", of(2, encode_keys(&keys))),
        ("records", of(3, encode_records(&entries, values.into_iter(), 5))),
        ("absent", of(3, encode_records(&[RecordBody::Absent; 60], [].into_iter(), 0))),
        ("count-without-entries", vec![3, 0xff, 0xff, 0xff, 0xff, 0x0f]),
        ("bytes-behind-the-end", vec![0, 2, 1, 1, 0]),
    ]
}
