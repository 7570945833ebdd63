//! The quota of one store as one process enforces it.

#[cfg(test)]
mod tests;

use super::{
    QuotaExceeded, QuotaKind, QuotaRates,
    line::Line,
    reservations::{ReservationId, Reservations, Reserved},
};
use kith_types::Timestamp;
use std::time::Duration;

/// Who let a read in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmittedBy {
    /// Whoever keeps this quota.
    Here,
    /// A router, from its own share.
    Router,
}

/// The quota of one store as one router, or one node, enforces it. O(log reservations), without a clock.
///
/// Nobody waits in line; whoever would have to is refused and told when to come back.
#[derive(Clone, Debug)]
pub struct ReadQuota {
    keys: Line,
    bytes: Line,
    reservations: Reservations,
}

impl ReadQuota {
    /// Nothing was read yet.
    pub fn new(rates: QuotaRates) -> Self {
        Self {
            keys: Line::new(rates.keys),
            bytes: Line::new(rates.bytes),
            reservations: Reservations::default(),
        }
    }

    /// From now on these rates hold, for what was read already too.
    pub fn follow(&mut self, rates: QuotaRates, now: Timestamp) {
        for (line, rate) in [(&mut self.keys, rates.keys), (&mut self.bytes, rates.bytes)] {
            if line.rate() != rate {
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
        self.check(keys, now)?;
        self.keys.take(keys, now);
        Ok(())
    }

    /// Keeps room for a query of so many keys that is about to come, or refuses it as [`ReadQuota::admit`] would.
    ///
    /// # Errors
    /// [`QuotaExceeded`].
    pub fn reserve(
        &mut self,
        id: ReservationId,
        keys: u64,
        now: Timestamp,
    ) -> Result<Reserved, QuotaExceeded> {
        self.check(keys, now)?;
        Ok(self.reservations.hold(id, keys, now))
    }

    /// Lets in a query of so many keys that were reserved, or, as far as they were not, as [`ReadQuota::admit`] does. What was reserved beyond
    /// them is given back.
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

    /// Gives back what was reserved and will not be read.
    pub fn give_back(&mut self, id: ReservationId, now: Timestamp) {
        self.reservations.end(id, now);
    }

    /// Takes the keys of a query that a router has let in. Of the rate, one part in 24 is left to those who ask here.
    pub fn charge_keys(&mut self, keys: u64, now: Timestamp) {
        self.keys.take_routed(keys, now);
    }

    /// Takes the bytes of an answer, which are known when it is there.
    pub fn charge_bytes(&mut self, bytes: u64, admitted: AdmittedBy, now: Timestamp) {
        match admitted {
            AdmittedBy::Here => self.bytes.take(bytes, now),
            AdmittedBy::Router => self.bytes.take_routed(bytes, now),
        }
    }

    /// Whether less than half of a second's worth is left: who asks several nodes had better reserve.
    pub fn is_tight(&mut self, now: Timestamp) -> bool {
        self.reservations.expire(now);
        self.keys.is_tight(self.reservations.keys(), now) || self.bytes.is_tight(0, now)
    }

    /// Takes the keys of the next step of an export, once nothing is in the line before it: reads pass it as long as they leave room
    /// for no more than themselves, and alone it gets all that there is.
    ///
    /// # Errors
    /// How long to wait if nobody else reads; nothing is taken then.
    pub fn admit_behind(&mut self, keys: u64, now: Timestamp) -> Result<(), Duration> {
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
