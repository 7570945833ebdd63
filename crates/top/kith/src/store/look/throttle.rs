//! A throttle in bytes per second: [`RateLimiter`] with a clock.

use kith_routing::RateLimiter;
use kith_types::Timestamp;
use std::{
    num::NonZeroU64,
    time::{Duration, Instant},
};

/// The throttle of one export.
pub struct Throttle {
    limiter: RateLimiter,
    started: Instant,
}

impl Throttle {
    /// Returns a throttle; `None` does not limit the rate.
    pub fn new(bytes_per_second: Option<u64>) -> Self {
        let limiter = RateLimiter::new(bytes_per_second.and_then(NonZeroU64::new));
        Self { limiter, started: Instant::now() }
    }

    /// Takes `bytes` bytes.
    pub fn take(&mut self, bytes: u64) {
        self.limiter.take(bytes, self.now());
    }

    /// Returns how long to wait before the next bytes.
    pub fn backlog(&self) -> Duration {
        self.limiter.backlog(self.now())
    }

    fn now(&self) -> Timestamp {
        Timestamp(self.started.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_is_waited_for_however_little_it_was() {
        let mut throttle = Throttle::new(Some(1));
        assert_eq!(throttle.backlog(), Duration::ZERO, "nothing went before");
        for _ in 0..10 {
            throttle.take(1_000);
        }
        assert!(Duration::from_secs(9_000) < throttle.backlog());
    }
}
