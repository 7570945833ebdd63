//! The compared ways to look up a batch of keys.

use super::both::{BATCH, BothLayouts, VALUE_BYTES};
use kith_types::{fmix64, position_of_key};
use std::ops::ControlFlow;

/// The third step: every answer is checked against checksums.
pub fn proven(both: &BothLayouts, keys: &[[u8; 8]]) -> u64 {
    let mut sum = 0u64;
    for batch in keys.chunks(BATCH) {
        let each = |_, value: Option<&[u8]>| {
            sum = sum.wrapping_add(value.map_or(1, first_word));
            ControlFlow::Continue(())
        };
        both.chunk_set.get_many(batch, each).expect("whole files");
    }
    sum
}

/// The second step: the cost of a lookup if files could be trusted.
pub fn compared(both: &BothLayouts, keys: &[[u8; 8]]) -> u64 {
    let mut sum = 0u64;
    let mut places = [None; BATCH];
    for batch in keys.chunks(BATCH) {
        both.chunk_set
            .candidates(batch, |index, candidate| places[index] = candidate.map(|(_, offset)| offset));
        for (key, candidate) in batch.iter().zip(&places) {
            let value = candidate.map(|offset| record_of(&both.data[offset as usize..], key));
            // The record of another key with the same fingerprint, one in about ten thousand. The candidate does not name
            // the next one.
            let value = if value == Some(None) {
                both.chunk_set.get(key).expect("whole files")
            } else {
                value.flatten()
            };
            sum = sum.wrapping_add(value.map_or(1, first_word));
        }
    }
    sum
}

/// The value of a record of the data file if the record has this key.
fn record_of<'a>(bytes: &'a [u8], key: &[u8; 8]) -> Option<&'a [u8]> {
    // A record begins with its checksum, one byte for the length of the key and one for that of the value.
    let (head, rest) = bytes.split_at(6);
    debug_assert_eq!(head[4..], [8, VALUE_BYTES as u8]);
    (rest[..8] == key[..]).then_some(&rest[8..8 + VALUE_BYTES])
}

/// The first step. About one in ten thousand absent keys has the fingerprint of an entry in its line.
pub fn index_alone(both: &BothLayouts, keys: &[[u8; 8]]) -> u64 {
    let mut present = 0;
    for batch in keys.chunks(BATCH) {
        let mut offsets = 0u64;
        both.chunk_set.candidates(batch, |_, candidate| {
            present += u64::from(candidate.is_some());
            offsets = offsets.wrapping_add(candidate.map_or(0, |(_, offset)| offset));
        });
        divan::black_box(offsets);
    }
    present
}

/// The first entry at or after the key's position, by binary search.
pub fn binary_search(both: &BothLayouts, key: &[u8; 8]) -> usize {
    let position = position_of_key(key).to_be_bytes();
    both.entries.partition_point(|entry| entry[..8] < position[..])
}

/// The same by interpolation over the uniform positions. Ends with single steps when few entries are left.
pub fn interpolation_search(both: &BothLayouts, key: &[u8; 8]) -> usize {
    let wanted = position_of_key(key);
    let at = |index: usize| u64::from_be_bytes(*both.entries[index].first_chunk().expect("12 bytes"));
    let (mut low, mut high) = (0, both.entries.len());
    let (mut least, mut most) = (0u64, u64::MAX);
    while high - low > 8 {
        let share = (wanted - least) as f64 / (most - least) as f64;
        let guess = low + ((high - low - 1) as f64 * share) as usize;
        let found = at(guess);
        if found < wanted {
            (low, least) = (guess + 1, found);
        } else {
            (high, most) = (guess, found);
        }
        if wanted < least || most < wanted || least == most {
            break;
        }
    }
    while low < both.entries.len() && at(low) < wanted {
        low += 1;
    }
    low
}

pub type Search = fn(&BothLayouts, &[u8; 8]) -> usize;

/// The first step with a search of the sorted table.
pub fn index_by(search: Search, both: &BothLayouts, keys: &[[u8; 8]]) -> u64 {
    let present = keys.iter().map(|key| {
        let entry = both.entries.get(search(both, key));
        divan::black_box(entry.map(offset_of));
        u64::from(entry.is_some_and(|entry| entry[..8] == position_of_key(key).to_be_bytes()))
    });
    present.sum()
}

/// The second step with a search of the sorted table.
pub fn record_by(search: Search, both: &BothLayouts, keys: &[[u8; 8]]) -> u64 {
    let values = keys.iter().map(|key| record_at(both, key, search(both, key)).map_or(1, first_word));
    values.fold(0, u64::wrapping_add)
}

/// The record of a key among the entries that begin with the first of its position.
fn record_at<'a>(both: &'a BothLayouts, key: &[u8; 8], start: usize) -> Option<&'a [u8]> {
    let position = position_of_key(key).to_be_bytes();
    let equal = both.entries[start..].iter().take_while(|entry| entry[..8] == position);
    equal.map(offset_of).find_map(|offset| {
        let record = &both.records[offset..offset + 8 + VALUE_BYTES];
        (record[..8] == key[..]).then_some(&record[8..])
    })
}

fn offset_of(entry: &[u8; 12]) -> usize {
    u32::from_be_bytes([entry[8], entry[9], entry[10], entry[11]]) as usize
}

pub fn first_word(value: &[u8]) -> u64 {
    u64::from_le_bytes(*value.first_chunk().expect("values have 32 bytes"))
}

/// The floor: one read per key from memory of the index's size. The reads of a batch are independent of each other; each
/// batch depends on the one before.
pub fn floor(both: &BothLayouts, keys: &[[u8; 8]]) -> u64 {
    let mut sum = 0u64;
    for batch in keys.chunks(BATCH) {
        let before = sum;
        for key in batch {
            let random = u128::from(fmix64(before ^ u64::from_le_bytes(*key)));
            let at = (random * both.noise.len() as u128) >> 64;
            sum = sum.wrapping_add(both.noise[at as usize]);
        }
    }
    sum
}
