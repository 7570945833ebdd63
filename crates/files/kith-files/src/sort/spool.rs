//! Words that are written to disk and read back once, in the same order.

use super::scratch::{Run, RunReader, RunWriter, Scratch};
use super::{SortError, SortOptions};
use std::sync::Arc;

/// Writes a sequence of words to a scratch file, which has no name and disappears with its process.
pub struct Spool {
    scratch: Scratch,
    writer: RunWriter,
}

/// Reads the words of a [`Spool`] in the order in which they were written.
pub struct SpoolReader(RunReader<[u64; 1]>);

impl Spool {
    /// Creates the scratch file.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create(options: &SortOptions) -> Result<Self, SortError> {
        let scratch = Scratch::create(options, super::scratch::block_bytes::<[u64; 1]>(options))?;
        let writer = RunWriter::new(&scratch);
        Ok(Spool { scratch, writer })
    }

    /// Adds a word.
    ///
    /// # Errors
    /// If the scratch file cannot be written.
    pub fn push(&mut self, word: u64) -> Result<(), SortError> {
        self.writer.push(&mut self.scratch, [word])
    }

    /// Writes the words that are still in memory, and returns to the first word.
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
