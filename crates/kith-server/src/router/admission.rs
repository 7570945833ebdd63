//! What a router lets in: so many queries at a time, and of each store so many keys and bytes a second. Whoever is not let in is told
//! at once, and counted by store and reason (docs/design/0012-protection.md).

use kith_client::{QueryError, topology::Topology};
use kith_routing::{QuotaRates, ReadQuota};
use kith_types::Timestamp;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Lets queries in. Cheap to clone; clones share what is counted.
#[derive(Clone)]
pub(crate) struct Admission {
    slots: Arc<Semaphore>,
    quotas: Arc<Quotas>,
}

/// What was read of the stores that have a quota, and since when it is counted.
struct Quotas {
    /// By store. Locked for less than a microsecond, twice a read.
    lines: Mutex<HashMap<String, ReadQuota>>,
    started: Instant,
}

/// A query that was let in; it holds its place until dropped.
pub(crate) struct Admitted {
    _slot: OwnedSemaphorePermit,
    /// The store whose quota pays for it, if it has one.
    store: Option<String>,
    quotas: Arc<Quotas>,
}

impl Admission {
    /// Lets in `queries_max` at a time.
    pub fn new(queries_max: usize) -> Self {
        let quotas = Quotas { lines: Mutex::default(), started: Instant::now() };
        let slots = Semaphore::new(queries_max.min(Semaphore::MAX_PERMITS));
        Self { slots: Arc::new(slots), quotas: Arc::new(quotas) }
    }

    /// Lets a query of a store or graph in, or turns it away at once. What it reads is not looked at yet.
    ///
    /// # Errors
    /// [`QueryError::Overloaded`].
    pub fn enter(&self, topology: &Topology, store: &str) -> Result<Admitted, QueryError> {
        match Arc::clone(&self.slots).try_acquire_owned() {
            Ok(slot) => Ok(Admitted { _slot: slot, store: None, quotas: Arc::clone(&self.quotas) }),
            Err(_) => {
                let detail = "this router has too many queries in flight".to_owned();
                Err(refused(topology, store, QueryError::Overloaded { detail }))
            }
        }
    }
}

impl Admitted {
    /// Takes the keys of a read from the store's quota, as far as this router has a share in it.
    ///
    /// # Errors
    /// [`QueryError::QuotaExceeded`]; nothing is taken then.
    pub fn read(&mut self, topology: &Topology, store: &str, keys: usize) -> Result<(), QueryError> {
        // Whoever asks for a store that is not there is told so where it is looked up.
        let Some(known) = topology.stores.get(store) else { return Ok(()) };
        if !known.read_quota.is_none() {
            let rates = known.read_quota.share(topology.routers.len());
            let taken = self.quotas.take(store, rates, keys as u64);
            taken.map_err(|error| refused(topology, store, error))?;
            self.store = Some(store.to_owned());
        }
        metrics::counter!("kith_router_read_keys_total", "store" => store.to_owned()).increment(keys as u64);
        Ok(())
    }

    /// Takes the bytes of the answer, once they are known.
    pub fn answered(&self, store: &str, bytes: u64) {
        metrics::counter!("kith_router_read_bytes_total", "store" => store.to_owned()).increment(bytes);
        if let Some(store) = &self.store {
            self.quotas.charge(store, bytes);
        }
    }
}

impl Quotas {
    fn take(&self, store: &str, rates: QuotaRates, keys: u64) -> Result<(), QueryError> {
        let now = self.now();
        let mut lines = self.lock();
        let quota = match lines.get_mut(store) {
            Some(quota) => quota,
            None => lines.entry(store.to_owned()).or_insert(ReadQuota::new(rates)),
        };
        quota.follow(rates, now);
        quota.admit(keys, now).map_err(|exceeded| QueryError::QuotaExceeded {
            store: store.to_owned(),
            kind: exceeded.kind,
            per_second: exceeded.per_second.get(),
            // Not a moment too early: whoever comes back then is let in.
            retry_after_ms: u64::try_from(exceeded.retry_after.as_micros().div_ceil(1_000))
                .unwrap_or(u64::MAX),
        })
    }

    fn charge(&self, store: &str, bytes: u64) {
        let now = self.now();
        if let Some(quota) = self.lock().get_mut(store) {
            quota.charge_bytes(bytes, now);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, ReadQuota>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Timestamp {
        Timestamp(self.started.elapsed())
    }
}

/// Counts what is refused, if it is: by store and reason. A name that is no store's has no label of its own: anybody can make up
/// names.
pub(crate) fn refused(topology: &Topology, store: &str, error: QueryError) -> QueryError {
    let reason = match &error {
        QueryError::Overloaded { .. } => "overloaded",
        QueryError::QuotaExceeded { kind: kith_routing::QuotaKind::Keys, .. } => "quota_keys",
        QueryError::QuotaExceeded { kind: kith_routing::QuotaKind::Bytes, .. } => "quota_bytes",
        QueryError::BatchTooLarge { .. } => "batch_too_large",
        QueryError::TooLarge { .. } => "answer_too_large",
        _ => return error,
    };
    let is_known = topology.stores.contains_key(store) || topology.graphs.contains_key(store);
    let store = if is_known { store } else { "unknown" };
    metrics::counter!("kith_router_refused_total", "store" => store.to_owned(), "reason" => reason)
        .increment(1);
    error
}
