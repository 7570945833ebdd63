//! Hands partitions over to other nodes, so that no write fails: when this node is about to end, when its group takes no reads any
//! more, when it loses the replica, and when others lead less.
//!
//! What is due is decided by [`Leaders::due`]. The leader is asked to release it, which it does once all that it has begun is
//! complete; only then is a successor written to the metadata, by the conditional write that routers make for leaders that are
//! gone. In between, writes are answered `not_leader`, and routers send them again.

use futures::{FutureExt, future::BoxFuture};
use kith_api::topology::{leaders_of, table_of_document};
use kith_metadata::MetadataStore;
use kith_process::{LivesReceiver, change_leaders, topology::TopologyReceiver};
use kith_routing::Leaders;
use kith_types::{NodeId, PartitionId, Term};
use kith_wire::documents::TopologyDocument;
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// How long to wait before a successor that could not be written is written again.
const RETRY: Duration = Duration::from_millis(500);
/// How long a node that is about to end waits until others may know that.
const ANNOUNCE_WAIT: Duration = Duration::from_secs(2);
/// How long it waits until it has handed over what it leads.
const LEAVE_WAIT: Duration = Duration::from_secs(10);

/// Partitions whose successors are written, with the terms for which they were led before.
pub(super) type Given = BTreeMap<PartitionId, Term>;

/// What decides about the leaders of graphs.
#[derive(Clone)]
pub(crate) struct Outlook {
    pub node: NodeId,
    pub topology: TopologyReceiver,
    pub lives: LivesReceiver,
    pub metadata: Arc<dyn MetadataStore>,
}

impl Outlook {
    /// The partitions of a graph that this node leads and should hand over, with the terms.
    fn due(&self, graph: &str) -> BTreeMap<PartitionId, Term> {
        let topology = Arc::clone(&self.topology.borrow());
        let Some(lives) = self.lives.borrow().clone() else { return BTreeMap::new() };
        let Ok(table) = table_of_document(&topology) else { return BTreeMap::new() };
        leaders_in(&topology, graph).due(self.node, &table, &lives.eligible(graph, &table))
    }

    /// Writes successors of released partitions; which of them are settled.
    async fn give(self, graph: String, released: BTreeMap<PartitionId, Term>) -> Given {
        let changed = change_leaders(&*self.metadata, &graph, |leaders| {
            let topology = Arc::clone(&self.topology.borrow());
            let table = table_of_document(&topology).ok()?;
            let eligible = self.lives.borrow().as_ref().map(|lives| lives.eligible(&graph, &table));
            leaders.given(self.node, &released, &table, &eligible.unwrap_or_default())
        });
        let error = match changed.await {
            // Whatever did not change has another leader already.
            Ok(_) => return released,
            Err(error) => error,
        };
        tracing::warn!(graph, %error, "partitions cannot be handed over now");
        tokio::time::sleep(RETRY).await;
        Given::new()
    }

    /// Waits until this node leads no partition of these graphs that another node could lead. Others must have been told that it
    /// is about to end. Gives up after some time.
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
    outlook: Outlook,
    /// The leader was asked to release them.
    asked: BTreeMap<PartitionId, Term>,
    /// The leader has released them, and no successor is written yet.
    released: BTreeMap<PartitionId, Term>,
    is_writing: bool,
}

impl HandOver {
    /// Nothing is handed over yet.
    pub fn new(graph: String, outlook: Outlook) -> Self {
        Self { graph, outlook, asked: BTreeMap::new(), released: BTreeMap::new(), is_writing: false }
    }

    /// The partitions that the leader must be asked to release now. `leads` is what it was told to lead.
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

    /// The leader has released a partition.
    pub fn released(&mut self, partition: PartitionId) {
        if let Some(term) = self.asked.get(&partition) {
            self.released.insert(partition, *term);
        }
    }

    /// Writes successors of all released partitions, if there are any and no other write is under way. The caller runs the future
    /// and passes its result to [`HandOver::written`].
    pub fn write(&mut self) -> Option<BoxFuture<'static, Given>> {
        if self.is_writing || self.released.is_empty() {
            return None;
        }
        self.is_writing = true;
        Some(self.outlook.clone().give(self.graph.clone(), self.released.clone()).boxed())
    }

    /// The write has ended.
    pub fn written(&mut self, given: &Given) {
        self.is_writing = false;
        self.released.retain(|partition, term| given.get(partition) != Some(term));
    }
}
