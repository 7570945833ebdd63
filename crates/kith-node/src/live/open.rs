//! Opens the databases of live graphs, each in a task of its own. A database that hangs delays neither other graphs nor the
//! leadership of open graphs.

use futures::{FutureExt, future::BoxFuture};
use kith_database::{self as database, Database, DatabaseError, GraphIdentity, Reach, Storage, StorageError};
use kith_live::{GraphTypes, TypesDocument};
use kith_process::unable;
use kith_types::PartitionCount;
use kith_wire::documents::{LiveGraphDocument, TopologyDocument};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    sync::watch,
    task::{AbortHandle, JoinSet},
};

/// The pause after a failed attempt to open a database.
const RETRY: Duration = Duration::from_millis(500);
/// A node announces that it cannot open a graph after failures for this long. The processes of a cluster that start at the
/// same time, such as nodes and databases, take less time than this.
const ANNOUNCED_AFTER: Duration = Duration::from_secs(5);

/// Opens the databases of live graphs.
pub(crate) trait Databases: Send + Sync {
    /// Opens the database of the graph `name`.
    fn open<'a>(
        &'a self,
        name: &'a str,
        storage: &'a Storage,
        identity: GraphIdentity,
    ) -> BoxFuture<'a, database::Opened>;
}

impl Databases for Reach {
    fn open<'a>(
        &'a self,
        name: &'a str,
        storage: &'a Storage,
        identity: GraphIdentity,
    ) -> BoxFuture<'a, database::Opened> {
        storage.open(name, identity, self).boxed()
    }
}

/// A graph that the topology names.
#[derive(Clone)]
pub(super) struct Named {
    pub name: String,
    pub count: PartitionCount,
    pub types: Arc<GraphTypes>,
    storage: Storage,
}

/// A graph whose database is open.
pub(super) struct Opened {
    pub graph: Named,
    pub database: Arc<dyn Database>,
}

impl Named {
    /// Reads a graph from its document in the topology.
    ///
    /// # Errors
    /// If this release does not understand the document.
    pub fn new(document: &LiveGraphDocument, topology: &TopologyDocument) -> Result<Self, String> {
        let types: TypesDocument =
            serde_json::from_str(&document.types).map_err(|error| error.to_string())?;
        let types = GraphTypes::try_from(types).map_err(|error| error.to_string())?;
        let count =
            PartitionCount::new(topology.cluster.partitions).ok_or("the cluster has no partitions")?;
        let storage = document.storage.parse().map_err(|error: StorageError| error.to_string())?;
        Ok(Self { name: document.name.clone(), count, types: Arc::new(types), storage })
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
    under_way: BTreeMap<String, Opening>,
    /// The graphs that this node has not been able to open for some time. Other nodes may be able to open them.
    failed: BTreeSet<String>,
    /// The announcement of these graphs.
    announced: watch::Sender<String>,
}

/// A database that is being opened.
struct Opening {
    graph: Named,
    since: Instant,
    /// The task of the current attempt.
    task: AbortHandle,
}

/// The result of one attempt to open a database.
struct Attempt {
    graph: Named,
    result: database::Opened,
}

impl Openings {
    /// Returns the state without any database. `announced` is the value of the node's leased key.
    pub fn new(databases: Arc<dyn Databases>, announced: watch::Sender<String>) -> Self {
        let (tasks, under_way, failed) = (JoinSet::new(), BTreeMap::new(), BTreeSet::new());
        Self { databases, tasks, under_way, failed, announced }
    }

    /// Begins to open these graphs, and cancels the attempts for all others. `unreadable` are graphs that this release does
    /// not understand. Does not wait.
    pub fn set(&mut self, graphs: Vec<Named>, unreadable: BTreeSet<String>) {
        self.under_way.retain(|_, opening| {
            let is_wanted = graphs.iter().any(|graph| graph.is_same(&opening.graph));
            if !is_wanted {
                opening.task.abort();
            }
            is_wanted
        });
        self.failed.retain(|name| self.under_way.contains_key(name));
        self.failed.extend(unreadable);
        self.announce();
        for graph in graphs {
            if !self.under_way.contains_key(&graph.name) {
                self.attempt(graph, Duration::ZERO, Instant::now());
            }
        }
    }

    /// Waits until a database is open. Failed attempts are repeated.
    pub async fn next(&mut self) -> Opened {
        loop {
            let Some(attempt) = self.tasks.join_next().await else { return std::future::pending().await };
            // An aborted task ends with an error, unless it had ended before.
            let Ok(Attempt { graph, result }) = attempt else { continue };
            let opening = self.under_way.get(&graph.name);
            let Some(opening) = opening.filter(|opening| opening.graph.is_same(&graph)) else {
                continue;
            };
            let since = opening.since;
            match result {
                Ok(database) => {
                    self.under_way.remove(&graph.name);
                    self.failed.remove(&graph.name);
                    self.announce();
                    return Opened { graph, database };
                }
                Err(error) => {
                    tracing::warn!(graph = graph.name, %error, "a live graph cannot be opened yet");
                    // If the database has no such graph, no node can open it, because it is about to be created.
                    let is_created = !matches!(error, DatabaseError::NoGraph { .. });
                    if is_created && ANNOUNCED_AFTER <= since.elapsed() {
                        self.failed.insert(graph.name.clone());
                        self.announce();
                    }
                    self.attempt(graph, RETRY, since);
                }
            }
        }
    }

    fn attempt(&mut self, graph: Named, pause: Duration, since: Instant) {
        let (databases, wanted) = (Arc::clone(&self.databases), graph.clone());
        let task = self.tasks.spawn(async move {
            tokio::time::sleep(pause).await;
            let identity = GraphIdentity { graph: wanted.types.identity, partitions: wanted.count };
            let result = databases.open(&wanted.name, &wanted.storage, identity).await;
            Attempt { graph: wanted, result }
        });
        self.under_way.insert(graph.name.clone(), Opening { graph, since, task });
    }

    /// Announces the graphs that this node cannot open, so that other nodes lead their partitions.
    fn announce(&self) {
        let value = unable(&self.failed);
        self.announced.send_if_modified(|announced| {
            let has_changed = *announced != value;
            *announced = value;
            has_changed
        });
    }
}
