//! Golden bytes of packed bodies, messages, documents and the contract itself. `testdata/formats/README.md` lists the
//! files. The golden bytes of frames are tested in the module `frame`.

// The lint exempts functions marked as tests, but not the helpers that they call.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod formats {
    mod contract;
    mod documents;
    mod messages;
}

use bytes::Bytes;
use kith_sim::golden;
use kith_types::{ByteKeys, ValueProof};
use kith_wire::body::{
    ListBody, ListsWriter, RecordBody, decode_keys, decode_lists, decode_records, decode_set, encode_keys,
    encode_records, encode_set,
};

const IDS: [u64; 3] = [5, 133, 1_000];
const PROOF: ValueProof = ValueProof { seed: 0x0102_0304, crc32c: 0x0506_0708 };

/// An entry in each state, and the values of the entries that have one.
const ENTRIES: [RecordBody; 9] = [
    RecordBody::Absent,
    RecordBody::Found(2),
    RecordBody::FoundWith(1, PROOF),
    RecordBody::Damaged,
    RecordBody::Unsuitable,
    RecordBody::Unanswered,
    RecordBody::Disagreeing,
    RecordBody::Dimensions { operator: 1, want: 64, got: 2 },
    RecordBody::Unsent,
];
const VALUES: [&[u8]; 2] = [b"ab", b"c"];

fn lists() -> Bytes {
    let mut lists = ListsWriter::default();
    lists.not_in_graph();
    lists.longer(9);
    lists.ids(&[]);
    lists.ids(&IDS);
    lists.finish()
}

#[test]
fn packed_bodies() {
    let keys: ByteKeys = ["ab", "", "c"].iter().collect();
    let records = encode_records(&ENTRIES, VALUES.into_iter(), 3);
    let made = [
        ("the set {}", encode_set(&[])),
        ("the set {5, 133, 1000}", encode_set(&IDS)),
        ("the set {0, 18446744073709551615}", encode_set(&[0, u64::MAX])),
        ("lists: not in the graph, 9 ids that are too many, {}, {5, 133, 1000}", lists()),
        ("the byte keys \"ab\", \"\", \"c\"", encode_keys(&keys)),
        ("records in the states 0 1 8 2 3 4 5 6 7, with the values \"ab\" and \"c\"", records),
    ];
    let made: Vec<_> = made.into_iter().map(|(what, bytes)| (what.to_owned(), bytes.to_vec())).collect();
    let comment =
        "Packed bodies: docs/formats/wire-bodies.md. The test is crates/words/kith-wire/tests/formats.rs.";
    let golden = golden::hex("bodies.txt", comment, &made);
    let bytes = |index: usize| Bytes::from(golden[index].1.clone());
    assert!(decode_set(&bytes(0)).unwrap().is_empty());
    assert_eq!(decode_set(&bytes(1)).unwrap(), IDS);
    assert_eq!(decode_set(&bytes(2)).unwrap(), [0, u64::MAX]);
    let expected =
        [ListBody::NotInGraph, ListBody::Longer(9), ListBody::Ids(vec![]), ListBody::Ids(IDS.to_vec())];
    assert_eq!(decode_lists(&bytes(3)).unwrap(), expected);
    assert!(decode_keys(&bytes(4)).unwrap().iter().eq(keys.iter()));
    let (entries, values) = decode_records(&bytes(5), ENTRIES.len()).unwrap();
    assert_eq!((&entries[..], &values[..]), (&ENTRIES[..], &b"abc"[..]));
}
