//! No more than so many bytes a second: the clock beside [`RateLimiter`].

use kith_routing::RateLimiter;
use kith_types::Timestamp;
use std::{
    num::NonZeroU64,
    time::{Duration, Instant},
};

/// The pace of one export.
pub struct Throttle {
    limiter: RateLimiter,
    started: Instant,
}

impl Throttle {
    /// `None`: as fast as it goes.
    pub fn new(bytes_per_second: Option<u64>) -> Self {
        let limiter = RateLimiter::new(bytes_per_second.and_then(NonZeroU64::new));
        Self { limiter, started: Instant::now() }
    }

    /// Takes so many bytes; how long to wait before the next.
    pub fn take(&mut self, bytes: u64) -> Duration {
        let now = Timestamp(self.started.elapsed());
        let turn = self.limiter.take(bytes, now);
        self.limiter.wait(turn, now)
    }
}
