//! Reads postings.

use super::{BLOCK_BYTES, block};
use crate::errors::{Damage, OpenError, ReadError};
use crate::files::FileId;
use crate::manifest::Manifest;
use crate::members::{MemberTableReader, SortedIds};
use crate::sealed::{HEADER_BYTES, SealedFile};
use kith_types::{Direction, PartitionId};
use std::path::Path;

/// The mapped postings of a partition's list. Every answer, an empty one too, is proven by checksums.
#[derive(Debug)]
pub struct PostingsReader {
    file: SealedFile,
    /// First neighbour of each block; repeats where a neighbour spans blocks.
    sparse: SortedIds,
    keys: Keys,
}

#[derive(Clone, Copy, Debug)]
enum Keys {
    /// Ordinals point into the partition's member table, with so many ids.
    Members(u32),
    /// Ordinals point into this table of the same file.
    Own(SortedIds),
}

impl PostingsReader {
    /// Opens the postings of a list in constant time.
    ///
    /// # Errors
    /// If the file is missing, damaged, or not the one in the manifest.
    pub fn open(
        dir: &Path,
        manifest: &Manifest,
        partition: PartitionId,
        list: Direction,
    ) -> Result<Self, OpenError> {
        let id = FileId::postings(partition, list);
        let file = SealedFile::open(dir, manifest.entry(id)?, id)?;
        let (sparse, keys) = layout(&file).ok_or_else(|| file.impossible("layout", file.body().len()))?;
        Ok(Self { file, sparse, keys })
    }

    /// Number of (neighbour, key) pairs.
    pub fn pairs(&self) -> u64 {
        self.file.trailer().records
    }

    /// Appends the keys, ascending, whose list contains `neighbour`. `members` is the partition's
    /// member table. Cost: a binary search over one entry per KiB, and the blocks that hold the neighbour.
    ///
    /// # Errors
    /// If what the answer rests on is damaged. `out` may then have grown.
    pub fn keys_of(
        &self,
        neighbour: u64,
        members: &MemberTableReader,
        out: &mut Vec<u64>,
    ) -> Result<(), ReadError> {
        let mut ordinals = Vec::new();
        self.ordinals_of(neighbour, &mut ordinals)?;
        match self.keys {
            Keys::Members(_) => members.resolve(&ordinals, out),
            Keys::Own(ids) => Ok(ids.resolve(&self.file, &ordinals, out)?),
        }
    }

    /// Whether the ordinals fit a member table of `count` ids.
    pub(crate) fn fits(&self, count: u32) -> bool {
        match self.keys {
            Keys::Members(expected) => expected == count,
            Keys::Own(_) => true,
        }
    }

    pub(crate) fn file(&self) -> &SealedFile {
        &self.file
    }

    fn ordinals_of(&self, neighbour: u64, out: &mut Vec<u32>) -> Result<(), Damage> {
        let (file, sparse) = (&self.file, self.sparse);
        let first_equal = sparse.lower_bound(file, neighbour)?;
        // The neighbour's run may begin inside the block before the first that starts with it.
        let begin = first_equal.saturating_sub(1);
        let mut end = first_equal;
        if begin < first_equal {
            let first = sparse.get(file, begin)?;
            if first >= neighbour {
                return Err(file.impossible("order of blocks", begin * BLOCK_BYTES));
            }
            self.search_block(begin, first, neighbour, out)?;
        }
        while end < sparse.count {
            let first = sparse.get(file, end)?;
            if first < neighbour {
                return Err(file.impossible("order of blocks", end * BLOCK_BYTES));
            }
            if first > neighbour {
                break;
            }
            self.search_block(end, first, neighbour, out)?;
            end += 1;
        }
        sparse.verify(file, begin, end + 1)?;
        let ascending = out.is_sorted_by(|a, b| a < b);
        if !ascending || out.last().is_some_and(|&last| last >= self.key_count()) {
            return Err(file.impossible("ordinals", begin * BLOCK_BYTES));
        }
        Ok(())
    }

    /// Searches one block and proves it.
    fn search_block(
        &self,
        index: usize,
        first: u64,
        neighbour: u64,
        out: &mut Vec<u32>,
    ) -> Result<(), Damage> {
        let start = (index * BLOCK_BYTES).max(HEADER_BYTES);
        let bytes = self.file.body().get(start..(index + 1) * BLOCK_BYTES).unwrap_or_default();
        let found = block::find(bytes, first, neighbour, out);
        self.file.verify_block(index)?;
        self.file.check()?;
        found.map_err(|_| self.file.impossible("block", start))
    }

    fn key_count(&self) -> u32 {
        match self.keys {
            Keys::Members(count) => count,
            Keys::Own(ids) => ids.count as u32,
        }
    }
}

/// Where the parts are, if they fill the body exactly.
fn layout(file: &SealedFile) -> Option<(SortedIds, Keys)> {
    let [blocks, own, count, _] = file.trailer().fields;
    let (blocks, count) = (usize::try_from(blocks).ok()?, u32::try_from(count).ok()?);
    let sparse = SortedIds { start: blocks.checked_mul(BLOCK_BYTES)?.max(HEADER_BYTES), count: blocks };
    let own_at = sparse.start.checked_add(blocks.checked_mul(8)?)?;
    let (keys, end) = match own {
        0 => (Keys::Members(count), own_at),
        1 => {
            let ids = SortedIds { start: own_at, count: count as usize };
            (Keys::Own(ids), own_at.checked_add(8 * count as usize)?)
        }
        _ => return None,
    };
    (end == file.body().len()).then_some((sparse, keys))
}
