//! Calls to a database process: its address, the time limits, and the meaning of a call without a reply.

use crate::{CommitError, DatabaseError, GraphIdentity, LogError};
use kith_net::security::{Dialer, GrpcChannel, was_never_sent};
use kith_wire::{
    MESSAGE_BYTES_MAX, Message, REQUEST_BYTES_MAX, encoded_len,
    v1::{self, database_client::DatabaseClient},
};
use parking_lot::Mutex;
use std::{future::Future, sync::Arc, time::Duration};
use tokio::sync::Semaphore;
use tonic::{Code, Response, Status};

/// Finds the current address of a database process by its id, from the metadata.
pub type Locate = Arc<dyn Fn(u32) -> Option<String> + Send + Sync>;

/// Limits of the calls to a database process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteOptions {
    /// The most concurrent calls. Further calls wait.
    pub calls_max: u32,
    /// How long a call may take, including the wait for other calls.
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
    /// Finds the address of the process.
    pub locate: Locate,
    /// Connects to the process.
    pub dialer: Dialer,
    /// Limits of the calls.
    pub options: RemoteOptions,
}

/// Calls a database process about one graph. If the address of the process changes, or the connection is lost, the next
/// call connects again.
pub(super) struct Caller {
    target: RemoteTarget,
    identity: GraphIdentity,
    calls: Semaphore,
    /// The address of the last call, and the channel to it.
    channel: Mutex<Option<(String, GrpcChannel)>>,
}

/// Why a call has no reply.
pub(super) enum Failed {
    /// The process cannot have processed the call.
    NotSent(DatabaseError),
    /// The process may have processed the call.
    Unknown(String),
}

impl From<Failed> for DatabaseError {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::NotSent(error) => error,
            Failed::Unknown(reason) => DatabaseError::Unavailable { reason },
        }
    }
}

impl From<Failed> for CommitError {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::NotSent(error) => CommitError::NotWritten(error),
            Failed::Unknown(reason) => CommitError::Unknown { reason },
        }
    }
}

impl From<Failed> for LogError {
    fn from(failed: Failed) -> Self {
        LogError::Database(failed.into())
    }
}

impl Caller {
    pub fn new(target: RemoteTarget, identity: GraphIdentity) -> Self {
        let calls = Semaphore::new(target.options.calls_max.max(1) as usize);
        Self { target, identity, calls, channel: Mutex::new(None) }
    }

    pub fn identity(&self) -> GraphIdentity {
        self.identity
    }

    /// Returns the graph in the form of requests.
    pub fn graph(&self) -> Option<v1::DatabaseGraph> {
        let GraphIdentity { graph: identity, partitions } = self.identity;
        let name = self.target.graph.clone();
        Some(v1::DatabaseGraph { name, identity, partitions: partitions.get() })
    }

    /// Sends a request and waits for the reply.
    pub async fn call<Q: Message, R, F>(
        &self,
        request: Q,
        method: impl FnOnce(DatabaseClient<GrpcChannel>, Q) -> F + Send,
    ) -> Result<R, Failed>
    where
        F: Future<Output = Result<Response<R>, Status>> + Send,
    {
        let bytes = encoded_len(&request);
        if REQUEST_BYTES_MAX < bytes {
            let detail = format!("a request of {bytes} bytes is longer than {REQUEST_BYTES_MAX}");
            return Err(Failed::NotSent(DatabaseError::Invalid { detail }));
        }
        let timeout = self.target.options.timeout;
        let not_sent = |reason: String| Failed::NotSent(DatabaseError::unavailable(reason));
        let deadline = tokio::time::Instant::now() + timeout;
        let _call = match tokio::time::timeout_at(deadline, self.calls.acquire()).await {
            Ok(Ok(call)) => call,
            Ok(Err(_)) => return Err(not_sent("it has been closed".to_owned())),
            Err(_) => return Err(not_sent(format!("the call waited more than {timeout:?} for other calls"))),
        };
        let (addr, channel) = self.channel()?;
        let client = DatabaseClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX);
        match tokio::time::timeout_at(deadline, method(client, request)).await {
            Ok(Ok(response)) => Ok(response.into_inner()),
            Ok(Err(status)) => Err(self.failed(&addr, &status)),
            Err(_) => Err(Failed::Unknown(format!("{} did not answer within {timeout:?}", self.name(&addr)))),
        }
    }

    /// Waits for calls under way. Later calls fail as unavailable.
    pub async fn close(&self) {
        let all = self.target.options.calls_max.max(1);
        // This fails only if another caller has closed it already.
        if let Ok(_calls) = self.calls.acquire_many(all).await {
            self.calls.close();
        }
    }

    /// Returns the channel to the current address of the process.
    fn channel(&self) -> Result<(String, GrpcChannel), Failed> {
        let RemoteTarget { database, locate, dialer, .. } = &self.target;
        let not_sent = |reason| Failed::NotSent(DatabaseError::Unavailable { reason });
        let addr = locate(*database)
            .ok_or_else(|| not_sent(format!("no process of the cluster is database {database}")))?;
        let mut known = self.channel.lock();
        if let Some((before, channel)) = &*known
            && *before == addr
        {
            return Ok((addr, channel.clone()));
        }
        let channel = dialer.channel(&addr).map_err(|status| not_sent(status.message().to_owned()))?;
        *known = Some((addr.clone(), channel.clone()));
        Ok((addr, channel))
    }

    /// Returns the meaning of a status that does not come from the database itself.
    fn failed(&self, addr: &str, status: &Status) -> Failed {
        let name = self.name(addr);
        // A peer may reject the certificate only after this side has sent its first request.
        let tls = self.target.dialer.failure_at(addr).map(|failure| failure.reason);
        if was_never_sent(status) {
            let reason = tls.unwrap_or_else(|| status.message().to_owned());
            return Failed::NotSent(DatabaseError::unavailable(format!(
                "{name} cannot be reached: {reason}"
            )));
        }
        let reason = format!("{name}: {}", status.message());
        match status.code() {
            Code::Unauthenticated | Code::PermissionDenied | Code::Unimplemented => {
                Failed::NotSent(DatabaseError::Refused { reason })
            }
            // A message is too long. The reply to a commit is never that long, so the process has refused a request.
            Code::OutOfRange => Failed::NotSent(DatabaseError::Invalid { detail: reason }),
            _ => Failed::Unknown(tls.map_or(reason, |tls| format!("{name}: {tls}"))),
        }
    }

    fn name(&self, addr: &str) -> String {
        format!("database {} at {addr}", self.target.database)
    }
}
