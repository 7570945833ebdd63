//! Reads the chunk sets of one list of one partition: opens them, scans them, and finds the set of a key.

use super::Position;
use super::found::FoundRecord;
use super::one_set::OneSet;
use crate::errors::{Damage, Fault, OpenError, ReadError};
use crate::files::{FileId, FileKind};
use crate::pack::VersionFolder;
use crate::sealed::{HEADER_BYTES, SealedFile, populate_within};
use kith_types::{Direction, PartitionId, position_of_key};
use std::ops::ControlFlow;

/// The mapped chunk sets of one list of a partition.
///
/// Values are borrowed from the mapping, and proven when they are handed out. A caller that keeps one for longer must call
/// [`ChunkSetReader::check`] after its last use, because a file that is truncated meanwhile reads as zeros.
#[derive(Debug)]
pub struct ChunkSetReader {
    /// The sets, ascending by first position.
    sets: Vec<OneSet>,
    /// The position function, if it is not `position_of_key`.
    position: Option<Position>,
}

impl ChunkSetReader {
    /// Opens every chunk set of a list (`None` for key-value data) in constant time per set.
    ///
    /// # Errors
    /// If a file is missing, damaged, or not the one in the manifest.
    pub fn open(
        folder: &VersionFolder,
        partition: PartitionId,
        list: Option<Direction>,
    ) -> Result<Self, OpenError> {
        Self::open_with(folder, partition, list, None)
    }

    pub(super) fn open_with(
        folder: &VersionFolder,
        partition: PartitionId,
        list: Option<Direction>,
        position: Option<Position>,
    ) -> Result<Self, OpenError> {
        let data = |set| FileId { partition, list, kind: FileKind::Data, set };
        // There is at least one: a list without records has an empty chunk set.
        let count = folder.manifest().chunk_sets(partition, list).max(1);
        let position_of = position.unwrap_or(position_of_key);
        let sets: Vec<_> =
            (0..count).map(|set| OneSet::open(folder, data(set), position_of)).collect::<Result<_, _>>()?;
        let ordered = sets.windows(2).all(|pair| pair[0].first_position() < pair[1].first_position());
        if !ordered || (count > 1 && sets.iter().any(|set| set.records() == 0)) {
            let fault = Fault::Foreign { what: "order of chunk sets" };
            return Err(Damage { file: data(count - 1).to_string(), fault }.into());
        }
        Ok(Self { sets, position })
    }

    /// Number of records.
    pub fn records(&self) -> u64 {
        self.sets.iter().map(|set| u64::from(set.records())).sum()
    }

    /// Calls `each(key, value)` for every record in file order. Each is proven. Exports and verifications use it.
    ///
    /// # Errors
    /// If a record is damaged.
    pub fn for_each(&self, mut each: impl FnMut(&[u8], &[u8])) -> Result<(), ReadError> {
        self.try_for_each(|found, key| {
            found.prove()?;
            each(key, found.value());
            Ok::<_, ReadError>(ControlFlow::Continue(()))
        })
    }

    /// Calls `each` for every record like [`ChunkSetReader::for_each`], but leaves the proof to `each`.
    pub fn try_for_each<'a, E: From<ReadError>>(
        &'a self,
        mut each: impl FnMut(&FoundRecord<'a>, &'a [u8]) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        for set in &self.sets {
            let (mut offset, mut asked) = (HEADER_BYTES as u64, 0);
            for _ in 0..set.records() {
                set.data().prefetch_window(offset as usize, &mut asked);
                let record = set.record(offset).map_err(ReadError::from)?;
                if each(&FoundRecord::new(set, record), record.key)?.is_break() {
                    return Ok(());
                }
                offset += record.bytes();
            }
            if offset != set.data().body().len() as u64 {
                let damage = set.data().impossible("end of records", offset as usize);
                return Err(ReadError::from(damage).into());
            }
        }
        Ok(())
    }

    /// Fails if a page of a file was missing at any read so far.
    ///
    /// # Errors
    /// The damage, with the name of the file.
    pub fn check(&self) -> Result<(), ReadError> {
        Ok(self.data_files().chain(self.index_files()).try_for_each(SealedFile::check)?)
    }

    /// Loads files into memory, indexes before data, until `budget_bytes` are spent. Returns the number of loaded bytes,
    /// which is never more than the budget. Blocks on the disk: call it off the request path.
    pub fn warm(&self, budget_bytes: u64) -> u64 {
        populate_within(self.index_files().chain(self.data_files()), budget_bytes)
    }

    /// The data file of each chunk.
    pub fn data_files(&self) -> impl Iterator<Item = &SealedFile> {
        self.sets.iter().map(OneSet::data)
    }

    /// The index file of each chunk.
    pub fn index_files(&self) -> impl Iterator<Item = &SealedFile> {
        self.sets.iter().map(OneSet::index)
    }

    /// The chunk set that would hold a key, and the position of the key. `None` proves absence.
    #[inline]
    pub(super) fn route(&self, key: &[u8]) -> Option<(&OneSet, u64)> {
        // `position_of_key` is called directly and not through a pointer, because every key passes here.
        let position = self.position.map_or_else(|| position_of_key(key), |position| position(key));
        let set = match self.sets.as_slice() {
            [only] => only,
            sets => {
                let behind = sets.partition_point(|set| set.first_position() <= position);
                &sets[behind.checked_sub(1)?]
            }
        };
        Some((set, position))
    }
}
