//! One record of a data file.
//!
//! ```text
//! crc32c of all that follows, 4 bytes | key length, varint | value length, varint | key | value
//! ```
//!
//! In files whose keys are ids, keys have eight bytes, and the key length is left out.
//!
//! The checksum is seeded with the file's header and the record's offset, so that an intact record in a wrong place fails
//! the check.

use super::{KEY_BYTES_MAX, RECORD_VALUE_BYTES_MAX};
use crate::sealed::Header;
use kith_types::{
    ValueProof,
    delta::{put_varint, take_varint},
};

const CRC_BYTES: usize = 4;
/// The size of an id as a key.
const ID_BYTES: u64 = 8;

/// The properties that all records of a data file share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    header_crc: u32,
    keys_are_ids: bool,
}

impl Frame {
    /// The frame of the file with this header.
    pub(super) fn of(header: Header) -> Self {
        Self { header_crc: header.crc(), keys_are_ids: header.keys_are_ids() }
    }

    /// Whether this key can be a key of the file.
    pub(super) fn fits(self, key: &[u8]) -> bool {
        !self.keys_are_ids || key.len() as u64 == ID_BYTES
    }

    /// The seed of the checksum of a record at `offset`. It differs for any two offsets less than 4 GiB apart.
    #[inline]
    fn seed(self, offset: u64) -> u32 {
        self.header_crc ^ (offset as u32) ^ (offset >> 32) as u32
    }

    /// Writes the checksum and lengths of the record of `key`, which must fit, and `value` at `offset`.
    pub(super) fn encode_head(self, offset: u64, key: &[u8], value: &[u8], out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&[0; CRC_BYTES]);
        if !self.keys_are_ids {
            put_varint(out, key.len() as u64);
        }
        put_varint(out, value.len() as u64);
        let mut crc = self.seed(offset);
        for part in [&out[CRC_BYTES..], key, value] {
            crc = kith_types::crc32c_append(crc, part);
        }
        out[..CRC_BYTES].copy_from_slice(&crc.to_le_bytes());
    }
}

/// A record as it was found. It is unproven until [`Record::is_whole`] returns `true`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<'a> {
    pub(super) key: &'a [u8],
    pub(super) value: &'a [u8],
    /// All bytes after the checksum.
    covered: &'a [u8],
    crc: u32,
    seed: u32,
    /// The offset at which it begins in the data file.
    pub(super) offset: u64,
}

impl<'a> Record<'a> {
    /// Finds the parts of the record at `offset` of a data file's body. `None` if there cannot be one. Reads nothing beyond
    /// the lengths.
    #[inline]
    pub(super) fn at(body: &'a [u8], offset: u64, frame: Frame) -> Option<Self> {
        let bytes = body.get(usize::try_from(offset).ok()?..)?;
        let (crc, covered) = bytes.split_first_chunk::<CRC_BYTES>()?;
        let mut rest = covered;
        let key_bytes = if frame.keys_are_ids { ID_BYTES } else { take_varint(&mut rest).ok()? };
        let value_bytes = take_varint(&mut rest).ok()?;
        if key_bytes > KEY_BYTES_MAX as u64 || value_bytes > RECORD_VALUE_BYTES_MAX as u64 {
            return None;
        }
        let (key, rest) = rest.split_at_checked(key_bytes as usize)?;
        let (value, rest) = rest.split_at_checked(value_bytes as usize)?;
        let covered = &covered[..covered.len() - rest.len()];
        Some(Self { key, value, covered, crc: u32::from_le_bytes(*crc), seed: frame.seed(offset), offset })
    }

    /// Whether the record has this key. Most keys are ids, which the compiler compares as one word.
    #[inline]
    pub(super) fn is_of(&self, key: &[u8]) -> bool {
        match (<&[u8; 8]>::try_from(self.key), <&[u8; 8]>::try_from(key)) {
            (Ok(here), Ok(wanted)) => here == wanted,
            _ => self.key == key,
        }
    }

    /// Whether the checksum of all bytes matches.
    #[inline]
    pub(super) fn is_whole(&self) -> bool {
        kith_types::crc32c_append(self.seed, self.covered) == self.crc
    }

    /// The proof of the value for a caller that has the key.
    #[inline]
    pub(super) fn proof(&self) -> ValueProof {
        ValueProof { seed: self.seed, crc32c: self.crc }
    }

    /// The size of the record in bytes.
    #[inline]
    pub(super) fn bytes(&self) -> u64 {
        (CRC_BYTES + self.covered.len()) as u64
    }
}
