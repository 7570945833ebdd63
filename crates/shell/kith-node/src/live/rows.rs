//! Reads rows of one partition: from memory if they are proven to be fresh enough, otherwise from the database.

use super::{
    database::GraphDatabase,
    errors::LiveError,
    freshness::Freshener,
    logs::FollowedLogs,
    partitions::{HeldPartitions, Waiter},
    turns::{Turn, Turns},
};
use kith_cache::{
    AfterFailure, Failure, FlightId,
    live::{DatedAnswer, FilledRows, LiveRead, LiveReadStep, MissDecision, Query},
};
use kith_database::DatabaseError;
use kith_live::{RowQuery, RowsAt};
use kith_types::{LogPoint, PartitionId};
use std::{collections::BTreeMap, sync::Arc};
use tokio::sync::oneshot;

/// The requirements on the freshness of a read.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadNeed {
    /// The point of the log that the read must have reached, by partition.
    pub after: BTreeMap<PartitionId, LogPoint>,
    /// Whether the read must see all writes from before its arrival.
    pub critical: bool,
}

/// The rows of one partition that a read fetches from the database.
type Fetch = Vec<(FlightId, RowQuery)>;

/// Reads rows of one graph.
pub(super) struct RowReader {
    database: Arc<GraphDatabase>,
    partitions: Arc<HeldPartitions>,
    logs: Arc<FollowedLogs>,
    freshener: Arc<Freshener>,
    /// The turns of reads that fetch rows from the database.
    pub turns: Turns,
}

impl RowReader {
    /// Returns a reader of the partitions whose logs are followed.
    pub fn new(logs: Arc<FollowedLogs>, freshener: Arc<Freshener>) -> Self {
        Self {
            database: Arc::clone(&logs.database),
            partitions: Arc::clone(&logs.partitions),
            logs,
            freshener,
            turns: Turns::default(),
        }
    }

    /// Answers a query of one partition.
    pub async fn read(
        self: &Arc<Self>,
        partition: PartitionId,
        query: Query,
        need: &ReadNeed,
    ) -> Result<DatedAnswer, LiveError> {
        let ticket = need.after.get(&partition).copied().unwrap_or_default();
        let verified = match need.critical {
            true => Some(self.freshener.verified_end(partition).await?),
            false => None,
        };
        let mut reading = LiveRead::new(query, ticket, verified);
        let (mut turn, mut memory) = (None, self.turns.memory());
        loop {
            let step = {
                let now = self.partitions.now();
                self.partitions.with(partition, |cache| reading.next(cache, now))?
            };
            // A turn is for a statement of this read, so it is not kept while the read waits for something else.
            if !matches!(step, LiveReadStep::Fetch(_)) {
                turn = None;
            }
            match step {
                LiveReadStep::Answer(answered) => return Ok(answered),
                LiveReadStep::CatchUp(point) => self.logs.catch_up(partition, point).await?,
                LiveReadStep::Find(search) => self.logs.look_for(partition, search).await?,
                LiveReadStep::Freshen => self.freshener.freshen_one(partition).await?,
                LiveReadStep::Fetch(rows) => {
                    let skips = rows.iter().any(skips);
                    let own = turn.take().filter(|turn: &Turn| turn.is_for(skips));
                    match own.or_else(|| self.turns.now(skips)) {
                        Some(turn) => {
                            reading.filled(self.bring(partition, rows, turn).await?);
                            memory.grow_to(partition, reading.bytes())?;
                        }
                        // Other reads may have fetched the rows by then, so the cache is asked again.
                        None => turn = Some(self.turns.wait(partition, skips).await?),
                    }
                }
                LiveReadStep::GiveUp => return Err(LiveError::Behind(partition)),
            }
        }
    }

    /// Reads rows of a partition from the database, or waits until other reads have fetched them.
    async fn bring(
        self: &Arc<Self>,
        partition: PartitionId,
        rows: Vec<RowQuery>,
        turn: Turn,
    ) -> Result<Vec<FilledRows>, LiveError> {
        let (mut fetch, mut waits) = (Fetch::new(), Vec::new());
        {
            let mut caches = self.partitions.lock();
            let mut cache = caches.partition(partition).ok_or(LiveError::NotOwner(partition))?;
            let mut is_busy = false;
            for row in rows {
                match cache.begin(&row) {
                    MissDecision::Fetch(flight) => fetch.push((flight, row)),
                    MissDecision::Join(flight) => {
                        let (waiter, wait) = oneshot::channel();
                        if cache.join(flight, waiter).is_ok() {
                            waits.push(wait);
                        }
                    }
                    MissDecision::Busy | MissDecision::Uncached => is_busy = true,
                }
            }
            if is_busy && fetch.is_empty() && waits.is_empty() {
                return Err(LiveError::Busy(partition));
            }
        }
        // The fetch runs in a task of its own, so that other reads get the rows even if this caller goes away.
        let mut rows = Vec::new();
        if fetch.is_empty() {
            drop(turn);
        } else {
            let reader = Arc::clone(self);
            let fetching = tokio::spawn(async move {
                let _turn = turn;
                reader.fetch(partition, fetch).await
            });
            rows = fetching.await.map_err(|_| LiveError::Busy(partition))??;
        }
        for wait in waits {
            // If the flight ended otherwise, because the partition was closed, the next step says so.
            if let Ok(arrived) = wait.await {
                rows.extend(arrived?);
            }
        }
        Ok(rows)
    }

    async fn fetch(&self, partition: PartitionId, fetch: Fetch) -> Result<Vec<FilledRows>, LiveError> {
        metrics::counter!("kith_live_fills_total").increment(fetch.len() as u64);
        let queries = fetch.iter().map(|(_, query)| query.clone()).collect();
        let read = self.database.read(partition, queries).await;
        let mut caches = self.partitions.lock();
        let Some(mut cache) = caches.partition(partition) else {
            return Err(LiveError::NotOwner(partition));
        };
        let (rows, error) = match read {
            Ok(rows) => (rows, None),
            Err(error) => (RowsAt { at: LogPoint::default(), answers: Vec::new() }, Some(error)),
        };
        let (mut filled, mut answers) = (Vec::new(), rows.answers.iter());
        for (flight, query) in &fetch {
            match answers.next() {
                Some(answer) => {
                    let landed = cache.land(*flight, rows.at, query, answer);
                    wake(landed.waiters, &Ok(landed.filled.clone()));
                    match landed.filled {
                        Some(rows) => filled.push(rows),
                        None => metrics::counter!("kith_live_fills_refused_total").increment(1),
                    }
                }
                None => {
                    if let AfterFailure::Wake(waiters) = cache.failed(*flight, query, Failure::Everyone) {
                        let short =
                            || DatabaseError::Damaged { detail: "it returned too few rows".to_owned() };
                        wake(waiters, &Err(error.clone().unwrap_or_else(short)));
                    }
                }
            }
        }
        error.map_or(Ok(filled), |error| Err(error.into()))
    }
}

/// Whether the database passes over a part of a list to answer this query.
fn skips(query: &RowQuery) -> bool {
    matches!(query, RowQuery::List { skip: 1.., .. })
}

/// Gives rows, or the reason why there are none, to the reads that waited for them.
fn wake(waiters: Vec<Waiter>, arrived: &Result<Option<FilledRows>, DatabaseError>) {
    for waiter in waiters {
        // The read may have been cancelled.
        let _ = waiter.send(arrived.clone());
    }
}
