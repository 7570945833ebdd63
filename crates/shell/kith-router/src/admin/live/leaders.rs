//! Assigns a leader that is alive to every partition of a live graph. All routers do this, and conditional writes keep them
//! from undoing each other's work. Leaders that are alive hand over by themselves (`kith-node/src/live/hand_over.rs`).

use kith_cluster::metadata::MetadataStore;
use kith_cluster::{change_leaders, follow_lives, topology::TopologyReceiver};
use kith_routing::{Leaders, Lives, RoutingTable};
use kith_topology::{leaders_of, table_of_document};
use kith_types::NodeId;
use kith_wire::documents::TopologyDocument;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The interval at which a router checks the leaders if nothing changes.
const INTERVAL: Duration = Duration::from_secs(1);
/// The time that a router waits after its start for all nodes to be alive, because all processes of a cluster may start
/// at once.
const START_WAIT: Duration = Duration::from_secs(2);
/// If leaders that are alive should hand over, but nothing has changed for this long, the router replaces them. A handover
/// takes less time than this.
const HANDOVER_WAIT: Duration = Duration::from_secs(15);

/// Starts a task that assigns leaders until `stop` is cancelled.
pub fn assign_leaders(
    metadata: Arc<dyn MetadataStore>,
    mut topology: TopologyReceiver,
    stop: CancellationToken,
) {
    let mut lives = follow_lives(Arc::clone(&metadata), stop.clone());
    let assign = async move {
        let mut assigner = Assigner { metadata, started: Instant::now(), awaited: BTreeMap::new() };
        loop {
            let current = Arc::clone(&topology.borrow_and_update());
            let known = lives.borrow_and_update().clone();
            if let Some(known) = known {
                assigner.assign_all(&current, &known).await;
            }
            tokio::select! {
                changed = lives.changed() => if changed.is_err() { return },
                changed = topology.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(INTERVAL) => {}
            }
        }
    };
    tokio::spawn(async move { stop.run_until_cancelled(assign).await });
}

struct Assigner {
    metadata: Arc<dyn MetadataStore>,
    started: Instant,
    /// The leaders of each graph in which some should hand over, and the time since which they have not changed.
    awaited: BTreeMap<String, (Leaders, Instant)>,
}

impl Assigner {
    async fn assign_all(&mut self, topology: &TopologyDocument, lives: &Lives) {
        let is_complete = topology.nodes.iter().all(|node| lives.alive.contains(&NodeId(node.node)));
        if topology.live.is_empty() || (!is_complete && self.started.elapsed() < START_WAIT) {
            return;
        }
        let table = match table_of_document(topology) {
            Ok(table) => table,
            Err(error) => {
                return tracing::error!(%error, "leaders cannot be assigned because the routing table is invalid");
            }
        };
        for graph in &topology.live {
            let eligible = lives.eligible(&graph.name, &table);
            let is_overdue = self.is_overdue(&graph.name, topology, &table, lives);
            let changed = change_leaders(&*self.metadata, &graph.name, |leaders| match is_overdue {
                true => leaders.next(&table, &eligible),
                false => leaders.replaced(&graph.name, &table, lives),
            });
            match changed.await {
                Ok(true) => tracing::info!(graph = graph.name, is_overdue, "partitions have new leaders"),
                Ok(false) => {}
                Err(error) => tracing::debug!(graph = graph.name, %error, "leaders cannot be assigned now"),
            }
        }
    }

    /// Whether leaders that are alive should have handed over more than [`HANDOVER_WAIT`] ago.
    fn is_overdue(
        &mut self,
        graph: &str,
        topology: &TopologyDocument,
        table: &RoutingTable,
        lives: &Lives,
    ) -> bool {
        let leaders = topology.leaders.iter().find(|leaders| leaders.graph == graph);
        let leaders = leaders.map(leaders_of).unwrap_or_default();
        if leaders.next(table, &lives.eligible(graph, table)).is_none() {
            self.awaited.remove(graph);
            return false;
        }
        let awaited =
            self.awaited.entry(graph.to_owned()).or_insert_with(|| (leaders.clone(), Instant::now()));
        if awaited.0 != leaders {
            *awaited = (leaders, Instant::now());
        }
        HANDOVER_WAIT <= awaited.1.elapsed()
    }
}
