//! Follows logs and proves that caches are fresh, as `kith-node/src/live/{freshness,logs}.rs` do.

use super::{NodeProcess, Turn};
use crate::live::database::LogRead;
use crate::live::executor::WakeQueue;
use crate::live::network::Fault;
use crate::live::promise::Giver;
use kith_cache::live::{FollowStep, PartitionCache, Search};
use kith_live::Event;
use kith_types::{LogPoint, PartitionId, Timestamp};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

/// The interval at which a node reads the ends of all its logs.
const INTERVAL: Duration = Duration::from_millis(500);

/// The reasons for which a read fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::live) enum ReadError {
    /// The database does not answer.
    Database,
    /// The ticket names a place in the log that the log does not contain.
    HistoryLost,
    /// Changes arrive faster than the node reads them, or too many rows are being read.
    Behind,
}

impl From<Fault> for ReadError {
    fn from(_: Fault) -> Self {
        ReadError::Database
    }
}

pub(super) fn start(process: &NodeProcess) {
    let own = process.clone();
    process.world.executor.spawn(process.me.process(), async move {
        loop {
            let held = own.world.nodes[own.me.index].borrow().held.clone();
            // A failure is ignored, because the next round tries again.
            let _ = own.freshen(held).await;
            own.world.executor.sleep(INTERVAL).await;
        }
    });
}

impl NodeProcess {
    pub(super) fn with_cache<T>(
        &self,
        partition: PartitionId,
        work: impl FnOnce(&mut PartitionCache<'_, Giver<()>>, Timestamp) -> T,
    ) -> T {
        let mut node = self.world.nodes[self.me.index].borrow_mut();
        let now = node.local(self.world.executor.now());
        let mut cache =
            node.caches.partition(partition).expect("a node is asked only for partitions that it holds");
        work(&mut cache, now)
    }

    /// Reads the ends of logs, applies the missing changes, and proves that the caches were fresh when this call began.
    pub(super) async fn freshen(&self, held: Vec<PartitionId>) -> Result<(), ReadError> {
        let nonces: Vec<_> = held
            .iter()
            .map(|partition| {
                self.with_cache(*partition, |cache, now| (cache.ask_freshness(now), cache.seen()))
            })
            .collect();
        let asked = held.clone();
        let ends = self.world.database(move |database, _, _| {
            asked.iter().map(|partition| database.end(*partition)).collect::<Vec<_>>()
        });
        let mut result = Ok(());
        for ((partition, end), (nonce, before)) in held.into_iter().zip(ends.await?).zip(nonces) {
            if self.with_cache(partition, |cache, _| cache.was_replaced(before, end)) {
                self.replaced(partition, end);
            }
            match self.catch_up(partition, end).await {
                Ok(()) => {
                    self.with_cache(partition, |cache, now| cache.prove_freshness(nonce, end, now));
                }
                Err(error) => result = Err(error),
            }
        }
        result
    }

    /// Applies the log of a partition to the cache until the cache has reached `target`.
    pub(super) async fn catch_up(&self, partition: PartitionId, target: LogPoint) -> Result<(), ReadError> {
        let toward = || self.with_cache(partition, |cache, _| cache.toward(target));
        if toward() == FollowStep::Reached {
            return Ok(());
        }
        let turn = Rc::clone(&self.world.nodes[self.me.index].borrow().turns[&partition]);
        let _turn = turn.take(&self.world.executor.wakes).await;
        loop {
            let end = match toward() {
                FollowStep::Reached => return Ok(()),
                FollowStep::End => self.jump_to_end(partition).await?,
                FollowStep::Changes { after } => {
                    let read = self.world.database(move |database, _, _| database.changes(partition, after));
                    match read.await? {
                        LogRead::Changes { changes, end } => {
                            let changes = changes.iter().map(|(point, change)| (*point, &**change));
                            let _ = self.with_cache(partition, |cache, now| cache.follow(changes, end, now));
                            end
                        }
                        LogRead::HistoryLost { end } => {
                            self.replaced(partition, end);
                            end
                        }
                        LogRead::Trimmed => self.jump_to_end(partition).await?,
                    }
                }
            };
            if self.with_cache(partition, |cache, _| cache.lacks(target, end)) {
                return Err(ReadError::HistoryLost);
            }
        }
    }

    pub(super) async fn end_of(&self, partition: PartitionId) -> Result<LogPoint, ReadError> {
        Ok(self.world.database(move |database, _, _| database.end(partition)).await?)
    }

    fn replaced(&self, partition: PartitionId, end: LogPoint) {
        let before = self.with_cache(partition, |cache, _| cache.replaced(end));
        self.tell(Event::Replaced { partition, before });
    }

    async fn jump_to_end(&self, partition: PartitionId) -> Result<LogPoint, ReadError> {
        let end = self.end_of(partition).await?;
        self.with_cache(partition, |cache, _| cache.jump(end));
        Ok(end)
    }

    /// Checks that the log contains the place that `search` looks for.
    ///
    /// # Errors
    /// [`ReadError::HistoryLost`] if the log does not contain it.
    pub(super) async fn look_for(&self, partition: PartitionId, search: Search) -> Result<(), ReadError> {
        let point = search.point();
        match self.world.database(move |database, _, _| database.changes(partition, point)).await? {
            LogRead::HistoryLost { .. } => Err(ReadError::HistoryLost),
            LogRead::Changes { .. } | LogRead::Trimmed => {
                self.with_cache(partition, |cache, _| cache.found(search));
                Ok(())
            }
        }
    }
}

/// The right to read a log, until it is dropped.
struct Taken<'a>(&'a Turn, &'a WakeQueue);

/// Waits for the right to read a log.
struct Take<'a>(&'a Turn, &'a WakeQueue);

impl Turn {
    fn take<'a>(&'a self, wakes: &'a WakeQueue) -> Take<'a> {
        Take(self, wakes)
    }
}

impl<'a> Future for Take<'a> {
    type Output = Taken<'a>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Taken<'a>> {
        if self.0.is_taken.replace(true) {
            self.0.waits.borrow_mut().push(self.1.current());
            return Poll::Pending;
        }
        Poll::Ready(Taken(self.0, self.1))
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.0.is_taken.set(false);
        self.0.waits.borrow_mut().drain(..).for_each(|task| self.1.wake(task));
    }
}
