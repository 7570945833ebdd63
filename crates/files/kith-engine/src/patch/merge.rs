//! Merges a partition of one version with its changes, in the order of files.

use crate::chunk::{ChunkSetReader, FoundRecord};
use crate::errors::{Damage, ReadError};
use kith_types::position_of_key;
use std::ops::ControlFlow;

/// Receives the outcome for each key.
pub trait MergeSink {
    /// The error of its methods.
    type Error: From<ReadError> + From<Damage>;

    /// The position and key of the next change of the partition.
    fn head(&self) -> Option<(u64, &[u8])>;

    /// Applies that change and goes on to the next one. `before` is the proven record of its key, if there is one.
    fn take(&mut self, before: Option<&FoundRecord<'_>>) -> Result<(), Self::Error>;

    /// Takes a proven record that no change concerns.
    fn keep(&mut self, key: &[u8], found: &FoundRecord<'_>) -> Result<(), Self::Error>;
}

/// Goes through all records and changes of a partition.
pub fn merge<M: MergeSink>(records: &ChunkSetReader, merging: &mut M) -> Result<(), M::Error> {
    records.try_for_each(|found, key| {
        found.prove()?;
        let position = position_of_key(key);
        while merging.head().is_some_and(|head| head < (position, key)) {
            merging.take(None)?;
        }
        if merging.head().is_some_and(|(_, changed)| changed == key) {
            merging.take(Some(found))?;
        } else {
            merging.keep(key, found)?;
        }
        Ok::<_, M::Error>(ControlFlow::Continue(()))
    })?;
    while merging.head().is_some() {
        merging.take(None)?;
    }
    Ok(())
}
