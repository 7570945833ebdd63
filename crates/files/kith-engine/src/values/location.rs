//! The places of records, for operators who inspect files.

use super::{ValueError, ValuesReader};
use crate::chunk::find_each;
use crate::files::FileId;
use kith_types::PartitionId;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// The place where a key's record lies or would lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordLocation {
    /// The key's partition.
    pub partition: PartitionId,
    /// The logical data file of the chunk set that holds the key; `None` if the key does not exist.
    pub file: Option<FileId>,
    /// The offset at which the record begins in that file.
    pub offset: u64,
    /// The pack on this node that the file lies in.
    pub pack: Option<PathBuf>,
    /// The offset at which the record begins in the pack.
    pub pack_offset: u64,
}

impl ValuesReader {
    /// Finds the place of a key's record.
    ///
    /// # Errors
    /// If the partition is not held, or a byte that the answer depends on is damaged.
    pub fn place_of(&self, key: &[u8]) -> Result<RecordLocation, ValueError> {
        let partition = self.partition_of(key)?;
        let mut location = RecordLocation { partition, file: None, offset: 0, pack: None, pack_offset: 0 };
        let mut answer = Ok(None);
        let reader = self.partitions.get(partition.index()).and_then(Option::as_deref);
        let reader = reader.ok_or(ValueError::NotHeld { partition })?;
        find_each(
            1,
            |_| Some((reader, key)),
            |_, found| {
                answer = found.and_then(|found| match found {
                    Some(found) => found.prove().map(|()| Some((found.file(), found.offset()))),
                    None => Ok(None),
                });
                ControlFlow::Break(())
            },
        );
        if let Some((file, offset)) = answer? {
            (location.file, location.offset) = (Some(file), offset);
            if let Some((pack, start)) = self.folder.place_of(file) {
                (location.pack, location.pack_offset) = (Some(pack), start + offset);
            }
        }
        Ok(location)
    }
}
