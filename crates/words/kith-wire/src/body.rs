//! Packed bodies: the bytes inside `Value` and `Operator`, which are the same on every transport.
//! `docs/formats/wire-bodies.md` draws them.

mod keys;
mod records;

pub use keys::{decode_keys, encode_keys, key_count};
pub use records::{RecordBody, decode_records, encode_records, encode_records_head};

use bytes::Bytes;
use kith_types::delta::{self, DecodeError};
use thiserror::Error;

/// The reason why a packed body cannot be decoded.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum BodyError {
    /// A varint or list is malformed.
    #[error(transparent)]
    Ids(#[from] DecodeError),
    /// Bytes follow the last entry.
    #[error("{0} bytes follow the body")]
    Trailing(usize),
    /// The body ends before its last entry.
    #[error("the body ends before its last entry")]
    Short,
    /// The body has more entries than the caller asked for.
    #[error("the body has {count} entries, but at most {entries_max} were asked for")]
    TooMany {
        /// The number of entries that the body announces.
        count: usize,
        /// The number of entries that the caller asked for.
        entries_max: usize,
    },
    /// The state is invalid, or belongs to a newer release.
    #[error("unknown record state {0}")]
    State(u8),
}

/// Encodes a set: the count, then the sorted, distinct ids.
pub fn encode_set(ids: &[u64]) -> Bytes {
    let mut out = Vec::with_capacity(delta::VARINT_BYTES_MAX + ids.len() * 2);
    delta::put_varint(&mut out, ids.len() as u64);
    delta::encode(ids, &mut out);
    out.into()
}

/// Decodes a body from [`encode_set`].
///
/// # Errors
/// [`BodyError`] if the body is malformed.
pub fn decode_set(mut body: &[u8]) -> Result<Vec<u64>, BodyError> {
    let count = take_count(&mut body)?;
    let mut ids = Vec::new();
    delta::decode(&mut body, count, &mut ids)?;
    end(body)?;
    Ok(ids)
}

/// One decoded entry of a body of lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListBody {
    /// The key is not in the graph.
    NotInGraph,
    /// The list is longer than the request allows; only its length is given.
    Longer(u64),
    /// The list: sorted, distinct ids.
    Ids(Vec<u64>),
}

/// Writes a body of lists entry by entry.
#[derive(Debug, Default)]
pub struct ListsWriter {
    out: Vec<u8>,
}

impl ListsWriter {
    /// Writes that the next key is not in the graph.
    pub fn not_in_graph(&mut self) {
        delta::put_varint(&mut self.out, 0);
    }

    /// Writes that the next key's list has `count` ids, which is more than the request allows.
    pub fn longer(&mut self, count: u64) {
        delta::put_varint(&mut self.out, 1);
        delta::put_varint(&mut self.out, count);
    }

    /// Writes the next key's list, which is sorted and distinct.
    pub fn ids(&mut self, ids: &[u64]) {
        delta::put_varint(&mut self.out, ids.len() as u64 + 2);
        delta::encode(ids, &mut self.out);
    }

    /// Returns the encoded body.
    pub fn finish(self) -> Bytes {
        self.out.into()
    }
}

/// Decodes the entries of a body of lists, in order.
///
/// # Errors
/// [`BodyError`] if the body is malformed. The function allocates at most eight bytes per byte of body.
pub fn decode_lists(mut body: &[u8]) -> Result<Vec<ListBody>, BodyError> {
    let mut lists = Vec::new();
    while !body.is_empty() {
        lists.push(match delta::take_varint(&mut body)? {
            0 => ListBody::NotInGraph,
            1 => ListBody::Longer(delta::take_varint(&mut body)?),
            count => {
                let mut ids = Vec::new();
                let count = usize::try_from(count - 2).map_err(|_| DecodeError::Overflow)?;
                delta::decode(&mut body, count, &mut ids)?;
                ListBody::Ids(ids)
            }
        });
    }
    Ok(lists)
}

fn take_count(body: &mut &[u8]) -> Result<usize, BodyError> {
    Ok(usize::try_from(delta::take_varint(body)?).map_err(|_| DecodeError::Overflow)?)
}

fn end(rest: &[u8]) -> Result<(), BodyError> {
    if rest.is_empty() { Ok(()) } else { Err(BodyError::Trailing(rest.len())) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn sets_and_lists_round_trip(lists in prop::collection::vec(
            prop::option::of(prop::collection::btree_set(any::<u64>(), 0..50)), 0..20)
        ) {
            let mut writer = ListsWriter::default();
            let mut expected = Vec::new();
            for (index, list) in lists.iter().enumerate() {
                match list {
                    None if index % 2 == 0 => { writer.not_in_graph(); expected.push(ListBody::NotInGraph); }
                    None => { writer.longer(index as u64); expected.push(ListBody::Longer(index as u64)); }
                    Some(set) => {
                        let ids: Vec<u64> = set.iter().copied().collect();
                        prop_assert_eq!(decode_set(&encode_set(&ids)).unwrap(), ids.clone());
                        writer.ids(&ids);
                        expected.push(ListBody::Ids(ids));
                    }
                }
            }
            prop_assert_eq!(decode_lists(&writer.finish()).unwrap(), expected);
        }

        #[test]
        fn hostile_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(ids) = decode_set(&bytes) {
                prop_assert_eq!(ids.len(), ids.iter().collect::<BTreeSet<_>>().len());
            }
            let _ = decode_lists(&bytes);
        }
    }

    #[test]
    fn the_drawn_examples_hold() {
        assert_eq!(encode_set(&[5, 133, 1000]), [0x03, 0x05, 0x80, 0x01, 0xe3, 0x06].as_slice());
        assert_eq!(encode_set(&[]), [0].as_slice());
        let mut writer = ListsWriter::default();
        writer.not_in_graph();
        writer.longer(9);
        writer.ids(&[]);
        writer.ids(&[1, 1005]);
        assert_eq!(writer.finish(), [0x00, 0x01, 0x09, 0x02, 0x04, 0x01, 0xec, 0x07].as_slice());
    }

    #[test]
    fn a_body_with_bytes_after_its_end_is_refused() {
        let mut body = encode_set(&[1, 2]).to_vec();
        body.push(0);
        assert_eq!(decode_set(&body), Err(BodyError::Trailing(1)));
    }
}
