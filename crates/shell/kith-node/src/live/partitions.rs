//! The partitions that a node holds of a graph, with the cache of each.

use super::errors::LiveError;
use kith_cache::live::{FilledRows, LiveCacheOptions, LiveCaches, PartitionCache};
use kith_database::DatabaseError;
use kith_live::GraphTypes;
use kith_types::{LogPoint, PartitionId, Timestamp};
use parking_lot::{Mutex, MutexGuard, RwLock};
use rustix::time::{ClockId, clock_gettime};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tokio::sync::oneshot;

/// A read that waits for rows that another read fetches. It gets the rows, which need not be kept in memory; `None` if a
/// change has overtaken them.
pub(super) type Waiter = oneshot::Sender<Result<Option<FilledRows>, DatabaseError>>;

/// The right to read the log of a partition.
pub(super) type LogTurn = tokio::sync::Mutex<()>;

/// The held partitions of one graph.
pub(super) struct HeldPartitions {
    /// The caches of all held partitions. The lock is only held for microseconds.
    caches: Mutex<LiveCaches<Waiter>>,
    /// The turn of each held partition, which lets only one task at a time read its log.
    log_turns: RwLock<BTreeMap<PartitionId, Arc<LogTurn>>>,
    started: Duration,
}

impl HeldPartitions {
    /// Returns a value that holds no partition yet.
    pub fn new(options: LiveCacheOptions) -> Self {
        Self {
            caches: Mutex::new(LiveCaches::new(options)),
            log_turns: RwLock::default(),
            started: boot_time(),
        }
    }

    /// Sets the types by which the caches follow indexes.
    pub fn set_types(&self, types: Arc<GraphTypes>) {
        self.caches.lock().set_types(types);
    }

    /// Opens the caches of partitions that this node has got, and closes those of partitions that it has lost. Returns the
    /// lost ones.
    pub fn hold(&self, own: &BTreeSet<PartitionId>) -> Vec<PartitionId> {
        let mut log_turns = self.log_turns.write();
        let mut caches = self.caches.lock();
        let lost: Vec<PartitionId> =
            log_turns.keys().filter(|partition| !own.contains(partition)).copied().collect();
        for partition in &lost {
            log_turns.remove(partition);
            caches.close(*partition);
        }
        for &partition in own {
            log_turns.entry(partition).or_insert_with(|| {
                caches.open(partition, LogPoint::default());
                Arc::default()
            });
        }
        lost
    }

    /// Returns the held partitions, ascending.
    pub fn ids(&self) -> Vec<PartitionId> {
        self.log_turns.read().keys().copied().collect()
    }

    /// Whether this node holds a partition.
    pub fn contains(&self, partition: PartitionId) -> bool {
        self.log_turns.read().contains_key(&partition)
    }

    /// Returns the turn for reading the log of a partition.
    ///
    /// # Errors
    /// [`LiveError::NotOwner`] if this node does not hold the partition.
    pub fn log_turn(&self, partition: PartitionId) -> Result<Arc<LogTurn>, LiveError> {
        self.log_turns.read().get(&partition).cloned().ok_or(LiveError::NotOwner(partition))
    }

    /// Locks the caches of all partitions, for work on several of them.
    pub fn lock(&self) -> MutexGuard<'_, LiveCaches<Waiter>> {
        self.caches.lock()
    }

    /// Returns the result of `work` on the cache of a partition.
    ///
    /// # Errors
    /// [`LiveError::NotOwner`] if this node does not hold the partition.
    pub fn with<T>(
        &self,
        partition: PartitionId,
        work: impl FnOnce(&mut PartitionCache<'_, Waiter>) -> T,
    ) -> Result<T, LiveError> {
        let mut caches = self.caches.lock();
        let mut cache = caches.partition(partition).ok_or(LiveError::NotOwner(partition))?;
        Ok(work(&mut cache))
    }

    /// Returns the point of its log that a partition has applied.
    ///
    /// # Errors
    /// [`LiveError::NotOwner`] if this node does not hold the partition.
    pub fn applied(&self, partition: PartitionId) -> Result<LogPoint, LiveError> {
        self.with(partition, |cache| cache.applied())
    }

    /// Returns the points that all held partitions have applied, ascending by partition.
    pub fn all_applied(&self) -> Vec<(PartitionId, LogPoint)> {
        let ids = self.ids();
        let mut caches = self.caches.lock();
        ids.into_iter().filter_map(|id| Some((id, caches.partition(id)?.applied()))).collect()
    }

    /// Returns the memory that the caches take.
    pub fn bytes(&self) -> u64 {
        self.caches.lock().counters().bytes
    }

    /// Returns the time since this value was made, by a clock that also advances while the machine is suspended.
    pub fn now(&self) -> Timestamp {
        Timestamp(boot_time().saturating_sub(self.started))
    }
}

fn boot_time() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::new(now.tv_sec.max(0) as u64, now.tv_nsec.max(0) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_come_and_go_and_those_that_stay_keep_their_caches() {
        let held = HeldPartitions::new(LiveCacheOptions::default());
        let ids = |ids: &[u32]| ids.iter().copied().map(PartitionId).collect::<Vec<_>>();
        let own = |some: &[u32]| ids(some).into_iter().collect::<BTreeSet<_>>();
        assert_eq!(held.hold(&own(&[1, 2])), []);
        let end = LogPoint::new(3, 7);
        held.with(PartitionId(2), |cache| cache.jump(end)).unwrap();
        assert_eq!(held.hold(&own(&[2, 5])), ids(&[1]));
        assert_eq!(held.ids(), ids(&[2, 5]));
        assert_eq!(
            held.all_applied(),
            [(PartitionId(2), end), (PartitionId(5), LogPoint::default())],
            "the cache of 2 was not opened again"
        );
        for lost in [held.applied(PartitionId(1)).map(drop), held.log_turn(PartitionId(1)).map(drop)] {
            assert!(matches!(lost, Err(LiveError::NotOwner(PartitionId(1)))));
        }
        assert!(held.contains(PartitionId(5)) && !held.contains(PartitionId(1)));
    }
}
