//! The levels that a bidirectional search has reached from either end, as sets of members without parents.

use kith_operators::sets::difference;
use kith_schema::EdgeSelector;

/// The levels from both ends.
#[derive(Clone, Debug)]
pub(in crate::operations) struct Search {
    pub(in crate::operations) forward: Side,
    pub(in crate::operations) backward: Side,
}

/// One side of the search.
#[derive(Clone, Debug)]
pub(in crate::operations) struct Side {
    /// `levels[d]` holds the members exactly `d` hops away: sorted, distinct, disjoint from other levels.
    pub(in crate::operations) levels: Vec<Vec<u64>>,
    /// The edges that lead to the next level.
    pub(in crate::operations) edge: EdgeSelector,
}

impl Side {
    /// The outermost level.
    pub(in crate::operations) fn frontier(&self) -> &[u64] {
        self.levels.last().map_or(&[], Vec::as_slice)
    }

    /// The number of hops to the outermost level.
    pub(in crate::operations) fn depth(&self) -> usize {
        self.levels.len() - 1
    }

    /// Adds a level: those of `reached` that were not reached before.
    pub(in crate::operations) fn push(&mut self, reached: Vec<u64>) {
        let fresh = self.levels.iter().fold(reached, |ids, level| difference(&ids, level));
        self.levels.push(fresh);
    }
}
