//! Runs of sorted records in one unnamed file.
//!
//! A run is a sequence of blocks: payload bytes, u32 | crc32c of the payload, u32 | payload. Scratch bytes are read on the
//! machine that wrote them, minutes later. They are checked nevertheless, because a wrong record would become a wrong
//! answer with correct checksums.

use super::{SortError, SortOptions, SortRecord};
use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

/// The payload of a block. It is long enough for sequential access on any disk, and small enough for hundreds of runs.
const BLOCK_BYTES_MAX: usize = 64 << 10;

/// Bytes before the payload of a block.
pub(crate) const HEAD_BYTES: usize = 8;

/// The payload of a block within a memory budget, in bytes: whole records, at least one.
pub(super) fn block_bytes<R: SortRecord>(options: &SortOptions) -> usize {
    let bytes = (options.memory_bytes / 8).min(BLOCK_BYTES_MAX);
    (bytes / R::BYTES).max(1) * R::BYTES
}

/// A scratch file; its space is freed when the last reader is dropped.
pub(crate) struct Scratch {
    dir: PathBuf,
    file: File,
    bytes: u64,
    block_bytes: usize,
}

/// The place of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) offset: u64,
    pub(crate) records: u64,
}

impl Scratch {
    pub(crate) fn create(options: &SortOptions, block_bytes: usize) -> Result<Self, SortError> {
        let dir = options.scratch_dir.clone();
        let file =
            tempfile::tempfile_in(&dir).map_err(|source| SortError::Io { dir: dir.clone(), source })?;
        Ok(Scratch { dir, file, bytes: 0, block_bytes })
    }

    /// Appends a run of all records that `next` returns.
    pub(super) fn write_run<R: SortRecord>(
        &mut self,
        mut next: impl FnMut() -> Result<Option<R>, SortError>,
    ) -> Result<Run, SortError> {
        let mut writer = RunWriter::new(self);
        while let Some(record) = next()? {
            writer.push(self, record)?;
        }
        writer.finish(self)
    }

    /// Appends a block: [`HEAD_BYTES`] that are filled in here, then the payload. Leaves only the head in the buffer.
    pub(crate) fn write_block(&mut self, block: &mut Vec<u8>) -> Result<(), SortError> {
        let payload = (block.len() - HEAD_BYTES) as u32;
        let crc = kith_types::crc32c(&block[HEAD_BYTES..]);
        block[..4].copy_from_slice(&payload.to_le_bytes());
        block[4..HEAD_BYTES].copy_from_slice(&crc.to_le_bytes());
        let written = self.file.write_all_at(block, self.bytes);
        written.map_err(|source| SortError::Io { dir: self.dir.clone(), source })?;
        self.bytes += block.len() as u64;
        block.truncate(HEAD_BYTES);
        Ok(())
    }

    /// The offset of the next block.
    pub(crate) fn end(&self) -> u64 {
        self.bytes
    }

    /// Reads the payload of the block at an offset. The payload has at most `payload_bytes_max` bytes.
    pub(crate) fn read_block(
        &self,
        offset: u64,
        payload_bytes_max: usize,
        block: &mut Vec<u8>,
    ) -> Result<(), SortError> {
        let mut head = [0; HEAD_BYTES];
        self.read_at(&mut head, offset)?;
        let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
        let (payload, crc) = (word(0) as usize, word(4));
        if payload > payload_bytes_max {
            return Err(self.damaged(offset));
        }
        block.resize(payload, 0);
        self.read_at(block, offset + HEAD_BYTES as u64)?;
        if kith_types::crc32c(block) != crc { Err(self.damaged(offset)) } else { Ok(()) }
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> Result<(), SortError> {
        self.file.read_exact_at(into, offset).map_err(|source| match source.kind() {
            io::ErrorKind::UnexpectedEof => self.damaged(offset),
            _ => SortError::Io { dir: self.dir.clone(), source },
        })
    }

    pub(crate) fn damaged(&self, offset: u64) -> SortError {
        SortError::Damaged { dir: self.dir.clone(), offset }
    }

    #[cfg(test)]
    pub(super) fn damage(&mut self, offset: u64) {
        let mut byte = [0];
        self.file.read_exact_at(&mut byte, offset).unwrap();
        self.file.write_all_at(&[byte[0] ^ 1], offset).unwrap();
    }
}

/// Writes one run, one block of whole records at a time. The runs of one file are written one after another.
pub(crate) struct RunWriter {
    run: Run,
    block: Vec<u8>,
}

impl RunWriter {
    pub(crate) fn new(scratch: &Scratch) -> Self {
        let mut block = Vec::with_capacity(HEAD_BYTES + scratch.block_bytes);
        block.extend_from_slice(&[0; HEAD_BYTES]);
        RunWriter { run: Run { offset: scratch.bytes, records: 0 }, block }
    }

    #[inline]
    pub(super) fn push<R: SortRecord>(&mut self, scratch: &mut Scratch, record: R) -> Result<(), SortError> {
        record.put(&mut self.block);
        self.count(scratch)
    }

    /// Adds an encoded record, like [`RunWriter::push`].
    pub(crate) fn push_coded(&mut self, scratch: &mut Scratch, record: &[u8]) -> Result<(), SortError> {
        self.block.extend_from_slice(record);
        self.count(scratch)
    }

    /// Counts a record, and writes the block if it is full.
    #[inline]
    fn count(&mut self, scratch: &mut Scratch) -> Result<(), SortError> {
        self.run.records += 1;
        if self.block.len() >= HEAD_BYTES + scratch.block_bytes {
            scratch.write_block(&mut self.block)?;
        }
        Ok(())
    }

    pub(crate) fn finish(mut self, scratch: &mut Scratch) -> Result<Run, SortError> {
        if self.block.len() > HEAD_BYTES {
            scratch.write_block(&mut self.block)?;
        }
        Ok(self.run)
    }
}

/// Reads one run, a block at a time.
pub(super) struct RunReader<R> {
    scratch: Arc<Scratch>,
    offset: u64,
    /// The number of records that were not read from the file yet.
    records: u64,
    block: Vec<u8>,
    at: usize,
    record: PhantomData<R>,
}

impl<R: SortRecord> RunReader<R> {
    pub(super) fn new(scratch: &Arc<Scratch>, run: Run) -> Self {
        let scratch = Arc::clone(scratch);
        RunReader {
            scratch,
            offset: run.offset,
            records: run.records,
            block: Vec::new(),
            at: 0,
            record: PhantomData,
        }
    }

    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<R>, SortError> {
        if self.at == self.block.len() && !self.read_block()? {
            return Ok(None);
        }
        let record = R::take(&self.block[self.at..self.at + R::BYTES]);
        self.at += R::BYTES;
        Ok(Some(record))
    }

    fn read_block(&mut self) -> Result<bool, SortError> {
        if self.records == 0 {
            return Ok(false);
        }
        let offset = self.offset;
        let mut block = std::mem::take(&mut self.block);
        self.scratch.read_block(offset, self.scratch.block_bytes, &mut block)?;
        let payload = block.len();
        let records = (payload / R::BYTES) as u64;
        if !payload.is_multiple_of(R::BYTES) || records == 0 || self.records < records {
            return Err(self.scratch.damaged(offset));
        }
        (self.block, self.at) = (block, 0);
        self.records -= records;
        self.offset += (HEAD_BYTES + payload) as u64;
        Ok(true)
    }
}
