//! Keeps the partitions of a node fresh: asks the database for the ends of their logs, and reads the missing changes.

use super::{errors::LiveError, graph::LiveGraph};
use futures::{StreamExt, stream};
use kith_cache::live::Nonce;
use kith_types::{LogPoint, PartitionId};
use std::{
    sync::{Arc, Weak},
    time::Duration,
};
use tokio_util::sync::CancellationToken;

/// The interval at which the ends of all logs are read: a quarter of the time for which a partition is fresh.
const INTERVAL: Duration = Duration::from_millis(500);
/// The number of logs that are read at the same time.
const LOGS_AT_A_TIME: usize = 4;

/// Starts a task that follows the logs of a graph.
pub(super) fn start(graph: &Arc<LiveGraph>, stop: CancellationToken) {
    let graph = Arc::downgrade(graph);
    tokio::spawn(async move { stop.run_until_cancelled(follow(graph)).await });
}

async fn follow(graph: Weak<LiveGraph>) {
    loop {
        let Some(graph) = graph.upgrade() else { return };
        if let Err(error) = graph.follow_logs().await {
            tracing::debug!(graph = graph.name, %error, "logs cannot be followed now");
            metrics::counter!("kith_live_follow_failures_total").increment(1);
        }
        graph.adjacency.forget(graph.now());
        graph.report_bytes();
        drop(graph);
        tokio::time::sleep(INTERVAL).await;
    }
}

impl LiveGraph {
    /// Brings all held partitions to the ends of their logs. The failure of one partition does not stop the others. Returns
    /// the first error.
    async fn follow_logs(&self) -> Result<(), LiveError> {
        let held = self.held();
        let mut result = match held.is_empty() {
            true => Ok(()),
            false => self.freshen(held.clone()).await,
        };
        for partition in held {
            result = result.and(self.bring_lists_on(partition).await);
        }
        result
    }

    /// Reads the ends of the logs of these partitions, applies the missing changes, and proves that the partitions were
    /// fresh when this call began.
    ///
    /// # Errors
    /// If the database cannot be read, or this node does not hold a partition.
    pub(super) async fn freshen(&self, partitions: Vec<PartitionId>) -> Result<(), LiveError> {
        let nonces = self.ask_freshness(&partitions);
        let ends = self.database.points(partitions.clone()).await;
        self.note_database(ends.as_ref().err());
        let ends = ends?;
        let behind = partitions.into_iter().zip(ends).zip(nonces);
        let caught_up = stream::iter(behind).map(async |((partition, end), asked)| {
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
    pub(super) async fn freshen_one(self: &Arc<Self>, partition: PartitionId) -> Result<(), LiveError> {
        let asked = self.ask_freshness(&[partition]).into_iter().flatten().next();
        let end = self.verified_end(partition).await?;
        self.prove_fresh(partition, asked.map(|(nonce, _)| nonce), end).await
    }

    /// Applies the missing changes up to `end`, which was read from the database after `nonce` was drawn, and proves
    /// freshness.
    async fn prove_fresh(
        &self,
        partition: PartitionId,
        nonce: Option<Nonce>,
        end: LogPoint,
    ) -> Result<(), LiveError> {
        self.catch_up(partition, end).await?;
        if let (Some(nonce), now) = (nonce, self.now())
            && let Some(mut cache) = self.caches.lock().partition(partition)
        {
            cache.prove_freshness(nonce, end, now);
        }
        Ok(())
    }

    /// Begins a proof of freshness. Returns, for each partition, the nonce and the place that its log is known to have
    /// reached.
    fn ask_freshness(&self, partitions: &[PartitionId]) -> Vec<Option<(Nonce, LogPoint)>> {
        let now = self.now();
        let mut caches = self.caches.lock();
        let ask = |partition: &PartitionId| {
            let mut cache = caches.partition(*partition)?;
            Some((cache.ask_freshness(now), cache.seen()))
        };
        partitions.iter().map(ask).collect()
    }

    /// Checks whether a log has lost a place that it was known to have reached, and begins again at its end in this case.
    pub(super) fn notice_replaced(
        &self,
        partition: PartitionId,
        before: LogPoint,
        end: LogPoint,
    ) -> Result<(), LiveError> {
        let is_replaced = {
            let mut caches = self.caches.lock();
            caches.partition(partition).is_some_and(|cache| cache.was_replaced(before, end))
        };
        if is_replaced {
            self.replaced(partition, end)?;
        }
        Ok(())
    }
}
