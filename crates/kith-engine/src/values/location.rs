//! Where records lie, for operators who look into files.

use super::{ValueError, ValuesReader};
use crate::chunk::find_each;
use crate::files::FileId;
use kith_types::PartitionId;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// Where a key's record lies, or would lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordLocation {
    /// The key's partition.
    pub partition: PartitionId,
    /// The logical data file of the chunk set that holds the key; `None` if there is no such key.
    pub file: Option<FileId>,
    /// Where the record begins in that file.
    pub offset: u64,
    /// The pack that the file lies in, here.
    pub pack: Option<PathBuf>,
    /// Where the record begins in the pack.
    pub pack_offset: u64,
}

impl ValuesReader {
    /// Where a key's record lies.
    ///
    /// # Errors
    /// If the partition is not held, or what the answer rests on is damaged.
    pub fn place_of(&self, key: &[u8]) -> Result<RecordLocation, ValueError> {
        let partition = self.partition_of(key)?;
        let mut place = RecordLocation { partition, file: None, offset: 0, pack: None, pack_offset: 0 };
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
            (place.file, place.offset) = (Some(file), offset);
            if let Some((pack, start)) = self.folder.place_of(file) {
                (place.pack, place.pack_offset) = (Some(pack), start + offset);
            }
        }
        Ok(place)
    }
}
