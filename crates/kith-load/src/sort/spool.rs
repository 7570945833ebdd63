//! Words put aside on disk and read back once, in the same order.

use super::scratch::{Run, RunReader, RunWriter, Scratch};
use super::{SortError, SortOptions};
use std::sync::Arc;

/// A sequence of words on its way to or from a scratch file.
pub(crate) struct Spool {
    scratch: Scratch,
    writer: RunWriter,
}

/// What comes back.
pub(crate) struct SpoolReader(RunReader<[u64; 1]>);

impl Spool {
    pub(crate) fn create(options: &SortOptions) -> Result<Self, SortError> {
        let scratch = Scratch::create(options, super::scratch::block_bytes::<[u64; 1]>(options))?;
        let writer = RunWriter::new(&scratch);
        Ok(Spool { scratch, writer })
    }

    pub(crate) fn push(&mut self, word: u64) -> Result<(), SortError> {
        self.writer.push(&mut self.scratch, [word])
    }

    pub(crate) fn finish(mut self) -> Result<SpoolReader, SortError> {
        let run: Run = self.writer.finish(&mut self.scratch)?;
        Ok(SpoolReader(RunReader::new(&Arc::new(self.scratch), run)))
    }
}

impl SpoolReader {
    /// Fills `words`; `false` at the end.
    pub(crate) fn read(&mut self, words: &mut [u64]) -> Result<bool, SortError> {
        for word in words {
            let Some([next]) = self.0.next()? else { return Ok(false) };
            *word = next;
        }
        Ok(true)
    }
}
