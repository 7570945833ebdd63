//! One record of a data file.
//!
//! ```text
//! crc32c of all that follows, 4 bytes | key length, varint | value length, varint | key | value
//! ```
//!
//! In files of ids keys are eight bytes long, and their length is not there.
//!
//! The checksum is seeded with the file's header and the record's offset, so that a
//! true record in a wrong place proves nothing.

use super::{KEY_BYTES_MAX, RECORD_VALUE_BYTES_MAX};
use crate::sealed::Header;
use kith_types::{
    ValueProof,
    delta::{put_varint, take_varint},
};

const CRC_BYTES: usize = 4;
/// An id as a key.
const ID_BYTES: u64 = 8;

/// What is the same for all records of a data file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    header_crc: u32,
    keys_are_ids: bool,
}

impl Frame {
    /// Of the file with this header.
    pub(super) fn of(header: Header) -> Self {
        Self { header_crc: header.crc(), keys_are_ids: header.keys_are_ids() }
    }

    /// Whether a record can have this key.
    pub(super) fn fits(self, key: &[u8]) -> bool {
        !self.keys_are_ids || key.len() as u64 == ID_BYTES
    }

    /// What the checksum of a record at `offset` begins with: different for any two places less than 4 GiB apart.
    #[inline]
    fn seed(self, offset: u64) -> u32 {
        self.header_crc ^ (offset as u32) ^ (offset >> 32) as u32
    }

    /// Writes checksum and lengths of the record of `key`, which fits, and `value` at `offset`.
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

/// A record as found; nothing is proven until [`Record::is_whole`] says so.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<'a> {
    pub(super) key: &'a [u8],
    pub(super) value: &'a [u8],
    /// Everything behind the checksum.
    covered: &'a [u8],
    crc: u32,
    seed: u32,
    /// Where it begins in the data file.
    pub(super) offset: u64,
}

impl<'a> Record<'a> {
    /// Finds the parts of the record at `offset` of a data file's body.
    /// `None` if there cannot be one. Reads nothing beyond the lengths.
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

    /// Whether it is this key's. Most keys are ids, of which the compiler compares one word.
    #[inline]
    pub(super) fn is_of(&self, key: &[u8]) -> bool {
        match (<&[u8; 8]>::try_from(self.key), <&[u8; 8]>::try_from(key)) {
            (Ok(here), Ok(wanted)) => here == wanted,
            _ => self.key == key,
        }
    }

    /// Whether every byte is as it was written.
    #[inline]
    pub(super) fn is_whole(&self) -> bool {
        kith_types::crc32c_append(self.seed, self.covered) == self.crc
    }

    /// What proves the value to a caller that has the key.
    #[inline]
    pub(super) fn proof(&self) -> ValueProof {
        ValueProof { seed: self.seed, crc32c: self.crc }
    }

    /// Bytes that the record takes.
    #[inline]
    pub(super) fn bytes(&self) -> u64 {
        (CRC_BYTES + self.covered.len()) as u64
    }
}
