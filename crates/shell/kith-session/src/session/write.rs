//! Writes to live graphs. Each is sent to the leader of its partition, and is carried out at most once. Only a write with a
//! name is sent again after an attempt without an answer, because leaders recognize a repeat by its name.

use super::Session;
use kith_client::ANSWER_GRACE;
use kith_live::{Mutation, Write, WriteId, ordering_partition};
use kith_net::Unwritten;
use kith_query::{
    QueryError, QueryOptions, Written,
    convert::{write_to_wire, written_from_wire},
};
use kith_routing::{AfterAttempt, FailedAttempt, WriteAttempts};
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

impl Session {
    /// Writes to a live graph. A write that was certainly not carried out is sent again, to the leader at that time, until
    /// the deadline. So is a write with a name if its outcome is unknown. If the graph is open, types that the write names are
    /// added first.
    ///
    /// # Errors
    /// [`QueryError::OutcomeUnknown`] if the write was sent and its outcome is unknown, although it was repeated if it has a
    /// name. After any other error, nothing was written.
    pub(crate) async fn write(
        &self,
        graph: &str,
        write: &Write,
        options: &QueryOptions,
    ) -> Result<Written, QueryError> {
        let patience = self.patience(options);
        let deadline = Instant::now() + patience;
        let write = named(write);
        self.add_types(graph, &write.mutation, deadline).await?;
        let mut attempts = WriteAttempts::new(write.write_id.is_some());
        // The error of the last attempt that may have been carried out.
        let mut unknown = None;
        loop {
            let topology = self.topology();
            let unwritten = match self.send_write(&topology, graph, &write, options, deadline).await {
                Ok(reply) => {
                    let written = written_from_wire(reply)?;
                    self.own_writes().note(&written.ticket, Instant::now());
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
            if deadline <= Instant::now() + LEADER_WAIT {
                let detail = format!("nothing was written: {}", unwritten.status().message());
                return Err(unknown.unwrap_or(QueryError::NotLeader { detail }));
            }
            self.await_news(&topology, LEADER_WAIT).await;
        }
    }

    async fn send_write(
        &self,
        topology: &Arc<Topology>,
        name: &str,
        write: &Write,
        options: &QueryOptions,
        deadline: Instant,
    ) -> Result<v1::GraphWriteReply, Unwritten> {
        let unsent = |error: QueryError| Unwritten::Unsent(error.to_status());
        let graph = topology.graph(name).map_err(|error| unsent(error.into()))?;
        let partition = partition_of(topology, graph, write).map_err(unsent)?;
        let addr = leader_of(topology, graph, partition).map_err(unsent)?;
        let left = deadline.saturating_duration_since(Instant::now());
        let options = QueryOptions { deadline: Some(left), ..options.clone() };
        let request = write_to_wire(name, write, &options);
        self.executor().fleet().transport().write(&addr, request, left + ANSWER_GRACE).await
    }

    /// Waits, for a limited time, for a newer topology.
    async fn await_news(&self, known: &Topology, patience: Duration) {
        let mut topology = self.inner.topology.clone();
        let news = topology.wait_for(|topology| known.revision < topology.revision);
        // A timeout is no error: the leader may have begun to lead meanwhile.
        let _ = tokio::time::timeout(patience, news).await;
    }
}

/// Gives a write a name if it needs one: an object without an id gets its id from the name of its write.
fn named(write: &Write) -> Cow<'_, Write> {
    match (&write.mutation, &write.write_id) {
        (Mutation::AddObject { id: None, .. }, None) => {
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

fn failed_attempt(unwritten: &Unwritten) -> FailedAttempt {
    let code = kith_wire::code_of(unwritten.status());
    match unwritten {
        Unwritten::Unsent(_) => FailedAttempt::Unsent(code),
        Unwritten::Refused(_) => FailedAttempt::Refused(code),
        Unwritten::Lost(_) => FailedAttempt::Lost,
    }
}

/// The error of an attempt that may have been carried out.
fn outcome_unknown(unwritten: &Unwritten) -> QueryError {
    match unwritten {
        Unwritten::Refused(status) => QueryError::from_status(status),
        Unwritten::Lost(status) | Unwritten::Unsent(status) => {
            let detail = format!("no answer came from the leader: {}", status.message());
            QueryError::OutcomeUnknown { detail }
        }
    }
}
