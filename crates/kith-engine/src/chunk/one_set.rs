//! Finds keys in one data file through its index.

use super::Position;
use super::index::{self, LINE_BYTES, LINE_ENTRIES, Lines, fingerprint};
use super::record::{Frame, Record};
use crate::errors::{Damage, Fault, OpenError};
use crate::files::{FileId, FileKind};
use crate::pack::VersionFolder;
use crate::sealed::{HEADER_BYTES, RECORD_BYTES_SHORT, SealedFile, Trailer};
use kith_types::ValueProof;
use std::ops::Range;

/// Lines of a key that are read on the index's word; more, which only keys of one position take, are proven one by one before the next is
/// read: a damaged index may not cost a walk over all of it.
const LINES_UNPROVEN: u64 = 4;

/// The node proves a record itself, rather than leaving that to the client, if the record is longer than this multiple of its
/// set's average: the length that it claims may be what is damaged.
const RECORD_TIMES_MAX: usize = 8;
/// Records up to this length are never proven for their length alone.
const RECORD_BYTES_USUAL: usize = 4 << 10;

/// One open chunk set.
#[derive(Debug)]
pub(super) struct OneSet {
    data: SealedFile,
    frame: Frame,
    index: SealedFile,
    lines: Lines,
    records: u32,
    /// Bytes of a record, on average.
    record_bytes: usize,
    position: Position,
}

/// What is known of a key on the way to its record.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyProbe {
    position: u64,
    /// The line that the position names.
    line: u64,
    found: Candidate,
}

/// What the index says of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Candidate {
    /// Not asked yet, or not known yet: the next line must be read too.
    Behind,
    /// Offset of the first record whose entry has the fingerprint.
    At(u64),
    /// No entry has it, or the index is damaged: the last step tells.
    None,
}

impl KeyProbe {
    /// Offset of the first record that may be the key's, once the lines are read.
    #[inline]
    pub(super) fn candidate(&self) -> Option<u64> {
        match self.found {
            Candidate::At(offset) => Some(offset),
            Candidate::Behind | Candidate::None => None,
        }
    }
}

