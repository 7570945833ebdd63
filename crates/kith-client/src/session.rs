//! The fast client: runs operations itself, straight against the nodes. A router is a
//! session with a network cache in front of [`NetworkSource`].

use crate::{
    ListStore,
    at_hand::{self, ListQuestion},
    executor::{Asking, Executor, Handed, Planned, RoundOutcome},
    profile::Trace,
    schemas::Schemas,
    settings::{SessionSettings, SettingsError},
    stream::Handing,
    topology::{Graph, Pinned, Topology},
};
use futures::{
    FutureExt,
    future::{BoxFuture, try_join_all},
};
use kith_api::{Answered, BatchAnswer, CacheMode, Proofs, QueryError, QueryOptions};
use kith_ops::{
    CommonAnswer, EdgesQuery, FanOut, GraphAnswer, GraphQuery, Input, Network, NetworkKey, NetworkPlan,
    Operand, Operation, Records, Step, Value,
};
use kith_routing::execution::Failure;
use kith_schema::SchemaId;
use kith_types::{OperationName, Workflow};
use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::watch;

/// How long a query waits for the topology that its nodes already have.
const REFRESH_WAIT: Duration = Duration::from_secs(1);
/// A query starts anew on a newer version at most so often.
pub(crate) const RESTARTS_MAX: u32 = 2;

/// Answers queries from the nodes of one cluster. Cheap to clone; clones share connections, load measurements and cursors.
#[derive(Clone)]
pub struct Session {
    inner: Arc<Inner>,
}

struct Inner {
    topology: watch::Receiver<Arc<Topology>>,
    executor: Executor,
    settings: SessionSettings,
    caches: Caches,
    schemas: Schemas,
}

/// What stands in front of the nodes.
pub struct Caches {
    /// Answers [`Step::Network`].
    pub networks: Arc<dyn NetworkSource>,
    /// Keeps whole neighbour lists; `None` asks the nodes each time.
    pub lists: Option<Arc<dyn ListStore>>,
}

impl Default for Caches {
    /// Nothing is kept.
    fn default() -> Self {
        Self { networks: Arc::new(Uncached), lists: None }
    }
}

/// Where [`Step::Network`] is answered: from the nodes, or from a cache in front of them.
pub trait NetworkSource: Send + Sync + 'static {
    /// The network of a member at the query's pinned version.
    fn network<'a>(
        &'a self,
        run: &'a mut Run<'_>,
        key: NetworkKey,
    ) -> BoxFuture<'a, Result<Arc<Network>, QueryError>>;
}

/// Fetches every network anew: Moolle's Algorithm 2 without its cache.
#[derive(Clone, Copy, Debug, Default)]
pub struct Uncached;

impl NetworkSource for Uncached {
    fn network<'a>(
        &'a self,
        run: &'a mut Run<'_>,
        key: NetworkKey,
    ) -> BoxFuture<'a, Result<Arc<Network>, QueryError>> {
        run.fetch_network(key).boxed()
    }
}

/// One query on its way: what it pinned, how long it may take, what it did so far.
pub struct Run<'a> {
    session: &'a Session,
    topology: Arc<Topology>,
    pinned: Arc<Pinned>,
    options: &'a QueryOptions,
    /// What was asked.
    operation: OperationName,
    deadline: Instant,
    trace: Trace,
    missing: BTreeSet<u32>,
    /// What went wrong with them.
    failures: Vec<Failure>,
}

impl Session {
    /// Starts from any of `seeds`, routers or nodes (`host:port`). Returns once the connections to all nodes are open, of those that
    /// are up; a second later at the latest.
    ///
    /// # Errors
    /// If none of them answers.
    pub async fn connect(seeds: Vec<String>, settings: SessionSettings) -> Result<Self, QueryError> {
        let topology = crate::topology::follow(seeds, settings.dialer.clone()).await?;
        let session = Self::new(topology, settings, Caches::default())
            .map_err(|error| QueryError::BadRequest { detail: error.to_string() })?;
        session.warm().await;
        Ok(session)
    }

    /// Waits, not for long, until the connections to its nodes are open. [`Session::connect`] has done so.
    pub async fn warm(&self) {
        self.inner.executor.fleet().warm().await;
    }

