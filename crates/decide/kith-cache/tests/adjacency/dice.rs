//! Pseudo-random numbers that depend only on the seed.

use kith_types::fmix64;

#[derive(Clone, Debug)]
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        fmix64(self.0) % bound
    }

    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub fn one_of<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize].clone()
    }
}

/// Returns how many random cases a test runs.
pub fn runs(usual: u64) -> u64 {
    std::env::var("KITH_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(usual)
}
