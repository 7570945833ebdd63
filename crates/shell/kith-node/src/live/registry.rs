//! The live graphs of a node, as the topology names them.

use super::{
    errors::LiveError,
    graph::{LiveGraph, LiveGraphParts},
    hand_over::LeadershipView,
    lead::{self, LeadParts},
    open::{Databases, NamedGraph, OpenGraph, Openings},
    partitions::HeldPartitions,
    trim::Trimmer,
    unopened::UnopenedGraphs,
};
use kith_cache::live::LiveCacheOptions;
use kith_database::Retention;
use kith_live::GraphTypes;
use kith_net::transport::Transport;
use kith_query::QueryError;
use kith_topology::{identity_of, types_of_text};
use kith_wire::documents::{LiveGraphDocument, TopologyDocument};
use kith_wire::v1;
use parking_lot::RwLock;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tonic::Status;

/// The live graphs of a node.
pub(crate) struct LiveGraphs {
    graphs: RwLock<BTreeMap<String, Arc<LiveGraph>>>,
    unopened: Arc<UnopenedGraphs>,
    outlook: LeadershipView,
    announced: watch::Sender<String>,
}

impl fmt::Debug for LiveGraphs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.graphs.read().keys()).finish()
    }
}

/// The parts that all live graphs of a node share.
pub(crate) struct Surroundings {
    pub outlook: LeadershipView,
    pub transport: Arc<dyn Transport>,
    pub databases: Arc<dyn Databases>,
    pub retention: Retention,
    pub stop: CancellationToken,
}

/// The types that the last topology had, with their texts, by graph.
type DecodedTypes = BTreeMap<String, (Arc<str>, Arc<GraphTypes>)>;

/// Returns the types of a graph in the topology. Types with the same text as before are not decoded again.
///
/// # Errors
/// If this node could not read the types, or does not understand them.
fn types_of(
    document: &LiveGraphDocument,
    topology: &TopologyDocument,
    decoded: &mut DecodedTypes,
) -> Result<Arc<GraphTypes>, String> {
    let text = topology.types.get(&document.name).ok_or("this node has not read its types")?;
    let text = text.as_ref().map_err(Clone::clone)?;
    match decoded.get(&document.name) {
        Some((known, types)) if Arc::ptr_eq(known, text) => Ok(Arc::clone(types)),
        _ => {
            let types = Arc::new(types_of_text(&document.types, text)?);
            decoded.insert(document.name.clone(), (Arc::clone(text), Arc::clone(&types)));
            Ok(types)
        }
    }
}

impl LiveGraphs {
    /// Starts a task that opens the graphs in the topology, and follows changes of the topology until `stop` is cancelled.
    pub fn start(around: Surroundings) -> Arc<Self> {
        let (outlook, announced) = (around.outlook.clone(), watch::channel(String::new()).0);
        let graphs =
            Arc::new(Self { graphs: RwLock::default(), unopened: Arc::default(), outlook, announced });
        let follower = Arc::clone(&graphs);
        tokio::spawn(async move {
            let stop = around.stop.clone();
            stop.run_until_cancelled(follower.follow(&around)).await;
        });
        graphs
    }

    /// Returns the graph with this name if its database is open.
    pub fn get(&self, name: &str) -> Option<Arc<LiveGraph>> {
        self.graphs.read().get(name).cloned()
    }

    /// Returns the graph with this name; `None` if the topology names no such live graph.
    ///
    /// # Errors
    /// The reason, if the graph's database is not open.
    pub fn find(&self, name: &str) -> Result<Option<Arc<LiveGraph>>, LiveError> {
        // A graph that is opened meanwhile is added before it ceases to count as unopened.
        let unopened = self.unopened.error(name);
        match (self.get(name), unopened) {
            (None, Some((error, _))) => Err(error),
            (graph, _) => Ok(graph),
        }
    }

    /// Returns the graph with this name, for a request to the leader of a partition.
    ///
    /// # Errors
    /// `not_leader` if the graph is about to be opened, or if another node may be able to open it; the reason, if this node has
    /// failed to open it for some time.
    pub(super) fn leading(&self, name: &str) -> Result<Arc<LiveGraph>, Status> {
        let detail = match (self.unopened.error(name), self.get(name)) {
            (_, Some(graph)) => return Ok(graph),
            (Some((error, true)), None) => return Err(error.to_status()),
            (Some((error, false)), None) => error.to_string(),
            (None, None) => format!("this node knows no live graph {name:?} yet"),
        };
        Err(QueryError::NotLeader { detail }.to_status())
    }

    /// Waits until other nodes lead the partitions that this node has led, as far as they can. The node must have announced
    /// that it is about to end. This usually takes milliseconds, and at most twelve seconds.
    pub async fn leave(&self) {
        let graphs: Vec<String> = self.graphs.read().keys().cloned().collect();
        self.outlook.clone().leave(&graphs).await;
    }

