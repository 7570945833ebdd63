//! The part of a request's latency that does not depend on its size: network, scheduling, garbage collection, or a log
//! transfer that evicts the file cache (Moolle §I-A, §IV-B1, figure 5).
//!
//! Up to the 99th percentile, the distribution is lognormal through the paper's median and p99. Above that, it is a Pareto
//! tail that is cut off at the paper's maximum. The paper gives no fourth number for the index of the tail. We choose it so
//! that the largest of [`PAPER_SAMPLES`] requests is about the paper's maximum. `docs/figures.md` shows how much the results
//! depend on this choice.
//!
//! Draws are independent of each other, while real stalls last for some time and affect every request to a node.

use rand::{Rng, RngExt};
use std::time::Duration;

/// We assume that the paper's maximum is the largest of this many requests. The paper's figure shows one test run of a
/// service that answers hundreds of thousands of queries per second.
pub const PAPER_SAMPLES: f64 = 100_000.0;

/// The quantile at which the tail begins.
const TAIL_FROM: f64 = 0.99;

/// A distribution of latencies, given by three quantiles and the index of the tail.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TailLatency {
    /// The median, in milliseconds.
    pub median_ms: f64,
    /// The 99th percentile, in milliseconds.
    pub p99_ms: f64,
    /// The maximum, in milliseconds.
    pub max_ms: f64,
    /// The index of the Pareto tail. A larger index means a lighter tail.
    pub tail_index: f64,
}

impl TailLatency {
    /// Returns the paper's distribution: median under 2 ms, p99 21 ms, maximum 323 ms (Moolle §IV-B1).
    pub fn of_the_paper() -> Self {
        Self::through(1.5, 21.0, 323.0, PAPER_SAMPLES)
    }

    /// Returns the distribution whose largest value among `samples` draws is about `max_ms`.
    pub fn through(median_ms: f64, p99_ms: f64, max_ms: f64, samples: f64) -> Self {
        let tail_index = ((1.0 - TAIL_FROM) * samples).ln() / (max_ms / p99_ms).ln();
        Self { median_ms, p99_ms, max_ms, tail_index }
    }

    /// Returns the latency in milliseconds that a share `u` of requests does not exceed.
    pub fn quantile_ms(&self, u: f64) -> f64 {
        if u < TAIL_FROM {
            let spread = (self.p99_ms / self.median_ms).ln() / normal_quantile(TAIL_FROM);
            return self.median_ms * (spread * normal_quantile(u.max(1e-9))).exp();
        }
        let left = (1.0 - u.min(1.0)) / (1.0 - TAIL_FROM);
        let at_max = (self.max_ms / self.p99_ms).powf(-self.tail_index);
        self.p99_ms * (at_max + left * (1.0 - at_max)).powf(-1.0 / self.tail_index)
    }

    /// Draws one latency.
    pub fn draw(&self, rng: &mut impl Rng) -> Duration {
        Duration::from_secs_f64(self.quantile_ms(rng.random::<f64>()) / 1_000.0)
    }
}

/// The probability of each of the two tails. [`normal_quantile`] uses other coefficients there.
const TAIL: f64 = 0.024_25;
/// The coefficients of [`normal_quantile`] in the centre, highest power first.
const CENTRE_NUMERATOR: [f64; 6] = [
    -39.696_830_286_653_76,
    220.946_098_424_520_5,
    -275.928_510_446_968_7,
    138.357_751_867_269,
    -30.664_798_066_147_16,
    2.506_628_277_459_239,
];
const CENTRE_DENOMINATOR: [f64; 6] = [
    -54.476_098_798_224_06,
    161.585_836_858_040_9,
    -155.698_979_859_886_6,
    66.801_311_887_719_72,
    -13.280_681_552_885_72,
    1.0,
];
/// The coefficients of [`normal_quantile`] in the tails, highest power first.
const TAIL_NUMERATOR: [f64; 6] = [
    -0.007_784_894_002_430_293,
    -0.322_396_458_041_136_5,
    -2.400_758_277_161_838,
    -2.549_732_539_343_734,
    4.374_664_141_464_968,
    2.938_163_982_698_783,
];
const TAIL_DENOMINATOR: [f64; 5] =
    [0.007_784_695_709_041_462, 0.322_467_129_070_039_8, 2.445_134_137_142_996, 3.754_408_661_907_416, 1.0];

/// Returns the value that a standard normal variable does not exceed with probability `p`, to nine digits (P. J. Acklam's
/// rational approximation).
pub fn normal_quantile(p: f64) -> f64 {
    let horner = |coefficients: &[f64], x: f64| coefficients.iter().fold(0.0, |sum, c| sum * x + c);
    if p < TAIL {
        let q = (-2.0 * p.ln()).sqrt();
        horner(&TAIL_NUMERATOR, q) / horner(&TAIL_DENOMINATOR, q)
    } else if 1.0 - TAIL < p {
        -normal_quantile(1.0 - p)
    } else {
        let q = p - 0.5;
        q * horner(&CENTRE_NUMERATOR, q * q) / horner(&CENTRE_DENOMINATOR, q * q)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    #[test]
    fn the_quantiles_are_the_papers() {
        let latency = TailLatency::of_the_paper();
        assert!(latency.quantile_ms(0.5) < 2.0);
        assert!((latency.quantile_ms(0.99) - 21.0).abs() < 0.01);
        assert!((latency.quantile_ms(0.989_999) - 21.0).abs() < 0.01, "the body meets the tail");
        assert!((latency.quantile_ms(1.0) - 323.0).abs() < 0.01);
    }

    #[test]
    fn what_is_drawn_has_these_quantiles() {
        let latency = TailLatency::of_the_paper();
        let mut rng = StdRng::seed_from_u64(11);
        let mut drawn: Vec<f64> =
            (0..100_000).map(|_| latency.draw(&mut rng).as_secs_f64() * 1_000.0).collect();
        drawn.sort_by(f64::total_cmp);
        assert!((1.4..1.6).contains(&drawn[50_000]), "median {}", drawn[50_000]);
        assert!((19.5..22.5).contains(&drawn[99_000]), "p99 {}", drawn[99_000]);
        assert!((150.0..=323.0).contains(&drawn[99_999]), "max {}", drawn[99_999]);
    }

    #[test]
    fn normal_quantiles_are_those_of_the_tables() {
        for (p, z) in
            [(0.5, 0.0), (0.841_344_746, 1.0), (0.975, 1.959_964), (0.99, 2.326_348), (0.001, -3.090_232)]
        {
            assert!((normal_quantile(p) - z).abs() < 1e-5, "{p}");
        }
    }
}
