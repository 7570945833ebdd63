//! The live graphs of a node, as the metadata name them.

use super::{
    adjacency,
    graph::{LiveGraph, LiveGraphParts},
    hand_over::Outlook,
    lead::{self, LeadParts},
    tail,
    trim::{self, TrimParts},
};
use futures::{FutureExt, future::BoxFuture};
use kith_database::{Database, GraphIdentity, Reach, Retention, Storage, StorageError};
use kith_live::{GraphTypes, TypesDocument};
use kith_net::transport::Transport;
use kith_types::PartitionCount;
use kith_wire::documents::{LiveGraphDocument, TopologyDocument};
use kith_wire::v1;
use parking_lot::RwLock;
use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// When a database that could not be opened is tried again.
const OPEN_RETRY: Duration = Duration::from_millis(500);

/// The live graphs of a node.
pub(crate) struct LiveGraphs {
    graphs: RwLock<BTreeMap<String, Arc<LiveGraph>>>,
    outlook: Outlook,
}

impl fmt::Debug for LiveGraphs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.graphs.read().keys()).finish()
    }
}

/// Opens the databases of live graphs.
pub(crate) trait Databases: Send + Sync {
    /// Opens the database of a graph. Fails with the reason, in words.
    fn open<'a>(
        &'a self,
        graph: &'a LiveGraphDocument,
        identity: GraphIdentity,
    ) -> BoxFuture<'a, Result<Arc<dyn Database>, String>>;
}

impl Databases for Reach {
    fn open<'a>(
        &'a self,
        graph: &'a LiveGraphDocument,
        identity: GraphIdentity,
    ) -> BoxFuture<'a, Result<Arc<dyn Database>, String>> {
        async move {
            let storage: Storage = graph.storage.parse().map_err(|error: StorageError| error.to_string())?;
            storage.open(&graph.name, identity, self).await.map_err(|error| error.to_string())
        }
        .boxed()
    }
}

/// What all live graphs of a node share.
pub(crate) struct Surroundings {
    pub outlook: Outlook,
    pub transport: Arc<dyn Transport>,
    pub databases: Arc<dyn Databases>,
    pub retention: Retention,
    pub stop: CancellationToken,
}

impl LiveGraphs {
    /// Opens the graphs that the topology names, and follows its changes until `stop`.
    pub fn start(around: Surroundings) -> Arc<Self> {
        let graphs = Arc::new(Self { graphs: RwLock::default(), outlook: around.outlook.clone() });
        let follower = Arc::clone(&graphs);
        tokio::spawn(async move {
            let stop = around.stop.clone();
            stop.run_until_cancelled(follower.follow(&around)).await;
        });
        graphs
    }

    /// The graph of this name, once its database is open.
    pub fn get(&self, name: &str) -> Option<Arc<LiveGraph>> {
        self.graphs.read().get(name).cloned()
    }

    /// Waits until other nodes lead what this one has led, as far as they can. Others must have been told that this node is about to
    /// end. Takes milliseconds, and ten seconds at most.
    pub async fn leave(&self) {
        let graphs: Vec<String> = self.graphs.read().keys().cloned().collect();
        self.outlook.clone().leave(&graphs).await;
    }

    /// How far the logs of all graphs are applied, from memory. `O(partitions)`.
    pub fn applied_logs(&self) -> Vec<v1::AppliedLogs> {
        self.graphs.read().values().map(|graph| graph.applied_logs()).collect()
    }

    async fn follow(&self, around: &Surroundings) {
        let mut topology = around.outlook.topology.clone();
        loop {
            let current = Arc::clone(&topology.borrow_and_update());
            let is_done = self.apply(around, &current).await;
            let again = async {
                match is_done {
                    true => std::future::pending().await,
                    false => tokio::time::sleep(OPEN_RETRY).await,
                }
            };
            tokio::select! {
                changed = topology.changed() => if changed.is_err() { return },
                () = again => {}
            }
        }
    }

    /// Brings the graphs to the state of the topology; whether that succeeded.
    async fn apply(&self, around: &Surroundings, topology: &TopologyDocument) -> bool {
        let dropped = |name: &String| !topology.live.iter().any(|graph| graph.name == *name);
        let gone: Vec<String> = self.graphs.read().keys().filter(|name| dropped(name)).cloned().collect();
        for name in gone {
            let graph = self.graphs.write().remove(&name);
            if let Some(graph) = graph {
                graph.close().await;
            }
        }
        let mut is_done = true;
        for document in &topology.live {
            match self.apply_one(around, topology, document).await {
                Ok(()) => {}
                Err(error) => {
                    tracing::warn!(graph = document.name, %error, "a live graph cannot be opened yet");
                    is_done = false;
                }
            }
        }
        is_done
    }

    async fn apply_one(
        &self,
        around: &Surroundings,
        topology: &TopologyDocument,
        document: &LiveGraphDocument,
    ) -> Result<(), String> {
        let types = types_of(document)?;
        let known = self.get(&document.name);
        if let Some(known) = known.filter(|known| known.identity() == types.identity) {
            known.follow(topology, types);
            return Ok(());
        }
        let count =
            PartitionCount::new(topology.cluster.partitions).ok_or("the cluster has no partitions")?;
        let identity = GraphIdentity { graph: types.identity, partitions: count };
        let database = around.databases.open(document, identity).await?;
        let graph = start(
            around,
            LiveGraphParts {
                name: document.name.clone(),
                node: around.outlook.node,
                count,
                types: Arc::new(types),
                database,
            },
        );
        graph.follow(topology, (*graph.types()).clone());
        self.graphs.write().insert(document.name.clone(), graph);
        Ok(())
    }
}

/// A graph, with the tasks that lead its partitions, follow and trim their logs, and build their lists.
fn start(around: &Surroundings, parts: LiveGraphParts) -> Arc<LiveGraph> {
    let (lead, messages) = mpsc::unbounded_channel();
    let stop = around.stop.child_token();
    let graph = Arc::new(LiveGraph::new(parts, lead, stop.clone()));
    let leading = LeadParts {
        outlook: around.outlook.clone(),
        transport: Arc::clone(&around.transport),
        stop: stop.clone(),
    };
    lead::start(&graph, leading, messages);
    tail::start(&graph, stop.clone());
    adjacency::start(&graph, stop.clone());
    let (node, topology) = (around.outlook.node, around.outlook.topology.clone());
    trim::start(&graph, TrimParts { node, topology, retention: around.retention, stop });
    graph
}

fn types_of(document: &LiveGraphDocument) -> Result<GraphTypes, String> {
    let types: TypesDocument = serde_json::from_str(&document.types).map_err(|error| error.to_string())?;
    GraphTypes::try_from(types).map_err(|error| error.to_string())
}
