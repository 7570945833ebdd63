//! Lines of the index: nine entries of fingerprint and offset in 64 bytes. The position of a record names the line of its
//! entry.
//!
//! ```text
//!  0..18  fingerprints, u16 each
//!  18     entries used, 0..=9; the highest bit: they go on in the next line
//!  19..64 offsets into the data file, 5 bytes each
//! ```

/// The size of a line: one cache line.
pub(super) const LINE_BYTES: usize = 64;

pub(super) const LINE_ENTRIES: usize = 9;

/// The greatest offset plus one: offsets have five bytes.
pub(super) const OFFSET_LIMIT: u64 = 1 << 40;

/// Records per number of lines: 6.5 per line. With uniform positions, six percent of the entries then stand in the line
/// after their own, and a key takes 9.85 bytes. With 7 per line it would be ten percent, and 9.1 bytes.
const RECORDS_PER_LINES: (u64, u64) = (13, 2);

const USED_AT: usize = 18;
const OFFSETS_AT: usize = 19;
const USED_MASK: u8 = 0x0f;
const CONTINUES: u8 = 0x80;

/// The fingerprint of a position: its lowest bits. The highest bits name the line.
#[inline]
pub(super) fn fingerprint(position: u64) -> u16 {
    position as u16
}

/// Maps positions to lines: the positions of a set, from its first to its last, are spread evenly over the lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lines {
    /// The first position.
    pub(super) base: u64,
    /// The shift that scales the distance between the first and the last position to 64 bits; less than 64.
    shift: u32,
    /// The number of lines per 2^64 of shifted distance.
    factor: u64,
    /// The number of lines of the file. There may be more at the end than positions name.
    pub(super) count: u64,
}

impl Lines {
    /// The mapping for this number of records from the first position to the last; `count` is not known yet.
    fn spread(first: u64, last: u64, records: u64) -> Self {
        let span = last - first;
        let shift = (span | 1).leading_zeros();
        let named = (RECORDS_PER_LINES.1 * records).div_ceil(RECORDS_PER_LINES.0).max(1);
        // Rounded down, so that the last position names the last line or one before it.
        let factor = (u128::from(named) << 64) / (u128::from(span << shift) + 1);
        Self { base: first, shift, factor: factor as u64, count: 0 }
    }

    /// Decodes the mapping from two words of a trailer.
    pub(super) fn from_words(base: u64, spread: u64, count: u64) -> Self {
        Self { base, shift: (spread >> 58) as u32, factor: spread & (u64::MAX >> 6), count }
    }

    /// Shift and factor encoded in one word.
    pub(super) fn spread_word(&self) -> u64 {
        u64::from(self.shift) << 58 | self.factor
    }

    /// The line of a position; `None` if no record of the set can have it.
    #[inline]
    pub(super) fn line_of(&self, position: u64) -> Option<u64> {
        let distance = position.checked_sub(self.base)?;
        // A distance beyond that of the last position may lose bits here; the comparison below detects that.
        let spread = distance << self.shift;
        let line = ((u128::from(spread) * u128::from(self.factor)) >> 64) as u64;
        (line < self.count && spread >> self.shift == distance).then_some(line)
    }
}

/// A line that is being filled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line([u8; LINE_BYTES]);

impl Line {
    const EMPTY: Line = Line([0; LINE_BYTES]);

    fn used(&self) -> usize {
        usize::from(self.0[USED_AT] & USED_MASK)
    }

    /// Adds an entry after the used ones. There must be room.
    fn push(&mut self, fingerprint: u16, offset: u64) {
        let slot = self.used();
        self.0[2 * slot..2 * slot + 2].copy_from_slice(&fingerprint.to_le_bytes());
        let at = OFFSETS_AT + 5 * slot;
        self.0[at..at + 5].copy_from_slice(&offset.to_le_bytes()[..5]);
        self.0[USED_AT] += 1;
    }
}

/// Writes the lines for `records` records, given as position and offset in ascending order of position. `put` takes each
/// line. Returns the mapping that finds them again. Needs no memory beyond one line.
pub(super) fn write_lines<E>(
    (first, last): (u64, u64),
    records: u64,
    entries: impl Iterator<Item = Result<(u64, u64), E>>,
    mut put: impl FnMut(&[u8; LINE_BYTES]) -> Result<(), E>,
) -> Result<Lines, E> {
    let mut lines = Lines { count: u64::MAX, ..Lines::spread(first, last, records) };
    let (mut line, mut number) = (Line::EMPTY, 0);
    for entry in entries {
        let (position, offset) = entry?;
        let own = lines.line_of(position).expect("positions lie between the first and the last");
        while number < own || line.used() == LINE_ENTRIES {
            if own <= number {
                line.0[USED_AT] |= CONTINUES;
            }
            put(&line.0)?;
            (line, number) = (Line::EMPTY, number + 1);
        }
        line.push(fingerprint(position), offset);
    }
    lines.count = if line.used() == 0 { 0 } else { number + 1 };
    if lines.count > 0 {
        put(&line.0)?;
    }
    Ok(lines)
}

/// The slots of a line that have the given fingerprint, as bits. All slots are compared without branches, so that none can
/// be mispredicted.
#[inline]
pub(super) fn matches(line: &[u8; LINE_BYTES], fingerprint: u16) -> u32 {
    let mut equal = [0u8; 8];
    for (slot, equal) in equal.iter_mut().enumerate() {
        *equal = if at(line, slot) == fingerprint { u8::MAX } else { 0 };
    }
    // Takes one bit of each byte, a different one each time, and sums them up in the highest byte.
    let bits = (u64::from_le_bytes(equal) & 0x8040_2010_0804_0201).wrapping_mul(0x0101_0101_0101_0101) >> 56;
    let ninth = u32::from(at(line, 8) == fingerprint) << 8;
    (bits as u32 | ninth) & ((1 << (line[USED_AT] & USED_MASK)) - 1)
}

