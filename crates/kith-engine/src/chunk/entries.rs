//! Where the records of a chunk set stand, kept until the set is whole: the number of records settles how many lines its index has.

use crate::errors::WriteError;
use std::io::{BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};
use tempfile::SpooledTempFile;

/// Bytes kept in memory: a set of fewer than 80,000 records makes no file.
const MEMORY_BYTES: usize = 1 << 20;
const BUFFER_BYTES: usize = 64 << 10;
/// Position and offset, eight and five bytes.
const ENTRY_BYTES: usize = 13;

/// Entries in the order in which they come. Memory: 1 MiB and a buffer.
pub(super) struct Entries {
    dir: PathBuf,
    file: BufWriter<SpooledTempFile>,
    count: u64,
}

impl Entries {
    /// With its file, should there be one, in `dir`: it has no name there and ends with the process.
    pub(super) fn new(dir: &Path) -> Self {
        let file = tempfile::spooled_tempfile_in(MEMORY_BYTES, dir);
        Self { dir: dir.to_owned(), file: BufWriter::with_capacity(BUFFER_BYTES, file), count: 0 }
    }

    pub(super) fn push(&mut self, position: u64, offset: u64) -> Result<(), WriteError> {
        let mut entry = [0; ENTRY_BYTES];
        entry[..8].copy_from_slice(&position.to_le_bytes());
        entry[8..].copy_from_slice(&offset.to_le_bytes()[..5]);
        self.count += 1;
        self.file.write_all(&entry).map_err(|source| WriteError::Io { path: self.dir.clone(), source })
    }

    /// All of them, from the first on.
    pub(super) fn finish(self) -> Result<impl Iterator<Item = Result<(u64, u64), WriteError>>, WriteError> {
        let Self { dir, file, count } = self;
        let failed = move |source| WriteError::Io { path: dir.clone(), source };
        let mut file = file.into_inner().map_err(|error| failed(error.into_error()))?;
        file.rewind().map_err(&failed)?;
        let mut file = BufReader::with_capacity(BUFFER_BYTES, file);
        Ok((0..count).map(move |_| {
            let mut entry = [0; ENTRY_BYTES];
            file.read_exact(&mut entry).map_err(&failed)?;
            let word = |at: usize, bytes: usize| {
                let mut word = [0; 8];
                word[..bytes].copy_from_slice(&entry[at..at + bytes]);
                u64::from_le_bytes(word)
            };
            Ok((word(0, 8), word(8, 5)))
        }))
    }
}
