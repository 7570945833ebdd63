//! Read quotas: how much of a store may be read per second. There is a token bucket for keys and one for bytes (Venice, read
//! quota).
//!
//! Routers and nodes enforce it ([`ReadQuota`]). A client that reads from several nodes, some of which may refuse, first
//! makes reservations at all of them ([`Booking`]). It does so only if the nodes have little quota left ([`Pressure`]). A
//! refused read takes nothing.

mod booking;
mod line;
mod pressure;
mod read;
mod reservations;

pub use booking::{Booking, BookingStep, RESERVATION_TIMEOUT, ReservationReply, ReservationRequest};
pub use pressure::Pressure;
pub use read::{AdmittedBy, ReadQuota};
pub use reservations::{GrantedReservation, RESERVATION_LIFE, ReservationId};

pub use kith_types::{QuotaKind, QuotaRefusal};

use std::{num::NonZeroU64, time::Duration};

/// The capacity of the buckets: the burst of one page's queries passes, a second of overuse does not.
const BURST: Duration = Duration::from_secs(1);

/// The amounts that may be read per second; `None` for no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaRates {
    /// The number of keys.
    pub keys: Option<NonZeroU64>,
    /// The number of bytes of values.
    pub bytes: Option<NonZeroU64>,
}

impl QuotaRates {
    /// Whether there is no limit at all.
    pub fn is_none(&self) -> bool {
        self.keys.is_none() && self.bytes.is_none()
    }

    /// Returns the share of one of `routers` routers that enforce the quota together, rounded up so that small quotas are
    /// not lost.
    pub fn share(&self, routers: usize) -> Self {
        self.part(1, u64::try_from(routers).unwrap_or(u64::MAX))
    }

    /// Returns the share of a node that holds `held` of `all` copies of partitions, rounded up. A node that holds none has
    /// the share of one copy, so that no share is empty.
    pub fn part(&self, held: u64, all: u64) -> Self {
        let (held, all) = (u128::from(held.max(1)), u128::from(all.max(1)));
        let part = |rate: NonZeroU64| {
            let share = (u128::from(rate.get()) * held.min(all)).div_ceil(all);
            NonZeroU64::new(u64::try_from(share).unwrap_or(u64::MAX))
        };
        Self { keys: self.keys.and_then(part), bytes: self.bytes.and_then(part) }
    }
}

/// The amount that an export reads at a time: a twentieth of a second's quota, so that it is never far ahead of the
/// quota.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportStep {
    /// The number of keys after which a step ends.
    pub keys: u64,
    /// The number of bytes after which a step ends, if it is reached first.
    pub bytes: u64,
}

impl QuotaRates {
    /// Returns the steps of an export at these rates.
    pub fn export_step(&self) -> ExportStep {
        let part = |rate: Option<NonZeroU64>| rate.map_or(u64::MAX, |rate| (rate.get() / 20).max(1));
        ExportStep { keys: part(self.keys), bytes: part(self.bytes) }
    }
}

/// A quota is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaExceeded {
    /// The kind of quota.
    pub kind: QuotaKind,
    /// The quota per second.
    pub per_second: NonZeroU64,
    /// The time after which the same query may be repeated, if nothing else is read meanwhile.
    pub retry_after: Duration,
}
