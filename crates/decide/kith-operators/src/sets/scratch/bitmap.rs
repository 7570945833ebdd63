//! A reusable bitmap over a window of ids. It is the fastest union as long as the window fits into a core's cache. Only the
//! words between the least and the greatest touched one are read and cleared.

/// The number of ids that a window spans: 4 Mi bits are 512 KiB, the size of a core's L2 cache.
pub(super) const SPAN: u64 = 1 << 22;

const WORDS: usize = (SPAN / 64) as usize;

/// A set of ids in `base..base + SPAN`.
#[derive(Debug, Default)]
pub(super) struct Bitmap {
    /// Empty until first used, then [`WORDS`] long. Invariant: zero outside `low..high`.
    words: Vec<u64>,
    low: usize,
    high: usize,
}

impl Bitmap {
    /// Adds sorted `ids`, each in `base..base + SPAN`.
    pub(super) fn insert(&mut self, base: u64, ids: &[u64]) {
        if let (Some(&first), Some(&last)) = (ids.first(), ids.last()) {
            self.insert_within(base, first, last, ids);
        }
    }

    /// Adds `ids` in any order, each in `first..=last`, which lie in `base..base + SPAN`.
    pub(super) fn insert_within(&mut self, base: u64, first: u64, last: u64, ids: &[u64]) {
        debug_assert!(base <= first && last - base < SPAN, "ids lie outside the window");
        if self.words.is_empty() {
            self.words = vec![0; WORDS];
        }
        if self.high == 0 {
            self.low = WORDS;
        }
        self.low = self.low.min(((first - base) / 64) as usize);
        self.high = self.high.max(((last - base) / 64) as usize + 1);
        let words: &mut [u64; WORDS] =
            self.words.as_mut_slice().try_into().expect("the vector was made this long");
        for &id in ids {
            let offset = id - base;
            // The mask changes nothing for ids of the window, but avoids the bounds check.
            words[(offset / 64) as usize % WORDS] |= 1 << (offset % 64);
        }
    }

    /// Appends the ids, ascending, and empties the bitmap.
    pub(super) fn drain_into(&mut self, base: u64, out: &mut Vec<u64>) {
        out.reserve(self.count() as usize);
        for index in self.low..self.high {
            let mut word = std::mem::take(&mut self.words[index]);
            let first = base + index as u64 * 64;
            while word != 0 {
                out.push(first + u64::from(word.trailing_zeros()));
                word &= word - 1;
            }
        }
        (self.low, self.high) = (0, 0);
    }

    /// The number of ids in the bitmap.
    pub(super) fn count(&self) -> u64 {
        self.words[self.low..self.high].iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Empties the bitmap.
    pub(super) fn clear(&mut self) {
        self.words[self.low..self.high].fill(0);
        (self.low, self.high) = (0, 0);
    }
}
