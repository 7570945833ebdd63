//! Writes the postings of one list of one partition.

use super::BLOCK_BYTES;
use super::block::{COUNT_BYTES_MAX, GAP_MAX, HEAD_BYTES, gap_bytes, ordinal_bytes, put_run};
use crate::errors::WriteError;
use crate::files::FileId;
use crate::manifest::FileEntry;
use crate::sealed::SealedWriter;
use kith_types::{Direction, PartitionId};
use std::path::Path;

/// The sorted table that ordinals refer to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PostingsKeys {
    /// The partition's member table, with this many ids. It is used for lists whose keys are members.
    Members(u32),
    /// A table in the postings file, sorted and distinct. It is used for the `in` lists of entity kinds, whose keys are
    /// entities.
    Own(Vec<u64>),
}

/// Writes postings. Memory: a block, the current run, eight bytes per block of 256, and the table in the file if there is
/// one.
pub struct PostingsWriter {
    file: SealedWriter,
    keys: PostingsKeys,
    /// The first neighbour of each block so far, including the open one.
    sparse: Vec<u64>,
    /// The runs of the open block.
    block: Vec<u8>,
    runs: u16,
    /// The neighbour of the last run in the block.
    previous: u64,
    /// The neighbour of the current run.
    neighbour: u64,
    ordinals: Vec<u32>,
    ordinals_bytes: usize,
    pairs: u64,
}

impl PostingsWriter {
    /// Creates the postings file of a partition's list, which must not exist.
    ///
    /// # Errors
    /// If the file cannot be created, or the given table is not strictly ascending.
    pub fn create(
        dir: &Path,
        partition: PartitionId,
        list: Direction,
        keys: PostingsKeys,
    ) -> Result<Self, WriteError> {
        let file = SealedWriter::create(dir, FileId::postings(partition, list))?;
        if let PostingsKeys::Own(ids) = &keys
            && let Some(record) = ids.windows(2).position(|pair| pair[0] >= pair[1])
        {
            return Err(WriteError::OutOfOrder { file: file.name(), record: record as u64 + 1 });
        }
        Ok(Self {
            file,
            keys,
            sparse: Vec::new(),
            block: Vec::with_capacity(BLOCK_BYTES),
            runs: 0,
            previous: 0,
            neighbour: 0,
            ordinals: Vec::new(),
            ordinals_bytes: 0,
            pairs: 0,
        })
    }

    /// Adds a pair: the list of the key with this ordinal contains `neighbour`. Pairs must be ascending by (neighbour,
    /// ordinal) and distinct.
    ///
    /// # Errors
    /// If the order is wrong, the ordinal is not in the table, or the file cannot be written.
    pub fn append(&mut self, neighbour: u64, ordinal: u32) -> Result<(), WriteError> {
        let count = self.key_count();
        if ordinal >= count {
            return Err(WriteError::OrdinalOutOfRange { file: self.file.name(), got: ordinal, count });
        }
        let last = self.ordinals.last().copied();
        if let Some(last) = last {
            let (file, record) = (|| self.file.name(), self.pairs);
            match (self.neighbour, last).cmp(&(neighbour, ordinal)) {
                std::cmp::Ordering::Less => {}
                std::cmp::Ordering::Equal => return Err(WriteError::Duplicate { file: file(), record }),
                std::cmp::Ordering::Greater => return Err(WriteError::OutOfOrder { file: file(), record }),
            }
        }
        if last.is_none() || neighbour != self.neighbour {
            self.begin_run(neighbour, ordinal)?;
        } else {
            let bytes = ordinal_bytes(last, ordinal);
            if self.ordinals_bytes + bytes + COUNT_BYTES_MAX > self.room(self.gap_to(neighbour)) {
                self.end_run();
                self.flush_block()?;
                self.begin_run(neighbour, ordinal)?;
            } else {
                self.ordinals.push(ordinal);
                self.ordinals_bytes += bytes;
            }
        }
        self.pairs += 1;
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(mut self) -> Result<FileEntry, WriteError> {
        self.end_run();
        self.flush_block()?;
        for &first in &self.sparse {
            self.file.put(&first.to_le_bytes())?;
        }
        let (own, count) = match &self.keys {
            PostingsKeys::Members(count) => (0, *count),
            PostingsKeys::Own(ids) => (1, ids.len() as u32),
        };
        if let PostingsKeys::Own(ids) = &self.keys {
            for &id in ids {
                self.file.put(&id.to_le_bytes())?;
            }
        }
        self.file.finish(self.pairs, [self.sparse.len() as u64, own, u64::from(count), 0])
    }

    fn key_count(&self) -> u32 {
        match &self.keys {
            PostingsKeys::Members(count) => *count,
            PostingsKeys::Own(ids) => u32::try_from(ids.len()).unwrap_or(u32::MAX),
        }
    }

    /// The offset at which the open block ends in the file. Each block ends at a multiple of its size.
    fn block_end(&self) -> u64 {
        (self.file.position() / BLOCK_BYTES as u64 + 1) * BLOCK_BYTES as u64
    }

    /// The gap for a run of `neighbour` in the open block.
    fn gap_to(&self, neighbour: u64) -> u64 {
        if self.runs == 0 { 0 } else { neighbour - self.previous }
    }

    /// The bytes left in the open block after the gap of another run.
    fn room(&self, gap: u64) -> usize {
        let capacity = (self.block_end() - self.file.position()) as usize;
        capacity.saturating_sub(HEAD_BYTES + self.block.len() + gap_bytes(gap))
    }

    fn begin_run(&mut self, neighbour: u64, ordinal: u32) -> Result<(), WriteError> {
        self.end_run();
        let bytes = ordinal_bytes(None, ordinal);
        let gap = self.gap_to(neighbour);
        if gap > GAP_MAX || bytes > self.room(gap) {
            self.flush_block()?;
        }
        self.neighbour = neighbour;
        self.ordinals.push(ordinal);
        self.ordinals_bytes = bytes;
        Ok(())
    }

    /// Writes the current run, which must fit, into the block.
    fn end_run(&mut self) {
        if self.ordinals.is_empty() {
            return;
        }
        let gap = self.gap_to(self.neighbour);
        if self.runs == 0 {
            self.sparse.push(self.neighbour);
        }
        put_run(&mut self.block, gap, &self.ordinals);
        self.previous = self.neighbour;
        self.ordinals.clear();
        self.runs += 1;
    }

    fn flush_block(&mut self) -> Result<(), WriteError> {
        if self.runs == 0 {
            return Ok(());
        }
        let end = self.block_end();
        self.file.put(&self.runs.to_le_bytes())?;
        self.file.put(&self.block)?;
        debug_assert!(self.file.position() <= end, "a block outgrew its place");
        self.file.pad_to(end)?;
        self.block.clear();
        self.runs = 0;
        Ok(())
    }
}
