//! Draws the keys to read: with equal probabilities, or a few much more often than the rest.

use rand::{Rng, RngExt};
use rand_distr::{Distribution as _, Zipf};
use serde::Serialize;
use strum::IntoStaticStr;

/// The exponent of YCSB, which the paper's evaluation used (Voldemort §6.2).
pub const EXPONENT_DEFAULT: f64 = 0.99;

/// The distribution of keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, Serialize, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "lowercase")]
pub enum Popularity {
    /// Each as likely as any other
    #[default]
    Uniform,
    /// The key of rank r with a probability proportional to 1 / r^exponent, as visitors of a site read
    Zipfian,
}

impl Popularity {
    /// The name in output.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Draws indices below a count.
#[derive(Clone, Debug)]
pub struct Draw {
    count: u64,
    zipf: Option<Zipf<f64>>,
    /// Has no common divisor with the count, so that multiplying by it maps every rank to a different index.
    stride: u64,
}

impl Draw {
    /// Creates the distribution; `None` without keys, or if the exponent is negative or not a number.
    pub fn new(count: u64, popularity: Popularity, exponent: f64) -> Option<Self> {
        if count == 0 || !exponent.is_finite() {
            return None;
        }
        let zipf = match popularity {
            Popularity::Uniform => None,
            Popularity::Zipfian => Some(Zipf::new(count as f64, exponent).ok()?),
        };
        // The golden section of the count places neighbouring ranks farthest apart.
        let golden = (count as f64 * 0.618_033_988_749_894_9) as u64;
        let stride = (golden.max(1)..).find(|stride| greatest_common_divisor(*stride, count) == 1)?;
        Some(Self { count, zipf, stride })
    }

    /// Draws an index. The most popular indices are not adjacent: popularity is independent of the order of keys.
    pub fn next(&self, rng: &mut impl Rng) -> u64 {
        match &self.zipf {
            None => rng.random_range(0..self.count),
            Some(zipf) => {
                let rank = (zipf.sample(rng) as u64).clamp(1, self.count);
                (u128::from(rank) * u128::from(self.stride) % u128::from(self.count)) as u64
            }
        }
    }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{SeedableRng, rngs::StdRng};

    fn counts(popularity: Popularity, exponent: f64, keys: u64, draws: u32) -> Vec<u32> {
        let draw = Draw::new(keys, popularity, exponent).unwrap();
        let mut rng = StdRng::seed_from_u64(1);
        let mut counts = vec![0; keys as usize];
        (0..draws).for_each(|_| counts[draw.next(&mut rng) as usize] += 1);
        counts
    }

    #[test]
    fn uniform_draws_leave_no_key_out() {
        let counts = counts(Popularity::Uniform, 0.0, 100, 100_000);
        assert!(counts.iter().all(|count| (800..1_200).contains(count)), "{counts:?}");
    }

    #[test]
    fn popularity_falls_as_the_exponent_says_and_every_rank_has_its_key() {
        for (keys, exponent) in [(1_000u64, 0.99), (999, 1.2), (1_024, 0.5)] {
            let mut counts = counts(Popularity::Zipfian, exponent, keys, 400_000);
            assert!(200 < counts.iter().filter(|count| **count != 0).count());
            counts.sort_unstable_by(|a, b| b.cmp(a));
            let sum: f64 = (1..=keys).map(|rank| (rank as f64).powf(-exponent)).sum();
            for rank in [1usize, 2, 10] {
                let expected = 400_000.0 * (rank as f64).powf(-exponent) / sum;
                let got = f64::from(counts[rank - 1]);
                assert!((0.85..1.15).contains(&(got / expected)), "rank {rank}: {got}, not {expected}");
            }
        }
    }

    #[test]
    fn ranks_beside_each_other_have_keys_far_apart() {
        let draw = Draw::new(1_000_000, Popularity::Zipfian, 0.99).unwrap();
        let places: std::collections::BTreeSet<u64> =
            (1..=1_000_000).map(|rank| rank * draw.stride % 1_000_000).collect();
        assert_eq!(places.len(), 1_000_000);
        assert!((100_000..900_000).contains(&draw.stride));
    }

    #[test]
    fn what_cannot_be_drawn_from_is_refused() {
        assert!(Draw::new(0, Popularity::Uniform, 0.99).is_none());
        assert!(Draw::new(5, Popularity::Zipfian, -1.0).is_none());
        assert!(Draw::new(5, Popularity::Zipfian, f64::NAN).is_none());
        let draw = Draw::new(1, Popularity::Zipfian, 0.99).unwrap();
        assert_eq!(draw.next(&mut StdRng::seed_from_u64(1)), 0);
    }
}
