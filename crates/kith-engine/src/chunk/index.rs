//! Lines of the index: seven entries of fingerprint and offset in 64 bytes.
//!
//! ```text
//!  0..28  fingerprints, u32 each
//!  28     entries used, 1..=7
//!  29..64 offsets into the data file, 5 bytes each
//! ```

/// Bytes of a line: one cache line.
pub(super) const LINE_BYTES: usize = 64;

/// Entries of a line.
pub(super) const LINE_ENTRIES: u64 = 7;

/// The greatest offset plus one: five bytes.
pub(super) const OFFSET_LIMIT: u64 = 1 << 40;

const USED_AT: usize = 28;
const OFFSETS_AT: usize = 29;

/// The fingerprint of a position: its low half. The directory uses the high bits.
#[inline]
pub(super) fn fingerprint(position: u64) -> u32 {
    position as u32
}

/// A line, being filled or read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line(pub(super) [u8; LINE_BYTES]);

impl Line {
    pub(super) const EMPTY: Line = Line([0; LINE_BYTES]);

    /// Entries used.
    pub(super) fn used(&self) -> usize {
        usize::from(self.0[USED_AT])
    }

    /// Adds an entry behind the used ones; there must be room.
    pub(super) fn push(&mut self, fingerprint: u32, offset: u64) {
        let slot = self.used();
        self.0[4 * slot..4 * slot + 4].copy_from_slice(&fingerprint.to_le_bytes());
        let at = OFFSETS_AT + 5 * slot;
        self.0[at..at + 5].copy_from_slice(&offset.to_le_bytes()[..5]);
        self.0[USED_AT] += 1;
    }
}

/// The slots in `slots` of a line whose fingerprint is the given one, as bits. All are compared, whichever are asked for: written such that
/// this is two comparisons of four, and nothing to guess.
#[inline]
pub(super) fn matches(line: &[u8; LINE_BYTES], fingerprint: u32, slots: std::ops::Range<u64>) -> u32 {
    // The eighth word is no fingerprint: no slot has it.
    let mut equal = [0u8; 8];
    for (slot, equal) in equal.iter_mut().enumerate() {
        let here =
            u32::from_le_bytes([line[4 * slot], line[4 * slot + 1], line[4 * slot + 2], line[4 * slot + 3]]);
        *equal = if here == fingerprint { u8::MAX } else { 0 };
    }
    // A bit of each byte, the next one in the next, summed up in the highest.
    let bits = (u64::from_le_bytes(equal) & 0x8040_2010_0804_0201).wrapping_mul(0x0101_0101_0101_0101) >> 56;
    bits as u32 & ((1 << slots.end) - (1 << slots.start))
}

/// The offset in a slot of a line.
#[inline]
pub(super) fn offset(line: &[u8; LINE_BYTES], slot: u32) -> u64 {
    // Read with the three bytes before it, at once: the last slot's eight bytes end the line.
    let at = OFFSETS_AT - 3 + 5 * slot as usize;
    let bytes: [u8; 8] = line[at..at + 8].try_into().expect("eight bytes");
    u64::from_le_bytes(bytes) >> 24
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_slots_with_the_fingerprint_are_found_within_the_range() {
        let mut line = Line::EMPTY;
        for (slot, fingerprint) in [7u32, 9, 7, 7, 0, 1, 7].into_iter().enumerate() {
            line.push(fingerprint, OFFSET_LIMIT - 1 - slot as u64);
        }
        assert_eq!(matches(&line.0, 7, 0..7), 0b100_1101);
        assert_eq!(matches(&line.0, 7, 1..3), 0b000_0100);
        assert_eq!(matches(&line.0, 2, 0..7), 0);
        for slot in 0..7 {
            assert_eq!(offset(&line.0, slot), OFFSET_LIMIT - 1 - u64::from(slot));
        }
    }

    #[test]
    fn what_is_behind_the_fingerprints_is_none() {
        let mut line = Line::EMPTY;
        (0..7).for_each(|slot| line.push(slot, 0x0a_0b0c));
        let eighth = u32::from_le_bytes([line.0[28], line.0[29], line.0[30], line.0[31]]);
        assert_eq!(eighth, 0x0a0b_0c07, "entries used and the first offset");
        assert_eq!(matches(&line.0, eighth, 0..7), 0);
    }
}
