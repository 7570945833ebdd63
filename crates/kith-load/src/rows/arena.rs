//! Rows end to end in memory, and how a row is coded there and in runs.
//!
//! ```text
//! partition, 2 bytes | position, 8 | key bytes, 4 | value bytes, 4, top bit: put aside | key | value
//! ```

use super::super::sort::{Run, Scratch, SortError, SortOptions, Spill};
use super::run::{BLOCK_BYTES, RowRunWriter};
use kith_types::PartitionId;
use std::cmp::Ordering;

pub(super) const HEAD_BYTES: usize = 18;

const ASIDE: u32 = 1 << 31;

/// A row as it lies in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawRow<'a> {
    pub(super) partition: PartitionId,
    pub(super) position: u64,
    pub(super) key: &'a [u8],
    /// The value, or a reference to where it was put aside.
    pub(super) value: &'a [u8],
    pub(super) is_aside: bool,
    /// All of it.
    pub(super) bytes: &'a [u8],
}

impl<'a> RawRow<'a> {
    /// The row at the start of some bytes; `None` if there cannot be one.
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
        Some(Self { partition, position, key, value, is_aside, bytes })
    }

    /// The order of files. Rows with one key are equal.
    #[inline]
    pub(super) fn cmp(&self, other: &RawRow<'_>) -> Ordering {
        let (ours, theirs) = ((self.partition, self.position), (other.partition, other.position));
        ours.cmp(&theirs).then_with(|| self.key.cmp(other.key))
    }
}

/// What is sorted instead of rows.
#[derive(Clone, Copy, Debug)]
struct RowRef {
    position: u64,
    /// Partition, 16 bits | where the row begins, 48.
    place: u64,
}

const AT_BITS: u32 = 48;

/// Rows in the order in which they came, until they are sorted.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    bytes: Vec<u8>,
    rows: Vec<RowRef>,
}

impl Arena {
    /// Whether a row fits within a budget for rows and references.
    #[inline]
    pub(super) fn has_room(&self, bytes_max: usize, key: &[u8], value: &[u8]) -> bool {
        // A vector of references may take up to twice its length.
        let used = self.bytes.len() + 2 * size_of::<RowRef>() * (self.rows.len() + 1);
        self.rows.is_empty() || used + HEAD_BYTES + key.len() + value.len() <= bytes_max
    }

    /// One allocation of the full size: pages that are never touched cost nothing, and growing would need the old and
    /// the new one at once.
    #[inline]
    pub(super) fn reserve(&mut self, bytes_max: usize) {
        if self.bytes.capacity() == 0 {
            self.bytes.reserve_exact(bytes_max);
        }
    }

    pub(super) fn push(
        &mut self,
        partition: PartitionId,
        position: u64,
        key: &[u8],
        value: &[u8],
        is_aside: bool,
    ) {
        let at = self.bytes.len() as u64;
        self.rows.push(RowRef { position, place: u64::from(partition.0) << AT_BITS | at });
        self.bytes.extend_from_slice(&(partition.0 as u16).to_le_bytes());
        self.bytes.extend_from_slice(&position.to_le_bytes());
        self.bytes.extend_from_slice(&(key.len() as u32).to_le_bytes());
        let flag = if is_aside { ASIDE } else { 0 };
        self.bytes.extend_from_slice(&(value.len() as u32 | flag).to_le_bytes());
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
    }

    pub(super) fn sort(&mut self) {
        let Self { bytes, rows } = self;
        let row = |place: u64| RawRow::at(&bytes[(place & ((1 << AT_BITS) - 1)) as usize..]);
        rows.sort_unstable_by(|a, b| {
            let order = (a.place >> AT_BITS, a.position).cmp(&(b.place >> AT_BITS, b.position));
            order
                // One position is nearly always one key.
                .then_with(|| row(a.place).map(|row| row.key).cmp(&row(b.place).map(|row| row.key)))
                .then_with(|| a.place.cmp(&b.place))
        });
    }

    /// The `index`-th row, after sorting.
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<RawRow<'_>> {
        let place = self.rows.get(index)?.place;
        RawRow::at(&self.bytes[(place & ((1 << AT_BITS) - 1)) as usize..])
    }
}

impl Spill for Arena {
    fn block_bytes(_options: &SortOptions) -> usize {
        BLOCK_BYTES
    }

    fn spill(&mut self, scratch: &mut Scratch) -> Result<Option<Run>, SortError> {
        if self.rows.is_empty() {
            return Ok(None);
        }
        self.sort();
        let mut writer = RowRunWriter::new(scratch);
        for index in 0..self.rows.len() {
            let row = self.get(index).expect("every reference is to a row");
            writer.push(scratch, row.bytes)?;
        }
        self.bytes.clear();
        self.rows.clear();
        writer.finish(scratch).map(Some)
    }
}