    /// Over a topology that someone else follows.
    ///
    /// # Errors
    /// If the settings name a policy or controller that does not exist.
    pub fn new(
        topology: watch::Receiver<Arc<Topology>>,
        settings: SessionSettings,
        caches: Caches,
    ) -> Result<Self, SettingsError> {
        settings.check_bounds()?;
        let executor = Executor::new(topology.clone(), &settings)?;
        Ok(Self {
            inner: Arc::new(Inner { topology, executor, settings, caches, schemas: Schemas::default() }),
        })
    }

    /// The topology now.
    pub fn topology(&self) -> Arc<Topology> {
        Arc::clone(&self.inner.topology.borrow())
    }

    /// What runs the fan-outs: for its health and load.
    pub fn executor(&self) -> &Executor {
        &self.inner.executor
    }

    /// How it routes and what it allows.
    pub(crate) fn settings(&self) -> &SessionSettings {
        &self.inner.settings
    }

    /// The schemas of records that it has fetched.
    pub(crate) fn schemas(&self) -> &Schemas {
        &self.inner.schemas
    }

    /// A run that nobody waits for, as the refresh of a stale network: its own deadline, the background workflow.
    pub async fn in_background<T>(
        &self,
        graph: &str,
        operation: OperationName,
        work: impl AsyncFnOnce(&mut Run<'_>) -> Result<T, QueryError>,
    ) -> Result<T, QueryError> {
        let options = QueryOptions { workflow: Workflow::Background, ..QueryOptions::default() };
        let (mut run, _) = self.begin(graph, operation, &options)?;
        work(&mut run).await
    }

    /// How long a query with these options may take.
    pub fn patience(&self, options: &QueryOptions) -> Duration {
        let settings = &self.inner.settings;
        options.deadline.unwrap_or(settings.deadline_default).min(settings.deadline_max)
    }

    /// A run that has pinned a graph.
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

    /// A run that has pinned the version of a graph that answers a query: the one that is served, or the one that a cursor belongs to
    /// if it is kept.
    fn begin_query<'a>(
        &'a self,
        graph: &str,
        query: &GraphQuery,
        options: &'a QueryOptions,
    ) -> Result<(Run<'a>, Arc<Graph>), QueryError> {
        let topology = self.topology();
        let graph = match &query.operand {
            Operand::Edges(EdgesQuery { after: Some(cursor), .. }) => {
                topology.graph_with(graph, query.edge_type.as_deref(), cursor.version)?
            }
            _ => Arc::clone(topology.graph(graph)?),
        };
        Ok((self.begin_at(topology, &graph.pinned, query.operand.operation(), options)?, graph))
    }

