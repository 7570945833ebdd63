//! What was taken of a quota and has not passed yet, in two classes: what was asked for here, and what routers let in.
//!
//! A bucket that holds what one second brings is a line that may be one second long: what is in the line is what is missing from the
//! bucket. While both classes have something in line, what routers let in moves at 23 parts in 24 of the rate, and the rest at one: reads
//! that are never refused do not starve those that may be. What is in the line of one class is in nobody else's way.

use super::BURST;
use kith_types::Timestamp;
use std::{num::NonZeroU64, time::Duration};

/// Units of one key or byte: billionths of a twenty-fourth. A rate times nanoseconds, or a part of it, is a whole number of them.
const PER_ONE: u128 = SHARES * 1_000_000_000;
/// Into how many parts the rate is cut.
const SHARES: u128 = 24;
/// How many of them belong to whoever asks here, whatever routers let in.
const OWN_SHARES: u128 = 1;
const ROUTED_SHARES: u128 = SHARES - OWN_SHARES;
/// Seconds' worth of reads that routers let in that are kept in line: they choose nodes by lot, so that one may get several in a row.
const ROUTED_MAX: u128 = 3;

/// A line of two classes that moves at a rate. Exact: integers only.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// `None`: no limit.
    rate: Option<NonZeroU64>,
    /// What was let in here, in units of [`PER_ONE`].
    own: u128,
    /// What routers let in; at most [`ROUTED_MAX`] seconds' worth.
    routed: u128,
    as_of: Timestamp,
}

impl Line {
    /// An empty line.
    pub fn new(rate: Option<NonZeroU64>) -> Self {
        Self { rate, own: 0, routed: 0, as_of: Timestamp::ZERO }
    }

    pub fn rate(&self) -> Option<NonZeroU64> {
        self.rate
    }

    /// From now on it moves so fast, for what is in it already too.
    pub fn set(&mut self, rate: Option<NonZeroU64>, now: Timestamp) {
        self.settle(now);
        self.rate = rate;
    }

    /// So much was let in here.
    pub fn take(&mut self, count: u64, now: Timestamp) {
        self.settle(now);
        if self.rate.is_some() {
            self.own = self.own.saturating_add(u128::from(count) * PER_ONE);
        }
    }

    /// Routers let in so much. More than [`ROUTED_MAX`] seconds' worth is not kept: it would slow down others long after it was read.
    pub fn take_routed(&mut self, count: u64, now: Timestamp) {
        self.settle(now);
        if let Some(rate) = self.rate {
            let most = u128::from(rate.get()) * PER_ONE * ROUTED_MAX;
            self.routed = self.routed.saturating_add(u128::from(count) * PER_ONE).min(most);
        }
    }

    /// How long until there is room for `count` beside what is in line and what is `reserved`, if nothing else is taken until then. Zero:
    /// there is. What is larger than the bucket has room in an empty line.
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

    /// How long until all that is in line, and what is `reserved`, has passed.
    pub fn backlog(&self, reserved: u64, now: Timestamp) -> Duration {
        let Some(rate) = self.rate else { return Duration::ZERO };
        let (own, routed) = self.at(now);
        let all = own.saturating_add(routed).saturating_add(u128::from(reserved) * PER_ONE);
        let nanos = all.div_ceil(u128::from(rate.get()) * SHARES);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Whether more than half of the bucket is missing, with what is `reserved`.
    pub fn is_tight(&self, reserved: u64, now: Timestamp) -> bool {
        let Some(rate) = self.rate else { return false };
        let half = u128::from(rate.get()) * PER_ONE * BURST.as_secs() as u128 / 2;
        half < self.at(now).0.saturating_add(u128::from(reserved) * PER_ONE)
    }

    fn settle(&mut self, now: Timestamp) {
        (self.own, self.routed) = self.at(now);
        self.as_of = self.as_of.max(now);
    }

    /// Both classes as they are by now: whatever one of them does not need, the other gets.
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
            // Until one of them is empty.
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
