//! Batches by origin, and equal traversers merged into one.

use super::traverser::{Batch, Traverser};
use std::collections::HashMap;

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
