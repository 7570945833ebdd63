//! Removes old changes and old outcomes of writes of the partitions that this node leads, once they are no longer needed.

use super::graph::{LiveGraph, led_by};
use kith_cluster::topology::TopologyReceiver;
use kith_database::{DatabaseError, Retention};
use kith_types::clock::millis_since_1970;
use kith_types::{NodeId, PartitionId, Position};
use std::{
    sync::{Arc, Weak},
    time::Duration,
};
use tokio_util::sync::CancellationToken;

/// The minimum time between two rounds, which is otherwise a tenth of the time for which changes are kept.
const PAUSE_MIN: Duration = Duration::from_millis(500);
/// The maximum time between two rounds.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// The pause between two transactions of a round, in which waiting commits run.
const TRANSACTION_PAUSE: Duration = Duration::from_millis(10);

/// The parts that trimming needs in addition to the graph.
pub(super) struct TrimParts {
    pub node: NodeId,
    pub topology: TopologyReceiver,
    pub retention: Retention,
    pub stop: CancellationToken,
}

/// Starts a task that trims the partitions that the node leads in rounds.
pub(super) fn start(graph: &Arc<LiveGraph>, parts: TrimParts) {
    let graph = Arc::downgrade(graph);
    let stop = parts.stop.clone();
    tokio::spawn(async move { stop.run_until_cancelled(trim_all(graph, parts)).await });
}

async fn trim_all(graph: Weak<LiveGraph>, parts: TrimParts) {
    let pause = (parts.retention.changes / 10).clamp(PAUSE_MIN, PAUSE_MAX);
    loop {
        tokio::time::sleep(pause).await;
        let Some(graph) = graph.upgrade() else { return };
        let led = led_by(&parts.topology.borrow(), &graph, parts.node);
        for partition in led.into_keys() {
            if let Err(error) = graph.trim(partition, parts.retention).await {
                tracing::debug!(graph = graph.name, %partition, %error, "a log cannot be trimmed now");
            }
        }
    }
}

impl LiveGraph {
    /// Removes the old changes and outcomes of a partition, in as many short transactions as it takes.
    async fn trim(&self, partition: PartitionId, retention: Retention) -> Result<(), DatabaseError> {
        loop {
            let trim = retention.trim(millis_since_1970(), self.needed_after(partition));
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

    /// Returns the position after which this node still reads the log of a partition for its lists.
    fn needed_after(&self, partition: PartitionId) -> Option<Position> {
        let built = self.adjacency.window(partition).map(|window| window.to.position);
        let building = self.building.lock().get(&partition).copied();
        built.into_iter().chain(building).min()
    }
}
