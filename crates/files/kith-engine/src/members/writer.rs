//! Writes a member table.

use super::IDS_MAX;
use crate::errors::WriteError;
use crate::files::FileId;
use crate::manifest::FileEntry;
use crate::sealed::SealedWriter;
use kith_types::PartitionId;
use std::path::Path;

/// Writes a member table. The ordinal of an id is the number of ids before it.
pub struct MemberTableWriter {
    file: SealedWriter,
    count: u64,
    last: u64,
}

impl MemberTableWriter {
    /// Creates the file of a partition, which must not exist.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create(dir: &Path, partition: PartitionId) -> Result<Self, WriteError> {
        Ok(Self { file: SealedWriter::create(dir, FileId::members(partition))?, count: 0, last: 0 })
    }

    /// Appends an id, which must be greater than the previous one.
    ///
    /// # Errors
    /// If the id is not greater, or the file cannot be written.
    pub fn append(&mut self, id: u64) -> Result<(), WriteError> {
        if self.count > 0 && id <= self.last {
            let (file, record) = (self.file.name(), self.count);
            return Err(match id == self.last {
                true => WriteError::Duplicate { file, record },
                false => WriteError::OutOfOrder { file, record },
            });
        }
        if self.count == IDS_MAX {
            return Err(WriteError::TooMany { file: self.file.name(), what: "ids", max: IDS_MAX });
        }
        self.file.put(&id.to_le_bytes())?;
        (self.count, self.last) = (self.count + 1, id);
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(self) -> Result<FileEntry, WriteError> {
        self.file.finish(self.count, [0; 4])
    }
}
