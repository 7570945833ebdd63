//! Kernels over sorted, distinct `u64` ids: union, tally, intersection, difference,
//! and a packed form for keeping.
//!
//! Which kernel wins was measured, see `benches/sets.rs`: a bitmap where the ids
//! span at most 4 M, else a radix sort; galloping where sizes differ.

mod bitmap;
mod intersect;
mod merge;
mod packed;
mod sort;
mod tally;
mod union;

pub use intersect::{difference, intersect, intersect_into, intersects};
pub use merge::merge;
pub use packed::PackedIds;
pub use sort::sort_distinct;
pub use tally::{merge_tallies, tally};
pub use union::union;

pub(crate) use tally::{TallyBuilder, tally_bytes};
pub(crate) use union::UnionBuilder;

/// Memory that kernels reuse from call to call: at most about 0.5 MiB of bitmap, 4 MiB of counts and
/// 4 MiB per buffer. One per thread; keeps no result.
#[derive(Debug, Default)]
pub struct Scratch {
    pub(crate) union: UnionBuilder,
    pub(crate) tally: TallyBuilder,
    /// For results that are only looked at: postings, intermediate sets.
    pub(crate) spare: Vec<Vec<u64>>,
}

impl Scratch {
    /// Empty: memory comes with the first call.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty buffer, with the memory of an earlier one if there is any.
    pub(crate) fn take(&mut self) -> Vec<u64> {
        self.spare.pop().unwrap_or_default()
    }

    /// Empties everything, and gives back what a large evaluation took: most are small, and threads are many.
    pub(crate) fn settle(&mut self) {
        self.union.shrink(KEPT_IDS);
        self.tally.shrink(KEPT_IDS);
        self.spare.iter_mut().for_each(|buffer| buffer.shrink_to(KEPT_IDS));
    }

    /// Gives a buffer back.
    pub(crate) fn put(&mut self, mut buffer: Vec<u64>) {
        if self.spare.len() < SPARE_MAX {
            buffer.clear();
            self.spare.push(buffer);
        }
    }
}

/// Ids that each buffer has room for from one evaluation to the next: 4 MiB.
const KEPT_IDS: usize = 1 << 19;

/// Spare buffers kept: as many as the deepest plan of this crate uses at once.
const SPARE_MAX: usize = 4;
