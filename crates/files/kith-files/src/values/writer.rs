//! Writes sorted rows to the chunk sets of one partition after another.

use super::options::{Duplicates, ValuesOptions, ValuesProgress, shown};
use super::{ValuesBuildError, coding};
use crate::rows::SortedRows;
use kith_engine::writing::Compressor;
use kith_engine::writing::SealedWriter;
use kith_engine::{ChunkSetWriter, FileEntry, FileId, WriteError};
use kith_engine::{KeyType, ValueCounts};
use kith_types::PartitionId;
use std::borrow::Cow;
use std::io;
use std::path::Path;

/// The number of rows between two reports of progress.
const ROWS_PER_REPORT: u64 = 100_000;

/// The encoding of values in a file.
pub(super) enum ValueCoding {
    Plain,
    Zstd(Box<Compressor>),
}

impl ValueCoding {
    pub(super) fn compressing(level: i32, dictionary: &[u8]) -> io::Result<Self> {
        Ok(ValueCoding::Zstd(Box::new(Compressor::new(level, dictionary)?)))
    }

    fn stored<'v>(&mut self, value: &'v [u8]) -> Result<Cow<'v, [u8]>, ValuesBuildError> {
        Ok(match self {
            ValueCoding::Plain => Cow::Borrowed(value),
            ValueCoding::Zstd(compressor) => Cow::Owned(compressor.compress(value)?),
        })
    }
}

/// The files and counts that were written.
#[derive(Default)]
pub(super) struct WrittenValues {
    pub(super) files: Vec<FileEntry>,
    pub(super) counts: ValueCounts,
}

/// Writes rows, in the order of files, into loose logical files.
pub(super) struct ValuesWriter<'a, P> {
    dir: &'a Path,
    key: KeyType,
    coding: ValueCoding,
    /// The partitions that are not begun yet, ascending. Each gets a chunk set, with or without rows.
    partitions: P,
    current: Option<(PartitionId, ChunkSetWriter)>,
    written: WrittenValues,
}

impl<'a, P: Iterator<Item = PartitionId>> ValuesWriter<'a, P> {
    pub(super) fn new(
        dir: &'a Path,
        options: &ValuesOptions,
        partitions: P,
    ) -> Result<Self, ValuesBuildError> {
        let coding = coding(options)?;
        Ok(Self {
            dir,
            key: options.key,
            coding,
            partitions,
            current: None,
            written: WrittenValues::default(),
        })
    }

    /// Writes all rows, one per key.
    pub(super) fn write_rows(
        &mut self,
        rows: &mut SortedRows,
        duplicates: Duplicates,
        rows_total: u64,
        progress: &mut dyn FnMut(ValuesProgress),
    ) -> Result<(), ValuesBuildError> {
        // The current row, which may be followed by another with the same key. Only the key of the others is kept.
        let (mut partition, mut key, mut value) = (None, Vec::new(), Vec::new());
        let mut rows_done = 0;
        while let Some(row) = rows.next()? {
            rows_done += 1;
            let repeats = partition == Some(row.partition) && key == row.key;
            match (repeats, duplicates) {
                (true, Duplicates::Refuse) => {
                    return Err(ValuesBuildError::Duplicate { key: shown(self.key, row.key) });
                }
                (true, Duplicates::First) => continue,
                (_, Duplicates::Refuse | Duplicates::First) => self.row(row.partition, row.key, row.value)?,
                (_, Duplicates::Last) => {
                    if let (false, Some(partition)) = (repeats, partition) {
                        self.row(partition, &key, &value)?;
                    }
                    value.clear();
                    value.extend_from_slice(row.value);
                }
            }
            partition = Some(row.partition);
            key.clear();
            key.extend_from_slice(row.key);
            if rows_done % ROWS_PER_REPORT == 0 {
                progress(ValuesProgress { rows_done, rows_total });
            }
        }
        if let (Duplicates::Last, Some(partition)) = (duplicates, partition) {
            self.row(partition, &key, &value)?;
        }
        progress(ValuesProgress { rows_done, rows_total });
        Ok(())
    }

    /// Writes a row, compressed if the encoding says so.
    pub(super) fn row(
        &mut self,
        partition: PartitionId,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), ValuesBuildError> {
        let stored = self.coding.stored(value)?;
        self.stored_row(partition, key, &stored, value.len())
    }

    /// Encodes a value for a file.
    pub(super) fn stored<'v>(&mut self, value: &'v [u8]) -> Result<Cow<'v, [u8]>, ValuesBuildError> {
        self.coding.stored(value)
    }

    /// Writes a row that is already encoded, from another version with the same encoding. Its value has `value_bytes` when
    /// decoded.
    pub(super) fn stored_row(
        &mut self,
        partition: PartitionId,
        key: &[u8],
        stored: &[u8],
        value_bytes: usize,
    ) -> Result<(), ValuesBuildError> {
        let kind = self.key;
        self.go_to(partition)?.append(key, stored).map_err(|error| order(error, kind, key))?;
        self.count(key, value_bytes);
        Ok(())
    }

    fn count(&mut self, key: &[u8], value_bytes: usize) {
        let row = ValueCounts { records: 1, key_bytes: key.len() as u64, value_bytes: value_bytes as u64 };
        self.written.counts.add(&row);
    }

    /// The chunk sets of a partition, which is the current one or comes after it.
    fn go_to(&mut self, partition: PartitionId) -> Result<&mut ChunkSetWriter, ValuesBuildError> {
        while self.current.as_ref().is_none_or(|(current, _)| *current < partition) {
            self.finish_current()?;
            let next = self.partitions.next().expect("rows come in the order of the partitions");
            self.current = Some((next, ChunkSetWriter::create(self.dir, next, None, self.key)?));
        }
        let (_, chunks) = self.current.as_mut().expect("the loop above ends at one");
        Ok(chunks)
    }

    fn finish_current(&mut self) -> Result<(), ValuesBuildError> {
        if let Some((_, chunks)) = self.current.take() {
            self.written.files.extend(chunks.finish()?.files);
        }
        Ok(())
    }

    /// Ends the current partition, and creates the remaining ones without rows.
    pub(super) fn finish(mut self) -> Result<WrittenValues, ValuesBuildError> {
        self.finish_current()?;
        for partition in self.partitions {
            let empty = ChunkSetWriter::create(self.dir, partition, None, self.key)?.finish()?;
            self.written.files.extend(empty.files);
        }
        Ok(self.written)
    }
}

/// Translates the error for a row that is out of order, which the caller has given.
fn order(error: WriteError, kind: KeyType, key: &[u8]) -> ValuesBuildError {
    match error {
        WriteError::OutOfOrder { .. } => ValuesBuildError::NotSorted { key: shown(kind, key) },
        WriteError::Duplicate { .. } => ValuesBuildError::Duplicate { key: shown(kind, key) },
        error => error.into(),
    }
}

/// Writes the dictionary's file, if values are compressed.
pub(super) fn write_dictionary(
    dir: &Path,
    options: &ValuesOptions,
) -> Result<Option<FileEntry>, ValuesBuildError> {
    let Some(zstd) = &options.compression else { return Ok(None) };
    let dictionary = zstd.dictionary.as_deref().ok_or(ValuesBuildError::NoDictionary)?;
    let mut file = SealedWriter::create(dir, FileId::dictionary())?;
    file.put(dictionary)?;
    Ok(Some(file.finish(dictionary.len() as u64, [0; 4])?))
}
