//! Malicious compressed values and dictionaries, with valid checksums.

use super::sealed::{chunk_set, dictionary, values, version};
use super::{PARTITION, folder};
use crate::properties::{Seed, take_word};
use kith_engine::{Compression, KeyType, ValuesReader};
use std::ops::ControlFlow;

/// The longest value of a store.
const VALUE_BYTES_MAX: usize = 64 << 20;

/// Input: the length of a dictionary, the dictionary, a frame.
pub fn check(mut input: &[u8]) {
    let bytes = (take_word::<2>(&mut input) as usize).min(input.len());
    let (words, frame) = input.split_at(bytes);
    let key = b"ada".to_vec();
    let [data, index] = chunk_set(PARTITION, None, KeyType::Bytes, &[(key.clone(), frame.to_vec())]);
    let dictionary = dictionary().with(words, words.len() as u64, [0; 4]);
    let dir = folder();
    version(dir.path(), values(KeyType::Bytes, Some(Compression::Zstd(3))), &[&data, &index, &dictionary]);
    let Ok(reader) = ValuesReader::open(dir.path(), &[PARTITION]) else { return };
    let value = reader.get(&key);
    if let Ok(value) = &value {
        let value = value.as_ref().expect("the key is there, whatever its value is");
        assert!(value.len() <= VALUE_BYTES_MAX);
    }
    assert_eq!(reader.get(b"bob"), Ok(None));
    let mut shown = Vec::new();
    let walked = reader.for_each(PARTITION, |_, value| {
        shown.push(value.to_vec());
        ControlFlow::Continue(())
    });
    match value {
        Ok(value) => assert_eq!(Vec::from_iter(value), shown),
        Err(_) => assert!(walked.is_err()),
    }
}

/// A frame that claims to hold `states` bytes. Each block has a kind (0: raw, 1: one byte repeated), a size and its bytes.
fn frame(states: u32, blocks: &[(u32, u32, &[u8])]) -> Vec<u8> {
    // Magic; a single segment whose size takes four bytes.
    let mut bytes = vec![0x28, 0xb5, 0x2f, 0xfd, 0xa0];
    bytes.extend_from_slice(&states.to_le_bytes());
    for (number, (kind, size, content)) in blocks.iter().enumerate() {
        let is_last = u32::from(number + 1 == blocks.len());
        bytes.extend_from_slice(&(size << 3 | kind << 1 | is_last).to_le_bytes()[..3]);
        bytes.extend_from_slice(content);
    }
    bytes
}

pub fn seeds() -> Vec<Seed> {
    let of = |dictionary: &[u8], frame: &[u8]| {
        [&(dictionary.len() as u16).to_le_bytes()[..], dictionary, frame].concat()
    };
    let words = b"words that come again and again in values of a store";
    vec![
        ("raw", of(b"", &frame(5, &[(0, 5, b"value")]))),
        ("repeated", of(words, &frame(1_000, &[(1, 900, b"x"), (0, 100, &[7; 100])]))),
        ("empty", of(words, &frame(0, &[(0, 0, b"")]))),
        ("states-more-than-it-holds", of(b"", &frame(64 << 20, &[(0, 5, b"value")]))),
        ("states-more-than-a-value-has", of(b"", &frame((64 << 20) + 1, &[(0, 5, b"value")]))),
        ("no-frame", of(words, b"no frame at all")),
        // The magic number of a trained dictionary, without its tables.
        ("dictionary-cut-short", of(&[0x37, 0xa4, 0x30, 0xec, 1, 0, 0, 0], &frame(5, &[(0, 5, b"value")]))),
    ]
}
