//! How much of a store may be read a second: a token bucket over keys and one over bytes (Venice, read quota).
//!
//! Routers and nodes enforce it ([`ReadQuota`]). Whoever asks several nodes for one read, and may be refused by some of them, reserves
//! it at all of them first ([`Booking`]), but only where nodes have little left ([`Pressure`]): a read that is refused takes nothing.

mod booking;
mod line;
mod pressure;
mod read;
mod reservations;

pub use booking::{Ask, Booking, BookingStep, RESERVATION_PATIENCE, Reply};
pub use pressure::Pressure;
pub use read::{AdmittedBy, ReadQuota};
pub use reservations::{RESERVATION_LIFE, ReservationId, Reserved};

use std::{num::NonZeroU64, time::Duration};
use strum::IntoStaticStr;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum QuotaKind {
    /// Keys.
    Keys,
    /// Bytes of values.
    Bytes,
}

impl QuotaKind {
    /// As in messages and metrics.
    pub fn name(self) -> &'static str {
        self.into()
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
