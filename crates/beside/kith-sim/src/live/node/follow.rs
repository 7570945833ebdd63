//! Follows logs and proves that caches are fresh, as `kith-node/src/live/{freshness,logs}.rs` do.

use super::{Me, Turn};
use crate::live::database::LogRead;
use crate::live::network::Fault;
use crate::live::promise::Giver;
use crate::live::{Shared, World};
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

pub(super) fn start(world: &Shared, me: Me) {
    let own = world.clone();
    world.spawn(me.process(), async move {
        loop {
            let held = own.nodes[me.index].borrow().held.clone();
            // A failure is ignored, because the next round tries again.
            let _ = own.freshen(me, held).await;
            own.sleep(INTERVAL).await;
        }
    });
}

impl World {
    pub(super) fn with_cache<T>(
        &self,
        me: Me,
        partition: PartitionId,
        work: impl FnOnce(&mut PartitionCache<'_, Giver<()>>, Timestamp) -> T,
    ) -> T {
        let mut node = self.nodes[me.index].borrow_mut();
        let now = node.local(self.now());
        let mut cache =
            node.caches.partition(partition).expect("a node is asked only for partitions that it holds");
        work(&mut cache, now)
    }

    /// Reads the ends of logs, applies the missing changes, and proves that the caches were fresh when this call began.
    pub(super) async fn freshen(self: &Shared, me: Me, held: Vec<PartitionId>) -> Result<(), ReadError> {
        let nonces: Vec<_> = held
            .iter()
            .map(|partition| {
                self.with_cache(me, *partition, |cache, now| (cache.ask_freshness(now), cache.seen()))
            })
            .collect();
        let asked = held.clone();
        let ends = self.database(move |database, _, _| {
            asked.iter().map(|partition| database.end(*partition)).collect::<Vec<_>>()
        });
        let mut result = Ok(());
        for ((partition, end), (nonce, before)) in held.into_iter().zip(ends.await?).zip(nonces) {
            if self.with_cache(me, partition, |cache, _| cache.was_replaced(before, end)) {
                self.replaced(me, partition, end);
            }
            match self.catch_up(me, partition, end).await {
                Ok(()) => {
                    self.with_cache(me, partition, |cache, now| cache.prove_freshness(nonce, end, now));
                }
                Err(error) => result = Err(error),
            }
        }
        result
    }

    /// Applies the log of a partition to the cache until the cache has reached `target`.
    pub(super) async fn catch_up(
        self: &Shared,
        me: Me,
        partition: PartitionId,
        target: LogPoint,
    ) -> Result<(), ReadError> {
        let toward = || self.with_cache(me, partition, |cache, _| cache.toward(target));
        if toward() == FollowStep::Reached {
            return Ok(());
        }
        let turn = Rc::clone(&self.nodes[me.index].borrow().turns[&partition]);
        let _turn = turn.take(self).await;
        loop {
            let end = match toward() {
                FollowStep::Reached => return Ok(()),
                FollowStep::End => self.jump_to_end(me, partition).await?,
                FollowStep::Changes { after } => {
                    let read = self.database(move |database, _, _| database.changes(partition, after));
                    match read.await? {
                        LogRead::Changes { changes, end } => {
                            let changes = changes.iter().map(|(point, change)| (*point, &**change));
                            let _ =
                                self.with_cache(me, partition, |cache, now| cache.follow(changes, end, now));
                            end
                        }
                        LogRead::HistoryLost { end } => {
                            self.replaced(me, partition, end);
                            end
                        }
                        LogRead::Trimmed => self.jump_to_end(me, partition).await?,
                    }
                }
            };
            if self.with_cache(me, partition, |cache, _| cache.lacks(target, end)) {
                return Err(ReadError::HistoryLost);
            }
        }
    }

    pub(super) async fn end_of(self: &Shared, partition: PartitionId) -> Result<LogPoint, ReadError> {
        Ok(self.database(move |database, _, _| database.end(partition)).await?)
    }

    fn replaced(self: &Shared, me: Me, partition: PartitionId, end: LogPoint) {
        let before = self.with_cache(me, partition, |cache, _| cache.replaced(end));
        self.tell(me, Event::Replaced { partition, before });
    }

    async fn jump_to_end(self: &Shared, me: Me, partition: PartitionId) -> Result<LogPoint, ReadError> {
        let end = self.end_of(partition).await?;
        self.with_cache(me, partition, |cache, _| cache.jump(end));
        Ok(end)
    }

    /// Checks that the log contains the place that `search` looks for.
    ///
    /// # Errors
    /// [`ReadError::HistoryLost`] if the log does not contain it.
    pub(super) async fn look_for(
        self: &Shared,
        me: Me,
        partition: PartitionId,
        search: Search,
    ) -> Result<(), ReadError> {
        let point = search.point();
        match self.database(move |database, _, _| database.changes(partition, point)).await? {
            LogRead::HistoryLost { .. } => Err(ReadError::HistoryLost),
            LogRead::Changes { .. } | LogRead::Trimmed => {
                self.with_cache(me, partition, |cache, _| cache.found(search));
                Ok(())
            }
        }
    }
}

/// The right to read a log, until it is dropped.
struct Taken<'a>(&'a Turn, &'a World);

/// Waits for the right to read a log.
struct Take<'a>(&'a Turn, &'a World);

impl Turn {
    fn take<'a>(&'a self, world: &'a World) -> Take<'a> {
        Take(self, world)
    }
}

impl<'a> Future for Take<'a> {
    type Output = Taken<'a>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Taken<'a>> {
        if self.0.is_taken.replace(true) {
            self.0.waits.borrow_mut().push(self.1.wakes.current());
            return Poll::Pending;
        }
        Poll::Ready(Taken(self.0, self.1))
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.0.is_taken.set(false);
        self.0.waits.borrow_mut().drain(..).for_each(|task| self.1.wakes.wake(task));
    }
}
