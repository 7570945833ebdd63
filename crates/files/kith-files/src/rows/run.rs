//! Runs of rows, and long values that were set aside, in unnamed files.

use super::super::sort::{BLOCK_HEAD_BYTES, Run, Scratch, SortError, SortOptions};
use super::INLINE_BYTES_MAX;
use super::raw::{HEAD_BYTES, RawRow};
use kith_engine::KEY_BYTES_MAX;
use std::sync::Arc;

/// The size of the payload at which a block is written.
pub(super) const BLOCK_BYTES: usize = 64 << 10;

/// The longest block: nearly full, plus one of the longest rows.
pub(super) const BLOCK_BYTES_MAX: usize = BLOCK_BYTES + HEAD_BYTES + KEY_BYTES_MAX + INLINE_BYTES_MAX;

/// Reads one run, a block at a time.
pub(super) struct RowRunReader {
    scratch: Arc<Scratch>,
    /// The offset of the next block.
    offset: u64,
    /// The number of rows that were not returned yet.
    records: u64,
    block: Vec<u8>,
    /// The bounds of the current row in the block.
    at: usize,
    end: usize,
}

impl RowRunReader {
    pub(super) fn new(scratch: &Arc<Scratch>, run: Run) -> Self {
        let (scratch, block) = (Arc::clone(scratch), Vec::new());
        Self { scratch, offset: run.offset, records: run.records, block, at: 0, end: 0 }
    }

    /// Moves to the next row; `false` at the end.
    pub(super) fn advance(&mut self) -> Result<bool, SortError> {
        if self.records == 0 {
            return Ok(false);
        }
        if self.end == self.block.len() {
            self.scratch.read_block(self.offset, BLOCK_BYTES_MAX, &mut self.block)?;
            self.offset += (BLOCK_HEAD_BYTES + self.block.len()) as u64;
            self.end = 0;
        }
        let Some(row) = RawRow::at(&self.block[self.end..]) else {
            return Err(self.scratch.damaged(self.offset));
        };
        (self.at, self.end) = (self.end, self.end + row.bytes.len());
        self.records -= 1;
        Ok(true)
    }

    /// The current row.
    #[inline]
    pub(super) fn row(&self) -> RawRow<'_> {
        RawRow::at(&self.block[self.at..]).expect("it was there when the reader came to it")
    }
}

/// Long values, one after the other, each in a block of its own.
pub(super) struct LargeValues {
    scratch: Scratch,
    block: Vec<u8>,
}

/// Reads long values back.
pub(super) struct LargeReader {
    scratch: Scratch,
    value: Vec<u8>,
}

impl LargeValues {
    pub(super) fn create(options: &SortOptions) -> Result<Self, SortError> {
        Ok(Self { scratch: Scratch::create(options, usize::MAX)?, block: Vec::new() })
    }

    /// Sets a value aside. Returns a reference to it.
    pub(super) fn push(&mut self, value: &[u8]) -> Result<[u8; 16], SortError> {
        let mut reference = [0; 16];
        reference[..8].copy_from_slice(&self.scratch.end().to_le_bytes());
        reference[8..].copy_from_slice(&(value.len() as u64).to_le_bytes());
        self.block.clear();
        self.block.resize(BLOCK_HEAD_BYTES, 0);
        self.block.extend_from_slice(value);
        self.scratch.write_block(&mut self.block)?;
        Ok(reference)
    }

    pub(super) fn finish(self) -> LargeReader {
        LargeReader { scratch: self.scratch, value: Vec::new() }
    }
}

impl LargeReader {
    pub(super) fn read(&mut self, reference: &[u8]) -> Result<&[u8], SortError> {
        let word = |at: usize| {
            reference.get(at..).and_then(|rest| rest.first_chunk()).map(|word| u64::from_le_bytes(*word))
        };
        let (Some(offset), Some(bytes)) = (word(0), word(8)) else { return Err(self.scratch.damaged(0)) };
        self.scratch.read_block(offset, bytes as usize, &mut self.value)?;
        if self.value.len() as u64 == bytes { Ok(&self.value) } else { Err(self.scratch.damaged(offset)) }
    }
}
