//! How much of a store may be read a second: a token bucket over keys and one over bytes (Venice, read quota).
//!
//! A bucket that holds what one second brings is a line ([`RateLimiter`]) that may be one second long: what is in the line is what is
//! missing from the bucket. Nobody waits in it; whoever would have to is refused and told when to come back.

use crate::RateLimiter;
use kith_types::Timestamp;
use std::{num::NonZeroU64, time::Duration};

/// What the buckets hold: bursts of a page's queries pass, a second of overuse does not.
const BURST: Duration = Duration::from_secs(1);

/// How much may be read a second; `None`: any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaRates {
    /// Keys.
    pub keys: Option<NonZeroU64>,
    /// Bytes of values.
    pub bytes: Option<NonZeroU64>,
}

impl QuotaRates {
    /// Whether there is any.
    pub fn is_none(&self) -> bool {
        self.keys.is_none() && self.bytes.is_none()
    }

    /// The share of one of `routers` that enforce it together, rounded up: a small quota is not lost between them.
    pub fn share(&self, routers: usize) -> Self {
        self.part(1, u64::try_from(routers).unwrap_or(u64::MAX))
    }

    /// The share of one that holds `held` of `all` copies of partitions, rounded up; of one that holds none, of one copy: whoever has
    /// a quota never has none left of it.
    pub fn part(&self, held: u64, all: u64) -> Self {
        let (held, all) = (u128::from(held.max(1)), u128::from(all.max(1)));
        let part = |rate: NonZeroU64| {
            let share = (u128::from(rate.get()) * held.min(all)).div_ceil(all);
            NonZeroU64::new(u64::try_from(share).unwrap_or(u64::MAX))
        };
        Self { keys: self.keys.and_then(part), bytes: self.bytes.and_then(part) }
    }
}

/// What an export reads at a time, so that it is never far ahead of its quota: a twentieth of what a second brings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportStep {
    /// So many keys, ...
    pub keys: u64,
    /// ... or so many bytes, whichever comes first.
    pub bytes: u64,
}

impl QuotaRates {
    /// The steps of an export at these rates.
    pub fn export_step(&self) -> ExportStep {
        let part = |rate: Option<NonZeroU64>| rate.map_or(u64::MAX, |rate| (rate.get() / 20).max(1));
        ExportStep { keys: part(self.keys), bytes: part(self.bytes) }
    }
}

/// Of what too much was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaKind {
    /// Keys.
    Keys,
    /// Bytes of values.
    Bytes,
}

impl QuotaKind {
    /// As in messages and metrics.
    pub fn name(self) -> &'static str {
        match self {
            QuotaKind::Keys => "keys",
            QuotaKind::Bytes => "bytes",
        }
    }
}

/// A query that may not be asked now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaExceeded {
    /// Of what there is no more.
    pub kind: QuotaKind,
    /// How much of it there is a second.
    pub per_second: NonZeroU64,
    /// When the same query may be asked, if nothing else is until then.
    pub retry_after: Duration,
}

/// The quota of one store as one router, or one node, enforces it. O(1), without a clock.
#[derive(Clone, Debug)]
pub struct ReadQuota {
    keys: RateLimiter,
    bytes: RateLimiter,
}

impl ReadQuota {
    /// Nothing was read yet.
    pub fn new(rates: QuotaRates) -> Self {
        Self { keys: RateLimiter::new(rates.keys), bytes: RateLimiter::new(rates.bytes) }
    }

    /// From now on these rates hold, for what was read already too.
    pub fn follow(&mut self, rates: QuotaRates, now: Timestamp) {
        for (line, rate) in [(&mut self.keys, rates.keys), (&mut self.bytes, rates.bytes)] {
            if line.bytes_per_second() != rate {
                line.set(rate, now);
            }
        }
    }

    /// Lets a query of so many keys in, and takes them; or refuses it, and takes nothing.
    ///
    /// A query that is larger than the bucket passes when that is full, and whoever comes next waits for it: it is not
    /// impossible, only slow to follow. A query without keys always passes.
    ///
    /// # Errors
    /// [`QuotaExceeded`]; of keys and bytes the one that takes longer.
    pub fn admit(&mut self, keys: u64, now: Timestamp) -> Result<(), QuotaExceeded> {
        if keys == 0 {
            return Ok(());
        }
        let refused = [self.refused(QuotaKind::Keys, keys, now), self.refused(QuotaKind::Bytes, 0, now)];
        if let Some(longest) = refused.into_iter().flatten().max_by_key(|refused| refused.retry_after) {
            return Err(longest);
        }
        self.keys.take(keys, now);
        Ok(())
    }

