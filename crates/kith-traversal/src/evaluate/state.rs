//! What a step remembers from batch to batch.

use super::{
    chain::Chain,
    repeat::Passes,
    traverser::{Batch, Traverser},
};
use crate::value::{ElementId, Value};
use std::collections::{HashMap, HashSet, VecDeque};

/// The state of a step. Where steps inside nested traversals count or collect, they do so for each origin.
#[derive(Debug)]
pub(super) enum State {
    /// The step needs none.
    Stateless,
    /// The step has not begun, or has nothing left to return (`true`).
    Once(bool),
    /// The scan of all elements: the last that was read; `None` before the first.
    Scan { after: Option<ElementId>, is_over: bool },
    /// Traversers that are still to be returned.
    Buffer { left: VecDeque<Batch>, is_over: bool },
    /// How many traversers have passed.
    Passed(HashMap<u32, i64>),
    /// The values that have passed.
    Seen(HashMap<u32, HashSet<Value>>),
    /// Traversals whose results come one after the other.
    Branches(Option<VecDeque<Chain>>),
    /// The passes of `repeat`.
    Repeat(Passes),
}

impl State {
    /// The state of a step that returns everything once its input has ended.
    pub fn barrier() -> Self {
        Self::Buffer { left: VecDeque::new(), is_over: false }
    }
}

/// The traversers of one origin.
pub(super) fn by_origin(batch: Batch) -> HashMap<u32, Batch> {
    let mut origins: HashMap<u32, Batch> = HashMap::new();
    for traverser in batch {
        origins.entry(traverser.origin).or_default().push(traverser);
    }
    origins
}

/// Merges traversers that nothing but the bulk tells apart.
pub(super) fn merged(batch: Batch) -> Batch {
    if batch.len() < 2 || !batch.iter().all(Traverser::is_mergeable) {
        return batch;
    }
    let same = |known: &Traverser, traverser: &Traverser| known.is_same(traverser);
    merged_by(batch, same, |known, traverser| known.bulk = known.bulk.saturating_add(traverser.bulk))
}

/// Merges each traverser into the first that is the same.
pub(super) fn merged_by(
    batch: Batch,
    same: impl Fn(&Traverser, &Traverser) -> bool,
    mut merge: impl FnMut(&mut Traverser, Traverser),
) -> Batch {
    let mut places: HashMap<u64, Vec<usize>> = HashMap::with_capacity(batch.len());
    let mut merged: Vec<Traverser> = Vec::with_capacity(batch.len());
    for traverser in batch {
        let known = places.entry(traverser.digest()).or_default();
        match known.iter().copied().find(|at| same(&merged[*at], &traverser)) {
            Some(at) => merge(&mut merged[at], traverser),
            None => {
                known.push(merged.len());
                merged.push(traverser);
            }
        }
    }
    merged
}
