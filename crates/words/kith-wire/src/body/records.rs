//! The values of a batch read: a state for each key, then the lengths of the values, then the values end to end.

use super::{BodyError, take_count};
use bytes::Bytes;
use kith_types::{
    ValueProof,
    delta::{self, DecodeError},
};

/// One entry of a body of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordBody {
    /// The store has no such key.
    Absent,
    /// The value has this many bytes.
    Found(usize),
    /// The value has this many bytes, and comes with its proof.
    FoundWith(usize, ValueProof),
    /// The record is damaged.
    Damaged,
    /// The value has another type than the computation needs.
    Unsuitable,
    /// No replica answered for the key.
    Unanswered,
    /// Replicas gave different answers.
    Disagreeing,
    /// The list has another length than the operator's query.
    Dimensions {
        /// The index of the operator in the plan.
        operator: u32,
        /// The length of the query.
        want: u32,
        /// The length of the list in the record.
        got: u32,
    },
    /// The record was found, but the plan does not return its value.
    Unsent,
}

const ABSENT: u8 = 0;
const FOUND: u8 = 1;
const DAMAGED: u8 = 2;
const UNSUITABLE: u8 = 3;
const UNANSWERED: u8 = 4;
const DISAGREEING: u8 = 5;
const DIMENSIONS: u8 = 6;
const UNSENT: u8 = 7;
const FOUND_WITH: u8 = 8;

/// Two states share one byte.
const STATE_BITS: usize = 4;
/// A proof is a seed and a checksum.
const PROOF_BYTES: usize = 8;

/// Encodes entries and their values. `values` yields the values in the order of the entries, and `value_bytes` is their
/// total length. Each value is copied once.
pub fn encode_records<'a>(
    entries: &[RecordBody],
    values: impl Iterator<Item = &'a [u8]>,
    value_bytes: usize,
) -> Bytes {
    let mut out = encode_records_head(entries, value_bytes);
    for value in values {
        out.extend_from_slice(value);
    }
    out.into()
}

/// Encodes the part of a body of [`encode_records`] that precedes the values, and reserves `room` bytes after it.
pub fn encode_records_head(entries: &[RecordBody], room: usize) -> Vec<u8> {
    let count = entries.len();
    let mut out =
        Vec::with_capacity(delta::VARINT_BYTES_MAX + count.div_ceil(2) + count * (2 + PROOF_BYTES) + room);
    delta::put_varint(&mut out, count as u64);
    let states = out.len();
    out.resize(states + count.div_ceil(2), 0);
    for (index, entry) in entries.iter().enumerate() {
        out[states + index / 2] |= state(*entry) << (index % 2 * STATE_BITS);
    }
    for entry in entries {
        match entry {
            RecordBody::Found(length) => delta::put_varint(&mut out, *length as u64),
            RecordBody::FoundWith(length, proof) => {
                delta::put_varint(&mut out, *length as u64);
                out.extend_from_slice(&proof.seed.to_le_bytes());
                out.extend_from_slice(&proof.crc32c.to_le_bytes());
            }
            RecordBody::Dimensions { operator, want, got } => {
                [operator, want, got].iter().for_each(|&&number| delta::put_varint(&mut out, number.into()));
            }
            _ => {}
        }
    }
    out
}

/// Decodes a body from [`encode_records`]. Returns the entries and the bytes of all values, which are not copied.
///
/// An entry takes half a byte of the body and 24 bytes of memory. Therefore the caller passes the number of entries
/// that it asked for.
///
/// # Errors
/// [`BodyError`] if the body is malformed, has more than `entries_max` entries, or has values of another total length
/// than its entries announce.
pub fn decode_records(body: &Bytes, entries_max: usize) -> Result<(Vec<RecordBody>, Bytes), BodyError> {
    let mut rest: &[u8] = body;
    let count = take_count(&mut rest)?;
    if entries_max < count {
        return Err(BodyError::TooMany { count, entries_max });
    }
    let (states, mut rest) = rest.split_at_checked(count.div_ceil(2)).ok_or(BodyError::Short)?;
    let mut entries = Vec::with_capacity(count);
    let mut total = 0usize;
    for index in 0..count {
        entries.push(match states[index / 2] >> (index % 2 * STATE_BITS) & 0x0f {
            ABSENT => RecordBody::Absent,
            FOUND => {
                let length = take_count(&mut rest)?;
                total = total.checked_add(length).ok_or(BodyError::Short)?;
                RecordBody::Found(length)
            }
            FOUND_WITH => {
                let length = take_count(&mut rest)?;
                total = total.checked_add(length).ok_or(BodyError::Short)?;
                RecordBody::FoundWith(length, take_proof(&mut rest)?)
            }
            DAMAGED => RecordBody::Damaged,
            UNSUITABLE => RecordBody::Unsuitable,
            UNANSWERED => RecordBody::Unanswered,
            DISAGREEING => RecordBody::Disagreeing,
            DIMENSIONS => RecordBody::Dimensions {
                operator: take_u32(&mut rest)?,
                want: take_u32(&mut rest)?,
                got: take_u32(&mut rest)?,
            },
            UNSENT => RecordBody::Unsent,
            other => return Err(BodyError::State(other)),
        });
    }
    match rest.len().checked_sub(total) {
        None => Err(BodyError::Short),
        Some(0) => Ok((entries, body.slice_ref(rest))),
        Some(more) => Err(BodyError::Trailing(more)),
    }
}

