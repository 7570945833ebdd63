//! Reads a member table.

use super::SortedIds;
use crate::errors::{OpenError, ReadError};
use crate::files::FileId;
use crate::pack::VersionFolder;
use crate::sealed::{HEADER_BYTES, SealedFile};
use kith_types::PartitionId;

/// The mapped member table of a partition. Every answer is checked against checksums.
#[derive(Debug)]
pub struct MemberTableReader {
    file: SealedFile,
    ids: SortedIds,
}

impl MemberTableReader {
    /// Opens the table of a partition in constant time.
    ///
    /// # Errors
    /// If the file is missing, damaged, or not the one in the manifest.
    pub fn open(folder: &VersionFolder, partition: PartitionId) -> Result<Self, OpenError> {
        let id = FileId::members(partition);
        let file = SealedFile::open(folder, id)?;
        let ids = SortedIds { start: HEADER_BYTES, count: (file.body().len() - HEADER_BYTES) / 8 };
        if file.trailer().records.checked_mul(8) != Some((file.body().len() - HEADER_BYTES) as u64)
            || file.trailer().records > super::IDS_MAX
        {
            return Err(file.impossible("id count", file.body().len()).into());
        }
        Ok(Self { file, ids })
    }

    /// The number of members.
    pub fn count(&self) -> u32 {
        self.ids.count as u32
    }

    /// Whether a member is in the table. Costs `O(log count)` and one or two checksums of 1 KiB.
    ///
    /// # Errors
    /// If a byte that the answer depends on is damaged.
    pub fn contains(&self, id: u64) -> Result<bool, ReadError> {
        Ok(self.ordinal(id)?.is_some())
    }

    /// The ordinal of a member: the number of ids before it. `None` if it is not in the table.
    ///
    /// # Errors
    /// If a byte that the answer depends on is damaged.
    pub fn ordinal(&self, id: u64) -> Result<Option<u32>, ReadError> {
        Ok(self.ids.find(&self.file, id)?)
    }

    /// Appends the ids for ascending ordinals.
    ///
    /// # Errors
    /// If a part of the table that is needed is damaged, or an ordinal is beyond its end.
    pub fn resolve(&self, ordinals: &[u32], out: &mut Vec<u64>) -> Result<(), ReadError> {
        Ok(self.ids.resolve(&self.file, ordinals, out)?)
    }

    /// All ids, ascending.
    ///
    /// # Errors
    /// If the table is damaged anywhere.
    pub fn ids(&self) -> Result<Vec<u64>, ReadError> {
        let bytes = &self.file.body()[HEADER_BYTES..];
        let ids =
            bytes.chunks_exact(8).map(|id| u64::from_le_bytes(id.try_into().expect("8 bytes"))).collect();
        self.file.verify(0..self.file.body().len())?;
        Ok(ids)
    }

    pub(crate) fn file(&self) -> &SealedFile {
        &self.file
    }
}
