//! The read quotas of stores: one process counts reads by store, and enforces its share of each quota.

use kith_routing::{
    AdmittedBy, GrantedReservation, QuotaExceeded, QuotaKind, QuotaRates, QuotaRefusal, ReadQuota,
    ReservationId,
};
use kith_types::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// The reads of stores that have a quota, counted since the process started.
pub struct Quotas {
    /// The read quotas by store. Each read takes the lock twice, for less than a microsecond.
    lines: Mutex<HashMap<String, ReadQuota>>,
    started: Instant,
    /// The name of this process in messages of refusals.
    own: String,
}

impl Quotas {
    /// Starts without any reads; `own` is the name of this process.
    pub fn new(own: String) -> Self {
        Self { lines: Mutex::default(), started: Instant::now(), own }
    }

    /// Admits a read of `keys` keys and charges them; `rates` is this process's share of the quota.
    ///
    /// # Errors
    /// [`QuotaRefusal`]; nothing is charged then.
    pub fn take(&self, store: &str, rates: QuotaRates, keys: u64) -> Result<(), QuotaRefusal> {
        let admitted = self.with(store, rates, |quota, now| quota.admit(keys, now));
        admitted.map_err(|exceeded| self.refusal(store, exceeded))
    }

    /// As [`Quotas::take`], for a read whose keys were reserved.
    ///
    /// # Errors
    /// As [`Quotas::take`], if the keys were not reserved.
    pub fn redeem(
        &self,
        store: &str,
        rates: QuotaRates,
        id: ReservationId,
        keys: u64,
    ) -> Result<(), QuotaRefusal> {
        let admitted = self.with(store, rates, |quota, now| quota.redeem(id, keys, now));
        admitted.map_err(|exceeded| self.refusal(store, exceeded))
    }

    /// Reserves quota for a read of `keys` keys. Returns whether little quota is left.
    ///
    /// # Errors
    /// [`QuotaRefusal`]; nothing is reserved then.
    pub fn reserve(
        &self,
        store: &str,
        rates: QuotaRates,
        id: ReservationId,
        keys: u64,
    ) -> Result<(GrantedReservation, bool), QuotaRefusal> {
        let reserved =
            self.with(store, rates, |quota, now| Ok((quota.reserve(id, keys, now)?, quota.is_tight(now))));
        reserved.map_err(|exceeded| self.refusal(store, exceeded))
    }

    /// Gives back a reservation.
    pub fn give_back(&self, store: &str, id: ReservationId) {
        let now = self.now();
        if let Some(quota) = self.lock().get_mut(store) {
            quota.give_back(id, now);
        }
    }

    fn refusal(&self, store: &str, exceeded: QuotaExceeded) -> QuotaRefusal {
        QuotaRefusal {
            store: store.to_owned(),
            kind: exceeded.kind,
            per_second: exceeded.per_second.get(),
            at: self.own.clone(),
            // Rounded up, so that a read that is repeated then is admitted.
            retry_after_ms: u64::try_from(exceeded.retry_after.as_micros().div_ceil(1_000))
                .unwrap_or(u64::MAX),
        }
    }

    /// Charges the keys of the next step of an export, which reads take precedence over.
    ///
    /// # Errors
    /// The time to wait before the next attempt.
    pub fn take_export(&self, store: &str, rates: QuotaRates, keys: u64) -> Result<(), Duration> {
        self.with(store, rates, |quota, now| quota.admit_export(keys, now))
    }

    /// Charges the keys of a read that another process has admitted.
    pub fn charge_keys(&self, store: &str, rates: QuotaRates, keys: u64) {
        self.with(store, rates, |quota, now| quota.charge_keys(keys, now));
    }

    /// Charges the bytes of an answer. Returns whether little quota is left.
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

/// The label of the reason for a refusal, in metrics.
pub fn reason(kind: QuotaKind) -> &'static str {
    match kind {
        QuotaKind::Keys => "quota_keys",
        QuotaKind::Bytes => "quota_bytes",
    }
}