    /// Returns the applied positions of all graphs, from memory. `O(partitions)`.
    pub fn applied_logs(&self) -> Vec<v1::AppliedLogs> {
        let open = self.graphs.read();
        open.values().map(|graph| graph.applied_logs()).chain(self.unopened.statuses()).collect()
    }

    /// Returns the value of this node's leased key, which announces the graphs that it cannot open.
    pub fn announced(&self) -> watch::Receiver<String> {
        self.announced.subscribe()
    }

    async fn follow(&self, around: &Surroundings) {
        let mut topology = around.outlook.topology.clone();
        let mut decoded = DecodedTypes::default();
        let mut openings =
            Openings::new(Arc::clone(&around.databases), Arc::clone(&self.unopened), self.announced.clone());
        loop {
            let current = Arc::clone(&topology.borrow_and_update());
            let (missing, unreadable) = self.apply(&current, &mut decoded);
            openings.set(missing, &unreadable);
            tokio::select! {
                changed = topology.changed() => if changed.is_err() { return },
                opened = openings.next() => {
                    self.start_one(around, &current, opened);
                    openings.announce();
                }
            }
        }
    }

    /// Updates the open graphs to the topology, and closes those that it does not name. Returns the graphs that must be
    /// opened, and those that cannot be opened because this release does not understand them. Does not wait for any
    /// database.
    fn apply(
        &self,
        topology: &TopologyDocument,
        decoded: &mut DecodedTypes,
    ) -> (Vec<NamedGraph>, BTreeMap<String, String>) {
        let (mut missing, mut kept, mut unreadable) = (Vec::new(), BTreeSet::new(), BTreeMap::new());
        decoded.retain(|name, _| topology.types.contains_key(name));
        for document in &topology.live {
            let types = types_of(document, topology, decoded);
            match types.and_then(|types| NamedGraph::new(document, types, topology)) {
                Ok(named) => {
                    let known = self.get(&named.name);
                    match known.filter(|known| known.identity() == named.types.identity) {
                        Some(known) => {
                            known.follow(topology, Arc::clone(&named.types));
                            kept.insert(named.name);
                        }
                        None => missing.push(named),
                    }
                }
                Err(error) => {
                    tracing::warn!(graph = document.name, error, "a live graph cannot be opened or changed");
                    // A graph that is open stays open with the types that it has, unless the name belongs to another graph now.
                    let known = self.get(&document.name);
                    if known.is_some_and(|known| identity_of(&document.types) == Ok(known.identity())) {
                        kept.insert(document.name.clone());
                    }
                    unreadable.insert(document.name.clone(), error);
                }
            }
        }
        self.close_all_but(&kept);
        unreadable.retain(|name, _| self.get(name).is_none());
        (missing, unreadable)
    }

    fn close_all_but(&self, kept: &BTreeSet<String>) {
        let mut graphs = self.graphs.write();
        let gone: Vec<String> = graphs.keys().filter(|name| !kept.contains(*name)).cloned().collect();
        for graph in gone.iter().filter_map(|name| graphs.remove(name)) {
            tokio::spawn(async move { graph.close().await });
        }
    }

    /// Starts a graph whose database is open, with its state in the topology.
    fn start_one(&self, around: &Surroundings, topology: &TopologyDocument, opened: OpenGraph) {
        let OpenGraph { graph: NamedGraph { name, count, types, .. }, database } = opened;
        let node = around.outlook.node;
        let partitions = Arc::new(HeldPartitions::new(LiveCacheOptions::default()));
        let parts = LiveGraphParts { name: name.clone(), node, count, types, database, partitions };
        let graph = start(around, parts, topology);
        self.graphs.write().insert(name.clone(), graph);
        self.unopened.opened(&name);
    }
}

/// Makes a graph, and starts the tasks that lead its partitions, follow and trim their logs, and build their lists.
fn start(around: &Surroundings, parts: LiveGraphParts, topology: &TopologyDocument) -> Arc<LiveGraph> {
    let (lead, messages) = mpsc::unbounded_channel();
    let stop = around.stop.child_token();
    let (types, name, count) = (Arc::clone(&parts.types), parts.name.clone(), parts.count);
    let graph = Arc::new(LiveGraph::new(parts, lead, stop.clone()));
    // The tasks find the partitions that the graph holds from the start.
    graph.follow(topology, types);
    let leading = LeadParts {
        outlook: around.outlook.clone(),
        transport: Arc::clone(&around.transport),
        stop: stop.clone(),
    };
    lead::start(Arc::clone(&graph.logs), count, leading, messages);
    graph.freshener.start(stop.clone());
    graph.list_builder().start(stop.clone());
    let trimmer = Trimmer {
        graph: name,
        node: around.outlook.node,
        count,
        topology: around.outlook.topology.clone(),
        retention: around.retention,
        database: Arc::clone(&graph.database),
        lists: Arc::clone(&graph.lists),
    };
    trimmer.start(stop);
    graph
}
