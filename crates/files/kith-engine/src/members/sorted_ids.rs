//! A table of sorted, distinct ids inside a file, eight bytes each.
//!
//! A search runs over unproven bytes. Its result depends on the two ids that enclose the answer, and only their blocks are
//! proven. If damage misled the search, these two ids do not enclose the wanted id, or their block does not match its
//! checksum.

use crate::errors::Damage;
use crate::sealed::SealedFile;
use std::cmp::Ordering;

/// The place of the table in the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SortedIds {
    pub(crate) start: usize,
    pub(crate) count: usize,
}

impl SortedIds {
    fn offset(self, index: usize) -> usize {
        self.start + 8 * index
    }

    /// The id at an index.
    pub(crate) fn get(self, file: &SealedFile, index: usize) -> Result<u64, Damage> {
        file.u64_at(self.offset(index))
    }

    /// The first index whose id is `>= id`. The result is unproven.
    pub(crate) fn lower_bound(self, file: &SealedFile, id: u64) -> Result<usize, Damage> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.get(file, middle)?.cmp(&id) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal | Ordering::Greater => high = middle,
            }
        }
        Ok(low)
    }

    /// Checks the checksums of the ids at `from..to`.
    pub(crate) fn verify(self, file: &SealedFile, from: usize, to: usize) -> Result<(), Damage> {
        file.verify(self.offset(from)..self.offset(to.min(self.count)))
    }

    /// The index of an id, proven. `None` is a proven absence.
    pub(crate) fn find(self, file: &SealedFile, id: u64) -> Result<Option<u32>, Damage> {
        let index = self.lower_bound(file, id)?;
        let below = index.checked_sub(1).map(|below| self.get(file, below)).transpose()?;
        let here = (index < self.count).then(|| self.get(file, index)).transpose()?;
        self.verify(file, index.saturating_sub(1), index + 1)?;
        if below.is_some_and(|below| below >= id) || here.is_some_and(|here| here < id) {
            return Err(file.impossible("order of ids", self.offset(index)));
        }
        Ok((here == Some(id)).then_some(index as u32))
    }

    /// Appends the ids at ascending indexes, proven.
    pub(crate) fn resolve(
        self,
        file: &SealedFile,
        indexes: &[u32],
        out: &mut Vec<u64>,
    ) -> Result<(), Damage> {
        let mut unproven = None;
        for &index in indexes {
            let index = index as usize;
            if index >= self.count {
                return Err(file.impossible("ordinal", self.offset(index)));
            }
            // No id straddles two blocks, because tables begin at a multiple of eight.
            let block = self.offset(index) / file.block_bytes();
            if let Some(before) = unproven.replace(block)
                && before != block
            {
                file.verify_block(before)?;
            }
            out.push(self.get(file, index)?);
        }
        if let Some(block) = unproven {
            file.verify_block(block)?;
        }
        file.check()
    }
}
