//! Removes old changes and old outcomes of writes of the partitions that this node leads, once they are no longer needed.

use super::{database::GraphDatabase, graph::led_by, lists::LiveLists};
use kith_cluster::topology::TopologyReceiver;
use kith_database::{DatabaseError, Retention};
use kith_types::clock::millis_since_1970;
use kith_types::{NodeId, PartitionCount, PartitionId};
use std::{sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// The minimum time between two rounds, which is otherwise a tenth of the time for which changes are kept.
const PAUSE_MIN: Duration = Duration::from_millis(500);
/// The maximum time between two rounds.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// The pause between two transactions of a round, in which waiting commits run.
const TRANSACTION_PAUSE: Duration = Duration::from_millis(10);

/// Trims the partitions of one graph that this node leads.
pub(super) struct Trimmer {
    pub graph: String,
    pub node: NodeId,
    pub count: PartitionCount,
    pub topology: TopologyReceiver,
    pub retention: Retention,
    pub database: Arc<GraphDatabase>,
    pub lists: Arc<LiveLists>,
}

impl Trimmer {
    /// Starts a task that trims in rounds.
    pub fn start(self, stop: CancellationToken) {
        tokio::spawn(async move { stop.run_until_cancelled(self.trim_all()).await });
    }

    async fn trim_all(&self) {
        let pause = (self.retention.changes / 10).clamp(PAUSE_MIN, PAUSE_MAX);
        loop {
            tokio::time::sleep(pause).await;
            let led = led_by(&self.topology.borrow(), (&self.graph, self.count), self.node);
            for partition in led.into_keys() {
                if let Err(error) = self.trim(partition).await {
                    tracing::debug!(graph = self.graph, %partition, %error, "a log cannot be trimmed now");
                }
            }
        }
    }

    /// Removes the old changes and outcomes of a partition, in as many short transactions as it takes.
    async fn trim(&self, partition: PartitionId) -> Result<(), DatabaseError> {
        loop {
            let trim = self.retention.trim(millis_since_1970(), self.lists.needed_after(partition));
            let trimmed = self.database.trim(partition, trim).await?;
            let count = |rows: &'static str, number| {
                metrics::counter!("kith_live_trimmed_total", "rows" => rows).increment(number);
            };
            count("changes", trimmed.changes);
            count("outcomes", trimmed.outcomes);
            if !trimmed.more {
                return Ok(());
            }
            tokio::time::sleep(TRANSACTION_PAUSE).await;
        }
    }
}
