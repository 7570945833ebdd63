//! The directory of an index: for each prefix of a position, the first entry at or after it.
//!
//! Prefixes are counted from the set's first position and are `2^shift` wide, so
//! that a set that holds a part of the hash range uses its whole directory.

/// Entries per prefix that the directory aims for, at least: with twice that at
/// most, a bucket is one or two lines of seven and the directory below 1 byte per key.
const ENTRIES_PER_PREFIX: u64 = 4;

/// Prefixes allowed however few the entries, so that chance among the first few does not settle the width.
const PREFIXES_MIN: u64 = 64;

/// A directory growing with its sorted input. How many entries will come need not be known:
/// when there are too many prefixes for the entries so far, pairs of them become one.
#[derive(Debug, Default)]
pub(super) struct DirectoryBuilder {
    base: u64,
    shift: u32,
    /// Number of the first entry of each prefix so far.
    starts: Vec<u32>,
    entries: u64,
}

/// What a directory says beside its table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DirectoryShape {
    /// The first position.
    pub(super) base: u64,
    /// Prefix width is `2^shift`; below 64.
    pub(super) shift: u32,
    /// Prefixes; the table has one more entry, the end.
    pub(super) prefixes: u64,
}

impl DirectoryShape {
    /// The prefix of a position; `None` if no entry has it.
    #[inline]
    pub(super) fn prefix_of(&self, position: u64) -> Option<u64> {
        let prefix = position.checked_sub(self.base)? >> self.shift;
        (prefix < self.prefixes).then_some(prefix)
    }
}

impl DirectoryBuilder {
    /// Adds an entry: not below the one before.
    pub(super) fn push(&mut self, position: u64) {
        if self.entries == 0 {
            self.base = position;
        }
        let limit = PREFIXES_MIN.max(self.entries / ENTRIES_PER_PREFIX);
        let distance = position - self.base;
        while distance >> self.shift >= limit {
            self.shift += 1;
            self.starts = self.starts.iter().step_by(2).copied().collect();
        }
        let prefix = (distance >> self.shift) as usize;
        if self.starts.len() <= prefix {
            self.starts.resize(prefix + 1, self.entries as u32);
        }
        self.entries += 1;
    }

    /// The finished table, its last entry being the number of entries.
    pub(super) fn finish(mut self) -> (DirectoryShape, Vec<u32>) {
        let shape = DirectoryShape { base: self.base, shift: self.shift, prefixes: self.starts.len() as u64 };
        self.starts.push(self.entries as u32);
        (shape, self.starts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_entry_lies_in_the_bucket_of_its_prefix(mut positions in prop::collection::vec(any::<u64>(), 0..3_000), narrow in 0u32..64) {
            positions.iter_mut().for_each(|position| *position >>= narrow);
            positions.sort_unstable();
            let mut builder = DirectoryBuilder::default();
            positions.iter().for_each(|&position| builder.push(position));
            let (shape, table) = builder.finish();
            prop_assert_eq!(table.len() as u64, shape.prefixes + 1);
            prop_assert!(shape.prefixes <= PREFIXES_MIN.max(positions.len() as u64 / ENTRIES_PER_PREFIX));
            for (index, &position) in positions.iter().enumerate() {
                let prefix = shape.prefix_of(position).unwrap() as usize;
                prop_assert!((table[prefix]..table[prefix + 1]).contains(&(index as u32)));
            }
        }
    }

    #[test]
    fn uniform_positions_give_buckets_of_about_six() {
        let mut builder = DirectoryBuilder::default();
        let count = 100_000u64;
        (0..count).for_each(|index| builder.push(index * (u64::MAX / count)));
        let (shape, _) = builder.finish();
        let per_prefix = count as f64 / shape.prefixes as f64;
        assert!((4.0..=8.1).contains(&per_prefix), "{per_prefix} entries per prefix");
    }
}
