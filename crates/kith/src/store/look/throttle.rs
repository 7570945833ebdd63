//! No more than so many bytes a second, without bursts.

use std::time::{Duration, Instant};

/// Waits so long that what has passed never exceeds the rate.
pub struct Throttle {
    bytes_per_second: Option<u64>,
    /// From here on the next bytes may pass. What was not used is not saved up.
    free_at: Instant,
}

impl Throttle {
    /// `None`: as fast as it goes.
    pub fn new(bytes_per_second: Option<u64>) -> Self {
        Self { bytes_per_second, free_at: Instant::now() }
    }

    /// Takes so many bytes; how long to wait before the next.
    pub fn take(&mut self, bytes: u64, now: Instant) -> Duration {
        let Some(rate) = self.bytes_per_second else { return Duration::ZERO };
        let cost = Duration::from_secs_f64(bytes as f64 / rate.max(1) as f64);
        self.free_at = self.free_at.max(now) + cost;
        self.free_at.saturating_duration_since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_never_exceeds_the_rate_and_pauses_are_not_saved_up() {
        let start = Instant::now();
        let mut throttle = Throttle { bytes_per_second: Some(1_000), free_at: start };
        assert_eq!(throttle.take(500, start), Duration::from_millis(500));
        assert_eq!(throttle.take(500, start), Duration::from_secs(1));
        let late = start + Duration::from_secs(60);
        assert_eq!(throttle.take(2_000, late), Duration::from_secs(2));
        assert_eq!(Throttle::new(None).take(u64::MAX, late), Duration::ZERO);
    }
}
