//! The current ends of logs, for critical reads and proofs of freshness. Callers that wait for the end of the same log share
//! reads of the database (TAO §4.4: a server never sends the same query to a database twice at the same time).

use super::errors::LiveError;
use kith_cache::live::{Verifier, VerifyOutcome};
use kith_types::{LogPoint, PartitionId};
use parking_lot::Mutex;
use std::{collections::BTreeMap, sync::Arc};
use tokio::sync::oneshot;

type End = Result<LogPoint, LiveError>;

/// The reads in progress, by partition.
#[derive(Default)]
pub(super) struct Ends {
    verifiers: Mutex<BTreeMap<PartitionId, Verifier<oneshot::Sender<End>>>>,
}

impl Ends {
    /// Returns the end of a partition's log, according to a `read` that begins after this call. If a read is already in
    /// progress, the next one begins when it ends, and answers all calls that arrived in the meantime.
    pub async fn get<F>(
        self: &Arc<Self>,
        partition: PartitionId,
        read: impl Fn() -> F + Send + 'static,
    ) -> End
    where
        F: Future<Output = End> + Send,
    {
        let (waiter, wait) = oneshot::channel();
        let begins = self.verifiers.lock().entry(partition).or_default().arrive(waiter);
        if begins {
            // The read runs in a task of its own, so that other callers get their answer even if this one goes away.
            let ends = Arc::clone(self);
            tokio::spawn(async move { while ends.ended(partition, read().await) {} });
        }
        wait.await.map_err(|_| LiveError::Busy(partition))?
    }

    /// Answers the callers that waited for a read. Returns whether other callers wait for the next one.
    fn ended(&self, partition: PartitionId, end: End) -> bool {
        let VerifyOutcome { waiters, again } = {
            let mut verifiers = self.verifiers.lock();
            let verified = verifiers.entry(partition).or_default().ended();
            if !verified.again {
                verifiers.remove(&partition);
            }
            verified
        };
        for waiter in waiters {
            // The caller may have gone away.
            let _ = waiter.send(end.clone());
        }
        again
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::future::join_all;
    use std::sync::atomic::{AtomicU64, Ordering};
    use tokio::sync::Semaphore;

    /// A log that grows by one change with each read. Reads end when the test permits it.
    struct Log {
        reads: AtomicU64,
        may_end: Semaphore,
    }

    fn log() -> Arc<Log> {
        Arc::new(Log { reads: AtomicU64::new(0), may_end: Semaphore::new(0) })
    }

    fn read(log: &Arc<Log>) -> impl Fn() -> futures::future::BoxFuture<'static, End> + Send + 'static {
        let log = Arc::clone(log);
        move || {
            let log = Arc::clone(&log);
            Box::pin(async move {
                let end = log.reads.fetch_add(1, Ordering::Relaxed) + 1;
                log.may_end.acquire().await.expect("it stays open").forget();
                Ok(LogPoint::new(1, end))
            })
        }
    }

    #[tokio::test]
    async fn calls_that_arrive_during_a_read_share_the_next_one() {
        let (ends, log) = (Arc::new(Ends::default()), log());
        let call = || {
            let (ends, read) = (Arc::clone(&ends), read(&log));
            tokio::spawn(async move { ends.get(PartitionId(3), read).await.expect("it can be read") })
        };
        let first = call();
        while log.reads.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        let others: Vec<_> = (0..100).map(|_| call()).collect();
        tokio::task::yield_now().await;
        log.may_end.add_permits(2);
        assert_eq!(first.await.expect("it ends"), LogPoint::new(1, 1));
        for end in join_all(others).await {
            assert_eq!(end.expect("it ends"), LogPoint::new(1, 2), "read after the call");
        }
        assert_eq!(log.reads.load(Ordering::Relaxed), 2);
        assert!(ends.verifiers.lock().is_empty());
    }

    #[tokio::test]
    async fn a_caller_that_goes_away_holds_up_nobody_and_partitions_do_not_wait_for_each_other() {
        let (ends, log) = (Arc::new(Ends::default()), log());
        let gone = Arc::clone(&ends);
        let read_of = read(&log);
        let gone = tokio::spawn(async move { gone.get(PartitionId(3), read_of).await });
        while log.reads.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        gone.abort();
        let waiting = [PartitionId(3), PartitionId(4)].map(|partition| ends.get(partition, read(&log)));
        log.may_end.add_permits(3);
        assert!(join_all(waiting).await.into_iter().all(|end| end.is_ok()));
        assert_eq!(log.reads.load(Ordering::Relaxed), 3);
    }
}
