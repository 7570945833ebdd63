//! Finds out which nodes are down, for rebalances.

use super::Dead;
use kith_cluster::metadata::{MetadataError, MetadataStore, keys};
use kith_net::security::Dialer;
use kith_types::NodeId;
use kith_wire::{
    documents::TopologyDocument,
    v1::{self, node_client::NodeClient},
};
use std::{collections::BTreeSet, time::Duration};

/// The time after which a node without a lease that has not answered counts as down.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// Returns those of `nodes` that have no lease and do not answer. The lease alone is not enough, because a busy machine
/// misses renewals.
///
/// # Errors
/// If the metadata cannot be read; it is unknown then which nodes are down.
pub(super) async fn dead(
    metadata: &dyn MetadataStore,
    dialer: &Dialer,
    topology: &TopologyDocument,
    nodes: &BTreeSet<NodeId>,
) -> Result<Dead, MetadataError> {
    let live = metadata.read(keys::LIVE).await?;
    let suspects = nodes.iter().filter(|node| live.get(&keys::live_node(node.0)).is_none());
    let asked = suspects.map(async |node| (*node, answers(dialer, topology, *node).await));
    let asked = futures::future::join_all(asked).await;
    Ok(asked.into_iter().filter(|(_, answers)| !answers).map(|(node, _)| node).collect())
}

async fn answers(dialer: &Dialer, topology: &TopologyDocument, node: NodeId) -> bool {
    ping(dialer, topology, node).await.is_some()
}

/// Returns a node's reply to a ping; `None` if it does not answer in time, or if another node answers at its address.
pub(super) async fn ping(
    dialer: &Dialer,
    topology: &TopologyDocument,
    node: NodeId,
) -> Option<v1::PingReply> {
    let addr = addr_of(topology, node)?;
    let asked = async {
        let channel = dialer.connect(&addr).await.ok()?;
        let reply = NodeClient::new(channel).ping(v1::PingRequest::default()).await.ok()?;
        Some(reply.into_inner()).filter(|reply| reply.node == node.0)
    };
    tokio::time::timeout(ANSWER_TIMEOUT, asked).await.ok().flatten()
}

/// Returns the address of a node, if it has registered.
pub(super) fn addr_of(topology: &TopologyDocument, node: NodeId) -> Option<String> {
    topology.nodes.iter().find(|known| known.node == node.0).map(|known| known.addr.clone())
}
