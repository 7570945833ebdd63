//! Unique values: whether a value is free is decided by the database when it commits, because the objects of a graph have
//! different leaders.
//!
//! If values are taken, the database writes nothing and names the objects that have them. The same tasks are then decided
//! again: writes that want such a value are refused, and all others go on. No new tasks join them, so each round refuses at
//! least one write, and the writes that go on are committed at last.
//!
//! The refusal holds although the value may have become free in the meantime, because the write was under way when it was
//! taken.

use crate::{IndexId, RowWrite};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The unique values that a transaction gives to objects or takes from them. Each value changes at most once in a
/// transaction, so that no decision depends on another one that may fail in another partition.
#[derive(Debug, Default)]
pub(super) struct TouchedValues(BTreeSet<(IndexId, Arc<[u8]>)>);

impl TouchedValues {
    /// Adds the unique values that rows change. Returns false, and adds nothing, if one of them was added before.
    pub(super) fn add(&mut self, rows: &[RowWrite]) -> bool {
        let values = rows.iter().filter_map(|row| match row {
            RowWrite::PutEntry(entry) | RowWrite::DeleteEntry(entry) if entry.unique => {
                Some((entry.index, Arc::clone(&entry.key)))
            }
            _ => None,
        });
        let values: Vec<_> = values.collect();
        let is_new = values.iter().all(|value| !self.0.contains(value));
        if is_new {
            self.0.extend(values);
        }
        is_new
    }
}
