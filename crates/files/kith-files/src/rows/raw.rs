//! The encoding of a row in memory and in runs.
//!
//! ```text
//! partition, 2 bytes | position, 8 | key bytes, 4 | value bytes, 4, top bit: put aside | key | value
//! ```

use kith_types::PartitionId;
use std::cmp::Ordering;

pub(super) const HEAD_BYTES: usize = 18;

const ASIDE: u32 = 1 << 31;

#[derive(Clone, Copy, Debug)]
pub(super) struct RowFields<'a> {
    pub(super) partition: PartitionId,
    pub(super) position: u64,
    pub(super) key: &'a [u8],
    /// The value, or a reference to it if it was set aside.
    pub(super) value: &'a [u8],
    pub(super) is_aside: bool,
}

impl RowFields<'_> {
    /// The number of bytes that [`RowFields::put`] appends.
    #[inline]
    pub(super) fn coded_bytes(&self) -> usize {
        HEAD_BYTES + self.key.len() + self.value.len()
    }

    /// Appends the row to `out`.
    #[inline]
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.partition.0 as u16).to_le_bytes());
        out.extend_from_slice(&self.position.to_le_bytes());
        out.extend_from_slice(&(self.key.len() as u32).to_le_bytes());
        let flag = if self.is_aside { ASIDE } else { 0 };
        out.extend_from_slice(&(self.value.len() as u32 | flag).to_le_bytes());
        out.extend_from_slice(self.key);
        out.extend_from_slice(self.value);
    }
}

/// An encoded row in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawRow<'a> {
    pub(super) fields: RowFields<'a>,
    /// All bytes of the row.
    pub(super) bytes: &'a [u8],
}

impl<'a> RawRow<'a> {
    /// Decodes the row at the start of some bytes; `None` if there cannot be one.
    #[inline]
    pub(super) fn at(bytes: &'a [u8]) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let partition = PartitionId(u32::from(u16::from_le_bytes([head[0], head[1]])));
        let position = u64::from_le_bytes(*head[2..].first_chunk()?);
        let (key_bytes, value_bytes) = (word(10) as usize, word(14));
        let is_aside = value_bytes & ASIDE != 0;
        let (key, rest) = rest.split_at_checked(key_bytes)?;
        let (value, rest) = rest.split_at_checked((value_bytes & !ASIDE) as usize)?;
        let bytes = &bytes[..bytes.len() - rest.len()];
        Some(Self { fields: RowFields { partition, position, key, value, is_aside }, bytes })
    }

    /// The order of files. Rows with one key are equal.
    #[inline]
    pub(super) fn cmp(&self, other: &RawRow<'_>) -> Ordering {
        let (ours, theirs) = (&self.fields, &other.fields);
        let order = (ours.partition, ours.position).cmp(&(theirs.partition, theirs.position));
        order.then_with(|| ours.key.cmp(theirs.key))
    }
}
