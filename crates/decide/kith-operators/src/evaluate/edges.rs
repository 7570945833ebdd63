//! Evaluates edges with columns: a page of the list of each key.

use super::{EvaluationMemory, go_on};
use crate::values::Watch;
use crate::{EdgesEntry, EdgesPlan, EvaluateError};
use kith_schema::NeighbourSource;

/// Returns the edges of each key, in the order of the keys. The answer may take what `held` has left.
pub(super) fn read(
    plan: &EdgesPlan,
    source: &dyn NeighbourSource,
    keys: &[u64],
    watch: &mut Watch<'_>,
    held: EvaluationMemory,
) -> Result<Vec<EdgesEntry>, EvaluateError> {
    let (mut entries, mut bytes, mut failed) = (Vec::with_capacity(keys.len()), 0, None);
    source.edges(&plan.edge, &plan.read(), keys, &mut |_, list| {
        let entry = list.map_or(EdgesEntry::NotInGraph, |list| EdgesEntry::Page(plan.page(list)));
        bytes += entry.bytes();
        entries.push(entry);
        let length = list.map_or(0, |list| list.ids.len());
        go_on(watch.list(length).and_then(|()| held.fits(bytes)), &mut failed)
    })?;
    failed.map_or(Ok(entries), Err)
}

impl EdgesEntry {
    /// The memory that the entry takes, in bytes.
    fn bytes(&self) -> usize {
        let numbers = match self {
            EdgesEntry::Page(page) => page.ids.len() * (1 + page.columns.len()),
            EdgesEntry::NotInGraph | EdgesEntry::Unanswered => 0,
        };
        size_of::<EdgesEntry>() + numbers * size_of::<u64>()
    }
}
