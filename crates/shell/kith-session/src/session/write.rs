//! Writes to live graphs. Each is sent to the leader of its partition, and is carried out at most once. Only a write with a
//! name is sent again after an attempt without an answer, because leaders recognize a repeat by its name.

use super::Session;
use kith_client::ANSWER_GRACE;
use kith_live::{Mutation, Write, WriteId, ordering_partition};
use kith_net::SendFailure;
use kith_query::{AfterAttempt, FailedAttempt, WriteAttempts};
use kith_query::{
    QueryError, QueryOptions, WriteOutcome,
    convert::{write_to_wire, written_from_wire},
};
use kith_topology::{Graph, Topology};
use kith_types::PartitionId;
use kith_wire::v1;
use std::{
    borrow::Cow,
    sync::Arc,
    time::{Duration, Instant},
};

/// The time to wait for news of leaders before a write is sent again.
const LEADER_WAIT: Duration = Duration::from_millis(20);

/// A write to a live graph under way.
pub(crate) struct LiveWrite<'a> {
    pub(super) session: &'a Session,
    pub(super) graph: &'a str,
    write: Cow<'a, Write>,
    options: &'a QueryOptions,
    pub(super) deadline: Instant,
}

impl<'a> LiveWrite<'a> {
    /// Begins a write. It gets a name if it needs one.
    pub fn new(session: &'a Session, graph: &'a str, write: &'a Write, options: &'a QueryOptions) -> Self {
        let deadline = Instant::now() + session.timeout(options);
        Self { session, graph, write: named(write), options, deadline }
    }

    /// Carries out the write. If it was certainly not carried out, it is sent again, to the leader at that time, until the
    /// deadline. So is a write with a name if its outcome is unknown. If the graph is open, types that the write names are
    /// added first.
    ///
    /// # Errors
    /// [`QueryError::OutcomeUnknown`] if the write was sent and its outcome is unknown, although it was repeated if it has a
    /// name. After any other error, nothing was written.
    pub async fn carry_out(&self) -> Result<WriteOutcome, QueryError> {
        self.add_types(&self.write.mutation).await?;
        let mut attempts = WriteAttempts::new(self.write.write_id.is_some());
        // The error of the last attempt that may have been carried out.
        let mut unknown = None;
        loop {
            let topology = self.session.topology();
            let unwritten = match self.send(&topology).await {
                Ok(reply) => {
                    let written = written_from_wire(reply)?;
                    self.session.own_writes().note(&written.ticket, Instant::now());
                    return Ok(written);
                }
                Err(unwritten) => unwritten,
            };
            let attempt = failed_attempt(&unwritten);
            match attempts.fail(attempt) {
                AfterAttempt::NothingWritten => return Err(QueryError::from_status(unwritten.status())),
                AfterAttempt::Unknown => return Err(outcome_unknown(&unwritten)),
                AfterAttempt::SendAgain => {}
            }
            if attempt.is_unknown() {
                unknown = Some(outcome_unknown(&unwritten));
            }
            if self.deadline <= Instant::now() + LEADER_WAIT {
                let detail = format!("nothing was written: {}", unwritten.status().message());
                return Err(unknown.unwrap_or(QueryError::NotLeader { detail }));
            }
            self.await_news(&topology).await;
        }
    }

    async fn send(&self, topology: &Arc<Topology>) -> Result<v1::GraphWriteReply, SendFailure> {
        let unsent = |error: QueryError| SendFailure::Unsent(error.to_status());
        let graph = topology.graph(self.graph).map_err(|error| unsent(error.into()))?;
        let partition = partition_of(topology, graph, &self.write).map_err(unsent)?;
        let addr = leader_of(topology, graph, partition).map_err(unsent)?;
        let left = self.deadline.saturating_duration_since(Instant::now());
        let options = QueryOptions { deadline: Some(left), ..self.options.clone() };
        let request = write_to_wire(self.graph, &self.write, &options);
        self.session.executor().fleet().transport().write(&addr, request, left + ANSWER_GRACE).await
    }

    /// Waits, for a limited time, for a newer topology.
    async fn await_news(&self, known: &Topology) {
        let mut topology = self.session.inner.topology.clone();
        let news = topology.wait_for(|topology| known.revision < topology.revision);
        // A timeout is no error: the leader may have begun to lead meanwhile.
        let _ = tokio::time::timeout(LEADER_WAIT, news).await;
    }
}

/// Gives a write a name if it needs one: an object without an id gets its id from the name of its write.
fn named(write: &Write) -> Cow<'_, Write> {
    match (&write.mutation, &write.write_id) {
        (Mutation::AddObject { id: None, text_id: None, .. }, None) => {
            Cow::Owned(Write { write_id: new_name(), ..write.clone() })
        }
        _ => Cow::Borrowed(write),
    }
}

/// A name that no other write has.
pub(crate) fn new_name() -> Option<WriteId> {
    format!("{:032x}", rand::random::<u128>()).parse().ok()
}

fn partition_of(topology: &Topology, graph: &Graph, write: &Write) -> Result<PartitionId, QueryError> {
    let live = graph.live.as_ref();
    let live = live.ok_or_else(|| QueryError::LoadedGraph {
        name: graph.pinned.name.clone(),
        what: "it takes no writes",
    })?;
    Ok(ordering_partition(write, &live.types, topology.table.partition_count())?)
}

/// The address of a partition's leader.
fn leader_of(topology: &Topology, graph: &Graph, partition: PartitionId) -> Result<String, QueryError> {
    let leader = graph.live.as_ref().and_then(|live| live.leaders.of(partition));
    let node = leader.and_then(|leader| topology.table.node(leader.node));
    match node {
        Some(node) if !node.address.is_empty() => Ok(node.address.clone()),
        _ => Err(QueryError::NotLeader { detail: format!("no node leads partition {} yet", partition.0) }),
    }
}

fn failed_attempt(unwritten: &SendFailure) -> FailedAttempt {
    let code = kith_wire::code_of(unwritten.status());
    match unwritten {
        SendFailure::Unsent(_) => FailedAttempt::Unsent(code),
        SendFailure::Refused(_) => FailedAttempt::Refused(code),
        SendFailure::Lost(_) => FailedAttempt::Lost,
    }
}

/// The error of an attempt that may have been carried out.
fn outcome_unknown(unwritten: &SendFailure) -> QueryError {
    match unwritten {
        SendFailure::Refused(status) => QueryError::from_status(status),
        SendFailure::Lost(status) | SendFailure::Unsent(status) => {
            let detail = format!("no answer came from the leader: {}", status.message());
            QueryError::OutcomeUnknown { detail }
        }
    }
}
