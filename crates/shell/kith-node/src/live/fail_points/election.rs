//! The assignment of leaders by the test, which does the work of routers.

use super::{GRAPH, LOOK, NODES, PARTITIONS};
use kith_cluster::change_leaders;
use kith_cluster::metadata::{EmbeddedMetadata, MetadataStore, keys};
use kith_database::Database;
use kith_routing::{Leader, Leaders};
use kith_topology::leaders_of;
use kith_types::{NodeId, PartitionId, Term};
use kith_wire::documents::{Document, LeadersDocument};
use std::time::{Duration, Instant};

/// The time that a fault waits for a successor to begin its term. The successor may fail too.
const SUCCESSION: Duration = Duration::from_millis(500);

/// Reads the leaders from the metadata store.
pub async fn leaders(metadata: &EmbeddedMetadata) -> Leaders {
    let key = keys::leaders(GRAPH);
    let snapshot = metadata.read(&key).await.expect("it can be read");
    let document = snapshot.get(&key).map(|entry| LeadersDocument::decode(&entry.value).expect("ours"));
    document.as_ref().map(leaders_of).unwrap_or_default()
}

/// Makes a node the leader of a partition. Returns its term.
pub async fn elect(metadata: &EmbeddedMetadata, partition: PartitionId, node: usize) -> Term {
    let changed = change_leaders(metadata, GRAPH, |leaders| {
        let mut next = leaders.clone();
        next.by_partition.resize(PARTITIONS as usize, None);
        next.term_last = Term(leaders.term_last.0 + 1);
        let leader = Leader { node: NodeId(node as u32), term: next.term_last };
        next.by_partition[partition.index()] = Some(leader);
        Some(next)
    });
    changed.await.expect("the metadata store takes it");
    leaders(metadata).await.of(partition).expect("it was elected").term
}

/// Makes the next node the leader of a partition, and waits until its term has begun, but no longer than [`SUCCESSION`].
pub async fn succeed(metadata: &EmbeddedMetadata, database: &dyn Database, partition: PartitionId) {
    let now = leaders(metadata).await.of(partition).map_or(0, |leader| leader.node.0 as usize);
    let term = elect(metadata, partition, (now + 1) % NODES).await;
    let started = Instant::now();
    while started.elapsed() < SUCCESSION {
        let ends = database.points(vec![partition]).await.expect("it can be read");
        if term <= ends[0].term {
            return;
        }
        tokio::time::sleep(LOOK).await;
    }
}
