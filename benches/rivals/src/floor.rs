//! The least work of a read of proven values: the bytes of each value from memory, once, and their checksum. No key is
//! compared, nothing is looked up: where each value lies is known.

use std::hint::black_box;

/// The values, end to end, in the order of their numbers.
#[derive(Debug)]
pub struct Floor {
    values: Vec<u8>,
    value_bytes: usize,
}

/// The distances, in values, at which the first line of a value and its page are prefetched before the value is used,
/// and at which all its lines are. They are the fastest of those that were tried.
const PAGES_AHEAD: usize = 32;
const LINES_AHEAD: usize = 4;
const CACHE_LINE_BYTES: usize = 64;

impl Floor {
    /// The values of the numbers from 0 on, all of `value_bytes`.
    pub fn new<'v>(value_bytes: usize, values: impl Iterator<Item = &'v [u8]>) -> Self {
        let values: Vec<u8> = values.flatten().copied().collect();
        Self { values, value_bytes }
    }

    /// Returns the wrapping sum of the values' first words, after a checksum of each value.
    pub fn touch(&self, keys: &[[u8; 8]]) -> u64 {
        let mut sum = 0u64;
        self.each(keys, |value| {
            sum = sum.wrapping_add(u64::from_le_bytes(*value.first_chunk().expect("a word")))
        });
        sum
    }

    /// Copies the values to the end of `out`, and computes the checksum of each.
    pub fn copy(&self, keys: &[[u8; 8]], out: &mut Vec<u8>) {
        self.each(keys, |value| out.extend_from_slice(value));
    }

    fn each(&self, keys: &[[u8; 8]], mut each: impl FnMut(&[u8])) {
        for (index, key) in keys.iter().enumerate() {
            if let Some(ahead) = keys.get(index + PAGES_AHEAD) {
                prefetch(&self.value(ahead)[..1]);
            }
            if let Some(ahead) = keys.get(index + LINES_AHEAD) {
                prefetch(self.value(ahead));
            }
            let value = self.value(key);
            each(value);
            black_box(crc32c::crc32c(value));
        }
    }

    fn value(&self, key: &[u8; 8]) -> &[u8] {
        &self.values[u64::from_le_bytes(*key) as usize * self.value_bytes..][..self.value_bytes]
    }
}

fn prefetch(value: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for at in (0..value.len()).step_by(CACHE_LINE_BYTES) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(value.as_ptr().add(at).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
