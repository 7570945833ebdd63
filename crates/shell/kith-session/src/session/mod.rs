//! The fast client: runs operations itself, directly against the nodes. A router is a session with caches.

mod labels;
mod own_writes;
mod run;
mod write;

pub(crate) use run::{Run, latest_round};
pub(crate) use write::{LiveWrite, new_name};

use crate::{
    cache::ResultCache,
    executor::Executor,
    settings::{SessionSettings, SettingsError},
    topology::WantedTypes,
};
use kith_client::Schemas;
use kith_query::{EdgesQuery, GraphQuery, Operation, QueryAnswer, QueryError, QueryOptions};
use kith_topology::{Graph, Pin, PinnedState, Topology, UnreadReason};
use kith_types::{GroupId, OperationName, Workflow};
use own_writes::OwnWrites;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::watch;

/// The time that a query waits for a topology that its nodes already have.
const REFRESH_WAIT: Duration = Duration::from_secs(1);
/// The maximum number of times that a read begins again: [`Run::begins_again`].
pub(crate) const RESTARTS_MAX: u32 = 2;

/// Answers queries from the nodes of one cluster. Cheap to clone; clones share connections, load measurements and cursors.
#[derive(Clone)]
pub struct Session {
    inner: Arc<Inner>,
}

struct Inner {
    topology: watch::Receiver<Arc<Topology>>,
    /// The live graphs whose types the topology gets; `None` if it has the types of all.
    asked: Option<Arc<WantedTypes>>,
    executor: Executor,
    settings: SessionSettings,
    /// The caches in front of the nodes.
    caches: Vec<Arc<dyn ResultCache>>,
    schemas: Schemas,
    /// The lock that is held while the types that a write names are added to an open graph, so that concurrent writes
    /// ask for them once.
    adding_types: tokio::sync::Mutex<()>,
    own_writes: OwnWrites,
    /// The memory that all traversals share.
    traversal_memory: Arc<kith_net::Budget>,
}

impl Session {
    /// Connects to the cluster through any of `seeds`, routers or nodes (`host:port`). Returns once the connections to all
    /// nodes that are up are open, after a second at the latest.
    ///
    /// # Errors
    /// If none of the seeds answers.
    pub async fn connect(seeds: Vec<String>, settings: SessionSettings) -> Result<Self, QueryError> {
        let asked = Arc::new(WantedTypes::default());
        let topology = crate::topology::follow(seeds, settings.dialer.clone(), Arc::clone(&asked)).await?;
        let session = Self::over(topology, settings, Vec::new(), Some(asked))
            .map_err(|error| QueryError::BadRequest { detail: error.to_string() })?;
        session.warm().await;
        Ok(session)
    }

    /// Waits, for a limited time, until the connections to its nodes are open. [`Session::connect`] has already waited.
    pub async fn warm(&self) {
        self.inner.executor.fleet().warm().await;
    }

    /// Creates a session over a topology that the caller follows, with the types of its live graphs.
    ///
    /// # Errors
    /// If the settings name a policy or controller that does not exist.
    pub fn new(
        topology: watch::Receiver<Arc<Topology>>,
        settings: SessionSettings,
        caches: Vec<Arc<dyn ResultCache>>,
    ) -> Result<Self, SettingsError> {
        Self::over(topology, settings, caches, None)
    }

    fn over(
        topology: watch::Receiver<Arc<Topology>>,
        settings: SessionSettings,
        caches: Vec<Arc<dyn ResultCache>>,
        asked: Option<Arc<WantedTypes>>,
    ) -> Result<Self, SettingsError> {
        settings.check_bounds()?;
        let executor = Executor::new(topology.clone(), &settings)?;
        let memory = usize::try_from(settings.traversals.memory).unwrap_or(usize::MAX);
        Ok(Self {
            inner: Arc::new(Inner {
                traversal_memory: kith_net::Budget::new(memory),
                topology,
                asked,
                executor,
                settings,
                caches,
                schemas: Schemas::default(),
                adding_types: tokio::sync::Mutex::default(),
                own_writes: OwnWrites::default(),
            }),
        })
    }

    /// The current topology.
    pub fn topology(&self) -> Arc<Topology> {
        Arc::clone(&self.inner.topology.borrow())
    }

    /// The executor, for its health and load.
    pub fn executor(&self) -> &Executor {
        &self.inner.executor
    }

    /// The settings for routing and limits.
    pub(crate) fn settings(&self) -> &SessionSettings {
        &self.inner.settings
    }

    /// The schemas of records that the session has fetched.
    pub(crate) fn schemas(&self) -> &Schemas {
        &self.inner.schemas
    }

    /// The memory that all traversals of the session share.
    pub(crate) fn traversal_memory(&self) -> &Arc<kith_net::Budget> {
        &self.inner.traversal_memory
    }

    /// The writes that were made through the session lately.
    pub(crate) fn own_writes(&self) -> &OwnWrites {
        &self.inner.own_writes
    }

