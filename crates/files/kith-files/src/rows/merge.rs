//! Merges runs of rows, all at once or in passes. Of rows with equal keys, those of the earlier run come first.

use super::super::sort::{FAN_IN_MAX, Run, RunWriter, Scratch, SortError, SortOptions};
use super::raw::RawRow;
use super::run::{BLOCK_BYTES, BLOCK_BYTES_MAX, RowRunReader};
use std::sync::Arc;

/// Repeatedly returns the least row of all runs.
pub(super) struct RowMerge {
    readers: Vec<RowRunReader>,
    /// A heap of the readers that have a row, with the least on top.
    heap: Vec<usize>,
    /// Whether the row on top was already returned.
    is_given: bool,
}

impl RowMerge {
    pub(super) fn new(scratch: Arc<Scratch>, runs: &[Run]) -> Result<Self, SortError> {
        let mut merge = Self { readers: Vec::new(), heap: Vec::new(), is_given: false };
        for &run in runs {
            let mut reader = RowRunReader::new(&scratch, run);
            if reader.advance()? {
                merge.heap.push(merge.readers.len());
                merge.readers.push(reader);
            }
        }
        for at in (0..merge.heap.len() / 2).rev() {
            merge.sift_down(at);
        }
        Ok(merge)
    }

    pub(super) fn next(&mut self) -> Result<Option<RawRow<'_>>, SortError> {
        if self.is_given {
            let top = self.heap[0];
            if !self.readers[top].advance()? {
                self.heap.swap_remove(0);
            }
            self.sift_down(0);
        }
        self.is_given = !self.heap.is_empty();
        Ok(self.heap.first().map(|&top| self.readers[top].row()))
    }

    fn is_less(&self, a: usize, b: usize) -> bool {
        let (a, b) = (self.heap[a], self.heap[b]);
        self.readers[a].row().cmp(&self.readers[b].row()).then(a.cmp(&b)).is_lt()
    }

    fn sift_down(&mut self, mut at: usize) {
        loop {
            let mut least = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.heap.len() && self.is_less(child, least) {
                    least = child;
                }
            }
            if least == at {
                return;
            }
            self.heap.swap(at, least);
            at = least;
        }
    }
}

/// Merges groups of adjacent runs into longer ones until a single merge can read them all.
pub(super) fn merge_down(
    scratch: Scratch,
    mut runs: Vec<Run>,
    options: &SortOptions,
) -> Result<(Arc<Scratch>, Vec<Run>), SortError> {
    let fan_in = (options.memory_bytes / BLOCK_BYTES_MAX).clamp(2, FAN_IN_MAX);
    let mut scratch = Arc::new(scratch);
    while runs.len() > fan_in {
        let mut longer = Scratch::create(options, BLOCK_BYTES)?;
        let mut merged = Vec::with_capacity(runs.len().div_ceil(fan_in));
        for group in runs.chunks(fan_in) {
            let mut merge = RowMerge::new(Arc::clone(&scratch), group)?;
            let mut writer = RunWriter::new(&longer);
            while let Some(row) = merge.next()? {
                writer.push_coded(&mut longer, row.bytes)?;
            }
            merged.push(writer.finish(&mut longer)?);
        }
        (scratch, runs) = (Arc::new(longer), merged);
    }
    Ok((scratch, runs))
}
