//! The levels that a bidirectional search has reached from either end, as sets of members without parents.

use kith_operators::sets::difference;
use kith_schema::EdgeSelector;

/// The levels from both ends.
#[derive(Clone, Debug)]
pub(super) struct Search {
    pub(super) forward: Side,
    pub(super) backward: Side,
}

/// One side of the search.
#[derive(Clone, Debug)]
pub(super) struct Side {
    /// `levels[d]` holds the members exactly `d` hops away: sorted, distinct, disjoint from other levels.
    pub(super) levels: Vec<Vec<u64>>,
    /// The edges that lead to the next level.
    pub(super) edge: EdgeSelector,
}

impl Side {
    /// The outermost level.
    pub(super) fn frontier(&self) -> &[u64] {
        self.levels.last().map_or(&[], Vec::as_slice)
    }

    /// The number of hops to the outermost level.
    pub(super) fn depth(&self) -> usize {
        self.levels.len() - 1
    }

    /// Adds a level: those of `reached` that were not reached before.
    pub(super) fn push(&mut self, reached: Vec<u64>) {
        let fresh = self.levels.iter().fold(reached, |ids, level| difference(&ids, level));
        self.levels.push(fresh);
    }
}
