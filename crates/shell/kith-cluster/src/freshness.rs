//! The greatest possible age of a process's view of the metadata. As long as a process renews its lease, it reaches the
//! metadata store. Once the lease has expired, the process may have missed a swap or rollback, because these no longer
//! wait for it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// The time without a renewal after which a process counts as gone in `kith cluster status`, and swaps no longer wait
/// for it if it is a router. Routing does not depend on leases: clients themselves notice that a node is down.
pub const LEASE_TTL: Duration = Duration::from_secs(3);

/// The time at which this process last reached the metadata store.
#[derive(Clone, Debug)]
pub struct Freshness {
    started: Instant,
    /// The greatest possible age of the metadata at `started`.
    age_at_start: Duration,
    /// The last renewal, in milliseconds after the moment `started - age_at_start`; written by the registration.
    renewed: Arc<AtomicU64>,
}

impl Freshness {
    /// Returns the freshness of a process that starts with metadata of this age, which is zero if it has just read
    /// them.
    pub fn new(age_at_start: Duration) -> Self {
        Self { started: Instant::now(), age_at_start, renewed: Arc::default() }
    }

    /// Notes that a request sent at this moment renewed the lease.
    pub fn renewed(&self, sent: Instant) {
        let after = self.age_at_start + sent.duration_since(self.started);
        let millis = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
        self.renewed.fetch_max(millis, Ordering::Relaxed);
    }

    /// The greatest age that this process's view of the metadata may have.
    pub fn age(&self) -> Duration {
        let renewed = Duration::from_millis(self.renewed.load(Ordering::Relaxed));
        (self.age_at_start + self.started.elapsed()).saturating_sub(renewed)
    }

    /// [`Freshness::age`], if the lease may have expired.
    pub fn stale(&self) -> Option<Duration> {
        Some(self.age()).filter(|age| LEASE_TTL < *age)
    }
}

/// Whether load balancers should avoid a process whose metadata has the age `own`. They should only if another process has
/// fresh metadata. If none has, all have lost the metadata store, and reads go on.
pub fn should_avoid(own: Duration, others: impl IntoIterator<Item = Duration>) -> bool {
    LEASE_TTL < own && others.into_iter().any(|age| age <= LEASE_TTL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_avoided_only_if_another_knows_better() {
        let (fresh, stale) = (Duration::from_secs(1), LEASE_TTL + Duration::from_millis(1));
        assert!(!should_avoid(fresh, [fresh, stale]));
        assert!(should_avoid(stale, [stale, fresh]));
        assert!(!should_avoid(stale, [stale]), "all have lost the metadata store: reads go on");
        assert!(!should_avoid(stale, []));
    }

    #[test]
    fn a_lease_counts_from_when_its_renewal_was_sent() {
        let freshness = Freshness::new(Duration::ZERO);
        let later = Instant::now() + Duration::from_secs(60);
        freshness.renewed(later);
        freshness.renewed(freshness.started);
        assert_eq!((freshness.age(), freshness.stale()), (Duration::ZERO, None), "it does not go back");
    }

    #[test]
    fn what_was_read_from_disk_is_as_old_as_the_copy_until_the_lease_is_kept() {
        let hour = Duration::from_secs(3_600);
        let freshness = Freshness::new(hour);
        assert!(hour <= freshness.age() && freshness.stale().is_some());
        freshness.renewed(Instant::now());
        assert_eq!(freshness.stale(), None);
    }
}
