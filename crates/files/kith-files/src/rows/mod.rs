//! External sort of rows: keys and values of any length, within a memory budget.
//!
//! It works like `sort`, which is for records of fixed size: rows gather in an arena, a full arena is sorted and written as
//! a run, and runs are merged as they are read. The order is that of a store's files: partition, position of the key, key.
//! Rows with one key keep their input order. Long values are set aside when they are added, so that a merge of many runs
//! holds only short ones, and are read back one by one.

mod arena;
mod merge;
mod raw;
mod run;
#[cfg(test)]
mod tests;

use super::sort::{SortError, SortOptions, Spiller};
use arena::Arena;
use kith_types::{PartitionId, position_of_key};
use merge::{RowMerge, merge_down};
use raw::RowFields;
use run::{LargeReader, LargeValues};

/// Values above this size are set aside. A merge holds a block of each run, and a block holds at least one row.
const INLINE_BYTES_MAX: usize = 32 << 10;

/// The least memory of a sort, because an arena must hold some of the longest rows.
const MEMORY_BYTES_MIN: usize = 1 << 20;

/// A row of the sorted output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<'a> {
    pub(crate) partition: PartitionId,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
}

/// Takes rows in any order.
pub(crate) struct RowSorter {
    options: SortOptions,
    arena: Arena,
    arena_bytes_max: usize,
    rows: u64,
    spiller: Option<Spiller<Arena>>,
    large: Option<LargeValues>,
}

impl RowSorter {
    /// Nothing is allocated or written before it is needed.
    pub(crate) fn new(mut options: SortOptions) -> Self {
        options.memory_bytes = options.memory_bytes.max(MEMORY_BYTES_MIN);
        let arenas = if options.threads > 1 { 2 } else { 1 };
        let arena_bytes_max = options.memory_bytes / arenas;
        Self { options, arena: Arena::default(), arena_bytes_max, rows: 0, spiller: None, large: None }
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, partition: PartitionId, key: &[u8], value: &[u8]) -> Result<(), SortError> {
        self.rows += 1;
        let row = RowFields { partition, position: position_of_key(key), key, value, is_aside: false };
        if value.len() <= INLINE_BYTES_MAX {
            return self.push_inline(&row);
        }
        if self.large.is_none() {
            self.large = Some(LargeValues::create(&self.options)?);
        }
        let large = self.large.as_mut().expect("it was just made");
        let reference = large.push(value)?;
        self.push_inline(&RowFields { value: &reference, is_aside: true, ..row })
    }

    fn push_inline(&mut self, row: &RowFields<'_>) -> Result<(), SortError> {
        if !self.arena.has_room(self.arena_bytes_max, row) {
            self.spill()?;
        }
        self.arena.reserve(self.arena_bytes_max);
        self.arena.push(row);
        Ok(())
    }

    #[cold]
    fn spill(&mut self) -> Result<(), SortError> {
        let spiller = match self.spiller.take() {
            Some(spiller) => spiller,
            None => Spiller::start(&self.options)?,
        };
        let spiller = self.spiller.insert(spiller);
        self.arena = spiller.spill(std::mem::take(&mut self.arena))?;
        Ok(())
    }

    /// The number of rows so far.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Sorts the rows.
    pub(crate) fn finish(mut self) -> Result<SortedRows, SortError> {
        let large = self.large.take().map(LargeValues::finish);
        let Some(mut spiller) = self.spiller.take() else {
            self.arena.sort();
            return Ok(SortedRows { from: Input::Memory { arena: self.arena, next: 0 }, large, runs: 0 });
        };
        drop(spiller.spill(std::mem::take(&mut self.arena))?);
        let (scratch, runs) = spiller.finish()?;
        let count = runs.len();
        let (scratch, runs) = merge_down(scratch, runs, &self.options)?;
        let merge = RowMerge::new(scratch, &runs)?;
        Ok(SortedRows { from: Input::Runs(merge), large, runs: count })
    }
}

/// Sorted rows. Rows with one key are adjacent.
pub(crate) struct SortedRows {
    from: Input,
    large: Option<LargeReader>,
    runs: usize,
}

enum Input {
    Memory { arena: Arena, next: usize },
    Runs(RowMerge),
}

impl SortedRows {
    /// The next row; `None` at the end. It is borrowed until the next call.
    pub(crate) fn next(&mut self) -> Result<Option<Row<'_>>, SortError> {
        let raw = match &mut self.from {
            Input::Memory { arena, next } => {
                let raw = arena.get(*next);
                *next += 1;
                raw
            }
            Input::Runs(merge) => merge.next()?,
        };
        let Some(row) = raw.map(|raw| raw.fields) else { return Ok(None) };
        let value = match (&mut self.large, row.is_aside) {
            (Some(large), true) => large.read(row.value)?,
            _ => row.value,
        };
        Ok(Some(Row { partition: row.partition, key: row.key, value }))
    }

    /// The number of runs that were written to the scratch folder; 0 if everything fitted into memory.
    pub(crate) fn spilled_runs(&self) -> usize {
        self.runs
    }
}
