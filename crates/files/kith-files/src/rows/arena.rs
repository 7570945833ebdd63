//! Rows, stored end to end in memory.

use super::super::sort::{Run, RunWriter, Scratch, SortError, SortOptions, Spill};
use super::raw::{RawRow, RowFields};
use super::run::BLOCK_BYTES;

/// A reference to a row, which is sorted instead of the row.
#[derive(Clone, Copy, Debug)]
struct RowRef {
    position: u64,
    /// The partition, 16 bits | the offset of the row, 48 bits.
    sort_key: u64,
}

const AT_BITS: u32 = 48;

/// Rows in the order in which they were added, until they are sorted.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    bytes: Vec<u8>,
    rows: Vec<RowRef>,
}

impl Arena {
    /// Whether a row fits within a budget for rows and references.
    #[inline]
    pub(super) fn has_room(&self, bytes_max: usize, row: &RowFields<'_>) -> bool {
        // A vector of references may take up to twice its length.
        let used = self.bytes.len() + 2 * size_of::<RowRef>() * (self.rows.len() + 1);
        self.rows.is_empty() || used + row.coded_bytes() <= bytes_max
    }

    /// One allocation of the full size: pages that are never touched cost nothing, and growing would need the old and the
    /// new buffer at the same time.
    #[inline]
    pub(super) fn reserve(&mut self, bytes_max: usize) {
        if self.bytes.capacity() == 0 {
            self.bytes.reserve_exact(bytes_max);
        }
    }

    pub(super) fn push(&mut self, row: &RowFields<'_>) {
        let at = self.bytes.len() as u64;
        self.rows
            .push(RowRef { position: row.position, sort_key: u64::from(row.partition.0) << AT_BITS | at });
        row.put(&mut self.bytes);
    }

    pub(super) fn sort(&mut self) {
        let Self { bytes, rows } = self;
        let row = |offset: u64| RawRow::at(&bytes[(offset & ((1 << AT_BITS) - 1)) as usize..]);
        rows.sort_unstable_by(|a, b| {
            let order = (a.sort_key >> AT_BITS, a.position).cmp(&(b.sort_key >> AT_BITS, b.position));
            order
                // Equal positions nearly always mean equal keys.
                .then_with(|| {
                    row(a.sort_key).map(|row| row.fields.key).cmp(&row(b.sort_key).map(|row| row.fields.key))
                })
                .then_with(|| a.sort_key.cmp(&b.sort_key))
        });
    }

    /// The `index`-th row, after sorting.
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<RawRow<'_>> {
        let offset = self.rows.get(index)?.sort_key;
        RawRow::at(&self.bytes[(offset & ((1 << AT_BITS) - 1)) as usize..])
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
        let mut writer = RunWriter::new(scratch);
        for index in 0..self.rows.len() {
            let row = self.get(index).expect("every reference is to a row");
            writer.push_coded(scratch, row.bytes)?;
        }
        self.bytes.clear();
        self.rows.clear();
        writer.finish(scratch).map(Some)
    }
}
