//! The turns of reads that fetch rows from the database. A bounded number of statements runs at a time; the other reads
//! wait for their turn in the order of their arrival, until their deadlines. The rows of all reads have a bound too.

use super::errors::LiveError;
use kith_types::PartitionId;
use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The most statements of reads under way. The limit of calls to a database process is twice as high, so that commits
/// never wait for reads.
const STATEMENTS_MAX: usize = 32;

/// The most of these statements that pass over a part of a list to an index. Each takes the processor of the database for many times
/// as long as another one, which would hold up writes.
const SKIPPING_MAX: usize = 2;

/// The most reads that wait for a turn. Each waits with the ids that it asks for; further ones are refused.
const WAITING_MAX: usize = 16_384;

/// The most bytes of the rows of one read of one partition.
const READ_BYTES_MAX: u64 = 256 << 20;

/// The most bytes of the rows of all reads.
const ROWS_BYTES_MAX: u64 = 1 << 30;

/// Lets reads take turns.
pub(super) struct Turns {
    free: Arc<Semaphore>,
    skipping: Arc<Semaphore>,
    waiting: AtomicUsize,
    bytes: AtomicU64,
}

/// The right to run one statement.
pub(super) struct Turn {
    _statement: OwnedSemaphorePermit,
    skipping: Option<OwnedSemaphorePermit>,
}

impl Turn {
    /// Whether the turn is enough for a statement that passes over a part of a list, or for any other one.
    pub fn is_for(&self, skips: bool) -> bool {
        self.skipping.is_some() == skips
    }
}

/// The memory of the rows of one read, which is given back when the read ends.
pub(super) struct RowMemory<'a> {
    of: &'a Turns,
    bytes: u64,
}

impl Default for Turns {
    fn default() -> Self {
        Self {
            free: Arc::new(Semaphore::new(STATEMENTS_MAX)),
            skipping: Arc::new(Semaphore::new(SKIPPING_MAX)),
            waiting: AtomicUsize::default(),
            bytes: AtomicU64::default(),
        }
    }
}

impl Turns {
    /// Returns a turn; `None` if the read must wait for one. `skips` says whether its statement passes over a part of a list.
    pub fn now(&self, skips: bool) -> Option<Turn> {
        let skipping = skips.then(|| Arc::clone(&self.skipping).try_acquire_owned()).transpose().ok()?;
        Some(Turn { _statement: Arc::clone(&self.free).try_acquire_owned().ok()?, skipping })
    }

    /// Waits for a turn.
    ///
    /// # Errors
    /// [`LiveError::Busy`] if too many reads wait already.
    pub async fn wait(&self, partition: PartitionId, skips: bool) -> Result<Turn, LiveError> {
        struct WaitCount<'a>(&'a AtomicUsize);
        impl Drop for WaitCount<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Relaxed);
            }
        }
        let before = self.waiting.fetch_add(1, Relaxed);
        let _waiting = WaitCount(&self.waiting);
        if WAITING_MAX <= before {
            return Err(LiveError::Busy(partition));
        }
        let acquire = async |of: &Arc<Semaphore>| {
            Arc::clone(of).acquire_owned().await.map_err(|_| LiveError::Busy(partition))
        };
        let skipping = if skips { Some(acquire(&self.skipping).await?) } else { None };
        Ok(Turn { _statement: acquire(&self.free).await?, skipping })
    }

    /// Returns the memory of a read that has no rows yet.
    pub fn memory(&self) -> RowMemory<'_> {
        RowMemory { of: self, bytes: 0 }
    }
}

impl RowMemory<'_> {
    /// Charges the rows that a read holds now.
    ///
    /// # Errors
    /// [`LiveError::TooLarge`] if they are too large for one read; [`LiveError::Busy`] if the rows of all reads are.
    pub fn grow_to(&mut self, partition: PartitionId, bytes: u64) -> Result<(), LiveError> {
        let more = bytes.saturating_sub(self.bytes);
        self.bytes += more;
        let all = self.of.bytes.fetch_add(more, Relaxed) + more;
        if READ_BYTES_MAX < bytes {
            return Err(LiveError::TooLarge { partition, most: READ_BYTES_MAX });
        }
        if ROWS_BYTES_MAX < all { Err(LiveError::Busy(partition)) } else { Ok(()) }
    }
}

impl Drop for RowMemory<'_> {
    fn drop(&mut self) {
        self.of.bytes.fetch_sub(self.bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn reads_beyond_the_statements_wait_for_their_turn() {
        let turns = Arc::new(Turns::default());
        let mut held: Vec<Turn> = std::iter::from_fn(|| turns.now(false)).collect();
        assert_eq!(held.len(), STATEMENTS_MAX);
        let others = (0..300).map(|_| {
            let turns = Arc::clone(&turns);
            tokio::spawn(async move { turns.wait(PartitionId(3), false).await.map(drop) })
        });
        let others: Vec<_> = others.collect();
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert!(others.iter().all(|other| !other.is_finished()));
        held.pop();
        for other in others {
            assert!(other.await.expect("it ends").is_ok());
        }
        assert_eq!(turns.waiting.load(Relaxed), 0);
    }

    #[tokio::test]
    async fn waiting_reads_are_bounded_and_leave_when_they_are_cancelled() {
        let turns = Turns::default();
        let _held: Vec<Turn> = std::iter::from_fn(|| turns.now(false)).collect();
        turns.waiting.store(WAITING_MAX, Relaxed);
        assert!(matches!(turns.wait(PartitionId(3), false).await, Err(LiveError::Busy(_))));
        turns.waiting.store(0, Relaxed);
        let late = tokio::time::timeout(Duration::from_millis(5), turns.wait(PartitionId(3), false)).await;
        assert!(late.is_err() && turns.waiting.load(Relaxed) == 0);
    }

    #[tokio::test]
    async fn few_statements_that_skip_run_at_a_time_and_hold_up_no_others() {
        let turns = Arc::new(Turns::default());
        let mut skipping: Vec<Turn> = std::iter::from_fn(|| turns.now(true)).collect();
        assert!(skipping.len() == SKIPPING_MAX && skipping.iter().all(|turn| turn.is_for(true)));
        let waiting = tokio::spawn({
            let turns = Arc::clone(&turns);
            async move { turns.wait(PartitionId(3), true).await.map(drop) }
        });
        tokio::time::sleep(Duration::from_millis(10)).await;
        let others: Vec<Turn> = std::iter::from_fn(|| turns.now(false)).collect();
        assert_eq!(others.len(), STATEMENTS_MAX - SKIPPING_MAX, "who waits to skip holds no turn");
        assert!(!waiting.is_finished());
        skipping.pop();
        assert!(waiting.await.expect("it ends").is_ok());
    }

    #[test]
    fn the_rows_of_all_reads_have_a_bound_and_are_given_back() {
        let turns = Turns::default();
        let part = PartitionId(3);
        let too_large = turns.memory().grow_to(part, READ_BYTES_MAX + 1);
        assert!(matches!(too_large, Err(LiveError::TooLarge { .. })));
        let mut reads: Vec<_> = (0..5).map(|_| turns.memory()).collect();
        let last = reads.iter_mut().map(|read| read.grow_to(part, READ_BYTES_MAX)).last();
        assert!(matches!(last, Some(Err(LiveError::Busy(_)))));
        drop(reads);
        assert_eq!(turns.bytes.load(Relaxed), 0);
    }
}
