//! External sort of any number of fixed-size records within a memory budget.
//!
//! Records gather in a buffer. A full buffer is sorted and written as a run to one scratch file, by a separate thread if
//! two are allowed. Runs are merged as they are read, in several passes if there are more than the fan-in. Equal records
//! are all returned: the reader decides what to do about duplicates. The scratch file has no name, so it disappears with
//! its process, however that ends.

mod merge;
mod scratch;
mod spill;
mod spool;
#[cfg(test)]
mod tests;

pub(super) use merge::FAN_IN_MAX;
use merge::{Merge, merge_down};
pub(super) use scratch::{HEAD_BYTES as BLOCK_HEAD_BYTES, Run, RunWriter, Scratch};
pub(super) use spill::{Spill, Spiller};
use std::io;
use std::path::PathBuf;
use thiserror::Error;

pub use spool::{Spool, SpoolReader};

/// A fixed-size record with a total order. Records that compare equal must be equal in every byte, so that the sorted
/// sequence does not depend on the order of input.
pub trait SortRecord: Copy + Ord + Send + 'static {
    /// The size of a record in a scratch file, in bytes.
    const BYTES: usize;

    /// Appends the record's [`SortRecord::BYTES`] bytes.
    fn put(&self, out: &mut Vec<u8>);

    /// Reads a record back from exactly [`SortRecord::BYTES`] bytes.
    fn take(bytes: &[u8]) -> Self;
}

impl<const N: usize> SortRecord for [u64; N] {
    const BYTES: usize = N * 8;

    fn put(&self, out: &mut Vec<u8>) {
        for word in self {
            out.extend_from_slice(&word.to_le_bytes());
        }
    }

    fn take(bytes: &[u8]) -> Self {
        std::array::from_fn(|word| take_word(bytes, word))
    }
}

/// The `index`-th little-endian word of a record's bytes.
pub(super) fn take_word(bytes: &[u8], index: usize) -> u64 {
    let word = bytes[index * 8..index * 8 + 8].try_into().expect("the slice has eight bytes");
    u64::from_le_bytes(word)
}

/// The options of a sort.
#[derive(Clone, Debug)]
pub struct SortOptions {
    /// The most bytes of buffers.
    pub memory_bytes: usize,
    /// An existing folder for the scratch file.
    pub scratch_dir: PathBuf,
    /// The number of threads. With 2 or more, a separate thread sorts and writes full buffers.
    pub threads: usize,
}

/// The reason why a sort cannot be continued.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum SortError {
    /// The scratch file cannot be created, written or read.
    #[error("cannot use a scratch file in {}", dir.display())]
    Io {
        dir: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A scratch file does not return the bytes that were written.
    #[error("a scratch file in {} is damaged at byte {offset}", dir.display())]
    Damaged { dir: PathBuf, offset: u64 },
}

/// Takes records in any order.
pub struct ExternalSorter<R> {
    options: SortOptions,
    /// The records of the current run. It never grows beyond its first allocation.
    buffer: Vec<R>,
    /// The most records in the buffer.
    run_records: usize,
    records: u64,
    spiller: Option<Spiller<Vec<R>>>,
}

impl<R: SortRecord> ExternalSorter<R> {
    /// Nothing is allocated or written before it is needed.
    pub fn new(options: SortOptions) -> Self {
        let buffers = if options.threads > 1 { 2 } else { 1 };
        let run_records = (options.memory_bytes / buffers / size_of::<R>()).max(2);
        ExternalSorter { options, buffer: Vec::new(), run_records, records: 0, spiller: None }
    }

    /// Adds a record.
    ///
    /// # Errors
    /// If a full buffer cannot be written. The sorter cannot be used any more then.
    ///
    /// # Panics
    /// If it is used after an error.
    #[inline]
    pub fn push(&mut self, record: R) -> Result<(), SortError> {
        if self.buffer.len() == self.buffer.capacity() {
            self.make_room()?;
        }
        self.buffer.push(record);
        self.records += 1;
        Ok(())
    }

    /// The number of records so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Sorts the records.
    ///
    /// # Errors
    /// If scratch files cannot be written or read back.
    pub fn finish(mut self) -> Result<SortedRecords<R>, SortError> {
        let records = self.records;
        let Some(mut spiller) = self.spiller.take() else {
            self.buffer.sort_unstable();
            return Ok(SortedRecords { records, runs: 0, from: Input::Memory(self.buffer.into_iter()) });
        };
        spiller.spill(std::mem::take(&mut self.buffer))?;
        let (scratch, runs) = spiller.finish()?;
        let count = runs.len();
        let (scratch, runs) = merge_down::<R>(scratch, runs, &self.options)?;
        let merge = Merge::new(&scratch, &runs)?;
        Ok(SortedRecords { records, runs: count, from: Input::Runs(merge) })
    }

    /// Makes room if the buffer is full or not yet allocated.
    #[cold]
    fn make_room(&mut self) -> Result<(), SortError> {
        if self.buffer.capacity() > 0 {
            let spiller = match self.spiller.take() {
                Some(spiller) => spiller,
                None => Spiller::start(&self.options)?,
            };
            let spiller = self.spiller.insert(spiller);
            self.buffer = spiller.spill(std::mem::take(&mut self.buffer))?;
        }
        // One allocation of the full size: pages that are never touched cost nothing, and growing would need the old and
        // the new buffer at the same time.
        self.buffer.reserve_exact(self.run_records);
        Ok(())
    }
}

impl<R: SortRecord> Spill for Vec<R> {
    fn block_bytes(options: &SortOptions) -> usize {
        scratch::block_bytes::<R>(options)
    }

    fn spill(&mut self, scratch: &mut Scratch) -> Result<Option<Run>, SortError> {
        if self.is_empty() {
            return Ok(None);
        }
        self.sort_unstable();
        let mut records = self.drain(..);
        scratch.write_run(|| Ok(records.next())).map(Some)
    }
}

/// Sorted records. Equal ones are adjacent.
pub struct SortedRecords<R> {
    records: u64,
    runs: usize,
    from: Input<R>,
}

enum Input<R> {
    Memory(std::vec::IntoIter<R>),
    Runs(Merge<R>),
}

impl<R: SortRecord> SortedRecords<R> {
    /// The next record; `None` at the end.
    ///
    /// # Errors
    /// If the scratch file does not return the bytes that were written.
    #[inline]
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator of results would unwrap each record twice"
    )]
    pub fn next(&mut self) -> Result<Option<R>, SortError> {
        match &mut self.from {
            Input::Memory(records) => Ok(records.next()),
            Input::Runs(merge) => merge.next(),
        }
    }

    /// The number of sorted records.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The number of runs that were written to the scratch folder; 0 if everything fitted into memory.
    pub fn spilled_runs(&self) -> usize {
        self.runs
    }
}
