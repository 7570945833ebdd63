//! One query of a session.

mod ask;
mod cached;

pub(crate) use cached::latest_round;

use super::Session;
use crate::{executor::ReachedPoints, profile::Trace};
use kith_live::Ticket;
use kith_operators::{NetworkKey, Records};
use kith_query::{
    BatchAnswer, CommonAnswer, GraphAnswer, GraphQuery, Input, NetworkPlan, OperationError, OperationStep,
    QueryAnswer, QueryError, QueryMachine, QueryOptions, ServedGraph, ServedState,
};
use kith_routing::execution::Failure;
use kith_schema::SchemaId;
use kith_topology::{Graph, Pin, PinnedState, Topology};
use kith_types::OperationName;
use kith_wire::v1;
use std::{
    borrow::Cow,
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

/// One query under way: its pinned version, its deadline and its progress.
pub(crate) struct Run<'a> {
    session: &'a Session,
    topology: Arc<Topology>,
    pinned: Arc<PinnedState>,
    options: Cow<'a, QueryOptions>,
    /// The operation of the query.
    operation: OperationName,
    deadline: Instant,
    trace: Trace,
    missing: BTreeSet<u32>,
    /// The points of the logs at which partitions of a live graph were read. Further reads of these partitions use the same
    /// points if `is_pinned`.
    reached: ReachedPoints,
    /// Whether all reads of a partition of a live graph show it at the same point.
    is_pinned: bool,
    /// The failures of missing partitions.
    failures: Vec<Failure>,
}

impl<'a> Run<'a> {
    pub(super) fn new(
        session: &'a Session,
        topology: Arc<Topology>,
        pinned: Arc<PinnedState>,
        operation: OperationName,
        options: &'a QueryOptions,
    ) -> Self {
        let started = Instant::now();
        Self {
            session,
            topology,
            pinned,
            options: Cow::Borrowed(options),
            operation,
            deadline: started + session.timeout(options),
            trace: Trace::new(started, options.profile || session.settings().trace_all),
            missing: BTreeSet::new(),
            reached: ReachedPoints::new(),
            is_pinned: true,
            failures: Vec::new(),
        }
    }
}

