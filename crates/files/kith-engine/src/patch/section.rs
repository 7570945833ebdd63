//! The changes of one partition, in the order of files.
//!
//! ```text
//! key bytes, varint | 0: the key goes; else value bytes plus one, varint | key | value as it is stored
//! ```

use super::head::Section;
use super::{PatchBytes, UnusablePatch};
use crate::chunk::{KEY_BYTES_MAX, RECORD_VALUE_BYTES_MAX};
use kith_types::delta::{put_varint, take_varint};
use kith_types::position_of_key;

/// The greatest size of the lengths of a change: two varints.
const LENGTHS_BYTES_MAX: u64 = 20;

/// Encodes the part of a change before its key and value.
pub(super) fn encode_head(out: &mut Vec<u8>, key: &[u8], stored: Option<&[u8]>) {
    out.clear();
    put_varint(out, key.len() as u64);
    put_varint(out, stored.map_or(0, |stored| stored.len() as u64 + 1));
}

/// The change of one key.
#[derive(Debug, Default)]
pub struct Change {
    pub position: u64,
    pub key: Vec<u8>,
    /// The value as it is stored, if `is_put`.
    pub stored: Vec<u8>,
    /// Whether the key gets a value. If not, it is deleted.
    pub is_put: bool,
}

/// Reads the changes of a partition. They are valid only once the last one has been read, because only then is the whole
/// section checked.
pub struct SectionReader<'p, 's> {
    bytes: &'p mut PatchBytes<'s>,
    section: Section,
    at: u64,
    left: u64,
    hasher: blake3::Hasher,
    change: Option<Change>,
}

impl<'p, 's> SectionReader<'p, 's> {
    /// Opens the section that begins at `at`, and reads its first change.
    pub fn open(bytes: &'p mut PatchBytes<'s>, section: Section, at: u64) -> Result<Self, UnusablePatch> {
        let hasher = blake3::Hasher::new();
        let mut reader =
            Self { bytes, section, at, left: section.bytes, hasher, change: Some(Change::default()) };
        reader.advance()?;
        Ok(reader)
    }

    /// The current change; `None` after the last one.
    pub fn change(&self) -> Option<&Change> {
        self.change.as_ref()
    }

    /// Moves to the next change.
    pub fn advance(&mut self) -> Result<(), UnusablePatch> {
        let Some(mut change) = self.change.take() else { return Ok(()) };
        if self.left == 0 {
            let whole = *self.hasher.finalize().as_bytes() == self.section.blake3;
            return if whole { Ok(()) } else { Err(UnusablePatch) };
        }
        let start = self.bytes.get(self.at, self.left.min(LENGTHS_BYTES_MAX))?;
        let mut rest = start;
        let key_bytes = take_varint(&mut rest).map_err(|_| UnusablePatch)?;
        let value_bytes = take_varint(&mut rest).map_err(|_| UnusablePatch)?;
        let lengths = (start.len() - rest.len()) as u64;
        let (is_put, value_bytes) = (value_bytes > 0, value_bytes.saturating_sub(1));
        if key_bytes > KEY_BYTES_MAX as u64 || value_bytes > RECORD_VALUE_BYTES_MAX as u64 {
            return Err(UnusablePatch);
        }
        let total = lengths + key_bytes + value_bytes;
        if total > self.left {
            return Err(UnusablePatch);
        }
        let bytes = self.bytes.get(self.at, total)?;
        self.hasher.update(bytes);
        let (key, value) = bytes[lengths as usize..].split_at(key_bytes as usize);
        for (to, from) in [(&mut change.key, key), (&mut change.stored, value)] {
            to.clear();
            to.extend_from_slice(from);
        }
        (change.position, change.is_put) = (position_of_key(key), is_put);
        (self.at, self.left) = (self.at + total, self.left - total);
        self.change = Some(change);
        Ok(())
    }
}
