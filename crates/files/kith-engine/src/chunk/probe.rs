//! The steps that find a key in one chunk set through its index.

use super::index::{self, LINE_BYTES, fingerprint};
use super::one_set::OneSet;
use super::record::Record;
use crate::errors::Damage;
use crate::sealed::{HEADER_BYTES, RECORD_BYTES_SHORT};
use std::ops::Range;

/// The number of lines that are read for a key before their checksums are checked. Further lines, which only many keys
/// with one position need, are proven one by one before the next is read: a damaged index must not cause a walk over
/// all of it.
const LINES_UNPROVEN: u64 = 4;

/// The state of the lookup of one key.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyProbe {
    position: u64,
    /// The line that the position names.
    line: u64,
    found: Candidate,
}

/// The answer of the index about a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Candidate {
    /// Not known yet: the next line must be read.
    Behind,
    /// The offset of the first record whose entry has the fingerprint.
    At(u64),
    /// No entry has the fingerprint, or the index is damaged. The last step decides.
    None,
}

impl KeyProbe {
    /// The offset of the first record that may be the key's, once the lines are read.
    #[inline]
    pub(super) fn candidate(&self) -> Option<u64> {
        match self.found {
            Candidate::At(offset) => Some(offset),
            Candidate::Behind | Candidate::None => None,
        }
    }
}

impl OneSet {
    /// First step: finds the line. `None` proves absence, because the mapping to lines was proven when the set was opened.
    #[inline]
    pub(super) fn locate(&self, position: u64) -> Option<KeyProbe> {
        let line = self.lines.line_of(position)?;
        self.index.prefetch(line_at(line));
        Some(KeyProbe { position, line, found: Candidate::Behind })
    }

    /// Second step: finds the first record that the fingerprints of the line point to. Returns whether this is settled. If
    /// not, as for six percent of the present keys, the next line is prefetched, and [`OneSet::read_lines_behind`] settles
    /// it.
    #[inline]
    pub(super) fn read_line(&self, probe: &mut KeyProbe) -> bool {
        let Some(line) = self.line(probe.line) else {
            probe.found = Candidate::None;
            return true;
        };
        let bits = index::matches(line, fingerprint(probe.position));
        if bits == 0 && index::continues(line) {
            self.index.prefetch(line_at(probe.line + 1));
            return false;
        }
        probe.found = match bits {
            0 => Candidate::None,
            _ => Candidate::At(index::offset(line, bits.trailing_zeros())),
        };
        true
    }

    /// Third step, for keys that the second step left open.
    #[inline]
    pub(super) fn read_lines_behind(&self, probe: &mut KeyProbe) {
        if probe.found != Candidate::Behind {
            return;
        }
        probe.found = Candidate::None;
        let mut number = probe.line + 1;
        while let Some(line) = self.line(number) {
            let bits = index::matches(line, fingerprint(probe.position));
            if bits != 0 {
                probe.found = Candidate::At(index::offset(line, bits.trailing_zeros()));
                return;
            }
            if !index::continues(line) || self.check_walk(probe, number).is_err() {
                return;
            }
            number += 1;
        }
    }

    /// Checks the lines read so far before a further line is read, if there are many.
    #[inline]
    fn check_walk(&self, probe: &KeyProbe, number: u64) -> Result<(), Damage> {
        if number - probe.line < LINES_UNPROVEN {
            return Ok(());
        }
        self.index.verify(range_of(number, number + 1))
    }

    /// Prefetches the record, or the checksums that prove its absence.
    #[inline]
    pub(super) fn load(&self, probe: &KeyProbe) {
        match probe.candidate() {
            Some(offset) => self.data.prefetch_record(offset as usize, self.record_bytes),
            None => self.index.prefetch_proof(range_of(probe.line, probe.line + 1)),
        }
    }

    /// Prefetches the rest of the candidate while records before it are used, if records are long.
    #[inline]
    pub(super) fn read_ahead(&self, probe: &KeyProbe) {
        if RECORD_BYTES_SHORT < self.record_bytes
            && let Some(offset) = probe.candidate()
            && let Some(record) = Record::at(self.data.body(), offset, self.frame)
        {
            self.data.prefetch_lines(offset as usize, record.bytes() as usize);
        }
    }

    /// Last step for nearly every present key: the first candidate, unproven, if its record has this `key`.
    #[inline]
    pub(super) fn find_first(&self, probe: &KeyProbe, key: &[u8]) -> Option<Record<'_>> {
        let record = self.record_at(probe.candidate()?)?;
        record.is_of(key).then_some(record)
    }

    /// Last step for other keys: the record of `key`, unproven, or `None` as a proven absence.
    pub(super) fn find(&self, probe: &KeyProbe, key: &[u8]) -> Result<Option<Record<'_>>, Damage> {
        let mut number = probe.line;
        loop {
            let line = self.line(number).ok_or_else(|| self.unnamed(probe, number))?;
            let mut bits = index::matches(line, fingerprint(probe.position));
            while bits != 0 {
                let offset = index::offset(line, bits.trailing_zeros());
                let record = self.record(offset)?;
                if record.is_of(key) {
                    return Ok(Some(record));
                }
                self.confirm(probe, number, &record)?;
                bits &= bits - 1;
            }
            if !index::continues(line) {
                break;
            }
            self.check_walk(probe, number)?;
            number += 1;
        }
        // An absence depends on all lines that were read, so they are proven at every lookup.
        self.index.verify(range_of(probe.line, number + 1))?;
        self.data.check()?;
        Ok(None)
    }

    /// The damage of lines that continue after the last line.
    #[cold]
    fn unnamed(&self, probe: &KeyProbe, number: u64) -> Damage {
        let range = range_of(probe.line, number.min(self.lines.count));
        let proof = self.index.verify(range.clone());
        // If they are correct by now, the file is being changed, which is an error too.
        proof.err().unwrap_or_else(|| self.index.impossible("line", range.end))
    }

    #[inline]
    fn line(&self, number: u64) -> Option<&[u8; LINE_BYTES]> {
        self.index.body().get(line_at(number)..)?.first_chunk()
    }

    /// Checks the record of another key with the same fingerprint: it is fine if its own position belongs here, and damage
    /// otherwise.
    fn confirm(&self, probe: &KeyProbe, number: u64, record: &Record<'_>) -> Result<(), Damage> {
        self.prove(record)?;
        let here = (self.position)(record.key);
        // Its line is this one, or an earlier one that continues up to here.
        let belongs = self.lines.line_of(here).is_some_and(|own| {
            own <= number && (own..number).rev().all(|at| self.line(at).is_some_and(index::continues))
        });
        if fingerprint(here) != fingerprint(probe.position) || !belongs {
            return Err(self.index.impossible("entry of another record", record.offset as usize));
        }
        Ok(())
    }
}

fn line_at(number: u64) -> usize {
    HEADER_BYTES + LINE_BYTES * number as usize
}

/// The byte range of lines in the index.
fn range_of(first: u64, end: u64) -> Range<usize> {
    line_at(first)..line_at(end)
}
