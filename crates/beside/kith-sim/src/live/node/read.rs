//! Answers reads, as `kith-node/src/live/{rows,read}.rs` does.

use super::NodeProcess;
use super::follow::ReadError;
use crate::live::promise::{Giver, promise};
use kith_cache::live::{DatedAnswer, FilledRows, LiveRead, LiveReadStep, MissDecision, Query};
use kith_cache::{AfterFailure, Failure, FlightId};
use kith_live::RowQuery;
use kith_types::{LogPoint, PartitionId, Timestamp};

/// A read as a client requested it.
#[derive(Clone, Debug)]
pub(in crate::live) struct ReadRequest {
    pub(in crate::live) partition: PartitionId,
    pub(in crate::live) query: Query,
    /// The place in the log that the client's ticket names.
    pub(in crate::live) ticket: LogPoint,
    pub(in crate::live) is_critical: bool,
    /// The time at which the client sent the request.
    pub(in crate::live) began: Timestamp,
}

pub(in crate::live) type ReadGiver = Giver<Result<DatedAnswer, ReadError>>;

impl NodeProcess {
    /// Answers a read that has arrived at a process.
    pub(in crate::live) fn read_arrives(&self, asked: ReadRequest, answer: ReadGiver) {
        let own = self.clone();
        self.world.executor.spawn(self.me.process(), async move {
            let result = own.read(&asked).await;
            if result == Err(ReadError::HistoryLost) {
                own.world.truth.borrow_mut().check_history_lost(&asked, own.world.executor.now());
            }
            answer.give(result);
        });
    }

    async fn read(&self, asked: &ReadRequest) -> Result<DatedAnswer, ReadError> {
        let partition = asked.partition;
        let verified = match asked.is_critical {
            true => Some(self.end_of(partition).await?),
            false => None,
        };
        let mut reading = LiveRead::new(asked.query.clone(), asked.ticket, verified);
        loop {
            let step = self.with_cache(partition, |cache, now| reading.next(cache, now));
            match step {
                LiveReadStep::Answer(answered) => {
                    let rate = self.world.nodes[self.me.index].borrow().clock_rate;
                    let now = self.world.executor.now();
                    self.world.truth.borrow_mut().check_read(asked, &answered, now, rate);
                    return Ok(answered);
                }
                LiveReadStep::CatchUp(point) => self.catch_up(partition, point).await?,
                LiveReadStep::Find(search) => self.look_for(partition, search).await?,
                LiveReadStep::Freshen => self.freshen(vec![partition]).await?,
                LiveReadStep::Fetch(rows) => reading.filled(self.bring(partition, rows).await?),
                LiveReadStep::GiveUp => return Err(ReadError::Behind),
            }
        }
    }

    /// Reads rows of a partition from the database, or waits until other tasks have read them.
    async fn bring(&self, partition: PartitionId, rows: Vec<RowQuery>) -> Result<Vec<FilledRows>, ReadError> {
        let (mut fetch, mut waits, mut is_busy) = (Vec::new(), Vec::new(), false);
        self.with_cache(partition, |cache, _| {
            for row in rows {
                match cache.begin(&row) {
                    MissDecision::Fetch(flight) => fetch.push((flight, row)),
                    MissDecision::Join(flight) => {
                        let (waiter, wait) = promise(&self.world.executor.wakes);
                        if cache.join(flight, waiter).is_ok() {
                            waits.push(wait);
                        }
                    }
                    MissDecision::Busy | MissDecision::Uncached => is_busy = true,
                }
            }
        });
        if is_busy && fetch.is_empty() && waits.is_empty() {
            return Err(ReadError::Behind);
        }
        let filled = if fetch.is_empty() { Vec::new() } else { self.fetch(partition, fetch).await? };
        for wait in waits {
            wait.await;
        }
        Ok(filled)
    }

    async fn fetch(
        &self,
        partition: PartitionId,
        fetch: Vec<(FlightId, RowQuery)>,
    ) -> Result<Vec<FilledRows>, ReadError> {
        let queries: Vec<RowQuery> = fetch.iter().map(|(_, query)| query.clone()).collect();
        let read = self.world.database(move |database, _, _| database.read(partition, &queries)).await;
        let mut filled = Vec::new();
        self.with_cache(partition, |cache, _| {
            for (index, (flight, query)) in fetch.iter().enumerate() {
                match &read {
                    Ok(rows) => {
                        let landed = cache.land(*flight, rows.at, query, &rows.answers[index]);
                        landed.waiters.into_iter().for_each(|waiter| waiter.give(()));
                        filled.extend(landed.filled);
                    }
                    Err(_) => {
                        if let AfterFailure::Wake(waiters) = cache.failed(*flight, query, Failure::Everyone) {
                            waiters.into_iter().for_each(|waiter| waiter.give(()));
                        }
                    }
                }
            }
        });
        read?;
        Ok(filled)
    }
}
