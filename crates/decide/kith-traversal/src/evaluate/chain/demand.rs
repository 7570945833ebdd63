//! How much a step is asked for.

use crate::evaluate::traverser::Batch;

/// The number of traversers that the consumer of a step can use next. A step asks the steps before it for as many, so that
/// `limit` causes little more work than its results need, however much a traversal could return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::evaluate) struct Demand(usize);

impl Demand {
    /// As many as there are, in large batches.
    pub const ALL: Self = Self(usize::MAX);

    /// At most this many, and at least one.
    pub fn of(count: usize) -> Self {
        Self(count.max(1))
    }

    /// Twice as many.
    pub fn doubled(self) -> Self {
        Self(self.0.saturating_mul(2))
    }

    /// Takes the first traversers out of a batch, as many as are wanted.
    pub fn part_of(self, batch: &mut Batch) -> Batch {
        if batch.len() <= self.0 {
            return std::mem::take(batch);
        }
        let rest = batch.split_off(self.0);
        std::mem::replace(batch, rest)
    }
}
