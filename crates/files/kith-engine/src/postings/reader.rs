//! Reads postings.

use super::{BLOCK_BYTES, block};
use crate::errors::{Damage, OpenError, ReadError};
use crate::files::FileId;
use crate::members::{MemberTableReader, SortedIds};
use crate::pack::VersionFolder;
use crate::sealed::{HEADER_BYTES, SealedFile};
use kith_types::delta::DecodeError;
use kith_types::{Direction, PartitionId};
use std::ops::Range;

/// The mapped postings of a partition's list. Every answer, including an empty one, is checked against checksums.
#[derive(Debug)]
pub struct PostingsReader {
    file: SealedFile,
    /// The first neighbour of each block. A neighbour that spans blocks is repeated.
    sparse: SortedIds,
    keys: Keys,
}

#[derive(Clone, Copy, Debug)]
enum Keys {
    /// Ordinals refer to the partition's member table, which has this many ids.
    Members(u32),
    /// Ordinals refer to this table in the same file.
    Own(SortedIds),
}

impl PostingsReader {
    /// Opens the postings of a list in constant time.
    ///
    /// # Errors
    /// If the file is missing, damaged, or not the one in the manifest.
    pub fn open(folder: &VersionFolder, partition: PartitionId, list: Direction) -> Result<Self, OpenError> {
        let id = FileId::postings(partition, list);
        let file = SealedFile::open(folder, id)?;
        let (sparse, keys) = layout(&file).ok_or_else(|| file.impossible("layout", file.body().len()))?;
        Ok(Self { file, sparse, keys })
    }

    /// The number of (neighbour, key) pairs.
    pub fn pairs(&self) -> u64 {
        self.file.trailer().records
    }

    /// Appends the keys, ascending, whose list contains `neighbour`. `members` is the partition's member table. Cost: a
    /// binary search over one entry per 256 bytes, and decoding the blocks that hold the neighbour.
    ///
    /// # Errors
    /// If a byte that the answer depends on is damaged. `out` may then have grown.
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
        // The neighbour's run may lie inside the block before the first that starts with it.
        let begin = first_equal.saturating_sub(1);
        let mut end = first_equal;
        while end < sparse.count && sparse.get(file, end)? == neighbour {
            end += 1;
        }
        let decoded = self.search_blocks(begin, end, neighbour, out);
        // Everything that was used is now proven: the blocks, and the entries of the sparse index around them.
        let blocks = block_range(begin).start..block_range(end.max(begin + 1) - 1).end;
        if begin < end {
            file.verify(blocks.clone())?;
        }
        sparse.verify(file, begin, end + 1)?;
        let encloses = (begin == first_equal || sparse.get(file, begin)? < neighbour)
            && (end == sparse.count || sparse.get(file, end)? > neighbour);
        let ascending = out.is_sorted_by(|a, b| a < b);
        let in_table = out.last().is_none_or(|&last| last < self.key_count());
        if decoded.is_err() || !encloses || !ascending || !in_table {
            return Err(file.impossible("block", blocks.start));
        }
        Ok(())
    }

    fn search_blocks(
        &self,
        begin: usize,
        end: usize,
        neighbour: u64,
        out: &mut Vec<u32>,
    ) -> Result<(), DecodeError> {
        for index in begin..end {
            let block = self.file.body().get(block_range(index)).ok_or(DecodeError::Truncated)?;
            let first = self.sparse.get(&self.file, index).map_err(|_| DecodeError::Truncated)?;
            block::find(block, first, neighbour, out)?;
        }
        Ok(())
    }

    fn key_count(&self) -> u32 {
        match self.keys {
            Keys::Members(count) => count,
            Keys::Own(ids) => ids.count as u32,
        }
    }
}

/// The range of a block in the file. The first block is shorter by the header.
fn block_range(index: usize) -> Range<usize> {
    (index * BLOCK_BYTES).max(HEADER_BYTES)..(index + 1) * BLOCK_BYTES
}

/// The places of the parts, if they fill the body exactly.
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