    /// Takes the keys of a query that somebody else has let in: no more than leave the bucket empty, so that what comes in bursts, or
    /// unevenly, never makes those who ask here wait for longer than a second's worth.
    pub fn charge_keys(&mut self, keys: u64, now: Timestamp) {
        let most = self.keys.bytes_per_second().map_or(u64::MAX, |rate| {
            let room = BURST.saturating_sub(self.keys.backlog(now)).as_nanos();
            u64::try_from(u128::from(rate.get()) * room / BURST.as_nanos()).unwrap_or(u64::MAX)
        });
        self.keys.take(keys.min(most), now);
    }

    /// Takes the bytes of an answer, which are known when it is there.
    pub fn charge_bytes(&mut self, bytes: u64, now: Timestamp) {
        self.bytes.take(bytes, now);
    }

    /// Takes the keys of the next step of an export, once nothing is in the line before it: reads pass it as long as they leave room
    /// for no more than themselves, and alone it gets all that there is.
    ///
    /// # Errors
    /// How long to wait if nobody else reads; nothing is taken then.
    pub fn admit_behind(&mut self, keys: u64, now: Timestamp) -> Result<(), Duration> {
        let before = self.keys.backlog(now).max(self.bytes.backlog(now));
        if !before.is_zero() {
            return Err(before);
        }
        self.keys.take(keys, now);
        Ok(())
    }

    fn refused(&self, kind: QuotaKind, units: u64, now: Timestamp) -> Option<QuotaExceeded> {
        let line = match kind {
            QuotaKind::Keys => &self.keys,
            QuotaKind::Bytes => &self.bytes,
        };
        let per_second = line.bytes_per_second()?;
        let nanos = u128::from(units) * BURST.as_nanos() / u128::from(per_second.get());
        let takes = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        // What may be in the line before this query: nothing, if it fills the bucket by itself.
        let room = BURST.saturating_sub(takes);
        let retry_after = line.backlog(now).saturating_sub(room);
        (!retry_after.is_zero()).then_some(QuotaExceeded { kind, per_second, retry_after })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp(Duration::from_millis(millis))
    }

    fn rates(keys: u64, bytes: u64) -> QuotaRates {
        QuotaRates { keys: NonZeroU64::new(keys), bytes: NonZeroU64::new(bytes) }
    }

    #[test]
    fn a_second_of_keys_passes_at_once_and_the_next_key_is_told_when() {
        let mut quota = ReadQuota::new(rates(1_000, 0));
        for _ in 0..10 {
            quota.admit(100, at(0)).unwrap();
        }
        let refused = quota.admit(100, at(0)).unwrap_err();
        assert_eq!((refused.kind, refused.per_second.get()), (QuotaKind::Keys, 1_000));
        assert_eq!(refused.retry_after, Duration::from_millis(100));
        assert_eq!(quota.admit(100, at(50)).unwrap_err().retry_after, Duration::from_millis(50));
        quota.admit(100, at(100)).unwrap();
    }

    #[test]
    fn a_refused_query_takes_nothing() {
        let mut quota = ReadQuota::new(rates(10, 0));
        quota.admit(10, at(0)).unwrap();
        for _ in 0..1_000 {
            quota.admit(10, at(0)).unwrap_err();
        }
        quota.admit(10, at(1_000)).unwrap();
    }

    #[test]
    fn a_query_larger_than_the_bucket_passes_when_that_is_full() {
        let mut quota = ReadQuota::new(rates(100, 0));
        quota.admit(500, at(0)).unwrap();
        assert_eq!(quota.admit(1, at(0)).unwrap_err().retry_after, Duration::from_millis(4_010));
        assert!(quota.admit(500, at(4_999)).is_err());
        quota.admit(500, at(5_000)).unwrap();
    }

    #[test]
    fn bytes_are_paid_for_after_they_were_read() {
        let mut quota = ReadQuota::new(rates(0, 1_000));
        quota.admit(1, at(0)).unwrap();
        quota.charge_bytes(3_000, at(0));
        let refused = quota.admit(1, at(0)).unwrap_err();
        assert_eq!((refused.kind, refused.retry_after), (QuotaKind::Bytes, Duration::from_secs(2)));
        quota.admit(1, at(2_000)).unwrap();
    }