#[inline]
fn at(line: &[u8; LINE_BYTES], slot: usize) -> u16 {
    u16::from_le_bytes([line[2 * slot], line[2 * slot + 1]])
}

/// Whether the entries of this line or an earlier one continue in the next line.
#[inline]
pub(super) fn continues(line: &[u8; LINE_BYTES]) -> bool {
    line[USED_AT] & CONTINUES != 0
}

#[inline]
pub(super) fn offset(line: &[u8; LINE_BYTES], slot: u32) -> u64 {
    // Eight bytes are read at once, three of them before the offset: the last slot's eight bytes end with the line.
    let at = OFFSETS_AT - 3 + 5 * slot as usize;
    let bytes: [u8; 8] = line[at..at + 8].try_into().expect("eight bytes");
    u64::from_le_bytes(bytes) >> 24
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn all_slots_with_the_fingerprint_are_found() {
        let mut line = Line::EMPTY;
        for (slot, fingerprint) in [7u16, 9, 7, 7, 0, 1, 7, 8, 7].into_iter().enumerate() {
            assert_eq!(matches(&line.0, fingerprint) >> slot, 0, "slots that are not used match nothing");
            line.push(fingerprint, OFFSET_LIMIT - 1 - slot as u64);
        }
        assert_eq!(matches(&line.0, 7), 0b1_0100_1101);
        assert_eq!(matches(&line.0, 8), 0b0_1000_0000);
        assert_eq!(matches(&line.0, 2), 0);
        for slot in 0..9 {
            assert_eq!(offset(&line.0, slot), OFFSET_LIMIT - 1 - u64::from(slot));
        }
    }

    /// The lines of the given positions, and their mapping.
    fn lines(positions: &[u64]) -> (Lines, Vec<[u8; LINE_BYTES]>) {
        let mut written = Vec::new();
        let ends = (positions.first().copied().unwrap_or(0), positions.last().copied().unwrap_or(0));
        let entries = positions.iter().zip(0..).map(|(&position, offset)| Ok::<_, ()>((position, offset)));
        let lines = write_lines(ends, positions.len() as u64, entries, |line| {
            written.push(*line);
            Ok(())
        });
        (lines.unwrap(), written)
    }

    /// The numbers of the lines that a lookup of a position reads.
    fn read(lines: &Lines, written: &[[u8; LINE_BYTES]], position: u64) -> Vec<usize> {
        let Some(first) = lines.line_of(position) else { return Vec::new() };
        let more = written[first as usize..].iter().take_while(|line| continues(line)).count();
        (first as usize..=first as usize + more).collect()
    }

    proptest! {
        #[test]
        fn every_entry_stands_in_a_line_that_its_lookup_reads(
            mut positions in prop::collection::vec(any::<u64>(), 0..3_000),
            narrow in 0u32..64,
            beyond in prop::collection::vec(any::<u64>(), 0..50),
        ) {
            positions.iter_mut().for_each(|position| *position >>= narrow);
            positions.sort_unstable();
            let (lines, written) = lines(&positions);
            prop_assert_eq!(lines.count, written.len() as u64);
            prop_assert_eq!(Lines::from_words(lines.base, lines.spread_word(), lines.count), lines);
            for (index, &position) in positions.iter().enumerate() {
                let found = read(&lines, &written, position).into_iter().any(|number| {
                    let line = &written[number];
                    let bits = matches(line, fingerprint(position));
                    (0..9).any(|slot| bits >> slot & 1 == 1 && offset(line, slot) == index as u64)
                });
                prop_assert!(found);
            }
            let entries: usize = written.iter().map(|line| usize::from(line[USED_AT] & USED_MASK)).sum();
            prop_assert_eq!(entries, positions.len());
            prop_assert!(!written.last().is_some_and(continues));
            for position in beyond {
                let is_within = positions.first().is_some_and(|&first| first <= position);
                prop_assert!(is_within || lines.line_of(position).is_none());
            }
        }
    }

    #[test]
    fn positions_at_the_ends_of_all_numbers() {
        for positions in
            [vec![], vec![0], vec![u64::MAX], vec![0, u64::MAX], vec![u64::MAX - 1, u64::MAX], vec![5; 100]]
        {
            let (lines, written) = lines(&positions);
            for &position in &positions {
                assert!(!read(&lines, &written, position).is_empty());
            }
        }
    }

    #[test]
    fn few_lookups_of_uniform_positions_read_two_lines() {
        let mut positions: Vec<u64> = (0..100_000u64).map(kith_types::fmix64).collect();
        positions.sort_unstable();
        let (lines, written) = lines(&positions);
        let bytes = (lines.count * LINE_BYTES as u64) as f64 / positions.len() as f64;
        assert!((9.8..9.9).contains(&bytes), "{bytes} bytes a key");
        let behind = positions.iter().zip(0u64..).filter(|&(&position, index)| {
            let line = &written[lines.line_of(position).unwrap() as usize];
            let bits = matches(line, fingerprint(position));
            !(0..9).any(|slot| bits >> slot & 1 == 1 && offset(line, slot) == index)
        });
        let share = behind.count() as f64 / positions.len() as f64;
        assert!((0.04..0.08).contains(&share), "{share} stand behind their line");
    }
}
