//! Opens the databases of live graphs, each in a task of its own: one that hangs holds up neither other graphs nor the leadership
//! of those that are open.

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

/// When a database that could not be opened is tried again.
const RETRY: Duration = Duration::from_millis(500);
/// A node announces that it cannot open a graph if that has failed for so long. It is longer than the processes of a cluster take
/// that start at once, nodes and databases among them.
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
    /// A graph of the topology.
    ///
    /// # Errors
    /// If its document makes no sense to this release.
    pub fn new(document: &LiveGraphDocument, topology: &TopologyDocument) -> Result<Self, String> {
        let types: TypesDocument =
            serde_json::from_str(&document.types).map_err(|error| error.to_string())?;
        let types = GraphTypes::try_from(types).map_err(|error| error.to_string())?;
        let count =
            PartitionCount::new(topology.cluster.partitions).ok_or("the cluster has no partitions")?;
        let storage = document.storage.parse().map_err(|error: StorageError| error.to_string())?;
        Ok(Self { name: document.name.clone(), count, types: Arc::new(types), storage })
    }

    /// Whether both are one graph at one place, perhaps at different times.
    fn is_same(&self, other: &Self) -> bool {
        let parts = |it: &Self| (it.types.identity, it.count);
        self.name == other.name && parts(self) == parts(other) && self.storage == other.storage
    }
}

/// Databases that are being opened. If it is dropped, it gives up on all of them.
pub(super) struct Openings {
    databases: Arc<dyn Databases>,
    tasks: JoinSet<Attempt>,
    /// By name.
    under_way: BTreeMap<String, Opening>,
    /// Graphs that this node has not been able to open for a while, although perhaps others can.
    failed: BTreeSet<String>,
    /// What the node announces about them.
    announced: watch::Sender<String>,
}

/// A database that is being opened.
struct Opening {
    graph: Named,
    since: Instant,
    /// The attempt under way.
    task: AbortHandle,
}

/// What came of one attempt to open a database.
struct Attempt {
    graph: Named,
    result: database::Opened,
}

impl Openings {
    /// Opens nothing yet. `announced` is the value of the node's leased key.
    pub fn new(databases: Arc<dyn Databases>, announced: watch::Sender<String>) -> Self {
        let (tasks, under_way, failed) = (JoinSet::new(), BTreeMap::new(), BTreeSet::new());
        Self { databases, tasks, under_way, failed, announced }
    }

    /// Opens these graphs, and gives up on all others. `unreadable` are graphs that this release does not understand. Does not wait.
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

    /// Waits until a database is open. Those that cannot be opened are tried again.
    pub async fn next(&mut self) -> Opened {
        loop {
            let Some(attempt) = self.tasks.join_next().await else { return std::future::pending().await };
            // A task that was given up on is cancelled, unless it had ended before.
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
                    // Where there is no graph, no node can open it: it is about to be created.
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

    /// Others give partitions of graphs that this node cannot open to other nodes.
    fn announce(&self) {
        let value = unable(&self.failed);
        self.announced.send_if_modified(|announced| {
            let has_changed = *announced != value;
            *announced = value;
            has_changed
        });
    }
}