fn state(entry: RecordBody) -> u8 {
    match entry {
        RecordBody::Absent => ABSENT,
        RecordBody::Found(_) => FOUND,
        RecordBody::FoundWith(..) => FOUND_WITH,
        RecordBody::Damaged => DAMAGED,
        RecordBody::Unsuitable => UNSUITABLE,
        RecordBody::Unanswered => UNANSWERED,
        RecordBody::Disagreeing => DISAGREEING,
        RecordBody::Dimensions { .. } => DIMENSIONS,
        RecordBody::Unsent => UNSENT,
    }
}

fn take_proof(body: &mut &[u8]) -> Result<ValueProof, BodyError> {
    let (bytes, rest) = body.split_first_chunk::<PROOF_BYTES>().ok_or(BodyError::Short)?;
    *body = rest;
    let both = u64::from_le_bytes(*bytes);
    Ok(ValueProof { seed: both as u32, crc32c: (both >> 32) as u32 })
}

fn take_u32(body: &mut &[u8]) -> Result<u32, BodyError> {
    Ok(u32::try_from(delta::take_varint(body)?).map_err(|_| DecodeError::Overflow)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encode(records: &[(RecordBody, Vec<u8>)]) -> Bytes {
        let values = records
            .iter()
            .filter(|(entry, _)| matches!(entry, RecordBody::Found(_) | RecordBody::FoundWith(..)));
        let bytes = values.clone().map(|(_, value)| value.len()).sum();
        let entries: Vec<RecordBody> = records.iter().map(|(entry, _)| *entry).collect();
        encode_records(&entries, values.map(|(_, value)| value.as_slice()), bytes)
    }

    fn proof(seed: u32, crc32c: u32) -> ValueProof {
        ValueProof { seed, crc32c }
    }

    proptest! {
        #[test]
        fn records_round_trip(states in prop::collection::vec((0u8..9, prop::collection::vec(any::<u8>(), 0..40)), 0..40)) {
            let records: Vec<(RecordBody, Vec<u8>)> = states.into_iter().map(|(state, value)| match state {
                ABSENT => (RecordBody::Absent, vec![]),
                FOUND => (RecordBody::Found(value.len()), value),
                FOUND_WITH => (RecordBody::FoundWith(value.len(), proof(7, u32::MAX)), value),
                DAMAGED => (RecordBody::Damaged, vec![]),
                UNSUITABLE => (RecordBody::Unsuitable, vec![]),
                DISAGREEING => (RecordBody::Disagreeing, vec![]),
                DIMENSIONS => (RecordBody::Dimensions { operator: 300, want: u32::MAX, got: value.len() as u32 }, vec![]),
                UNSENT => (RecordBody::Unsent, vec![]),
                _ => (RecordBody::Unanswered, vec![]),
            }).collect();
            let (entries, values) = decode_records(&encode(&records), 40).unwrap();
            prop_assert_eq!(entries, records.iter().map(|(entry, _)| *entry).collect::<Vec<_>>());
            prop_assert_eq!(values.as_ref(), records.iter().flat_map(|(_, value)| value.clone()).collect::<Vec<u8>>());
        }

        #[test]
        fn hostile_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode_records(&bytes.into(), 400);
        }
    }

    #[test]
    fn the_drawn_example_holds_and_its_parts_are_refused() {
        let records = [
            (RecordBody::Found(2), b"ab".to_vec()),
            (RecordBody::Absent, vec![]),
            (RecordBody::Found(0), vec![]),
            (RecordBody::Damaged, vec![]),
        ];
        let body = encode(&records);
        assert_eq!(body, [0x04, 0x01, 0x21, 0x02, 0x00, b'a', b'b'].as_slice());
        let computed = [
            (RecordBody::Unsent, vec![]),
            (RecordBody::Dimensions { operator: 1, want: 64, got: 2 }, vec![]),
            (RecordBody::Found(1), b"v".to_vec()),
        ];
        assert_eq!(encode(&computed), [0x03, 0x67, 0x01, 0x01, 0x40, 0x02, 0x01, b'v'].as_slice());
        let proven = [
            (RecordBody::FoundWith(2, proof(0x0403_0201, 0x0807_0605)), b"ab".to_vec()),
            (RecordBody::Absent, vec![]),
        ];
        let with_proof = encode(&proven);
        assert_eq!(with_proof, [0x02, 0x08, 0x02, 1, 2, 3, 4, 5, 6, 7, 8, b'a', b'b'].as_slice());
        assert_eq!(decode_records(&with_proof.slice(..8), 2), Err(BodyError::Short));
        assert_eq!(decode_records(&body.slice(..6), 4), Err(BodyError::Short));
        let longer: Bytes = [&body[..], b"!"].concat().into();
        assert_eq!(decode_records(&longer, 4), Err(BodyError::Trailing(1)));
        assert_eq!(decode_records(&Bytes::from_static(&[1, 9]), 1), Err(BodyError::State(9)));
    }
    #[test]
    fn more_entries_than_were_asked_for_are_refused_before_they_are_decoded() {
        let body = encode(&vec![(RecordBody::Absent, vec![]); 60]);
        assert_eq!(decode_records(&body, 60).unwrap().0.len(), 60);
        assert_eq!(decode_records(&body, 59), Err(BodyError::TooMany { count: 60, entries_max: 59 }));
    }
}
