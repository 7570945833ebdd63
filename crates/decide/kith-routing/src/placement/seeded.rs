//! A seeded shuffle whose results never change. Placements are planned on one machine and checked on another one, possibly
//! by another release.

use kith_types::fmix64;

/// SplitMix64, based on the published finalizer of `kith-types`.
pub(super) struct SeededGenerator {
    state: u64,
}

impl SeededGenerator {
    /// Returns a generator. Streams with different numbers are independent.
    pub(super) fn new(seed: u64, stream: u64) -> Self {
        Self { state: fmix64(fmix64(seed.wrapping_add(1)) ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15)) }
    }

    /// Returns a uniform number in `0..bound`. The bias of the multiplication is below 2⁻⁴⁸ for the bounds used here.
    fn below(&mut self, bound: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        ((u128::from(fmix64(self.state)) * bound as u128) >> 64) as usize
    }

    /// Shuffles with the algorithm of Fisher and Yates.
    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            items.swap(end, self.below(end + 1));
        }
    }
}
