//! Batches by origin, and equal traversers merged into one.

use super::{
    context::Context,
    traverser::{Batch, Traverser},
};
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
pub(super) async fn merged(batch: Batch, context: &Context<'_>) -> Batch {
    if batch.len() < 2 || !batch.iter().all(Traverser::is_mergeable) {
        return batch;
    }
    let same = |known: &Traverser, traverser: &Traverser| known.is_same(traverser);
    let merge =
        |known: &mut Traverser, traverser: Traverser| known.bulk = known.bulk.saturating_add(traverser.bulk);
    merged_by(batch, same, merge, context).await
}

/// Merges each traverser into the first that is the same.
pub(super) async fn merged_by(
    batch: Batch,
    same: impl Fn(&Traverser, &Traverser) -> bool + Send,
    mut merge: impl FnMut(&mut Traverser, Traverser) + Send,
    context: &Context<'_>,
) -> Batch {
    let mut indexes: HashMap<u64, Vec<usize>> = HashMap::with_capacity(batch.len());
    let mut merged: Vec<Traverser> = Vec::with_capacity(batch.len());
    for traverser in batch {
        context.work.look_at(&traverser.value).await;
        let known = indexes.entry(traverser.digest()).or_default();
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
