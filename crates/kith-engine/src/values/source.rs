//! A store version as a node's operators read it.

use super::{ValueError, ValuesReader};
use kith_ops::{LookupKeys, SourceError, ValueSource};
use std::ops::ControlFlow;

impl ValueSource for ValuesReader {
    fn values(
        &self,
        keys: LookupKeys<'_>,
        each: &mut dyn FnMut(usize, Result<Option<&[u8]>, SourceError>) -> ControlFlow<()>,
    ) -> Result<(), SourceError> {
        match keys {
            LookupKeys::Ids(ids) => {
                let keys: Vec<[u8; 8]> = ids.iter().map(|id| id.to_le_bytes()).collect();
                self.read_all(&keys, each)
            }
            LookupKeys::Bytes(keys) => self.read_all(&keys.iter().collect::<Vec<_>>(), each),
        }
    }
}

impl ValuesReader {
    #[expect(clippy::type_complexity, reason = "spelled out in the trait")]
    fn read_all<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        each: &mut dyn FnMut(usize, Result<Option<&[u8]>, SourceError>) -> ControlFlow<()>,
    ) -> Result<(), SourceError> {
        for key in keys {
            // A key that cannot be one of the store has no partition: it is told with its index.
            if let Ok(partition) = self.partition_of(key.as_ref())
                && !self.holds(partition)
            {
                return Err(SourceError::NotOwner { partition });
            }
        }
        self.get_many(keys, |index, value| each(index, value.map_err(source_error)));
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
