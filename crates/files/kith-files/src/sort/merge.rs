//! Merges runs, all at once or in passes.

use super::scratch::{Run, RunReader, Scratch, block_bytes};
use super::{SortError, SortOptions, SortRecord};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::Arc;

/// The most runs that are merged at once. With more, seeks between blocks cost more than another pass.
pub(crate) const FAN_IN_MAX: usize = 256;

/// Repeatedly returns the least record of all runs.
pub(super) struct Merge<R> {
    readers: Vec<RunReader<R>>,
    /// The next record of each run that has one.
    heads: BinaryHeap<Reverse<(R, usize)>>,
}

impl<R: SortRecord> Merge<R> {
    pub(super) fn new(scratch: &Arc<Scratch>, runs: &[Run]) -> Result<Self, SortError> {
        let mut readers: Vec<_> = runs.iter().map(|&run| RunReader::new(scratch, run)).collect();
        let mut heads = BinaryHeap::with_capacity(readers.len());
        for (index, reader) in readers.iter_mut().enumerate() {
            heads.extend(reader.next()?.map(|record| Reverse((record, index))));
        }
        Ok(Merge { readers, heads })
    }

    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<R>, SortError> {
        let Some(mut least) = self.heads.peek_mut() else { return Ok(None) };
        let Reverse((record, index)) = *least;
        match self.readers[index].next()? {
            Some(next) => *least = Reverse((next, index)),
            None => drop(PeekMut::pop(least)),
        }
        Ok(Some(record))
    }
}

/// Merges groups of runs into longer ones until a single merge can read them all.
pub(super) fn merge_down<R: SortRecord>(
    scratch: Scratch,
    mut runs: Vec<Run>,
    options: &SortOptions,
) -> Result<(Arc<Scratch>, Vec<Run>), SortError> {
    let fan_in = (options.memory_bytes / block_bytes::<R>(options)).clamp(2, FAN_IN_MAX);
    let mut scratch = Arc::new(scratch);
    while runs.len() > fan_in {
        let mut longer = Scratch::create(options, block_bytes::<R>(options))?;
        let mut merged = Vec::with_capacity(runs.len().div_ceil(fan_in));
        for group in runs.chunks(fan_in) {
            let mut merge = Merge::<R>::new(&scratch, group)?;
            merged.push(longer.write_run(|| merge.next())?);
        }
        (scratch, runs) = (Arc::new(longer), merged);
    }
    Ok((scratch, runs))
}
