//! Sees to it that every partition of a live graph has a leader that is alive. Every router does so; conditional writes keep
//! them from undoing each other's work.

use futures::StreamExt;
use kith_api::topology::table_of_document;
use kith_metadata::{MetadataStore, Snapshot, keys};
use kith_process::{change_leaders, topology::TopologyReceiver};
use kith_routing::{GroupIndex, GroupRole, RoutingTable};
use kith_types::NodeId;
use kith_wire::documents::TopologyDocument;
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// How often leaders are looked at if nothing changes: leadership that is moved for the sake of balance moves this often.
const INTERVAL: Duration = Duration::from_secs(1);
/// A node that is not alive is waited for this long after this router has started: all processes of a cluster start at once.
const START_WAIT: Duration = Duration::from_secs(2);

/// Assigns leaders until `stop`.
pub fn assign_leaders(
    metadata: Arc<dyn MetadataStore>,
    mut topology: TopologyReceiver,
    stop: CancellationToken,
) {
    let assign = async move {
        let started = tokio::time::Instant::now();
        let mut lives = metadata.watch(keys::LIVE, 0);
        let mut alive: Option<BTreeSet<NodeId>> = None;
        loop {
            let current = Arc::clone(&topology.borrow_and_update());
            if let Some(alive) = &alive {
                let is_complete = current.nodes.iter().all(|node| alive.contains(&NodeId(node.node)));
                if is_complete || START_WAIT <= started.elapsed() {
                    assign_all(&*metadata, &current, alive).await;
                }
            }
            tokio::select! {
                snapshot = lives.next() => match snapshot {
                    Some(snapshot) => alive = Some(alive_nodes(&snapshot)),
                    None => {
                        tokio::time::sleep(INTERVAL).await;
                        lives = metadata.watch(keys::LIVE, 0);
                    }
                },
                changed = topology.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(INTERVAL) => {}
            }
        }
    };
    tokio::spawn(async move { stop.run_until_cancelled(assign).await });
}

/// The nodes whose leases have not ended.
fn alive_nodes(snapshot: &Snapshot) -> BTreeSet<NodeId> {
    let nodes = snapshot.entries.iter().filter_map(|entry| entry.key.strip_prefix("live/nodes/"));
    nodes.filter_map(|node| node.parse().ok().map(NodeId)).collect()
}

async fn assign_all(metadata: &dyn MetadataStore, topology: &TopologyDocument, alive: &BTreeSet<NodeId>) {
    if topology.live.is_empty() {
        return;
    }
    let table = match table_of_document(topology) {
        Ok(table) => table,
        Err(error) => {
            return tracing::error!(%error, "leaders cannot be assigned: the routing table makes no sense");
        }
    };
    let eligible = eligible(&table, alive);
    for graph in &topology.live {
        let changed = change_leaders(metadata, &graph.name, |leaders| leaders.next(&table, &eligible)).await;
        match changed {
            Ok(true) => tracing::info!(graph = graph.name, "partitions have new leaders"),
            Ok(false) => {}
            Err(error) => tracing::debug!(graph = graph.name, %error, "leaders cannot be assigned now"),
        }
    }
}

/// The nodes that may lead: alive, and in a group that takes reads.
fn eligible(table: &RoutingTable, alive: &BTreeSet<NodeId>) -> BTreeSet<NodeId> {
    let serving = table.groups().iter().enumerate().filter(|(_, group)| group.role == GroupRole::Serving);
    let nodes = serving.flat_map(|(index, _)| table.nodes_of(GroupIndex(index as u32)));
    nodes.map(|node| node.id).filter(|node| alive.contains(node)).collect()
}
