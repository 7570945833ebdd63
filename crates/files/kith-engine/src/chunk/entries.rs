//! The index entries of a chunk set, kept until the set is complete, because the number of records determines how many
//! lines its index has.

use crate::errors::WriteError;
use std::io::{BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};
use tempfile::SpooledTempFile;

/// Bytes that are kept in memory. A set of fewer than 80,000 records needs no temporary file.
const MEMORY_BYTES: usize = 1 << 20;
const BUFFER_BYTES: usize = 64 << 10;
/// A position of eight bytes and an offset of five bytes.
const ENTRY_BYTES: usize = 13;

/// The entries in the order in which they were added. Memory: 1 MiB and a buffer.
pub(super) struct Entries {
    dir: PathBuf,
    file: BufWriter<SpooledTempFile>,
    count: u64,
}

impl Entries {
    /// Creates an empty list. A temporary file, if one is needed, lies in `dir` without a name and disappears with the
    /// process.
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

    /// Returns all entries in order.
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