    #[test]
    fn an_empty_query_passes_whatever_was_read() {
        let mut quota = ReadQuota::new(rates(1, 1));
        quota.admit(100, at(0)).unwrap();
        quota.charge_bytes(100, at(0));
        quota.admit(0, at(0)).unwrap();
    }

    #[test]
    fn another_rate_holds_at_once() {
        let mut quota = ReadQuota::new(rates(10, 0));
        quota.admit(10, at(0)).unwrap();
        quota.admit(10, at(0)).unwrap_err();
        quota.follow(rates(1_000, 0), at(0));
        quota.admit(900, at(0)).unwrap();
        quota.follow(QuotaRates::default(), at(0));
        quota.admit(u64::MAX, at(0)).unwrap();
    }

    #[test]
    fn routers_share_a_quota_and_lose_none_of_it() {
        assert_eq!(rates(10, 7).share(3), rates(4, 3));
        assert_eq!(rates(1, 1).share(8), rates(1, 1));
        assert_eq!(rates(9, 0).share(0), rates(9, 0));
    }

    #[test]
    fn nodes_share_a_quota_by_what_they_hold() {
        assert_eq!(rates(1_000, 70).part(12, 48), rates(250, 18));
        assert_eq!(rates(u64::MAX, 1).part(24, 48), rates(u64::MAX / 2 + 1, 1));
        assert_eq!(rates(10, 0).part(0, 48), rates(1, 0), "never nothing");
        assert_eq!(rates(10, 0).part(9, 0), rates(10, 0), "never more than all of it");
    }

    #[test]
    fn an_export_gets_what_reads_leave() {
        // Alone: all of it, and never a second's worth at once.
        let all = rates(1_000, 0);
        let step = all.export_step().keys;
        let exported = |quota: &mut ReadQuota, from: u64, till: u64, reads: u64| {
            let (mut exported, mut refused) = (0, 0);
            for millis in from..till {
                // Reads of a tenth of a second's worth, so many a second.
                if 0 < reads && millis % (1_000 / reads) == 0 {
                    refused += u64::from(quota.admit(100, at(millis)).is_err());
                }
                while quota.admit_behind(step, at(millis)).is_ok() {
                    exported += step;
                }
            }
            (exported, refused)
        };
        let mut quota = ReadQuota::new(all);
        let (alone, _) = exported(&mut quota, 0, 10_000, 0);
        assert!((9_900..=10_050).contains(&alone), "{alone}");
        assert!(quota.admit(900, at(10_000)).is_ok(), "a read of nearly all passes beside it");
        // Beside reads that take half: the other half, and none of them is refused.
        let (half, refused) = exported(&mut ReadQuota::new(all), 0, 10_000, 5);
        assert!((4_900..=5_100).contains(&half) && refused == 0, "{half}, {refused} reads refused");
        // Bytes count too, and no quota is none.
        let mut quota = ReadQuota::new(rates(0, 1_000));
        quota.admit_behind(1, at(0)).unwrap();
        quota.charge_bytes(500, at(0));
        assert_eq!(quota.admit_behind(1, at(100)), Err(Duration::from_millis(400)));
        quota.admit_behind(1, at(500)).unwrap();
        let mut unlimited = ReadQuota::new(rates(0, 0));
        (0..100).for_each(|_| unlimited.admit_behind(u64::MAX, at(0)).unwrap());
        assert_eq!(rates(7, 0).export_step(), ExportStep { keys: 1, bytes: u64::MAX });
    }

    #[test]
    fn what_others_let_in_fills_the_line_for_those_who_ask() {
        let mut quota = ReadQuota::new(rates(100, 0));
        quota.charge_keys(70, at(0));
        assert_eq!(quota.admit(50, at(0)).unwrap_err().retry_after, Duration::from_millis(200));
        (0..5).for_each(|_| quota.charge_keys(100, at(0)));
        assert_eq!(quota.admit(50, at(0)).unwrap_err().retry_after, Duration::from_millis(500), "no debt");
        quota.admit(50, at(500)).unwrap();
        let mut unlimited = ReadQuota::new(rates(0, 0));
        unlimited.charge_keys(u64::MAX, at(0));
        unlimited.admit(u64::MAX, at(0)).unwrap();
    }
}