    /// A run that has pinned something of `topology`.
    pub(crate) fn begin_at<'a>(
        &'a self,
        topology: Arc<Topology>,
        pinned: &Arc<Pinned>,
        operation: OperationName,
        options: &'a QueryOptions,
    ) -> Result<Run<'a>, QueryError> {
        if let Some(name) = &options.policy
            && kith_routing::policy::by_name(name).is_none()
        {
            // Told even where a cache makes the policy needless.
            return Err(QueryError::UnknownPolicy { name: name.clone() });
        }
        let deadline = self.patience(options);
        let started = Instant::now();
        Ok(Run {
            session: self,
            topology,
            pinned: Arc::clone(pinned),
            options,
            operation,
            deadline: started + deadline,
            trace: Trace::new(started, options.profile || self.inner.settings.trace_all),
            missing: BTreeSet::new(),
            failures: Vec::new(),
        })
    }

    pub(crate) async fn answer(
        &self,
        graph: &str,
        query: &GraphQuery,
        options: &QueryOptions,
    ) -> Result<Answered, QueryError> {
        let mut restarts = 0;
        loop {
            let (mut run, pinned) = self.begin_query(graph, query, options)?;
            match run.drive(query, &pinned).await {
                Err(QueryError::VersionUnavailable { .. }) if restarts < RESTARTS_MAX => {
                    restarts += 1;
                    run.wait_for_newer().await;
                }
                Ok(answer) => return Ok(run.finish(answer)),
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits, not for long, for a topology after `revision`.
    async fn newer_than(&self, revision: u64, deadline: Instant) {
        let mut topology = self.inner.topology.clone();
        let wait = REFRESH_WAIT.min(deadline.saturating_duration_since(Instant::now()));
        // Nothing newer is fine: the nodes may catch up with us meanwhile.
        let _ = tokio::time::timeout(wait, topology.wait_for(|topology| revision < topology.revision)).await;
    }
}

impl Run<'_> {
    /// The name and version of what it asks.
    pub fn pinned(&self) -> &Pinned {
        &self.pinned
    }

    /// Waits, not for long, for a topology after its own: the nodes no longer have what it pinned.
    pub(crate) async fn wait_for_newer(&self) {
        self.session.newer_than(self.topology.revision, self.deadline).await;
    }

    /// How the caller wants caches used.
    pub fn cache_mode(&self) -> CacheMode {
        self.options.cache
    }

    /// The session that runs it.
    pub fn session(&self) -> &Session {
        self.session
    }

    /// When the caller stops waiting.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// How many milliseconds the caller gave it.
    pub fn allowed_ms(&self) -> u64 {
        self.trace.micros(self.deadline).div_ceil(1_000)
    }

    /// Notes how the network cache took part, for the profile.
    pub fn note_cache(&mut self, outcome: &'static str) {
        self.trace.cache(outcome);
    }

    /// Whether answers so far lack partitions: such a network must not be cached.
    pub fn is_partial(&self) -> bool {
        !self.missing.is_empty()
    }

    /// Fetches a member's network from the nodes (Moolle, Algorithm 2).
    ///
    /// # Errors
    /// [`QueryError`].
    pub async fn fetch_network(&mut self, key: NetworkKey) -> Result<Arc<Network>, QueryError> {
        let (plan, workflow) = (self.network_plan(), self.options.workflow);
        match self.steps(Operation::network(key, workflow, plan), false).await? {
            GraphAnswer::Network(answer) => answer
                .network
                .ok_or_else(|| QueryError::Internal { detail: "a fetched network has no ids".to_owned() }),
            other => Err(QueryError::Internal { detail: format!("a network was answered by {other:?}") }),
        }
    }

    /// How a network is fetched: in turn whenever the caller says how many groups may take part, or takes what is left of one.
    pub(crate) fn network_plan(&self) -> NetworkPlan {
        if !self.options.fan_out.is_auto() || self.options.partial {
            return NetworkPlan::InTurn;
        }
        let table = &self.topology.table;
        let nodes_max = self.session.inner.settings.networks_at_once as usize;
        NetworkPlan::of(table.groups().len(), table.nodes().len(), table.partition_count(), nodes_max)
    }

    async fn drive(&mut self, query: &GraphQuery, graph: &Graph) -> Result<GraphAnswer, QueryError> {
        let operation = Operation::new(query, &graph.schema)?;
        self.steps(operation, true).await
    }

    async fn steps(&mut self, mut operation: Operation, networks: bool) -> Result<GraphAnswer, QueryError> {
        let mut input = Input::Start;
        loop {
            input = match operation.step(input)? {
                Step::Done(answer) => return Ok(answer),
                Step::FanOut(fan_out) => Input::Value(self.round(&fan_out).await?),
                Step::Network(key) if networks => {
                    let source = Arc::clone(&self.session.inner.caches.networks);
                    Input::Network(source.network(self, key).await?)
                }
                Step::Network(_) => {
                    return Err(QueryError::Internal { detail: "a network asked for a network".to_owned() });
                }
            }
        }
    }

    /// Runs one fan-out, but for lists that are at hand.
    pub(crate) async fn round(&mut self, fan_out: &FanOut) -> Result<Value, QueryError> {
        let session = self.session;
        let (Some(lists), Some(question)) = (&session.inner.caches.lists, ListQuestion::of(fan_out)) else {
            return self.ask(fan_out).await;
        };
        let at_hand = match self.options.cache {
            CacheMode::Use => lists.read(&self.pinned, question.edge, question.keys),
            CacheMode::Refresh => vec![None; question.keys.len()],
            CacheMode::Bypass => return self.ask(fan_out).await,
        };
        let Some(rest) = at_hand::rest(fan_out, question.keys, &at_hand) else {
            return Ok(question.joined(at_hand, Vec::new()));
        };
        match self.ask(&rest).await? {
            Value::Lists(fetched) => {
                lists.keep(&self.pinned, question.edge, &at_hand::keepable(&rest, &fetched));
                Ok(question.joined(at_hand, fetched))
            }
            other => Ok(other),
        }
    }

    /// Asks the nodes.
    pub(crate) async fn ask(&mut self, fan_out: &FanOut) -> Result<Value, QueryError> {
        let &mut Self { ref topology, ref pinned, options, operation, deadline, ref mut trace, .. } = self;
        let asking = Asking { topology, pinned, fan_out, options, operation, deadline };
        let run = self.session.inner.executor.run(&asking, trace);
        let RoundOutcome { value, missing, failures } = run.await?;
        self.missing.extend(missing);
        self.failures.extend(failures);
        Ok(value)
    }

    /// Asks the nodes, and hands on what they answer as they do.
    pub(crate) async fn ask_in_parts(
        &mut self,
        fan_out: &FanOut,
        handing: &mut Handing,
    ) -> Result<Handed, QueryError> {
        let &mut Self { ref topology, ref pinned, options, operation, deadline, ref mut trace, .. } = self;
        let asking = Asking { topology, pinned, fan_out, options, operation, deadline };
        self.session.inner.executor.run_in_parts(&asking, trace, handing).await
    }

    /// Decides whom the nodes' fan-out would go to, without asking them.
    pub(crate) fn plan(&self, fan_out: &FanOut) -> Result<Planned, QueryError> {
        let &Self { ref topology, ref pinned, options, operation, deadline, .. } = self;
        let asking = Asking { topology, pinned, fan_out, options, operation, deadline };
        self.session.inner.executor.plan(&asking)
    }

    /// Whether the caller takes an answer that lacks keys.
    pub(crate) fn is_partial_wanted(&self) -> bool {
        self.options.partial
    }

    /// What went wrong so far.
    pub(crate) fn take_failures(&mut self) -> Vec<Failure> {
        std::mem::take(&mut self.failures)
    }

    /// Asks `required` replicas of each key, none twice for one key, all at once; what they agree on.
    pub(crate) async fn ask_agreeing(
        &mut self,
        fan_out: &FanOut,
        required: u32,
    ) -> Result<Value, QueryError> {
        let executor = &self.session.inner.executor;
        let shares = executor.shares(&self.topology, &self.pinned, fan_out, required);
        // Only values that were checked can be compared.
        let options = &QueryOptions { proofs: Proofs::Everywhere, ..self.options.clone() };
        let reads = shares.iter().map(|share| {
            let mut trace = self.trace.beside();
            let (topology, operation, deadline) = (&*self.topology, self.operation, self.deadline);
            async move {
                let asking = Asking { topology, pinned: share, fan_out, options, operation, deadline };
                executor.run(&asking, &mut trace).await.map(|outcome| (outcome, trace))
            }
        });
        let reads = try_join_all(reads.collect::<Vec<_>>()).await?;
        let mut answers = Vec::with_capacity(reads.len());
        for (RoundOutcome { value, missing, failures }, trace) in reads {
            self.missing.extend(missing);
            self.failures.extend(failures);
            self.trace.absorb(trace);
            match value {
                Value::Records(records) => answers.push(records),
                other => return Ok(other),
            }
        }
        Ok(Value::Records(Records::agreed(answers)))
    }

    /// What it did so far.
    pub(crate) fn into_trace(self) -> Trace {
        self.trace
    }

    fn finish(self, mut answer: GraphAnswer) -> Answered {
        if let GraphAnswer::Ids(ids) | GraphAnswer::Common(CommonAnswer::Ids(ids)) = &mut answer {
            self.options.page.cut(ids);
        }
        Answered {
            answer,
            complete: self.missing.is_empty(),
            missing_partitions: self.missing.into_iter().collect(),
            served: vec![(self.pinned.name.clone(), self.pinned.version)],
            profile: self.trace.finish(),
        }
    }

    pub(crate) fn finish_batch(self, records: Records, schema: Option<SchemaId>) -> BatchAnswer {
        BatchAnswer {
            records,
            missing_partitions: self.missing.into_iter().collect(),
            served: vec![(self.pinned.name.clone(), self.pinned.version)],
            profile: self.trace.finish(),
            schema,
        }
    }
}
