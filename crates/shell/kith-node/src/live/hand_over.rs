//! Hands partitions over to other nodes so that no write fails: when this node is about to end, when its group is drained,
//! when it loses the replica, and when other nodes lead fewer partitions.
//!
//! [`Leaders::due`] decides which partitions are due. The leader is asked to release them, which it does once all writes
//! that it has begun are complete. Only then is a successor written to the metadata store, with the same conditional write
//! with which routers replace dead leaders. In between, writes are answered with `not_leader`, and routers send them again.

use futures::{FutureExt, future::BoxFuture};
use kith_cluster::metadata::MetadataStore;
use kith_cluster::{LivesReceiver, change_leaders, topology::TopologyReceiver};
use kith_routing::Leaders;
use kith_topology::{leaders_of, table_of_document};
use kith_types::{NodeId, PartitionId, Term};
use kith_wire::documents::TopologyDocument;
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// The pause after a failed attempt to write successors.
const RETRY: Duration = Duration::from_millis(500);
/// The longest wait of an ending node until the metadata store shows to others that it ends.
const ANNOUNCE_WAIT: Duration = Duration::from_secs(2);
/// The longest wait of an ending node until it has handed over the partitions that it leads.
const LEAVE_WAIT: Duration = Duration::from_secs(10);

/// Partitions whose successors have been written, with the terms of their previous leaders.
pub(super) type HandedOver = BTreeMap<PartitionId, Term>;

/// The information that decides about the leaders of graphs.
#[derive(Clone)]
pub(crate) struct LeadershipView {
    pub node: NodeId,
    pub topology: TopologyReceiver,
    pub lives: LivesReceiver,
    pub metadata: Arc<dyn MetadataStore>,
}

impl LeadershipView {
    /// Returns the partitions of a graph that this node leads and should hand over, with the terms.
    fn due(&self, graph: &str) -> BTreeMap<PartitionId, Term> {
        let topology = Arc::clone(&self.topology.borrow());
        let Some(lives) = self.lives.borrow().clone() else { return BTreeMap::new() };
        let Ok(table) = table_of_document(&topology) else { return BTreeMap::new() };
        leaders_in(&topology, graph).due(self.node, &table, &lives.eligible(graph, &table))
    }

    /// Writes the successors of released partitions. Returns the partitions that have another leader now.
    async fn give(self, graph: String, released: BTreeMap<PartitionId, Term>) -> HandedOver {
        let changed = change_leaders(&*self.metadata, &graph, |leaders| {
            let topology = Arc::clone(&self.topology.borrow());
            let table = table_of_document(&topology).ok()?;
            let eligible = self.lives.borrow().as_ref().map(|lives| lives.eligible(&graph, &table));
            leaders.given(self.node, &released, &table, &eligible.unwrap_or_default())
        });
        let error = match changed.await {
            // A partition that did not change already has another leader.
            Ok(_) => return released,
            Err(error) => error,
        };
        tracing::warn!(graph, %error, "partitions cannot be handed over now");
        tokio::time::sleep(RETRY).await;
        HandedOver::new()
    }

    /// Waits until this node leads no partition of these graphs that another node could lead. The node must have announced
    /// that it is about to end. Gives up after [`ANNOUNCE_WAIT`] and [`LEAVE_WAIT`].
    pub async fn leave(mut self, graphs: &[String]) {
        let leads_any = |outlook: &Self| {
            let topology = Arc::clone(&outlook.topology.borrow());
            graphs.iter().any(|graph| 0 < leaders_in(&topology, graph).led_by(outlook.node))
        };
        if !leads_any(&self) {
            return;
        }
        let node = self.node;
        let announced =
            self.lives.wait_for(|lives| lives.as_ref().is_some_and(|lives| lives.leaving.contains(&node)));
        if tokio::time::timeout(ANNOUNCE_WAIT, announced).await.is_err() {
            return tracing::warn!("the metadata store does not answer: partitions are not handed over");
        }
        let handed_over = async {
            while graphs.iter().any(|graph| !self.due(graph).is_empty()) {
                tokio::select! {
                    changed = self.topology.changed() => if changed.is_err() { return },
                    changed = self.lives.changed() => if changed.is_err() { return },
                }
            }
        };
        if tokio::time::timeout(LEAVE_WAIT, handed_over).await.is_err() {
            tracing::warn!(
                "partitions were not handed over in time: their writes wait until the lease of this node ends"
            );
        }
    }
}

fn leaders_in(topology: &TopologyDocument, graph: &str) -> Leaders {
    let leaders = topology.leaders.iter().find(|leaders| leaders.graph == graph);
    leaders.map(leaders_of).unwrap_or_default()
}

/// The partitions of one graph that this node hands over.
pub(super) struct HandOver {
    graph: String,
    outlook: LeadershipView,
    /// The partitions that the leader was asked to release.
    asked: BTreeMap<PartitionId, Term>,
    /// The partitions that the leader has released, and whose successors have not been written yet.
    released: BTreeMap<PartitionId, Term>,
    is_writing: bool,
}

impl HandOver {
    /// Returns the state before any handover.
    pub fn new(graph: String, outlook: LeadershipView) -> Self {
        Self { graph, outlook, asked: BTreeMap::new(), released: BTreeMap::new(), is_writing: false }
    }

    /// Returns the partitions that the leader must be asked to release now. `leads` are the partitions that it leads
    /// according to the metadata.
    pub fn begin(&mut self, leads: &BTreeMap<PartitionId, Term>) -> Vec<PartitionId> {
        let is_led = |partition: &PartitionId, term: &mut Term| leads.get(partition) == Some(&*term);
        self.asked.retain(is_led);
        self.released.retain(is_led);
        let due = self.outlook.due(&self.graph).into_iter().filter(|(partition, term)| {
            leads.get(partition) == Some(term) && !self.asked.contains_key(partition)
        });
        let due: BTreeMap<PartitionId, Term> = due.collect();
        self.asked.extend(&due);
        due.into_keys().collect()
    }

    /// Whether the leader was asked to release a partition.
    pub fn is_asked(&self, partition: PartitionId) -> bool {
        self.asked.contains_key(&partition)
    }

    /// Records that the leader has released a partition.
    pub fn released(&mut self, partition: PartitionId) {
        if let Some(term) = self.asked.get(&partition) {
            self.released.insert(partition, *term);
        }
    }

    /// Returns a future that writes the successors of all released partitions; `None` if there are none or another write is
    /// in progress. The caller runs the future and passes its result to [`HandOver::written`].
    pub fn write(&mut self) -> Option<BoxFuture<'static, HandedOver>> {
        if self.is_writing || self.released.is_empty() {
            return None;
        }
        self.is_writing = true;
        Some(self.outlook.clone().give(self.graph.clone(), self.released.clone()).boxed())
    }

    /// Records the result of the write.
    pub fn written(&mut self, given: &HandedOver) {
        self.is_writing = false;
        self.released.retain(|partition, term| given.get(partition) != Some(term));
    }
}
