//! Opens the databases of live graphs, each in a task of its own. A database that hangs delays neither other graphs nor the
//! leadership of open graphs.

use super::unopened::UnopenedGraphs;
use futures::{FutureExt, future::BoxFuture};
use kith_cluster::unable;
use kith_database::{self as database, Database, GraphIdentity, Reach, Storage, StorageError};
use kith_live::GraphTypes;
use kith_types::PartitionCount;
use kith_wire::documents::{LiveGraphDocument, TopologyDocument};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::{
    sync::watch,
    task::{AbortHandle, JoinSet},
};

/// The pause after a failed attempt to open a database.
const RETRY: Duration = Duration::from_millis(500);

/// Opens the databases of live graphs.
pub(crate) trait Databases: Send + Sync {
    /// Opens the database of the graph `name`.
    fn open<'a>(
        &'a self,
        name: &'a str,
        storage: &'a Storage,
        identity: GraphIdentity,
    ) -> BoxFuture<'a, database::OpenResult>;
}

impl Databases for Reach {
    fn open<'a>(
        &'a self,
        name: &'a str,
        storage: &'a Storage,
        identity: GraphIdentity,
    ) -> BoxFuture<'a, database::OpenResult> {
        storage.open(name, identity, self).boxed()
    }
}

/// A graph that the topology names.
#[derive(Clone)]
pub(super) struct NamedGraph {
    pub name: String,
    pub count: PartitionCount,
    pub types: Arc<GraphTypes>,
    storage: Storage,
}

/// A graph whose database is open.
pub(super) struct OpenGraph {
    pub graph: NamedGraph,
    pub database: Arc<dyn Database>,
}

impl NamedGraph {
    /// Returns the graph of a document in the topology, with its types.
    ///
    /// # Errors
    /// If this release does not understand the document.
    pub fn new(
        document: &LiveGraphDocument,
        types: Arc<GraphTypes>,
        topology: &TopologyDocument,
    ) -> Result<Self, String> {
        let count =
            PartitionCount::new(topology.cluster.partitions).ok_or("the cluster has no partitions")?;
        let storage = document.storage.parse().map_err(|error: StorageError| error.to_string())?;
        Ok(Self { name: document.name.clone(), count, types, storage })
    }

    /// Whether both are the same graph in the same storage. Other properties, such as the types, may differ.
    fn is_same(&self, other: &Self) -> bool {
        let parts = |it: &Self| (it.types.identity, it.count);
        self.name == other.name && parts(self) == parts(other) && self.storage == other.storage
    }
}

/// The databases that are being opened. Dropping this value cancels all attempts.
pub(super) struct Openings {
    databases: Arc<dyn Databases>,
    tasks: JoinSet<Attempt>,
    /// The databases that are being opened, by the name of the graph.
    under_way: BTreeMap<String, OpeningTask>,
    /// The graphs that are not open, with the reasons.
    unopened: Arc<UnopenedGraphs>,
    /// The announcement of those that this node cannot open.
    announced: watch::Sender<String>,
}

/// A database that is being opened.
struct OpeningTask {
    graph: NamedGraph,
    /// The task of the current attempt.
    task: AbortHandle,
}

/// The result of one attempt to open a database.
struct Attempt {
    graph: NamedGraph,
    result: database::OpenResult,
}

impl Openings {
    /// Returns the state without any database. `announced` is the value of the node's leased key.
    pub fn new(
        databases: Arc<dyn Databases>,
        unopened: Arc<UnopenedGraphs>,
        announced: watch::Sender<String>,
    ) -> Self {
        Self { databases, tasks: JoinSet::new(), under_way: BTreeMap::new(), unopened, announced }
    }

    /// Begins to open these graphs, and cancels the attempts for all others. `unreadable` are graphs that this release does
    /// not understand, with the reasons. Does not wait.
    pub fn set(&mut self, graphs: Vec<NamedGraph>, unreadable: &BTreeMap<String, String>) {
        self.under_way.retain(|_, opening| {
            let is_wanted = graphs.iter().any(|graph| graph.is_same(&opening.graph));
            if !is_wanted {
                opening.task.abort();
            }
            is_wanted
        });
        self.unopened.set(graphs.iter().map(|graph| graph.name.as_str()), unreadable);
        self.announce();
        for graph in graphs {
            if !self.under_way.contains_key(&graph.name) {
                self.attempt(graph, Duration::ZERO);
            }
        }
    }

    /// Waits until a database is open. Failed attempts are repeated.
    pub async fn next(&mut self) -> OpenGraph {
        loop {
            let Some(attempt) = self.tasks.join_next().await else { return std::future::pending().await };
            // An aborted task ends with an error, unless it had ended before.
            let Ok(Attempt { graph, result }) = attempt else { continue };
            if !self.under_way.get(&graph.name).is_some_and(|opening| opening.graph.is_same(&graph)) {
                continue;
            }
            match result {
                Ok(database) => {
                    self.under_way.remove(&graph.name);
                    return OpenGraph { graph, database };
                }
                Err(error) => {
                    tracing::warn!(graph = graph.name, %error, "a live graph cannot be opened yet");
                    self.unopened.failed(&graph.name, &error);
                    self.announce();
                    self.attempt(graph, RETRY);
                }
            }
        }
    }

    fn attempt(&mut self, graph: NamedGraph, pause: Duration) {
        let (databases, wanted) = (Arc::clone(&self.databases), graph.clone());
        let task = self.tasks.spawn(async move {
            tokio::time::sleep(pause).await;
            let identity = GraphIdentity { graph: wanted.types.identity, partitions: wanted.count };
            let result = databases.open(&wanted.name, &wanted.storage, identity).await;
            Attempt { graph: wanted, result }
        });
        self.under_way.insert(graph.name.clone(), OpeningTask { graph, task });
    }

    /// Announces the graphs that this node cannot open, so that other nodes lead their partitions.
    pub fn announce(&self) {
        let value = unable(&self.unopened.unable());
        self.announced.send_if_modified(|announced| {
            let has_changed = *announced != value;
            *announced = value;
            has_changed
        });
    }
}