    /// Runs `work` with a deadline of its own and the background workflow, for work that nobody waits for, such as the
    /// refresh of a stale network.
    pub(crate) async fn in_background<T>(
        &self,
        graph: &str,
        operation: OperationName,
        work: impl AsyncFnOnce(&mut Run<'_>) -> Result<T, QueryError>,
    ) -> Result<T, QueryError> {
        let options = QueryOptions { workflow: Workflow::Background, ..QueryOptions::default() };
        let (mut run, _) = self.begin(graph, operation, &options)?;
        work(&mut run).await
    }

    /// The time limit of a query with these options.
    pub fn timeout(&self, options: &QueryOptions) -> Duration {
        let settings = &self.inner.settings;
        options.deadline.unwrap_or(settings.deadline_default).min(settings.deadline_max)
    }

    /// Waits until this session has the types of a live graph, or knows why it cannot have them.
    pub(crate) async fn ask_for_types(&self, graph: &str, options: &QueryOptions) {
        let is_unasked = |topology: &Topology| topology.unread.get(graph) == Some(&UnreadReason::Unasked);
        let Some(asked) = self.inner.asked.as_ref().filter(|_| is_unasked(&self.topology())) else { return };
        asked.add(graph);
        let mut topology = self.inner.topology.clone();
        let known = topology.wait_for(|topology| !is_unasked(topology));
        // After a timeout, the request fails because the types are not known.
        let _ = tokio::time::timeout(self.timeout(options), known).await;
    }

    /// Begins a run that has pinned a graph.
    pub(crate) fn begin<'a>(
        &'a self,
        graph: &str,
        operation: OperationName,
        options: &'a QueryOptions,
    ) -> Result<(Run<'a>, Arc<Graph>), QueryError> {
        let topology = self.topology();
        let graph = Arc::clone(topology.graph(graph)?);
        Ok((self.begin_at(topology, &graph.pinned, operation, options)?, graph))
    }

    /// Begins a run that has pinned the version of a graph that answers a query: the version that is served, or the version
    /// of a cursor if it is still kept.
    fn begin_query<'a>(
        &'a self,
        graph: &str,
        query: &GraphQuery,
        options: &'a QueryOptions,
    ) -> Result<(Run<'a>, Arc<Graph>), QueryError> {
        let topology = self.topology();
        let graph = match &query.operation {
            Operation::Edges(EdgesQuery { after: Some(cursor), .. }) => {
                topology.graph_with(graph, query.edge_type.as_deref(), cursor.version)?
            }
            _ => Arc::clone(topology.graph(graph)?),
        };
        check_live(&graph, query)?;
        Ok((self.begin_at(topology, &graph.pinned, query.operation.name(), options)?, graph))
    }

    /// Begins a run that has pinned a version in `topology`.
    pub(crate) fn begin_at<'a>(
        &'a self,
        topology: Arc<Topology>,
        pinned: &Arc<PinnedState>,
        operation: OperationName,
        options: &'a QueryOptions,
    ) -> Result<Run<'a>, QueryError> {
        if let Some(name) = &options.policy
            && kith_routing::policy::by_name(name).is_none()
        {
            // Reported even if the answer comes from a cache and no policy is needed.
            return Err(crate::executor::unknown_policy(name));
        }
        let pinned = within(pinned, &topology, options)?;
        Ok(Run::new(self, topology, pinned, operation, options))
    }

    pub(crate) async fn answer(
        &self,
        graph: &str,
        query: &GraphQuery,
        options: &QueryOptions,
    ) -> Result<QueryAnswer, QueryError> {
        let mut restarts = 0;
        loop {
            let (mut run, pinned) = self.begin_query(graph, query, options)?;
            let error = match run.drive(query, &pinned).await {
                Ok(answer) => return Ok(run.finish(answer)),
                Err(error) => error,
            };
            if RESTARTS_MAX <= restarts || !run.begins_again(&error, false).await {
                return Err(error);
            }
            restarts += 1;
        }
    }

    /// Waits, for a limited time, for a topology after `revision`.
    async fn newer_than(&self, revision: u64, deadline: Instant) {
        let mut topology = self.inner.topology.clone();
        let wait = REFRESH_WAIT.min(deadline.saturating_duration_since(Instant::now()));
        // A timeout is no error: the nodes may catch up with this process meanwhile.
        let _ = tokio::time::timeout(wait, topology.wait_for(|topology| revision < topology.revision)).await;
    }
}

/// Refuses a query for objects or associations of a loaded graph.
///
/// # Errors
/// [`QueryError::LoadedGraph`].
pub(crate) fn check_live(graph: &Graph, query: &GraphQuery) -> Result<(), QueryError> {
    match (&graph.live, query.operation.needs_live_graph()) {
        (None, true) => Err(QueryError::LoadedGraph {
            name: graph.pinned.name.clone(),
            what: "only live graphs have objects and associations",
        }),
        _ => Ok(()),
    }
}

/// Restricts a read to the group that its options name, if they name one.
///
/// # Errors
/// If the options ask for something that the pinned state does not offer, or name a group that does not exist.
fn within(
    pinned: &Arc<PinnedState>,
    topology: &Topology,
    options: &QueryOptions,
) -> Result<Arc<PinnedState>, QueryError> {
    match (pinned.pin, &options.ticket) {
        (Pin::Live { identity }, Some(ticket)) if ticket.graph != identity => {
            return Err(QueryError::WrongTicket { graph: pinned.name.clone() });
        }
        (Pin::Version(_), ticket) if options.critical || ticket.is_some() => {
            return Err(live_only(pinned));
        }
        _ => {}
    }
    let Some(group) = options.group else { return Ok(Arc::clone(pinned)) };
    let reach = pinned.reach.within(&topology.table, GroupId(group)).ok_or_else(|| {
        let known = topology.table.groups().iter().map(|group| group.id.0).collect();
        QueryError::UnknownGroup { group, known }
    })?;
    Ok(Arc::new(pinned.with_reach(reach)))
}

fn live_only(pinned: &PinnedState) -> QueryError {
    match pinned.what {
        "graph" => QueryError::LoadedGraph {
            name: pinned.name.clone(),
            what: "only live graphs take tickets and critical reads",
        },
        _ => QueryError::BadRequest {
            detail: "`ticket` and `critical` are for live graphs, not for stores of values".to_owned(),
        },
    }
}
