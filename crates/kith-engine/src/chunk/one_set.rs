//! Finds keys in one data file through its index.

use super::Position;
use super::directory::DirectoryShape;
use super::index::{self, LINE_BYTES, LINE_ENTRIES, fingerprint};
use super::record::Record;
use crate::errors::{Damage, Fault, OpenError};
use crate::files::{FileId, FileKind};
use crate::pack::VersionFolder;
use crate::sealed::{HEADER_BYTES, RECORD_BYTES_SHORT, SealedFile};
use std::ops::Range;

/// Entries of a bucket from which on the directory is proven before the bucket is walked:
/// a damaged directory may not cost a walk over the whole index.
const BUCKET_ENTRIES_LARGE: u32 = 64;

/// One open chunk set.
#[derive(Debug)]
pub(super) struct OneSet {
    data: SealedFile,
    index: SealedFile,
    shape: DirectoryShape,
    records: u32,
    directory_at: usize,
    /// Bytes of a record, on average.
    record_bytes: usize,
    position: Position,
}

/// What is known of a key on the way to its record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    position: u64,
    prefix: u64,
    /// First entry of the bucket and the one behind its last.
    low: u32,
    high: u32,
    /// Whether these two are known.
    is_read: bool,
    /// Offset of the first record whose entry has the fingerprint, if any.
    candidate: Option<u64>,
}

impl Place {
    /// Offset of the first record that may be the key's, once the lines are read.
    #[inline]
    pub(super) fn candidate(&self) -> Option<u64> {
        self.candidate
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
        let [base, shift, prefixes, data_crc] = trailer.fields;
        if data_crc != u64::from(entry.crc32c) || trailer.records != data.trailer().records {
            return Err(index.damage(Fault::Foreign { what: "data file" }).into());
        }
        let layout = layout(trailer.records, shift, prefixes, index.body().len());
        let (records, shift, directory_at) =
            layout.ok_or_else(|| index.impossible("layout", index.body().len()))?;
        let first = entry.first_position.as_ref().map(|text| u64::from_str_radix(text, 16));
        if first != (records > 0).then_some(Ok(base)) {
            return Err(index.damage(Fault::Foreign { what: "first position" }).into());
        }
        let shape = DirectoryShape { base, shift, prefixes };
        let record_bytes = (data.body().len() - HEADER_BYTES) / (records as usize).max(1);
        Ok(Self { data, index, shape, records, directory_at, record_bytes, position })
    }

    /// The position of the first record; records of other sets lie before or behind.
    pub(super) fn first_position(&self) -> u64 {
        self.shape.base
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

    /// First step: the prefix. `None` proves absence: the shape was proven at open.
    #[inline]
    pub(super) fn locate(&self, position: u64) -> Option<Place> {
        let prefix = self.shape.prefix_of(position)?;
        self.index.prefetch(self.directory_at + 4 * prefix as usize);
        Some(Place { position, prefix, low: 0, high: 0, is_read: false, candidate: None })
    }

    /// Second step: the bucket, from the directory. One that cannot be stays unread, for the last step to tell.
    #[inline]
    pub(super) fn read_directory(&self, place: &mut Place) {
        let Some((low, high)) = self.bucket(place) else { return };
        if high - low > BUCKET_ENTRIES_LARGE && self.index.verify(self.directory_range(place)).is_err() {
            return;
        }
        (place.low, place.high) = (low, high);
        place.is_read = true;
        self.index.prefetch(line_at(u64::from(low) / LINE_ENTRIES));
        self.index.prefetch(line_at(u64::from(high.saturating_sub(1)) / LINE_ENTRIES));
    }

    /// First entry of the bucket and the one behind its last, if they can be.
    #[inline]
    fn bucket(&self, place: &Place) -> Option<(u32, u32)> {
        let at = self.directory_range(place).start;
        let both = u64::from_le_bytes(*self.index.body().get(at..)?.first_chunk()?);
        let (low, high) = (both as u32, (both >> 32) as u32);
        (low <= high && high <= self.records).then_some((low, high))
    }

    /// The damage of a bucket that stayed unread.
    #[cold]
    fn unread(&self, place: &Place) -> Damage {
        // Should it be right by now, somebody changes the file: an error all the same.
        let range = self.directory_range(place);
        let proof = if self.bucket(place).is_some() { self.index.verify(range.clone()) } else { Ok(()) };
        proof.err().unwrap_or_else(|| self.index.impossible("directory", range.start))
    }

    /// Third step: the first record that the fingerprint points to.
    #[inline]
    pub(super) fn read_lines(&self, place: &mut Place) {
        place.candidate = self.first_candidate(place);
    }

    /// With it: loads the record, or what proves that there is none.
    #[inline]
    pub(super) fn load(&self, place: &Place) {
        match place.candidate {
            Some(offset) => self.data.prefetch_record(offset as usize, self.record_bytes),
            None if place.is_read => {
                self.proof(place).into_iter().for_each(|range| self.index.prefetch_proof(range));
            }
            None => {}
        }
    }

    /// While records before it are used: the rest of the record that the fingerprint points to, where records are long.
    #[inline]
    pub(super) fn read_ahead(&self, place: &Place) {
        if RECORD_BYTES_SHORT < self.record_bytes
            && let Some(offset) = place.candidate
            && let Some(record) = Record::at(self.data.body(), offset, self.data.header_crc())
        {
            self.data.prefetch_lines(offset as usize, record.bytes() as usize);
        }
    }

    /// Last step, for nearly every key that is there: the first candidate, unproven as yet, if it is a record of `key`.
    #[inline]
    pub(super) fn find_first(&self, place: &Place, key: &[u8]) -> Option<Record<'_>> {
        let record = self.record_at(place.candidate?)?;
        record.is_of(key).then_some(record)
    }

