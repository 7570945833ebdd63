//! One chunk set: a data file and its index.

use super::Position;
use super::index::{LINE_BYTES, LINE_ENTRIES, Lines};
use super::record::{Frame, Record};
use crate::errors::{Damage, Fault, OpenError};
use crate::files::{FileId, FileKind};
use crate::pack::VersionFolder;
use crate::sealed::{HEADER_BYTES, SealedFile, Trailer};
use kith_types::ValueProof;

/// A record longer than this multiple of its set's average is proven by the node itself and not left to the client, because
/// its stated length may be damaged.
const RECORD_TIMES_MAX: usize = 8;
/// Records up to this length are never proven for their length alone.
const RECORD_BYTES_USUAL: usize = 4 << 10;

/// One open chunk set.
#[derive(Debug)]
pub(super) struct OneSet {
    pub(super) data: SealedFile,
    pub(super) frame: Frame,
    pub(super) index: SealedFile,
    pub(super) lines: Lines,
    records: u32,
    /// The average size of a record in bytes.
    pub(super) record_bytes: usize,
    pub(super) position: Position,
}

impl OneSet {
    /// Opens data file and index, and checks that they belong together.
    pub(super) fn open(
        folder: &VersionFolder,
        data_id: FileId,
        position: Position,
    ) -> Result<Self, OpenError> {
        let entry = folder.manifest().entry(data_id)?;
        let data = SealedFile::open(folder, data_id)?;
        let index = SealedFile::open(folder, FileId { kind: FileKind::Index, ..data_id })?;
        let trailer = *index.trailer();
        let [base, spread, count, data_crc] = trailer.fields;
        if data_crc != u64::from(entry.crc32c) || trailer.records != data.trailer().records {
            return Err(index.damage(Fault::Foreign { what: "data file" }).into());
        }
        let lines = Lines::from_words(base, spread, count);
        let records = records_of(&trailer, index.body().len())
            .ok_or_else(|| index.impossible("layout", index.body().len()))?;
        let first = entry.first_position.as_ref().map(|text| u64::from_str_radix(text, 16));
        if first != (records > 0).then_some(Ok(base)) {
            return Err(index.damage(Fault::Foreign { what: "first position" }).into());
        }
        let record_bytes = (data.body().len() - HEADER_BYTES) / (records as usize).max(1);
        // The proof of a value leaves out the length of the key exactly if the file does.
        if data.header().keys_are_ids() != folder.manifest().keys_are_ids() {
            return Err(data.damage(Fault::Foreign { what: "type of keys" }).into());
        }
        let frame = Frame::of(data.header());
        Ok(Self { data, frame, index, lines, records, record_bytes, position })
    }

    /// The position of the first record. Records of other sets lie before it or after the last one.
    pub(super) fn first_position(&self) -> u64 {
        self.lines.base
    }

    pub(super) fn records(&self) -> u32 {
        self.records
    }

    pub(super) fn data(&self) -> &SealedFile {
        &self.data
    }

    pub(super) fn index(&self) -> &SealedFile {
        &self.index
    }

    /// The record at an offset of the data file, unproven.
    pub(super) fn record(&self, offset: u64) -> Result<Record<'_>, Damage> {
        self.record_at(offset).ok_or_else(|| self.data.impossible("record", offset as usize))
    }

    /// The same; `None` if there cannot be a record.
    #[inline]
    pub(super) fn record_at(&self, offset: u64) -> Option<Record<'_>> {
        let record = Record::at(self.data.body(), offset, self.frame)?;
        self.data.prefetch_rest(offset as usize, record.bytes() as usize);
        Some(record)
    }

    /// Proves a record after its bytes were used.
    #[inline]
    pub(super) fn prove(&self, record: &Record<'_>) -> Result<(), Damage> {
        if !record.is_whole() {
            return Err(self.data.damage(Fault::Checksum { what: "record", offset: record.offset }));
        }
        self.data.check()
    }

    /// The proof of a record's value for a caller that has the key. `None` if the record must be proven here because it is
    /// far longer than the others: its length may be damaged.
    #[inline]
    pub(super) fn proof(&self, record: &Record<'_>) -> Option<ValueProof> {
        let usual = self.record_bytes.saturating_mul(RECORD_TIMES_MAX).max(RECORD_BYTES_USUAL) as u64;
        (record.bytes() <= usual).then(|| record.proof())
    }
}

/// The number of records, if they fit into the lines and the lines fill the body exactly.
fn records_of(trailer: &Trailer, body: usize) -> Option<u32> {
    let records = u32::try_from(trailer.records).ok()?;
    let [_, _, lines, _] = trailer.fields;
    let bytes = usize::try_from(lines).ok()?.checked_mul(LINE_BYTES)?.checked_add(HEADER_BYTES)?;
    let fits = u64::from(records) <= lines.checked_mul(LINE_ENTRIES as u64)?;
    (bytes == body && fits && (records == 0) == (lines == 0)).then_some(records)
}
