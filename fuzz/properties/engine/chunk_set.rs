//! Malicious chunk sets, with valid checksums.

use super::sealed::{HEADER_BYTES, Sealed, chunk_set, values, version};
use super::{PARTITION, folder};
use crate::properties::{Seed, take, take_word};
use kith_engine::{ChunkSetReader, KeyType, VersionFolder};
use kith_types::{crc32c_append, delta::take_varint, position_of_key};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::LazyLock;

/// An empty chunk set of byte keys, and one of ids.
static EMPTY: LazyLock<[[Sealed; 2]; 2]> =
    LazyLock::new(|| [KeyType::Bytes, KeyType::Id].map(|key| chunk_set(PARTITION, None, key, &[])));

/// Input: flags, the number of records, three fields of the index's trailer, the size of the index, the index, and the records.
pub fn check(mut input: &[u8]) {
    let flags = take(&mut input);
    let key = if flags & 1 == 0 { KeyType::Bytes } else { KeyType::Id };
    let records = take_word::<4>(&mut input);
    let [base, spread, lines] = [(); 3].map(|()| take_word::<8>(&mut input));
    let lines_bytes = (take_word::<2>(&mut input) as usize).min(input.len());
    let (index, data) = input.split_at(lines_bytes);
    let [empty_data, empty_index] = &EMPTY[usize::from(flags & 1)];
    let mut data = data.to_vec();
    if flags & 2 == 0 {
        prove_records(&mut data, empty_data, key);
    }
    let mut data = empty_data.with(&data, records, [0; 4]);
    data.entry.first_position = (0 < records).then(|| format!("{base:016x}"));
    let index = empty_index.with(index, records, [base, spread, lines, data.entry.crc32c.into()]);
    let dir = folder();
    version(dir.path(), values(key, None), &[&data, &index]);
    let opened = VersionFolder::open(dir.path()).expect("the manifest is whole");
    let Ok(reader) = ChunkSetReader::open(&opened, PARTITION, None) else { return };
    ask(&reader);
}

/// Every value that is found is that of a record of the file, if the whole file can be read.
fn ask(reader: &ChunkSetReader) {
    let mut walked: BTreeMap<Vec<u8>, Vec<Vec<u8>>> = BTreeMap::new();
    let walk = reader.for_each(|key, value| walked.entry(key.to_vec()).or_default().push(value.to_vec()));
    let mut keys: Vec<Vec<u8>> = walked.keys().cloned().collect();
    keys.extend([&b""[..], b"ada", &5u64.to_le_bytes(), &[0xff; 8]].map(<[u8]>::to_vec));
    for key in &keys {
        if let (Ok(Some(value)), Ok(())) = (reader.get(key), &walk) {
            assert!(walked.get(key).is_some_and(|values| values.iter().any(|one| one == value)));
        }
    }
    let mut answered = 0;
    let all = reader.get_many(&keys, |index, _| {
        assert_eq!(index, answered);
        answered += 1;
        ControlFlow::Continue(())
    });
    assert_eq!(all.is_ok(), answered == keys.len());
    let mut count = 0;
    reader.candidates(&keys, |_, _| count += 1);
    assert_eq!(count, keys.len());
    reader.check().expect("no page is lost");
}

/// Computes the checksum of each record.
fn prove_records(data: &mut [u8], file: &Sealed, key: KeyType) {
    let header_crc = u32::from_le_bytes(file.bytes[60..HEADER_BYTES].try_into().expect("four bytes"));
    let mut at = 0;
    while let Some(covered) = data.get(at + 4..) {
        let mut rest = covered;
        let Ok(key_bytes) = (if key == KeyType::Id { Ok(8) } else { take_varint(&mut rest) }) else { return };
        let Ok(value_bytes) = take_varint(&mut rest) else { return };
        let bytes = (covered.len() - rest.len()) as u64;
        let Some(bytes) = bytes.checked_add(key_bytes).and_then(|bytes| bytes.checked_add(value_bytes))
        else {
            return;
        };
        let Some(covered) = usize::try_from(bytes).ok().and_then(|bytes| covered.get(..bytes)) else {
            return;
        };
        let crc = crc32c_append(header_crc ^ (HEADER_BYTES + at) as u32, covered);
        let next = at + 4 + covered.len();
        data[at..at + 4].copy_from_slice(&crc.to_le_bytes());
        at = next;
    }
}

pub fn seeds() -> Vec<Seed> {
    let texts = |count: u64| {
        (0..count).map(|id| (format!("member:{id}").into_bytes(), vec![id as u8; id as usize % 9])).collect()
    };
    let ids = |count: u64| {
        (0..count).map(|id: u64| (id.to_le_bytes().to_vec(), vec![7; id as usize % 40])).collect()
    };
    vec![
        ("none", input(KeyType::Bytes, Vec::new(), |_| {})),
        ("one", input(KeyType::Bytes, texts(1), |_| {})),
        ("texts", input(KeyType::Bytes, texts(60), |_| {})),
        ("ids", input(KeyType::Id, ids(60), |_| {})),
        (
            "lines-that-go-on-for-ever",
            input(KeyType::Id, ids(30), |lines| lines.chunks_mut(64).for_each(|line| line[18] |= 0x80)),
        ),
        (
            "more-entries-than-a-line-has",
            input(KeyType::Id, ids(30), |lines| lines.chunks_mut(64).for_each(|line| line[18] = 15)),
        ),
        (
            "offsets-beyond-the-end",
            input(KeyType::Id, ids(30), |lines| lines.chunks_mut(64).for_each(|line| line[19..].fill(0xff))),
        ),
    ]
}

/// The input that describes these records.
fn input(key: KeyType, mut records: Vec<(Vec<u8>, Vec<u8>)>, change: impl Fn(&mut [u8])) -> Vec<u8> {
    records.sort_by_key(|(key, _)| (position_of_key(key), key.clone()));
    let [data, index] = chunk_set(PARTITION, None, key, &records);
    let [base, spread, lines, _] = index.fields();
    let mut body = index.body().to_vec();
    change(&mut body);
    let mut input = vec![u8::from(key == KeyType::Id)];
    input.extend_from_slice(&(records.len() as u32).to_le_bytes());
    [base, spread, lines].iter().for_each(|word| input.extend_from_slice(&word.to_le_bytes()));
    input.extend_from_slice(&(body.len() as u16).to_le_bytes());
    input.extend_from_slice(&body);
    input.extend_from_slice(data.body());
    input
}