    /// Last step, for other keys: the record of `key`, unproven as yet, or the proof that there is none.
    pub(super) fn find(&self, place: &Place, key: &[u8]) -> Result<Option<Record<'_>>, Damage> {
        if !place.is_read {
            return Err(self.unread(place));
        }
        if place.candidate.is_some() {
            for offset in self.candidates(place) {
                let record = self.record(offset)?;
                if record.is_of(key) {
                    return Ok(Some(record));
                }
                self.confirm(place, offset, &record)?;
            }
        }
        self.prove_absence(place)?;
        Ok(None)
    }

    /// The record at an offset of the data file, unproven.
    pub(super) fn record(&self, offset: u64) -> Result<Record<'_>, Damage> {
        self.record_at(offset).ok_or_else(|| self.data.impossible("record", offset as usize))
    }

    /// The same, if there can be one.
    #[inline]
    fn record_at(&self, offset: u64) -> Option<Record<'_>> {
        let record = Record::at(self.data.body(), offset, self.data.header_crc())?;
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

    /// The first of [`OneSet::candidates`], which is nearly always the only one. Most buckets lie on one line or two, as chance has it:
    /// first and last line are both compared, so that there is nothing to guess.
    #[inline]
    fn first_candidate(&self, place: &Place) -> Option<u64> {
        let (low, high) = (u64::from(place.low), u64::from(place.high));
        let (first, last) = (low / LINE_ENTRIES, high.checked_sub(1)? / LINE_ENTRIES);
        let (lines, _) = self.index.body().get(HEADER_BYTES..self.directory_at)?.as_chunks::<LINE_BYTES>();
        let (head, tail) = (lines.get(first as usize)?, lines.get(last as usize)?);
        let wanted = fingerprint(place.position);
        let (before, in_tail) = (first * LINE_ENTRIES, high - last * LINE_ENTRIES);
        let in_head = index::matches(head, wanted, low - before..(high - before).min(LINE_ENTRIES));
        let in_tail = index::matches(tail, wanted, 0..if first < last { in_tail } else { 0 });
        if first + 1 < last && in_head == 0 {
            return self.candidates(place).next();
        }
        let slot = (in_head | in_tail << LINE_ENTRIES).trailing_zeros();
        let (line, slot) =
            if slot < LINE_ENTRIES as u32 { (head, slot) } else { (tail, slot - LINE_ENTRIES as u32) };
        (in_head | in_tail != 0).then(|| index::offset(line, slot))
    }

    /// Offsets of the entries in the bucket that have the fingerprint, over all its lines.
    #[inline]
    fn candidates(&self, place: &Place) -> impl Iterator<Item = u64> {
        let (low, high) = (u64::from(place.low), u64::from(place.high));
        let wanted = fingerprint(place.position);
        (low / LINE_ENTRIES..high.div_ceil(LINE_ENTRIES)).flat_map(move |number| {
            let first = number * LINE_ENTRIES;
            let slots = low.saturating_sub(first)..(high - first).min(LINE_ENTRIES);
            let line = self.line(number);
            let mut bits = line.map_or(0, |line| index::matches(line, wanted, slots));
            std::iter::from_fn(move || {
                let (line, slot) = (line?, bits.trailing_zeros());
                bits &= bits.checked_sub(1)?;
                Some(index::offset(line, slot))
            })
        })
    }

    #[inline]
    fn line(&self, number: u64) -> Option<&[u8; LINE_BYTES]> {
        self.index.body().get(line_at(number)..)?.first_chunk()
    }

    /// Another key under the fingerprint: fine if its own position says that it belongs here, else damage.
    fn confirm(&self, place: &Place, offset: u64, record: &Record<'_>) -> Result<(), Damage> {
        self.prove(record)?;
        let here = (self.position)(record.key);
        if fingerprint(here) != fingerprint(place.position)
            || self.shape.prefix_of(here) != Some(place.prefix)
        {
            return Err(self.index.impossible("entry of another record", offset as usize));
        }
        Ok(())
    }

    /// Proves the lines and the directory entries that an absence rests on, anew each time.
    fn prove_absence(&self, place: &Place) -> Result<(), Damage> {
        self.proof(place).into_iter().try_for_each(|range| self.index.verify(range))?;
        self.data.check()
    }

    /// Where the directory entries and the lines of a bucket lie in the index.
    fn proof(&self, place: &Place) -> [Range<usize>; 2] {
        let first = line_at(u64::from(place.low) / LINE_ENTRIES);
        let end = line_at(u64::from(place.high).div_ceil(LINE_ENTRIES));
        // An empty bucket has no lines, wherever it begins.
        let lines = if place.low < place.high { first..end } else { first..first };
        [self.directory_range(place), lines]
    }

    fn directory_range(&self, place: &Place) -> Range<usize> {
        let at = self.directory_at + 4 * place.prefix as usize;
        at..at + 8
    }
}

fn line_at(number: u64) -> usize {
    HEADER_BYTES + LINE_BYTES * number as usize
}

/// Records, shift and place of the directory, if the parts fill the body exactly.
fn layout(records: u64, shift: u64, prefixes: u64, body: usize) -> Option<(u32, u32, usize)> {
    let records = u32::try_from(records).ok()?;
    let shift = u32::try_from(shift).ok().filter(|&shift| shift < 64)?;
    let directory_at = line_at(u64::from(records).div_ceil(LINE_ENTRIES));
    let table = usize::try_from(prefixes.checked_add(1)?.checked_mul(4)?).ok()?;
    let fits = directory_at.checked_add(table)? == body && (records == 0) == (prefixes == 0);
    fits.then_some((records, shift, directory_at))
}
