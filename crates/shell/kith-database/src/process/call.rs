//! Calls to a database process: its address, the time limits, and the meaning of a call without a reply.

use super::DatabaseProcesses;
use crate::{CommitError, DatabaseError, GraphIdentity, LogError};
use kith_net::SendFailure;
use kith_types::ErrorCode;
use kith_wire::{
    Message, REQUEST_BYTES_MAX, code_of,
    frame::Op,
    v1::{self, database_reply::Outcome, database_request::Call},
};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout_at},
};
use tonic::Status;

/// Limits of the calls to a database process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteOptions {
    /// The most concurrent calls. Further calls wait.
    pub calls_max: u32,
    /// The time limit of a call, including the wait for other calls.
    pub timeout: Duration,
}

impl Default for RemoteOptions {
    fn default() -> Self {
        Self { calls_max: 64, timeout: Duration::from_secs(10) }
    }
}

/// A graph in a database process, and how to connect to it.
#[derive(Clone)]
pub struct RemoteTarget {
    /// The id of the process.
    pub database: u32,
    /// The name of the graph.
    pub graph: String,
    /// The processes of the cluster.
    pub processes: Arc<DatabaseProcesses>,
    /// Limits of the calls.
    pub options: RemoteOptions,
}

/// Calls a database process about one graph. If the address of the process changes, or the connection is lost, the next
/// call connects again.
pub(super) struct ProcessClient {
    target: RemoteTarget,
    identity: GraphIdentity,
    calls: Semaphore,
}

/// The reason why a call has no reply.
pub(super) enum CallFailure {
    /// The process cannot have processed the call.
    NotSent(DatabaseError),
    /// The process may have processed the call.
    Unknown(String),
}

impl From<CallFailure> for DatabaseError {
    fn from(failed: CallFailure) -> Self {
        match failed {
            CallFailure::NotSent(error) => error,
            CallFailure::Unknown(reason) => DatabaseError::Unavailable { reason },
        }
    }
}

impl From<CallFailure> for CommitError {
    fn from(failed: CallFailure) -> Self {
        match failed {
            CallFailure::NotSent(error) => CommitError::NotWritten(error),
            CallFailure::Unknown(reason) => CommitError::Unknown { reason },
        }
    }
}

impl From<CallFailure> for LogError {
    fn from(failed: CallFailure) -> Self {
        LogError::Database(failed.into())
    }
}

impl ProcessClient {
    pub fn new(target: RemoteTarget, identity: GraphIdentity) -> Self {
        let calls = Semaphore::new(target.options.calls_max.max(1) as usize);
        Self { target, identity, calls }
    }

    pub fn identity(&self) -> GraphIdentity {
        self.identity
    }

    /// Sends a call and waits for its outcome.
    pub async fn call(&self, call: Call) -> Result<Outcome, CallFailure> {
        let request = v1::DatabaseRequest { graph: Some(self.graph()), call: Some(call) };
        let bytes = request.encoded_len();
        if REQUEST_BYTES_MAX < bytes {
            let detail = format!("a request of {bytes} bytes is longer than {REQUEST_BYTES_MAX}");
            return Err(CallFailure::NotSent(DatabaseError::Invalid { detail }));
        }
        let timeout = self.target.options.timeout;
        let deadline = Instant::now() + timeout;
        let _call = match timeout_at(deadline, self.calls.acquire()).await {
            Ok(Ok(call)) => call,
            Ok(Err(_)) => return Err(not_sent("it has been closed")),
            Err(_) => return Err(not_sent(format!("the call waited more than {timeout:?} for other calls"))),
        };
        let RemoteTarget { database, processes, .. } = &self.target;
        let addr = processes
            .addr(*database)
            .ok_or_else(|| not_sent(format!("no process of the cluster is database {database}")))?;
        let timeout = deadline.saturating_duration_since(Instant::now());
        let asked = processes.frames.ask_once(&addr, Op::Database, timeout, &request).await;
        let reply: v1::DatabaseReply = asked.map_err(|error| self.failed(&addr, error))?;
        let unknown = || {
            CallFailure::Unknown(format!("{} sent a reply that this release does not know", self.name(&addr)))
        };
        reply.outcome.ok_or_else(unknown)
    }

    /// Waits for calls under way. Later calls fail as unavailable.
    pub async fn close(&self) {
        let all = self.target.options.calls_max.max(1);
        // This fails only if another caller has closed it already.
        if let Ok(_calls) = self.calls.acquire_many(all).await {
            self.calls.close();
        }
    }

    /// Returns the graph in the form of requests.
    fn graph(&self) -> v1::DatabaseGraph {
        let GraphIdentity { graph: identity, partitions } = self.identity;
        let name = self.target.graph.clone();
        v1::DatabaseGraph { name, identity, partitions: partitions.get() }
    }

    /// Returns the meaning of a call without a reply.
    fn failed(&self, addr: &str, error: SendFailure) -> CallFailure {
        let name = self.name(addr);
        let message = |status: &Status| format!("{name}: {}", status.message());
        match error {
            SendFailure::Lost(status) => CallFailure::Unknown(message(&status)),
            SendFailure::Unsent(status) | SendFailure::Refused(status) if is_refusal(&status) => {
                CallFailure::NotSent(DatabaseError::Refused { reason: message(&status) })
            }
            SendFailure::Unsent(status) => {
                not_sent(format!("{name} cannot be reached: {}", status.message()))
            }
            // A reply would be too long. The reply to a commit is never that long.
            SendFailure::Refused(status) if code_of(&status) == ErrorCode::OutOfRange => {
                CallFailure::NotSent(DatabaseError::Invalid { detail: message(&status) })
            }
            SendFailure::Refused(status) => not_sent(message(&status)),
        }
    }

    fn name(&self, addr: &str) -> String {
        format!("database {} at {addr}", self.target.database)
    }
}

fn not_sent(reason: impl Into<String>) -> CallFailure {
    CallFailure::NotSent(DatabaseError::unavailable(reason))
}

/// Whether the process does not answer this caller, or does not know the call.
fn is_refusal(status: &Status) -> bool {
    let code = code_of(status);
    matches!(
        code,
        ErrorCode::Unauthenticated
            | ErrorCode::TlsRequired
            | ErrorCode::PermissionDenied
            | ErrorCode::BadRequest
            | ErrorCode::UnsupportedOperation
    )
}
