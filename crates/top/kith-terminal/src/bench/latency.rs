//! The latencies of an open loop, and the lateness of the loop itself.

use std::time::Duration;

/// Counts in steps of a thousandth.
type Histogram = kith_routing::Latencies<1024>;

/// Latencies of answers, and the delays with which their requests were sent.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    latency: Histogram,
    lag: Histogram,
}

impl Latencies {
    /// Records an answer with its latency since it was due, and how late the request was sent.
    pub fn record(&mut self, latency: Duration, lag: Duration) {
        self.latency.record(latency);
        self.lag.record(lag);
    }

    /// Adds the counts of another one.
    pub fn add(&mut self, other: &Self) {
        self.latency.add(&other.latency);
        self.lag.add(&other.lag);
    }

    /// The number of answers.
    pub fn count(&self) -> u64 {
        self.latency.count()
    }

    /// The latency in microseconds that a share of the answers did not exceed. Shares are distinguished by thousandths.
    pub fn quantile_us(&self, share: f64) -> u64 {
        micros(&self.latency, (share * 1_000.0).round() as u64)
    }

    /// The greatest latency in microseconds.
    pub fn max_us(&self) -> u64 {
        micros(&self.latency, 1_000)
    }

    /// The median lateness of requests in microseconds. The latencies include it.
    pub fn lag_p50_us(&self) -> u64 {
        micros(&self.lag, 500)
    }
}

/// Upper bound of the given quantile, in thousandths (990 = p99), in microseconds; 0 if nothing was counted.
fn micros(histogram: &Histogram, share: u64) -> u64 {
    let reached = histogram.per_mille(share).unwrap_or_default();
    u64::try_from(reached.as_micros()).unwrap_or(u64::MAX)
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
