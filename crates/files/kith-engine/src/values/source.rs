//! Implements the source that a node's operators read a version of a store from.

use super::{ValueError, ValuesReader};
use kith_schema::{LookupKeys, SourceError, SourceValue, ValueSource};
use std::ops::ControlFlow;

impl ValueSource for ValuesReader {
    fn values(
        &self,
        keys: LookupKeys<'_>,
        each: &mut dyn FnMut(usize, Result<Option<&[u8]>, SourceError>) -> ControlFlow<()>,
    ) -> Result<(), SourceError> {
        match keys {
            LookupKeys::Ids(ids) => {
                let keys = id_keys(ids);
                self.check_held(&keys)?;
                self.get_many(&keys, |index, value| each(index, value.map_err(source_error)));
            }
            LookupKeys::Bytes(keys) => {
                let keys: Vec<&[u8]> = keys.iter().collect();
                self.check_held(&keys)?;
                self.get_many(&keys, |index, value| each(index, value.map_err(source_error)));
            }
        }
        Ok(())
    }

    fn values_with_proofs(
        &self,
        keys: LookupKeys<'_>,
        each: &mut dyn FnMut(usize, Result<Option<SourceValue<'_>>, SourceError>) -> ControlFlow<()>,
    ) -> Result<(), SourceError> {
        match keys {
            LookupKeys::Ids(ids) => {
                let keys = id_keys(ids);
                self.check_held(&keys)?;
                self.get_many_with_proofs(&keys, |index, value| each(index, value.map_err(source_error)));
            }
            LookupKeys::Bytes(keys) => {
                let keys: Vec<&[u8]> = keys.iter().collect();
                self.check_held(&keys)?;
                self.get_many_with_proofs(&keys, |index, value| each(index, value.map_err(source_error)));
            }
        }
        Ok(())
    }
}

/// Encodes ids as keys of records.
fn id_keys(ids: &[u64]) -> Vec<[u8; 8]> {
    ids.iter().map(|id| id.to_le_bytes()).collect()
}

impl ValuesReader {
    /// Refuses keys of partitions that are not open here, before anything is read.
    fn check_held<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<(), SourceError> {
        for key in keys {
            // A key that cannot be a key of the store has no partition. It is reported with its index later.
            if let Ok(partition) = self.partition_of(key.as_ref())
                && !self.holds(partition)
            {
                return Err(SourceError::NotOwner { partition });
            }
        }
        Ok(())
    }
}

fn source_error(error: ValueError) -> SourceError {
    match error {
        ValueError::Damaged(damage) => {
            SourceError::Damaged { file: damage.file, detail: damage.fault.to_string() }
        }
        ValueError::NotHeld { partition } => SourceError::NotOwner { partition },
        ValueError::KeyLength { got } => SourceError::KeyLength { got },
    }
}
