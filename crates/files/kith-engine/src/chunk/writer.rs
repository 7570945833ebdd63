//! Writes the chunk sets of one list of one partition in one forward pass.

use super::entries::Entries;
use super::index::{OFFSET_LIMIT, write_lines};
use super::record::Frame;
use super::{DATA_BYTES_MAX, KEY_BYTES_MAX, Position, RECORD_VALUE_BYTES_MAX, RECORDS_MAX};
use crate::errors::WriteError;
use crate::files::{FileId, FileKind};
use crate::manifest::{FileEntry, KeyType};
use crate::sealed::{Header, SealedWriter};
use kith_types::{Direction, PartitionId, position_of_key};
use std::path::{Path, PathBuf};

/// Writes chunk sets. Memory: buffers and checksums, whatever the number of records. The index entries of the current set
/// wait in a temporary file until the set ends, because the number of lines of its index is known only then.
pub struct ChunkSetWriter {
    dir: PathBuf,
    partition: PartitionId,
    list: Option<Direction>,
    options: Options,
    current: OneSet,
    summary: ChunkSetSummary,
    /// The position and key of the previous record.
    last: Option<(u64, Vec<u8>)>,
}

/// The written files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChunkSetSummary {
    /// The data file and index file of each chunk set, at least one pair.
    pub files: Vec<FileEntry>,
    /// The number of records in all chunk sets.
    pub records: u64,
}

/// The type of keys, and properties that tests vary.
#[derive(Clone, Copy)]
pub(super) struct Options {
    pub(super) key: KeyType,
    pub(super) position: Position,
    pub(super) data_bytes_max: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { key: KeyType::Bytes, position: position_of_key, data_bytes_max: DATA_BYTES_MAX }
    }
}

impl ChunkSetWriter {
    /// Creates the files of a partition's list (`None` for key-value data), which must not exist. Records with ids as keys
    /// are a byte shorter than others.
    ///
    /// # Errors
    /// If the files cannot be created.
    pub fn create(
        dir: &Path,
        partition: PartitionId,
        list: Option<Direction>,
        key: KeyType,
    ) -> Result<Self, WriteError> {
        Self::create_with(dir, partition, list, Options { key, ..Options::default() })
    }

    pub(super) fn create_with(
        dir: &Path,
        partition: PartitionId,
        list: Option<Direction>,
        options: Options,
    ) -> Result<Self, WriteError> {
        let current = OneSet::create(dir, partition, list, 0, options.key)?;
        let (dir, summary) = (dir.to_owned(), ChunkSetSummary::default());
        Ok(Self { dir, partition, list, options, current, summary, last: None })
    }

    /// Appends a record. Records must come in ascending order of (`position_of_key(key)`, key), each key once.
    ///
    /// # Errors
    /// If the order is wrong, the key or value is too long, the key has the wrong type, or the files cannot be written.
    pub fn append(&mut self, key: &[u8], value: &[u8]) -> Result<(), WriteError> {
        self.check_length("key", key.len(), KEY_BYTES_MAX)?;
        self.check_length("value", value.len(), RECORD_VALUE_BYTES_MAX)?;
        if !self.current.frame.fits(key) {
            return Err(WriteError::NoId { file: self.current.data.name(), bytes: key.len() });
        }
        let position = (self.options.position)(key);
        self.check_order(position, key)?;
        // Keys of one position stay in one set, because a reader asks a single set.
        let continues = self.last.as_ref().is_some_and(|(last, _)| *last == position);
        if self.current.is_full(self.options.data_bytes_max) && !continues {
            self.rotate()?;
        }
        self.current.append(position, key, value)?;
        self.summary.records += 1;
        let (last_position, last_key) = self.last.get_or_insert_default();
        *last_position = position;
        last_key.clear();
        last_key.extend_from_slice(key);
        Ok(())
    }

