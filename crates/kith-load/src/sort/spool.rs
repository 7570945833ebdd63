//! Words put aside on disk and read back once, in the same order.

use super::scratch::{Run, RunReader, RunWriter, Scratch};
use super::{SortError, SortOptions};
use std::sync::Arc;

/// A sequence of words on its way to a scratch file, which has no name and so is gone with its process.
pub struct Spool {
    scratch: Scratch,
    writer: RunWriter,
}

/// The words of a [`Spool`], in the order in which they were put aside.
pub struct SpoolReader(RunReader<[u64; 1]>);

impl Spool {
    /// Makes the scratch file.
    ///
    /// # Errors
    /// If the disk refuses it.
    pub fn create(options: &SortOptions) -> Result<Self, SortError> {
        let scratch = Scratch::create(options, super::scratch::block_bytes::<[u64; 1]>(options))?;
        let writer = RunWriter::new(&scratch);
        Ok(Spool { scratch, writer })
    }

    /// Puts a word aside.
    ///
    /// # Errors
    /// If the scratch file cannot be written.
    pub fn push(&mut self, word: u64) -> Result<(), SortError> {
        self.writer.push(&mut self.scratch, [word])
    }

    /// Writes what is still in memory, and goes back to the first word.
    ///
    /// # Errors
    /// If the scratch file cannot be written.
    pub fn finish(mut self) -> Result<SpoolReader, SortError> {
        let run: Run = self.writer.finish(&mut self.scratch)?;
        Ok(SpoolReader(RunReader::new(&Arc::new(self.scratch), run)))
    }
}

impl SpoolReader {
    /// Fills `words`; `false` at the end.
    ///
    /// # Errors
    /// If the scratch file cannot be read.
    pub fn read(&mut self, words: &mut [u64]) -> Result<bool, SortError> {
        for word in words {
            let Some([next]) = self.0.next()? else { return Ok(false) };
            *word = next;
        }
        Ok(true)
    }
}
