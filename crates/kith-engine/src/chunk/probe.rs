//! The steps that find a key in one chunk set through its index.

use super::index::{self, LINE_BYTES, fingerprint};
use super::one_set::OneSet;
use super::record::Record;
use crate::errors::Damage;
use crate::sealed::{HEADER_BYTES, RECORD_BYTES_SHORT};
use std::ops::Range;

/// Lines of a key that are read on the index's word; more, which only keys of one position take, are proven one by one before the next is
/// read: a damaged index may not cost a walk over all of it.
const LINES_UNPROVEN: u64 = 4;

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
