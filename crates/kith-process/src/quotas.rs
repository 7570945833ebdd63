//! The read quotas of stores, as one process enforces its share of them: what was read so far, by store.

use kith_api::QueryError;
use kith_routing::{AdmittedBy, QuotaExceeded, QuotaKind, QuotaRates, ReadQuota, ReservationId, Reserved};
use kith_types::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// What was read of the stores that have a quota, and since when it is counted.
pub struct Quotas {
    /// By store. Locked for less than a microsecond, twice a read.
    lines: Mutex<HashMap<String, ReadQuota>>,
    started: Instant,
    /// Who refuses, for messages.
    own: String,
}

impl Quotas {
    /// Nothing was read yet; `own` is who this is.
    pub fn new(own: String) -> Self {
        Self { lines: Mutex::default(), started: Instant::now(), own }
    }

    /// Lets a read of so many keys in, and takes them; this process's share of the quota is `rates`.
    ///
    /// # Errors
    /// [`QueryError::QuotaExceeded`]; nothing is taken then.
    pub fn take(&self, store: &str, rates: QuotaRates, keys: u64) -> Result<(), QueryError> {
        let admitted = self.with(store, rates, |quota, now| quota.admit(keys, now));
        admitted.map_err(|exceeded| self.refusal(store, exceeded))
    }

    /// As [`Quotas::take`], of a read whose keys were reserved.
    ///
    /// # Errors
    /// As of [`Quotas::take`], if they were not.
    pub fn redeem(
        &self,
        store: &str,
        rates: QuotaRates,
        id: ReservationId,
        keys: u64,
    ) -> Result<(), QueryError> {
        let admitted = self.with(store, rates, |quota, now| quota.redeem(id, keys, now));
        admitted.map_err(|exceeded| self.refusal(store, exceeded))
    }

    /// Keeps room for a read of so many keys; and whether little is left.
    ///
    /// # Errors
    /// [`QueryError::QuotaExceeded`]; nothing is kept then.
    pub fn reserve(
        &self,
        store: &str,
        rates: QuotaRates,
        id: ReservationId,
        keys: u64,
    ) -> Result<(Reserved, bool), QueryError> {
        let reserved =
            self.with(store, rates, |quota, now| Ok((quota.reserve(id, keys, now)?, quota.is_tight(now))));
        reserved.map_err(|exceeded| self.refusal(store, exceeded))
    }

    /// Gives back what was reserved.
    pub fn give_back(&self, store: &str, id: ReservationId) {
        let now = self.now();
        if let Some(quota) = self.lock().get_mut(store) {
            quota.give_back(id, now);
        }
    }

    fn refusal(&self, store: &str, exceeded: QuotaExceeded) -> QueryError {
        QueryError::QuotaExceeded {
            store: store.to_owned(),
            kind: exceeded.kind,
            per_second: exceeded.per_second.get(),
            at: self.own.clone(),
            // Not a moment too early: whoever comes back then is let in.
            retry_after_ms: u64::try_from(exceeded.retry_after.as_micros().div_ceil(1_000))
                .unwrap_or(u64::MAX),
        }
    }

    /// Takes the keys of the next step of an export; how long to wait before that, if reads are before it.
    pub fn take_behind(&self, store: &str, rates: QuotaRates, keys: u64) -> Result<(), Duration> {
        self.with(store, rates, |quota, now| quota.admit_behind(keys, now))
    }

    /// Takes the keys of a read that somebody else has let in.
    pub fn charge_keys(&self, store: &str, rates: QuotaRates, keys: u64) {
        self.with(store, rates, |quota, now| quota.charge_keys(keys, now));
    }

    /// Takes the bytes of an answer; whether little is left.
    pub fn charge_bytes(&self, store: &str, bytes: u64, admitted: AdmittedBy) -> bool {
        let now = self.now();
        self.lock().get_mut(store).is_some_and(|quota| {
            quota.charge_bytes(bytes, admitted, now);
            quota.is_tight(now)
        })
    }

    fn with<T>(
        &self,
        store: &str,
        rates: QuotaRates,
        work: impl FnOnce(&mut ReadQuota, Timestamp) -> T,
    ) -> T {
        let now = self.now();
        let mut lines = self.lock();
        let quota = match lines.get_mut(store) {
            Some(quota) => quota,
            None => lines.entry(store.to_owned()).or_insert(ReadQuota::new(rates)),
        };
        quota.follow(rates, now);
        work(quota, now)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, ReadQuota>> {
        self.lines.lock()
    }

    fn now(&self) -> Timestamp {
        Timestamp(self.started.elapsed())
    }
}

/// The reason why a read was too much, in metrics.
pub fn reason(kind: QuotaKind) -> &'static str {
    match kind {
        QuotaKind::Keys => "quota_keys",
        QuotaKind::Bytes => "quota_bytes",
    }
}
