//! Latencies of an open loop, and how late it was itself.

use hdrhistogram::Histogram;
use std::time::Duration;

/// No latency is counted above this: queries have deadlines.
const LATENCY_US_MAX: u64 = 120_000_000;

/// Microseconds, to three digits.
#[derive(Clone, Debug)]
pub struct Latencies {
    latency: Histogram<u64>,
    lag: Histogram<u64>,
}

impl Default for Latencies {
    fn default() -> Self {
        let histogram = || Histogram::new_with_max(LATENCY_US_MAX, 3).expect("the bounds are in range");
        Self { latency: histogram(), lag: histogram() }
    }
}

impl Latencies {
    /// An answer came so long after it was due; it was asked for so late.
    pub fn record(&mut self, latency: Duration, lag: Duration) {
        self.latency.saturating_record(micros(latency));
        self.lag.saturating_record(micros(lag));
    }

    /// Takes in what another one counted.
    pub fn add(&mut self, other: &Self) {
        self.latency.add(&other.latency).expect("all histograms have the same bounds");
        self.lag.add(&other.lag).expect("all histograms have the same bounds");
    }

    /// How many answers.
    pub fn count(&self) -> u64 {
        self.latency.len()
    }

    /// Latency below which a share of the answers came.
    pub fn quantile_us(&self, share: f64) -> u64 {
        self.latency.value_at_quantile(share)
    }

    /// The longest.
    pub fn max_us(&self) -> u64 {
        self.latency.max()
    }

    /// How late half of them were sent: part of the latencies.
    pub fn lag_p50_us(&self) -> u64 {
        self.lag.value_at_quantile(0.5)
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_counted_is_counted_together() {
        let (ms, mut all) = (Duration::from_millis, Latencies::default());
        let mut slow = Latencies::default();
        (1..=9).for_each(|_| all.record(ms(1), ms(0)));
        slow.record(ms(100), ms(40));
        all.add(&slow);
        assert_eq!((all.count(), all.quantile_us(0.5)), (10, 1_000));
        assert!((99_000..=101_000).contains(&all.quantile_us(0.99)) && all.lag_p50_us() <= 1);
        assert_eq!(all.max_us(), slow.max_us());
    }
}
