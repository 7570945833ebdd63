//! The quota of one store, as one process enforces it.

#[cfg(test)]
mod tests;

use super::{
    QuotaExceeded, QuotaKind, QuotaRates,
    line::Line,
    reservations::{GrantedReservation, ReservationId, Reservations},
};
use kith_types::Timestamp;
use std::time::Duration;

/// The process that admitted a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmittedBy {
    /// The process that enforces this quota.
    Here,
    /// A router, from its own share.
    Router,
}

/// The quota of one store, as one router or node enforces it. O(log reservations). It has no clock.
///
/// Reads do not queue: a read that would have to wait is refused, with the time after which to retry.
#[derive(Clone, Debug)]
pub struct ReadQuota {
    keys: Line,
    bytes: Line,
    reservations: Reservations,
}

impl ReadQuota {
    /// Returns a quota of which nothing was read yet.
    pub fn new(rates: QuotaRates) -> Self {
        Self {
            keys: Line::new(rates.keys),
            bytes: Line::new(rates.bytes),
            reservations: Reservations::default(),
        }
    }

    /// Changes the rates, also for what was already read.
    pub fn follow(&mut self, rates: QuotaRates, now: Timestamp) {
        for (line, rate) in [(&mut self.keys, rates.keys), (&mut self.bytes, rates.bytes)] {
            if line.rate() != rate {
                line.set(rate, now);
            }
        }
    }

    /// Admits a query for `keys` keys and takes them, or refuses it and takes nothing.
    ///
    /// A query larger than the bucket passes when the bucket is full, and the next query waits for it. So such a query is
    /// not impossible, only slow to follow. A query without keys always passes.
    ///
    /// # Errors
    /// [`QuotaExceeded`], for keys or bytes, whichever takes longer.
    pub fn admit(&mut self, keys: u64, now: Timestamp) -> Result<(), QuotaExceeded> {
        self.check(keys, now)?;
        self.keys.take(keys, now);
        Ok(())
    }

    /// Reserves room for a query of `keys` keys that will follow, or refuses it like [`ReadQuota::admit`].
    ///
    /// # Errors
    /// [`QuotaExceeded`].
    pub fn reserve(
        &mut self,
        id: ReservationId,
        keys: u64,
        now: Timestamp,
    ) -> Result<GrantedReservation, QuotaExceeded> {
        self.check(keys, now)?;
        Ok(self.reservations.hold(id, keys, now))
    }

    /// Admits a query for `keys` keys that were reserved. If fewer were reserved, or the reservation has expired, decides
    /// like [`ReadQuota::admit`]. Reserved keys that are not used are given back.
    ///
    /// # Errors
    /// [`QuotaExceeded`].
    pub fn redeem(&mut self, id: ReservationId, keys: u64, now: Timestamp) -> Result<(), QuotaExceeded> {
        match self.reservations.end(id, now) {
            Some(held) if keys <= held => {
                self.keys.take(keys, now);
                Ok(())
            }
            _ => self.admit(keys, now),
        }
    }

    /// Gives back a reservation that will not be used.
    pub fn give_back(&mut self, id: ReservationId, now: Timestamp) {
        self.reservations.end(id, now);
    }

    /// Takes the keys of a query that a router admitted. One part in 24 of the rate remains for clients that ask here.
    pub fn charge_keys(&mut self, keys: u64, now: Timestamp) {
        self.keys.take_routed(keys, now);
    }

    /// Takes the bytes of an answer, which are known only once it exists.
    pub fn charge_bytes(&mut self, bytes: u64, admitted: AdmittedBy, now: Timestamp) {
        match admitted {
            AdmittedBy::Here => self.bytes.take(bytes, now),
            AdmittedBy::Router => self.bytes.take_routed(bytes, now),
        }
    }

    /// Whether less than half of a second's quota is left, so that a client that asks several nodes should reserve.
    pub fn is_tight(&mut self, now: Timestamp) -> bool {
        self.reservations.expire(now);
        self.keys.is_tight(self.reservations.keys(), now) || self.bytes.is_tight(0, now)
    }

    /// Takes the keys of the next step of an export, once nothing else is queued. Reads go first as long as they use up the
    /// quota; without reads, the export gets all of it.
    ///
    /// # Errors
    /// The time to wait if nothing else is read meanwhile; nothing is taken then.
    pub fn admit_export(&mut self, keys: u64, now: Timestamp) -> Result<(), Duration> {
        self.reservations.expire(now);
        let before = self.keys.backlog(self.reservations.keys(), now).max(self.bytes.backlog(0, now));
        if !before.is_zero() {
            return Err(before);
        }
        self.keys.take(keys, now);
        Ok(())
    }

    fn check(&mut self, keys: u64, now: Timestamp) -> Result<(), QuotaExceeded> {
        if keys == 0 {
            return Ok(());
        }
        self.reservations.expire(now);
        let waits = [
            (QuotaKind::Keys, &self.keys, self.keys.wait(keys, self.reservations.keys(), now)),
            (QuotaKind::Bytes, &self.bytes, self.bytes.wait(0, 0, now)),
        ];
        let refused = waits.into_iter().filter_map(|(kind, line, retry_after)| {
            let per_second = line.rate()?;
            (!retry_after.is_zero()).then_some(QuotaExceeded { kind, per_second, retry_after })
        });
        refused.max_by_key(|refused| refused.retry_after).map_or(Ok(()), Err)
    }
}
