//! A rate limiter in bytes per second for callers that take turns. It allows no bursts: unused rate is not saved up.
//!
//! It is the only throttle of Kith. The fetches, copies and repairs of a node share one; each round of a scrubber, each copy
//! of a rebalance and each export has its own. It has no clock and no queue of callers; shells wait.

use kith_types::Timestamp;
use std::{num::NonZeroU64, time::Duration};

/// Billionths of a byte, so that a rate times nanoseconds needs no rounding.
const PER_BYTE: u128 = 1_000_000_000;

/// A queue of bytes that moves at a rate. It is exact, because it uses only integers.
#[derive(Clone, Debug)]
pub struct RateLimiter {
    /// The rate; `None` for no limit.
    bytes_per_second: Option<NonZeroU64>,
    /// The end of the queue, in [`PER_BYTE`].
    taken: u128,
    /// The part of it that has passed by `as_of`, in the same unit. Invariant: at most `taken`.
    passed: u128,
    as_of: Timestamp,
}

/// A place in the queue of a [`RateLimiter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Turn(u128);

impl RateLimiter {
    /// Returns an empty queue; `None` sets no limit.
    pub fn new(bytes_per_second: Option<NonZeroU64>) -> Self {
        Self { bytes_per_second, taken: 0, passed: 0, as_of: Timestamp::ZERO }
    }

    /// The rate in bytes per second; `None` for no limit.
    pub fn bytes_per_second(&self) -> Option<NonZeroU64> {
        self.bytes_per_second
    }

    /// Changes the rate, also for callers that are waiting.
    pub fn set(&mut self, bytes_per_second: Option<NonZeroU64>, now: Timestamp) {
        self.settle(now);
        self.bytes_per_second = bytes_per_second;
    }

    /// Adds `bytes` bytes to the queue. They have passed once [`RateLimiter::wait`] is zero. A caller that waits before it
    /// uses them never exceeds the rate; one that waits afterwards is ahead by one turn.
    pub fn take(&mut self, bytes: u64, now: Timestamp) -> Turn {
        self.settle(now);
        self.taken = self.taken.saturating_add(u128::from(bytes) * PER_BYTE);
        Turn(self.taken)
    }

    /// Gives back a turn of `bytes` bytes that will not be used, so that the part that has not passed delays nobody.
    pub fn give_back(&mut self, turn: Turn, bytes: u64, now: Timestamp) {
        self.settle(now);
        let left = turn.0.saturating_sub(self.passed).min(u128::from(bytes) * PER_BYTE);
        self.passed += left;
    }

    /// Returns how long it takes, at the current rate, until a turn has passed; zero if it has. Time that goes back counts
    /// as unchanged.
    pub fn wait(&self, turn: Turn, now: Timestamp) -> Duration {
        let Some(rate) = self.bytes_per_second else { return Duration::ZERO };
        let left = turn.0.saturating_sub(self.passed_at(now));
        let nanos = left.div_ceil(u128::from(rate.get()));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Returns how long it takes, at the current rate, until everything that was taken has passed.
    pub fn backlog(&self, now: Timestamp) -> Duration {
        self.wait(Turn(self.taken), now)
    }

    fn settle(&mut self, now: Timestamp) {
        self.passed = self.passed_at(now);
        self.as_of = self.as_of.max(now);
    }

    fn passed_at(&self, now: Timestamp) -> u128 {
        let Some(rate) = self.bytes_per_second else { return self.taken };
        let moved = now.since(self.as_of).as_nanos().saturating_mul(u128::from(rate.get()));
        self.passed.saturating_add(moved).min(self.taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp(Duration::from_millis(millis))
    }

    #[test]
    fn a_pause_earns_nothing_and_turns_follow_each_other() {
        let mut line = RateLimiter::new(NonZeroU64::new(1_000));
        let first = line.take(500, at(0));
        let second = line.take(500, at(0));
        assert_eq!(line.wait(first, at(0)), Duration::from_millis(500));
        assert_eq!(line.wait(second, at(0)), Duration::from_secs(1));
        assert_eq!(line.wait(second, at(600)), Duration::from_millis(400));
        let late = line.take(2_000, at(60_000));
        assert_eq!(line.wait(late, at(60_000)), Duration::from_secs(2));
        assert_eq!(line.wait(first, at(60_000)), Duration::ZERO);
    }

    #[test]
    fn a_turn_that_is_given_back_delays_nobody() {
        let mut line = RateLimiter::new(NonZeroU64::new(1_000));
        let first = line.take(3_000, at(0));
        let second = line.take(500, at(0));
        line.give_back(first, 3_000, at(1_000));
        assert_eq!(line.wait(second, at(1_000)), Duration::from_millis(500));
        line.give_back(second, 500, at(1_000));
        line.give_back(first, 3_000, at(1_000));
        let third = line.take(100, at(1_000));
        assert_eq!(line.wait(third, at(1_000)), Duration::from_millis(100));
    }

    #[test]
    fn a_new_rate_holds_for_those_who_wait_already() {
        let mut line = RateLimiter::new(NonZeroU64::new(1));
        let turn = line.take(1_000, at(0));
        assert_eq!(line.wait(turn, at(0)), Duration::from_secs(1_000));
        line.set(NonZeroU64::new(100), at(500_000));
        assert_eq!(line.wait(turn, at(500_000)), Duration::from_secs(5), "half of it has passed");
        line.set(None, at(500_000));
        assert_eq!(line.wait(turn, at(500_000)), Duration::ZERO);
        line.set(NonZeroU64::new(1), at(500_000));
        assert_eq!(line.wait(turn, at(500_000)), Duration::ZERO, "what has passed has passed");
    }
}
