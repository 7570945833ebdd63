//! How much a step is asked for.

use crate::evaluate::traverser::Batch;
use std::{collections::HashSet, sync::Arc};

/// The number of traversers that the consumer of a step can use next. A step asks the steps before it for as many, so that
/// `limit` causes little more work than its results need, however much a traversal could return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::evaluate) struct Demand {
    count: usize,
    /// The origins whose traversers nobody can use any more.
    finished: Option<Arc<HashSet<u32>>>,
}

impl Demand {
    /// As many as there are, in large batches.
    pub const ALL: Self = Self { count: usize::MAX, finished: None };

    /// At most this many, and at least one.
    pub fn of(count: usize) -> Self {
        Self { count: count.max(1), finished: None }
    }

    /// At most this many, and at least one, of the same origins.
    pub fn limited(&self, count: usize) -> Self {
        Self { count: count.clamp(1, self.count.max(1)), finished: self.finished.clone() }
    }

    /// As [`Demand::of`], but none of these origins, and none of those that are not wanted already.
    pub fn without(&self, count: usize, finished: impl Iterator<Item = u32>) -> Self {
        let all: HashSet<u32> =
            self.finished.iter().flat_map(|known| known.iter().copied()).chain(finished).collect();
        Self { count: count.max(1), finished: (!all.is_empty()).then(|| Arc::new(all)) }
    }

    /// Whether all traversers are wanted.
    pub fn is_all(&self) -> bool {
        self.count == usize::MAX
    }

    /// Whether there are origins whose traversers are not wanted.
    pub fn has_finished(&self) -> bool {
        self.finished.is_some()
    }

    /// Whether traversers of an origin are wanted.
    pub fn is_of(&self, origin: u32) -> bool {
        self.finished.as_ref().is_none_or(|finished| !finished.contains(&origin))
    }

    /// The number of traversers, but at least this many.
    pub fn least(&self, count: usize) -> usize {
        self.count.max(count)
    }

    /// The number that is still wanted after this many.
    pub fn rest(&self, taken: usize) -> usize {
        self.count.saturating_sub(taken)
    }

    /// Twice as many.
    pub fn doubled(&self) -> Self {
        Self { count: self.count.saturating_mul(2), finished: self.finished.clone() }
    }

    /// Takes the first traversers out of a batch, as many as are wanted.
    pub fn part_of(&self, batch: &mut Batch) -> Batch {
        if self.has_finished() {
            batch.retain(|traverser| self.is_of(traverser.origin));
        }
        if batch.len() <= self.count {
            return std::mem::take(batch);
        }
        let rest = batch.split_off(self.count);
        std::mem::replace(batch, rest)
    }
}
