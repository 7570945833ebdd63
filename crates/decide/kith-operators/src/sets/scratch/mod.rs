//! The kernels over many lists, which reuse memory.

mod bitmap;
mod merge;
mod sort;
mod tally;
mod union;

pub use merge::merge;
pub use sort::sort_distinct;
pub use tally::{merge_tallies, tally};
pub use union::union;

pub(crate) use tally::tally_bytes;

use tally::TallyBuilder;
use union::UnionBuilder;

/// Memory that kernels reuse between calls: at most about 0.5 MiB of bitmap, 4 MiB of counts and 4 MiB per buffer. Each
/// thread has its own. It keeps no results.
#[derive(Debug, Default)]
pub struct Scratch {
    pub(crate) union: UnionBuilder,
    pub(crate) tally: TallyBuilder,
    /// Buffers for intermediate results, such as postings and sets.
    pub(crate) spare: Vec<Vec<u64>>,
}

impl Scratch {
    /// Creates empty scratch space. Memory is allocated by the first call.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes an empty buffer, reusing the memory of an earlier one if there is any.
    pub(crate) fn take(&mut self) -> Vec<u64> {
        self.spare.pop().unwrap_or_default()
    }

    /// Empties everything, and frees the memory that a large evaluation took. Most evaluations are small, and there are
    /// many threads.
    pub(crate) fn settle(&mut self) {
        self.union.shrink(KEPT_IDS);
        self.tally.shrink(KEPT_IDS);
        self.spare.iter_mut().for_each(|buffer| buffer.shrink_to(KEPT_IDS));
    }

    /// Returns a buffer for reuse.
    pub(crate) fn put(&mut self, mut buffer: Vec<u64>) {
        if self.spare.len() < SPARE_MAX {
            buffer.clear();
            self.spare.push(buffer);
        }
    }
}

/// The number of ids for which each buffer keeps memory between evaluations: 4 MiB.
const KEPT_IDS: usize = 1 << 19;

/// The number of spare buffers that are kept: as many as the deepest plan of an operation uses at once.
const SPARE_MAX: usize = 4;
