//! A queue of what was taken from a quota and has not been paid off yet, in two classes: reads admitted here, and reads
//! admitted by routers.
//!
//! A token bucket with the tokens of one second is equivalent to a queue of at most one second: what is in the queue is
//! missing from the bucket. While both classes have entries, the class of routers moves at 23 parts in 24 of the rate and
//! the other class at one part. So reads that are never refused do not starve those that may be. One class does not block
//! the other.

use super::BURST;
use kith_types::Timestamp;
use std::{num::NonZeroU64, time::Duration};

/// The units of one key or byte: billionths of a twenty-fourth. A rate times nanoseconds, or a share of it, is a whole
/// number of units.
const PER_ONE: u128 = SHARES * 1_000_000_000;
/// The number of parts that the rate is divided into.
const SHARES: u128 = 24;
/// The number of parts that belong to reads admitted here, whatever routers admit.
const OWN_SHARES: u128 = 1;
const ROUTED_SHARES: u128 = SHARES - OWN_SHARES;
/// The number of seconds of reads admitted by routers that are kept. Routers choose nodes at random, so that one node
/// may get several reads in a row.
const ROUTED_MAX: u128 = 3;

/// A queue of two classes that moves at a rate. It is exact, because it uses only integers.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// The rate; `None` for no limit.
    rate: Option<NonZeroU64>,
    /// The reads admitted here, in units of [`PER_ONE`].
    own: u128,
    /// The reads admitted by routers, at most [`ROUTED_MAX`] seconds' worth.
    routed: u128,
    as_of: Timestamp,
}

impl Line {
    /// Returns an empty queue.
    pub fn new(rate: Option<NonZeroU64>) -> Self {
        Self { rate, own: 0, routed: 0, as_of: Timestamp::ZERO }
    }

    pub fn rate(&self) -> Option<NonZeroU64> {
        self.rate
    }

    /// Changes the rate, also for what is already queued.
    pub fn set(&mut self, rate: Option<NonZeroU64>, now: Timestamp) {
        self.settle(now);
        self.rate = rate;
    }

    /// Adds a read admitted here.
    pub fn take(&mut self, count: u64, now: Timestamp) {
        self.settle(now);
        if self.rate.is_some() {
            self.own = self.own.saturating_add(u128::from(count) * PER_ONE);
        }
    }

    /// Adds a read admitted by a router. More than [`ROUTED_MAX`] seconds' worth is not kept, because it would slow others
    /// down long after it was read.
    pub fn take_routed(&mut self, count: u64, now: Timestamp) {
        self.settle(now);
        if let Some(rate) = self.rate {
            let most = u128::from(rate.get()) * PER_ONE * ROUTED_MAX;
            self.routed = self.routed.saturating_add(u128::from(count) * PER_ONE).min(most);
        }
    }

    /// Returns how long until there is room for `count` in addition to what is queued and `reserved`, if nothing else is
    /// taken meanwhile. Zero if there is room now. A count larger than the bucket has room if the queue is empty.
    pub fn wait(&self, count: u64, reserved: u64, now: Timestamp) -> Duration {
        let Some(rate) = self.rate else { return Duration::ZERO };
        let rate = u128::from(rate.get());
        let (own, routed) = self.at(now);
        let taken = own.saturating_add(u128::from(reserved) * PER_ONE);
        let before = (rate * BURST.as_secs() as u128 * PER_ONE).saturating_sub(u128::from(count) * PER_ONE);
        let excess = taken.saturating_sub(before);
        if excess == 0 {
            return Duration::ZERO;
        }
        let slow = routed.div_ceil(rate * ROUTED_SHARES);
        let meanwhile = slow.saturating_mul(rate * OWN_SHARES);
        let nanos = match excess.checked_sub(meanwhile) {
            None => excess.div_ceil(rate * OWN_SHARES),
            Some(rest) => slow + rest.div_ceil(rate * SHARES),
        };
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Returns how long until everything that is queued or `reserved` has passed.
    pub fn backlog(&self, reserved: u64, now: Timestamp) -> Duration {
        let Some(rate) = self.rate else { return Duration::ZERO };
        let (own, routed) = self.at(now);
        let all = own.saturating_add(routed).saturating_add(u128::from(reserved) * PER_ONE);
        let nanos = all.div_ceil(u128::from(rate.get()) * SHARES);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Whether more than half of the bucket is missing, including what is `reserved`.
    pub fn is_tight(&self, reserved: u64, now: Timestamp) -> bool {
        let Some(rate) = self.rate else { return false };
        let half = u128::from(rate.get()) * PER_ONE * BURST.as_secs() as u128 / 2;
        half < self.at(now).0.saturating_add(u128::from(reserved) * PER_ONE)
    }

    fn settle(&mut self, now: Timestamp) {
        (self.own, self.routed) = self.at(now);
        self.as_of = self.as_of.max(now);
    }

    /// Returns both classes at `now`. What one class does not need, the other gets.
    fn at(&self, now: Timestamp) -> (u128, u128) {
        let Some(rate) = self.rate else { return (0, 0) };
        let rate = u128::from(rate.get());
        let mut left = now.since(self.as_of).as_nanos();
        let (mut own, mut routed) = (self.own, self.routed);
        while 0 < left && (0 < own || 0 < routed) {
            let (own_rate, routed_rate) = match (own, routed) {
                (_, 0) => (rate * SHARES, 0),
                (0, _) => (0, rate * SHARES),
                _ => (rate * OWN_SHARES, rate * ROUTED_SHARES),
            };
            // Advance until one of them is empty.
            let phase = [(own, own_rate), (routed, routed_rate)].into_iter().filter(|(line, _)| 0 < *line);
            let until = phase.map(|(line, rate)| line.div_ceil(rate)).min().unwrap_or(left);
            let step = until.min(left);
            own = own.saturating_sub(step.saturating_mul(own_rate));
            routed = routed.saturating_sub(step.saturating_mul(routed_rate));
            left -= step;
        }
        (own, routed)
    }
}
