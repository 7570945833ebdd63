//! Sorted changes, one per key.

use super::super::ValuesBuildError;
use super::super::options::{Duplicates, shown};
use crate::rows::SortedRows;
use kith_engine::KeyType;
use kith_types::{PartitionId, position_of_key};

/// The first byte of a change that deletes its key.
pub(super) const DELETE: u8 = 0;
/// The first byte of a change that sets a value, which follows.
pub(super) const PUT: u8 = 1;

/// Sorted changes, one per key.
pub(super) struct Changes {
    rows: SortedRows,
    kind: KeyType,
    duplicates: Duplicates,
    /// The next change.
    pub(super) head: Option<Change>,
    /// The number of rows read.
    pub(super) done: u64,
    /// The change after the next one.
    ahead: Option<Change>,
}

/// A change of one key.
pub(super) struct Change {
    pub(super) partition: PartitionId,
    pub(super) position: u64,
    pub(super) key: Vec<u8>,
    /// [`DELETE`], or [`PUT`] followed by the value.
    pub(super) change: Vec<u8>,
}

impl Changes {
    pub(super) fn new(
        rows: SortedRows,
        kind: KeyType,
        duplicates: Duplicates,
    ) -> Result<Self, ValuesBuildError> {
        let mut changes = Self { rows, kind, duplicates, head: None, done: 0, ahead: None };
        changes.ahead = changes.read()?;
        changes.advance()?;
        Ok(changes)
    }

    fn read(&mut self) -> Result<Option<Change>, ValuesBuildError> {
        let Some(row) = self.rows.next()? else { return Ok(None) };
        self.done += 1;
        Ok(Some(Change {
            partition: row.partition,
            position: position_of_key(row.key),
            key: row.key.to_vec(),
            change: row.value.to_vec(),
        }))
    }

    /// Moves to the next key.
    pub(super) fn advance(&mut self) -> Result<(), ValuesBuildError> {
        self.head = self.ahead.take();
        self.ahead = self.read()?;
        while let (Some(head), Some(ahead)) = (&self.head, &self.ahead)
            && head.key == ahead.key
        {
            match self.duplicates {
                Duplicates::Refuse => {
                    return Err(ValuesBuildError::Duplicate { key: shown(self.kind, &head.key) });
                }
                Duplicates::First => {}
                Duplicates::Last => self.head = self.ahead.take(),
            }
            self.ahead = self.read()?;
        }
        Ok(())
    }
}
