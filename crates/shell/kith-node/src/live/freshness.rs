//! Keeps the partitions of a node fresh: asks the database for the ends of their logs, and reads the missing changes.

use super::{
    database::GraphDatabase, ends::Ends, errors::LiveError, lists::LiveLists, logs::FollowedLogs,
    partitions::HeldPartitions,
};
use futures::{StreamExt, stream};
use kith_cache::live::Nonce;
use kith_types::{LogPoint, PartitionId};
use std::{sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// The interval at which the ends of all logs are read: a quarter of the time for which a partition is fresh.
const INTERVAL: Duration = Duration::from_millis(500);
/// The number of logs that are read at the same time.
const LOGS_AT_A_TIME: usize = 4;

/// Proves that the partitions of one graph are fresh.
pub(super) struct Freshener {
    database: Arc<GraphDatabase>,
    partitions: Arc<HeldPartitions>,
    lists: Arc<LiveLists>,
    logs: Arc<FollowedLogs>,
    /// The reads of the ends of logs.
    ends: Arc<Ends>,
}

impl Freshener {
    /// Returns a freshener of the partitions whose logs are followed.
    pub fn new(logs: Arc<FollowedLogs>) -> Self {
        Self {
            database: Arc::clone(&logs.database),
            partitions: Arc::clone(&logs.partitions),
            lists: Arc::clone(&logs.lists),
            logs,
            ends: Arc::default(),
        }
    }

    /// Starts a task that follows the logs of all held partitions.
    pub fn start(self: &Arc<Self>, stop: CancellationToken) {
        let freshener = Arc::clone(self);
        tokio::spawn(async move { stop.run_until_cancelled(freshener.follow()).await });
    }

    async fn follow(&self) {
        let graph = &self.logs.graph;
        loop {
            if let Err(error) = self.follow_logs().await {
                tracing::debug!(graph, %error, "logs cannot be followed now");
                metrics::counter!("kith_live_follow_failures_total").increment(1);
            }
            self.lists.forget();
            report_bytes(graph, self.partitions.bytes(), self.lists.bytes());
            tokio::time::sleep(INTERVAL).await;
        }
    }

    /// Brings all held partitions to the ends of their logs. The failure of one partition does not stop the others. Returns
    /// the first error.
    async fn follow_logs(&self) -> Result<(), LiveError> {
        let held = self.partitions.ids();
        let mut result = match held.is_empty() {
            true => Ok(()),
            false => self.freshen(held.clone()).await,
        };
        for partition in held {
            result = result.and(self.lists.bring_to_cache(partition).await);
        }
        result
    }

    /// Reads the ends of the logs of these partitions, applies the missing changes, and proves that the partitions were
    /// fresh when this call began.
    ///
    /// # Errors
    /// If the database cannot be read, or this node does not hold a partition.
    pub async fn freshen(&self, partitions: Vec<PartitionId>) -> Result<(), LiveError> {
        let nonces = self.ask_freshness(&partitions);
        let ends = self.database.points(partitions.clone()).await;
        self.database.note(ends.as_ref().err());
        let ends = ends?;
        let ended = partitions.into_iter().zip(ends).zip(nonces);
        let caught_up = stream::iter(ended).map(async |((partition, end), asked)| {
            if let Some((_, before)) = asked {
                self.notice_replaced(partition, before, end)?;
            }
            self.prove_fresh(partition, asked.map(|(nonce, _)| nonce), end).await
        });
        let results: Vec<Result<(), LiveError>> = caught_up.buffer_unordered(LOGS_AT_A_TIME).collect().await;
        results.into_iter().collect()
    }

    /// Freshens one partition as [`Self::freshen`] does. Concurrent calls for the same partition share reads of the
    /// database.
    ///
    /// # Errors
    /// The errors are those of [`Self::freshen`].
    pub async fn freshen_one(&self, partition: PartitionId) -> Result<(), LiveError> {
        let asked = self.ask_freshness(&[partition]).into_iter().flatten().next();
        let end = self.verified_end(partition).await?;
        self.prove_fresh(partition, asked.map(|(nonce, _)| nonce), end).await
    }

    /// Returns the end of a partition's log, according to a read of the database that begins after this call. If the
    /// database has lost the history that the cache follows, the cache is emptied first.
    ///
    /// # Errors
    /// If the database cannot be read, or this node does not hold the partition.
    pub async fn verified_end(&self, partition: PartitionId) -> Result<LogPoint, LiveError> {
        let before = self.partitions.with(partition, |cache| cache.seen())?;
        let database = Arc::clone(&self.database);
        let read = move || {
            let database = Arc::clone(&database);
            async move { database.end_of(partition).await }
        };
        let end = self.ends.get(partition, read).await?;
        self.notice_replaced(partition, before, end)?;
        Ok(end)
    }

    /// Applies the missing changes up to `end`, which was read from the database after `nonce` was drawn, and proves
    /// freshness.
    async fn prove_fresh(
        &self,
        partition: PartitionId,
        nonce: Option<Nonce>,
        end: LogPoint,
    ) -> Result<(), LiveError> {
        self.logs.catch_up(partition, end).await?;
        let now = self.partitions.now();
        if let Some(nonce) = nonce {
            // The partition may have been lost meanwhile, and needs no proof then.
            let _ = self.partitions.with(partition, |cache| cache.prove_freshness(nonce, end, now));
        }
        Ok(())
    }

    /// Begins a proof of freshness. Returns, for each partition, the nonce and the point that its log is known to have
    /// reached.
    fn ask_freshness(&self, partitions: &[PartitionId]) -> Vec<Option<(Nonce, LogPoint)>> {
        let now = self.partitions.now();
        let mut caches = self.partitions.lock();
        let ask = |partition: &PartitionId| {
            let mut cache = caches.partition(*partition)?;
            Some((cache.ask_freshness(now), cache.seen()))
        };
        partitions.iter().map(ask).collect()
    }

    /// Checks whether a log has lost a point that it was known to have reached, and begins again at its end in this case.
    fn notice_replaced(
        &self,
        partition: PartitionId,
        before: LogPoint,
        end: LogPoint,
    ) -> Result<(), LiveError> {
        if self.partitions.with(partition, |cache| cache.was_replaced(before, end)).unwrap_or(false) {
            self.logs.replaced(partition, end)?;
        }
        Ok(())
    }
}

/// Sets the metrics of the memory that the caches and the lists of a graph take.
pub(super) fn report_bytes(graph: &str, cached: u64, listed: u64) {
    let set = |name: &'static str, bytes: u64| {
        metrics::gauge!(name, "graph" => graph.to_owned()).set(bytes as f64);
    };
    set("kith_live_cache_bytes", cached);
    set("kith_live_list_bytes", listed);
}
