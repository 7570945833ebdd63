//! How a node cuts a batch read whose reply may come in parts.

use std::ops::Range;
use std::time::Duration;

/// Keys of the first slice: few enough to be read where the request arrived, before another thread could take up more.
pub const FIRST_KEYS: usize = 64;
/// What a slice is meant to weigh: a frame's worth, which a link of 10 Gbit/s carries in 0.1 ms.
const SLICE_BYTES: usize = 128 << 10;
/// Fewer are not worth a message; values beyond 8 KiB make larger ones.
const KEYS_MIN: usize = 16;
/// More would let short values wait for many others.
const KEYS_MAX: usize = 1_024;
/// A slice that took longer is followed by one of half as many keys: what waits for a disk is sent as it comes.
const SLICE_TIME: Duration = Duration::from_millis(2);

/// Cuts the keys of one request, in their order, into slices of about equal weight.
#[derive(Clone, Debug)]
pub struct SliceSizes {
    keys: usize,
    next: usize,
    size: usize,
    /// Bytes of values so far.
    bytes: usize,
}

impl SliceSizes {
    /// Of a request for so many keys.
    pub fn new(keys: usize) -> Self {
        Self { keys, next: 0, size: FIRST_KEYS, bytes: 0 }
    }

    /// The places of the next slice's keys; `None` after the last. A request without keys has one slice.
    pub fn next_slice(&mut self) -> Option<Range<usize>> {
        if self.keys <= self.next && 0 < self.next {
            return None;
        }
        let start = self.next;
        let end = self.keys.min(start + self.size);
        // So that an empty request ends too.
        self.next = end.max(1);
        Some(start..end)
    }

    /// Whether the last slice was the last.
    pub fn is_over(&self) -> bool {
        self.keys <= self.next
    }

    /// The last slice had so many bytes of values, and took so long.
    pub fn weighed(&mut self, bytes: usize, took: Duration) {
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
        let mut slices = SliceSizes::new(keys);
        let mut sizes = Vec::new();
        while let Some(slice) = slices.next_slice() {
            sizes.push(slice.len());
            slices.weighed(slice.len() * bytes_per_key, took);
        }
        sizes
    }

    #[test]
    fn slices_weigh_a_frame_after_the_first() {
        let quick = Duration::from_micros(100);
        assert_eq!(sizes(500, 1_024, quick), [64, 128, 128, 128, 52]);
        assert_eq!(sizes(5_000, 20, quick), [64, 256, 1_024, 1_024, 1_024, 1_024, 584], "small values");
        assert_eq!(sizes(100, 1 << 20, quick), [64, 16, 16, 4], "large values");
        assert_eq!(sizes(10, 0, quick), [10]);
        assert_eq!(sizes(0, 0, quick), [0], "a request without keys is answered too");
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
                next = slice.end;
                prop_assert_eq!(slices.is_over(), next == keys);
                slices.weighed(bytes, Duration::from_micros(micros));
            }
            prop_assert_eq!(next, keys);
        }
    }
}