impl OneSet {
    /// Opens data and index and checks that they belong together.
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
        // What proves a value leaves out lengths of keys just where the file does.
        if data.header().keys_are_ids() != folder.manifest().keys_are_ids() {
            return Err(data.damage(Fault::Foreign { what: "type of keys" }).into());
        }
        let frame = Frame::of(data.header());
        Ok(Self { data, frame, index, lines, records, record_bytes, position })
    }

    /// The position of the first record; records of other sets lie before or behind.
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

    /// First step: the line. `None` proves absence: what names lines was proven at open.
    #[inline]
    pub(super) fn locate(&self, position: u64) -> Option<KeyProbe> {
        let line = self.lines.line_of(position)?;
        self.index.prefetch(line_at(line));
        Some(KeyProbe { position, line, found: Candidate::Behind })
    }

    /// Second step: the first record that the line's fingerprints point to. Gives whether that is settled; if not, as for six in a
    /// hundred keys that are there, the next line was asked for, and [`OneSet::read_lines_behind`] settles it.
    #[inline]
    pub(super) fn read_line(&self, place: &mut KeyProbe) -> bool {
        let Some(line) = self.line(place.line) else {
            place.found = Candidate::None;
            return true;
        };
        let bits = index::matches(line, fingerprint(place.position));
        if bits == 0 && index::continues(line) {
            self.index.prefetch(line_at(place.line + 1));
            return false;
        }
        place.found = match bits {
            0 => Candidate::None,
            _ => Candidate::At(index::offset(line, bits.trailing_zeros())),
        };
        true
    }

    /// Third step, for keys that the second left open.
    #[inline]
    pub(super) fn read_lines_behind(&self, place: &mut KeyProbe) {
        if place.found != Candidate::Behind {
            return;
        }
        place.found = Candidate::None;
        let mut number = place.line + 1;
        while let Some(line) = self.line(number) {
            let bits = index::matches(line, fingerprint(place.position));
            if bits != 0 {
                place.found = Candidate::At(index::offset(line, bits.trailing_zeros()));
                return;
            }
            if !index::continues(line) || self.check_walk(place, number).is_err() {
                return;
            }
            number += 1;
        }
    }

    /// Before the line behind a line that goes on is read.
    #[inline]
    fn check_walk(&self, place: &KeyProbe, number: u64) -> Result<(), Damage> {
        if number - place.line < LINES_UNPROVEN {
            return Ok(());
        }
        self.index.verify(range_of(number, number + 1))
    }

    /// With it: loads the record, or what proves that there is none.
    #[inline]
    pub(super) fn load(&self, place: &KeyProbe) {
        match place.candidate() {
            Some(offset) => self.data.prefetch_record(offset as usize, self.record_bytes),
            None => self.index.prefetch_proof(range_of(place.line, place.line + 1)),
        }
    }

    /// While records before it are used: the rest of the record that the fingerprint points to, where records are long.
    #[inline]
    pub(super) fn read_ahead(&self, place: &KeyProbe) {
        if RECORD_BYTES_SHORT < self.record_bytes
            && let Some(offset) = place.candidate()
            && let Some(record) = Record::at(self.data.body(), offset, self.frame)
        {
            self.data.prefetch_lines(offset as usize, record.bytes() as usize);
        }
    }

    /// Last step, for nearly every key that is there: the first candidate, unproven as yet, if it is a record of `key`.
    #[inline]
    pub(super) fn find_first(&self, place: &KeyProbe, key: &[u8]) -> Option<Record<'_>> {
        let record = self.record_at(place.candidate()?)?;
        record.is_of(key).then_some(record)
    }

    /// Last step, for other keys: the record of `key`, unproven as yet, or the proof that there is none.
    pub(super) fn find(&self, place: &KeyProbe, key: &[u8]) -> Result<Option<Record<'_>>, Damage> {
        let mut number = place.line;
        loop {
            let line = self.line(number).ok_or_else(|| self.unnamed(place, number))?;
            let mut bits = index::matches(line, fingerprint(place.position));
            while bits != 0 {
                let offset = index::offset(line, bits.trailing_zeros());
                let record = self.record(offset)?;
                if record.is_of(key) {
                    return Ok(Some(record));
                }
                self.confirm(place, number, &record)?;
                bits &= bits - 1;
            }
            if !index::continues(line) {
                break;
            }
            self.check_walk(place, number)?;
            number += 1;
        }
        // An absence rests on all lines read; they are proven anew each time.
        self.index.verify(range_of(place.line, number + 1))?;
        self.data.check()?;
        Ok(None)
    }

    /// The damage of lines that go on beyond the last.
    #[cold]
    fn unnamed(&self, place: &KeyProbe, number: u64) -> Damage {
        let range = range_of(place.line, number.min(self.lines.count));
        let proof = self.index.verify(range.clone());
        // Should they be right by now, somebody changes the file: an error all the same.
        proof.err().unwrap_or_else(|| self.index.impossible("line", range.end))
    }

    /// The record at an offset of the data file, unproven.
    pub(super) fn record(&self, offset: u64) -> Result<Record<'_>, Damage> {
        self.record_at(offset).ok_or_else(|| self.data.impossible("record", offset as usize))
    }

    /// The same, if there can be one.
    #[inline]
    fn record_at(&self, offset: u64) -> Option<Record<'_>> {
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

    /// What proves a record's value to a caller that has the key. `None` of a record that has to be proven here: one that is far
    /// longer than the others, as its length may be damaged.
    #[inline]
    pub(super) fn proof(&self, record: &Record<'_>) -> Option<ValueProof> {
        let usual = self.record_bytes.saturating_mul(RECORD_TIMES_MAX).max(RECORD_BYTES_USUAL) as u64;
        (record.bytes() <= usual).then(|| record.proof())
    }

    #[inline]
    fn line(&self, number: u64) -> Option<&[u8; LINE_BYTES]> {
        self.index.body().get(line_at(number)..)?.first_chunk()
    }

    /// Another key under the fingerprint: fine if its own position says that it belongs here, else damage.
    fn confirm(&self, place: &KeyProbe, number: u64, record: &Record<'_>) -> Result<(), Damage> {
        self.prove(record)?;
        let here = (self.position)(record.key);
        // Its line is this one, or one before that goes on to here.
        let belongs = self.lines.line_of(here).is_some_and(|own| {
            own <= number && (own..number).rev().all(|at| self.line(at).is_some_and(index::continues))
        });
        if fingerprint(here) != fingerprint(place.position) || !belongs {
            return Err(self.index.impossible("entry of another record", record.offset as usize));
        }
        Ok(())
    }
}

fn line_at(number: u64) -> usize {
    HEADER_BYTES + LINE_BYTES * number as usize
}

/// Where lines lie in the index.
fn range_of(first: u64, end: u64) -> Range<usize> {
    line_at(first)..line_at(end)
}

/// The number of records, if as many fit the lines and these fill the body exactly.
fn records_of(trailer: &Trailer, body: usize) -> Option<u32> {
    let records = u32::try_from(trailer.records).ok()?;
    let [_, _, lines, _] = trailer.fields;
    let bytes = usize::try_from(lines).ok()?.checked_mul(LINE_BYTES)?.checked_add(HEADER_BYTES)?;
    let fits = u64::from(records) <= lines.checked_mul(LINE_ENTRIES as u64)?;
    (bytes == body && fits && (records == 0) == (lines == 0)).then_some(records)
}
