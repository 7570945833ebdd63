//! Unique values in a batch: which objects get one or give one up, and which of them are taken.

use crate::{CommitError, DatabaseError, rows::Key, tables::Cell};
use kith_live::{IndexEntry, IndexId, RowWrite, UniqueHolder};
use std::{collections::BTreeMap, sync::Arc};

/// The unique values that a batch changes, in the order of their keys, so that all transactions lock them in the same order.
#[derive(Debug, Default)]
pub(crate) struct UniqueWrites(BTreeMap<Key, Unique>);

/// The fate of a unique value.
#[derive(Clone, Copy, Debug)]
enum Unique {
    /// The object gets the value.
    Taken(u64),
    /// The object no longer has the value.
    Freed(u64),
}

impl UniqueWrites {
    /// Takes in a row.
    ///
    /// # Errors
    /// [`DatabaseError::Invalid`] if the batch changes the same value twice.
    pub fn add(&mut self, row: &RowWrite) -> Result<(), DatabaseError> {
        let (entry, change) = match row {
            RowWrite::PutEntry(entry) if entry.unique => (entry, Unique::Taken(entry.id)),
            RowWrite::DeleteEntry(entry) if entry.unique => (entry, Unique::Freed(entry.id)),
            _ => return Ok(()),
        };
        match self.0.insert(key(entry), change) {
            None => Ok(()),
            Some(_) => {
                let detail = format!("a batch changes a unique value of object {} twice", entry.id);
                Err(DatabaseError::Invalid { detail })
            }
        }
    }

    #[cfg(feature = "mysql")]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the rows of the table `unique_values` to add, if their keys are free.
    pub fn taken(&self) -> Vec<Vec<Cell>> {
        let row = |(key, change): (&Key, &Unique)| match change {
            Unique::Taken(id) => Some(with_id(key, *id)),
            Unique::Freed(_) => None,
        };
        self.0.iter().filter_map(row).collect()
    }

    /// Returns the rows of the table `unique_values` to remove.
    pub fn freed(&self) -> Vec<Vec<Cell>> {
        let row = |(key, change): (&Key, &Unique)| match change {
            Unique::Freed(id) => Some(with_id(key, *id)),
            Unique::Taken(_) => None,
        };
        self.0.iter().filter_map(row).collect()
    }

    /// Checks the rows of the table `unique_values` for the keys of [`UniqueWrites::taken`], after these were added.
    pub fn check(&self, rows: Vec<Vec<Cell>>) -> Result<(), CommitError> {
        let mut holders = Vec::new();
        for row in rows {
            let (index, key, id) = match <[Cell; 3]>::try_from(row) {
                Ok([Cell::Small(index), Cell::Bytes(key), Cell::Wide(id)]) => (index, key, id),
                _ => return Err(damaged().into()),
            };
            let wanted = self.0.get(&vec![Cell::Small(index), Cell::Bytes(Arc::clone(&key))]);
            match wanted {
                Some(Unique::Taken(own)) if *own != id => {
                    holders.push(UniqueHolder { index: IndexId(index), key, id });
                }
                _ => {}
            }
        }
        if holders.is_empty() { Ok(()) } else { Err(CommitError::Taken { holders }) }
    }
}

/// Returns the key of a row of the table `unique_values`.
fn key(entry: &IndexEntry) -> Key {
    vec![Cell::Small(entry.index.0), Cell::Bytes(Arc::clone(&entry.key))]
}

fn with_id(key: &Key, id: u64) -> Vec<Cell> {
    let mut row = key.clone();
    row.push(Cell::Wide(id));
    row
}

fn damaged() -> DatabaseError {
    DatabaseError::damaged("a row of the table unique_values has a value of the wrong type")
}