impl Run<'_> {
    /// Counts what was done for the query before it began towards its deadline.
    pub(crate) fn after(mut self, spent: Duration) -> Self {
        self.deadline = self.deadline.checked_sub(spent).unwrap_or(self.deadline);
        self.trace.begin_earlier(spent);
        self
    }

    /// Lets each read of a live graph show it as it is at that time.
    pub(crate) fn unpinned(mut self) -> Self {
        self.is_pinned = false;
        self
    }

    /// Makes further reads of a live graph show the writes that a ticket stands for. The answer names their points too.
    pub(crate) fn require(&mut self, ticket: &Ticket) {
        match &mut self.options.to_mut().ticket {
            Some(known) => known.merge(ticket),
            none => *none = Some(ticket.clone()),
        }
        self.reach(ticket.points.clone());
    }

    /// Makes further reads show every write that was confirmed before the read; they fail if they cannot be complete.
    pub(crate) fn read_latest(&mut self) {
        let options = self.options.to_mut();
        (options.critical, options.partial) = (true, false);
    }

    /// Notes later points at which partitions were read, or were written to.
    fn reach(&mut self, points: ReachedPoints) {
        for (partition, point) in points {
            let known = self.reached.entry(partition).or_insert(point);
            *known = point.max(*known);
        }
    }

    /// The store or graph that the query reads, and its pinned version.
    pub fn pinned(&self) -> &PinnedState {
        &self.pinned
    }

    /// Whether a read that failed like this may succeed if it begins again. Waits, for a limited time, for a newer topology
    /// if the nodes no longer have the pinned version. `several` means that more than one replica of each key is asked, and
    /// that they must agree.
    pub(crate) async fn begins_again(&self, error: &QueryError, several: bool) -> bool {
        match error {
            QueryError::VersionUnavailable { .. } => {
                self.session.newer_than(self.topology.revision, self.deadline).await;
                true
            }
            // The query begins again with the current state of the nodes.
            QueryError::OtherPosition { .. } => true,
            // The only replica of a share went away meanwhile. Another division into shares may still cover the partition.
            QueryError::PartitionsUnavailable { .. } => several,
            _ => false,
        }
    }

    /// The session that runs the query.
    pub(crate) fn session(&self) -> &Session {
        self.session
    }

    /// The time at which the caller stops waiting.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The time that the caller gave the query, in milliseconds.
    pub fn allowed_ms(&self) -> u64 {
        self.trace.micros(self.deadline).div_ceil(1_000)
    }

    /// Chooses how a network is fetched. The first and second degrees are fetched in turn if the caller limits the number
    /// of groups or accepts partial answers, and if the edge type is one-sided.
    pub(crate) fn network_plan(&self, key: &NetworkKey) -> NetworkPlan {
        let graph = self.topology.graphs.get(&self.pinned.name);
        let kind = graph.and_then(|graph| graph.schema.kind(&key.edge_type));
        let is_one_sided = kind.is_some_and(|kind| kind.one_sided);
        if !self.options.fan_out.is_auto() || self.options.partial || is_one_sided {
            return NetworkPlan::InTurn;
        }
        let table = &self.topology.table;
        let nodes_max = self.session.inner.settings.networks_at_once as usize;
        NetworkPlan::of(table.groups().len(), table.nodes().len(), table.partition_count(), nodes_max)
    }

    pub(super) async fn drive(
        &mut self,
        query: &GraphQuery,
        graph: &Graph,
    ) -> Result<GraphAnswer, QueryError> {
        let machine = QueryMachine::new(query, &graph.schema_for(query.edge_type.as_deref()))?;
        self.steps(machine, true).await
    }

    async fn steps(&mut self, mut machine: QueryMachine, networks: bool) -> Result<GraphAnswer, QueryError> {
        let mut input = Input::Start;
        loop {
            input = match machine.step(input).map_err(|error| self.error_of(error))? {
                OperationStep::Done(answer) => return Ok(answer),
                OperationStep::FanOut(fan_out) => Input::Value(self.round(&fan_out).await?),
                OperationStep::Network(key) if networks => Input::Network(self.network(key).await?),
                OperationStep::Network(_) => {
                    return Err(QueryError::Internal { detail: "a network asked for a network".to_owned() });
                }
            }
        }
    }

    /// The error of an operation for its caller: a member that a live graph lacks may have been written too recently.
    fn error_of(&self, error: OperationError) -> QueryError {
        let graph = self.topology.graphs.get(&self.pinned.name);
        let is_live = graph.is_some_and(|graph| graph.live.is_some());
        match error {
            OperationError::MemberNotFound { id } if is_live && !self.options.critical => {
                QueryError::NotShown { id }
            }
            error => error.into(),
        }
    }

    /// Takes out the failures so far.
    pub(crate) fn take_failures(&mut self) -> Vec<Failure> {
        std::mem::take(&mut self.failures)
    }

    /// The state that answered, and the timings if these were requested.
    pub(crate) fn into_served(self) -> (ServedGraph, Option<v1::Profile>) {
        (self.served(), self.trace.finish())
    }

    /// A run of the same query that reads another store or graph, pinned in the same topology.
    pub(crate) fn beside(&self, pinned: &Arc<PinnedState>) -> Self {
        Self {
            session: self.session,
            topology: Arc::clone(&self.topology),
            pinned: Arc::clone(pinned),
            options: self.options.clone(),
            operation: self.operation,
            deadline: self.deadline,
            trace: self.trace.beside(),
            missing: BTreeSet::new(),
            reached: ReachedPoints::new(),
            is_pinned: true,
            failures: Vec::new(),
        }
    }

    /// Adds the fan-outs of a run beside this one to the profile.
    pub(crate) fn absorb(&mut self, other: Self) {
        self.trace.absorb(other.trace);
    }

    /// The cluster as the query sees it.
    pub(crate) fn topology(&self) -> &Arc<Topology> {
        &self.topology
    }

    pub(crate) fn options(&self) -> &QueryOptions {
        &self.options
    }

    /// The state that would answer, and a profile of the fan-outs that would be made.
    pub(crate) fn into_explained(
        self,
        rounds: impl IntoIterator<Item = v1::RoundProfile>,
    ) -> (ServedGraph, v1::Profile) {
        let served = self.served();
        (served, Trace::planned(rounds))
    }

    /// The fan-outs since the last call, if a profile is wanted, and the number of keys that a cache has answered meanwhile.
    pub(crate) fn take_fan_outs(&mut self) -> (&[v1::RoundProfile], u64) {
        self.trace.take_new()
    }

    /// Returns the trace of the query.
    pub(crate) fn into_trace(self) -> Trace {
        self.trace
    }

    /// The state that answered: the version, or the points of the logs of a live graph.
    fn served(&self) -> ServedGraph {
        let state = match self.pinned.pin {
            Pin::Version(version) => ServedState::Version(version),
            Pin::Live { identity } => {
                ServedState::Live(Ticket { points: self.reached.clone(), ..Ticket::new(identity) })
            }
        };
        ServedGraph { name: self.pinned.name.clone(), state }
    }

    pub(super) fn finish(self, mut answer: GraphAnswer) -> QueryAnswer {
        if let GraphAnswer::Ids(ids) | GraphAnswer::Common(CommonAnswer::Ids(ids)) = &mut answer {
            self.options.page.cut(ids);
        }
        let served = vec![self.served()];
        QueryAnswer {
            answer,
            complete: self.missing.is_empty(),
            missing_partitions: self.missing.into_iter().collect(),
            served,
            profile: self.trace.finish(),
        }
    }

    pub(crate) fn finish_batch(self, records: Records, schema: Option<SchemaId>) -> BatchAnswer {
        BatchAnswer {
            records,
            missing_partitions: self.missing.into_iter().collect(),
            served: vec![(self.pinned.name.clone(), self.pinned.version())],
            profile: self.trace.finish(),
            schema,
        }
    }
}