    /// Ends the files.
    ///
    /// # Errors
    /// If the files cannot be written.
    pub fn finish(mut self) -> Result<ChunkSetSummary, WriteError> {
        self.summary.files.extend(self.current.finish()?);
        Ok(self.summary)
    }

    fn rotate(&mut self) -> Result<(), WriteError> {
        let set = self.current.set + 1;
        let next = OneSet::create(&self.dir, self.partition, self.list, set, self.options.key)?;
        let full = std::mem::replace(&mut self.current, next);
        self.summary.files.extend(full.finish()?);
        Ok(())
    }

    fn check_length(&self, what: &'static str, got: usize, max: usize) -> Result<(), WriteError> {
        if got <= max {
            return Ok(());
        }
        Err(WriteError::TooLarge { file: self.current.data.name(), what, got: got as u64, max: max as u64 })
    }

    fn check_order(&self, position: u64, key: &[u8]) -> Result<(), WriteError> {
        let Some((last_position, last_key)) = &self.last else { return Ok(()) };
        let (file, record) = (|| self.current.data.name(), self.summary.records);
        match (*last_position, last_key.as_slice()).cmp(&(position, key)) {
            std::cmp::Ordering::Less => Ok(()),
            std::cmp::Ordering::Equal => Err(WriteError::Duplicate { file: file(), record }),
            std::cmp::Ordering::Greater => Err(WriteError::OutOfOrder { file: file(), record }),
        }
    }
}

/// One data file and its index.
struct OneSet {
    set: u32,
    data: SealedWriter,
    frame: Frame,
    index: SealedWriter,
    entries: Entries,
    records: u64,
    /// The positions of the first and the last record.
    positions: Option<(u64, u64)>,
    head: Vec<u8>,
}

impl OneSet {
    fn create(
        dir: &Path,
        partition: PartitionId,
        list: Option<Direction>,
        set: u32,
        key: KeyType,
    ) -> Result<Self, WriteError> {
        let id = |kind| FileId { partition, list, kind, set };
        let header = match key {
            KeyType::Id => Header::of_ids(id(FileKind::Data)),
            KeyType::String | KeyType::Bytes => Header::new(id(FileKind::Data)),
        };
        Ok(Self {
            set,
            data: SealedWriter::create_with(dir, header)?,
            frame: Frame::of(header),
            index: SealedWriter::create(dir, id(FileKind::Index))?,
            entries: Entries::new(dir),
            records: 0,
            positions: None,
            head: Vec::new(),
        })
    }

    fn is_full(&self, data_bytes_max: u64) -> bool {
        self.records > 0 && (self.data.position() >= data_bytes_max || self.records >= RECORDS_MAX)
    }

    fn append(&mut self, position: u64, key: &[u8], value: &[u8]) -> Result<(), WriteError> {
        let offset = self.data.position();
        // Only a terabyte of keys with one position could get here.
        if offset >= OFFSET_LIMIT || self.records >= RECORDS_MAX {
            return Err(WriteError::TooMany { file: self.data.name(), what: "records", max: self.records });
        }
        self.positions.get_or_insert((position, position)).1 = position;
        self.frame.encode_head(offset, key, value, &mut self.head);
        for part in [self.head.as_slice(), key, value] {
            self.data.put(part)?;
        }
        self.entries.push(position, offset)?;
        self.records += 1;
        Ok(())
    }

    fn finish(mut self) -> Result<[FileEntry; 2], WriteError> {
        let index = &mut self.index;
        let ends = self.positions.unwrap_or_default();
        let lines = write_lines(ends, self.records, self.entries.finish()?, |line| index.put(line))?;
        let mut data = self.data.finish(self.records, [0; 4])?;
        data.first_position = self.positions.map(|(first, _)| format!("{first:016x}"));
        let fields = [lines.base, lines.spread_word(), lines.count, u64::from(data.crc32c)];
        let index = self.index.finish(self.records, fields)?;
        Ok([data, index])
    }
}
