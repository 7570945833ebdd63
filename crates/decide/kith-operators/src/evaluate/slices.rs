//! Divides a batch read on a node into slices if the reply may come in parts.

use std::ops::Range;
use std::time::Duration;

/// The number of keys of the first slice. It is small enough to be read by the thread that received the request.
const FIRST_KEYS: usize = 64;
/// The intended size of a slice's values. With the rest of the message it fills a frame, which a link of 10 Gbit/s carries
/// in 0.1 ms.
const SLICE_BYTES: usize = 124 << 10;
/// The fewest keys of a slice. Fewer are not worth a message. Values beyond 8 KiB make larger slices, up to
/// [`SliceSizes::ENOUGH`].
const KEYS_MIN: usize = 16;
/// The most keys of a slice. With more, short values would wait for many others.
const KEYS_MAX: usize = 1_024;
/// A slice that took longer is followed by one with half as many keys, so that values that come from a disk are sent as
/// they are read.
const SLICE_TIME: Duration = Duration::from_millis(2);

/// Divides the keys of one request, in their order, into slices of about equal size.
#[derive(Clone, Debug)]
pub struct SliceSizes {
    keys: usize,
    next: usize,
    size: usize,
    /// The size of the values so far in bytes.
    bytes: usize,
    /// Whether a slice was read. A request without keys has one empty slice.
    is_begun: bool,
}

impl SliceSizes {
    /// The size of values that ends a slice before its last key, because the lengths of values are known only when they are
    /// read.
    pub const ENOUGH: usize = 2 * SLICE_BYTES;

    /// The slices of a request for this many keys.
    pub fn new(keys: usize) -> Self {
        Self { keys, next: 0, size: FIRST_KEYS, bytes: 0, is_begun: false }
    }

    /// The same for a receiver that does not need the first slice sooner: it has the size of the others if values have a
    /// kibibyte.
    pub fn even(keys: usize) -> Self {
        Self { size: SLICE_BYTES >> 10, ..Self::new(keys) }
    }

    /// The range of the next slice's keys; `None` after the last.
    pub fn next_slice(&self) -> Option<Range<usize>> {
        (!self.is_over()).then(|| self.next..self.keys.min(self.next + self.size))
    }

    /// Whether all keys are read.
    pub fn is_over(&self) -> bool {
        self.is_begun && self.keys <= self.next
    }

    /// Notes that the first `keys` of the slice were read, with this many bytes of values and in this time. These are all
    /// keys of the slice, unless [`Self::ENOUGH`] was reached.
    pub fn read(&mut self, keys: usize, bytes: usize, took: Duration) {
        self.is_begun = true;
        self.next += keys;
        self.bytes += bytes;
        let per_key = (self.bytes / self.next.max(1)).max(1);
        let by_weight = SLICE_BYTES / per_key;
        let by_time = if SLICE_TIME < took { self.size / 2 } else { self.size.saturating_mul(4) };
        self.size = by_weight.min(by_time).clamp(KEYS_MIN, KEYS_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sizes(keys: usize, bytes_per_key: usize, took: Duration) -> Vec<usize> {
        sizes_of(SliceSizes::new(keys), bytes_per_key, took)
    }

    fn sizes_of(mut slices: SliceSizes, bytes_per_key: usize, took: Duration) -> Vec<usize> {
        let mut sizes = Vec::new();
        while let Some(slice) = slices.next_slice() {
            let enough = SliceSizes::ENOUGH.div_ceil(bytes_per_key.max(1));
            let read = slice.len().min(enough);
            sizes.push(read);
            slices.read(read, read * bytes_per_key, took);
        }
        sizes
    }

    #[test]
    fn slices_weigh_a_frame_after_the_first() {
        let quick = Duration::from_micros(100);
        assert_eq!(sizes(500, 1_024, quick), [64, 124, 124, 124, 64]);
        assert_eq!(sizes(5_000, 20, quick), [64, 256, 1_024, 1_024, 1_024, 1_024, 584], "small values");
        assert_eq!(sizes(60, 20 << 10, quick), [13, 13, 13, 13, 8], "large values");
        assert_eq!(sizes(3, 1 << 20, quick), [1, 1, 1], "values beyond any slice");
        assert_eq!(sizes(10, 0, quick), [10]);
        assert_eq!(sizes(0, 0, quick), [0], "a request without keys is answered too");
        assert_eq!(sizes_of(SliceSizes::even(500), 1_024, quick), [124, 124, 124, 124, 4]);
        assert_eq!(sizes_of(SliceSizes::even(100), 1_024, quick), [100]);
    }

    #[test]
    fn what_takes_long_is_cut_smaller() {
        assert_eq!(sizes(150, 100, Duration::from_millis(3)), [64, 32, 16, 16, 16, 6]);
    }

    proptest! {
        #[test]
        fn every_key_is_in_one_slice(keys in 0..20_000_usize, weights in prop::collection::vec((0..200_000_usize, 0..5_000_u64), 1..40)) {
            let mut slices = SliceSizes::new(keys);
            let mut next = 0;
            for (bytes, micros) in weights.into_iter().cycle() {
                let Some(slice) = slices.next_slice() else { break };
                prop_assert!(slice.start == next && (slice.len() <= KEYS_MAX));
                prop_assert!(!slice.is_empty() || keys == 0);
                let read = slice.len().min(1 + bytes % 100);
                next += read;
                slices.read(read, bytes, Duration::from_micros(micros));
                prop_assert_eq!(slices.is_over(), next == keys);
            }
            prop_assert_eq!(next, keys);
        }
    }
}
