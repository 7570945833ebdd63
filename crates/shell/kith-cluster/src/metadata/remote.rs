//! A client of the embedded store of a supervisor, for the processes that the supervisor started.

use super::{
    CommitOutcome, Condition, Entry, LeaseId, MetadataError, MetadataFuture, MetadataStore, Snapshot, Write,
};
use futures::{FutureExt, StreamExt, stream::BoxStream};
use kith_wire::{
    MESSAGE_BYTES_MAX,
    v1::{self, metadata_client::MetadataClient},
};
use std::time::Duration;
use tonic::{Status, transport::Channel};

/// The pause before a lost watch is opened again.
const WATCH_RETRY: Duration = Duration::from_millis(200);

/// A metadata store served by [`super::MetadataService`].
#[derive(Clone)]
pub struct RemoteMetadata {
    client: MetadataClient<Channel>,
}

impl RemoteMetadata {
    /// Returns a client of `addr` (`host:port`). It connects when it is first used, and again after the connection is lost.
    ///
    /// # Errors
    /// If `addr` is not a valid address.
    pub fn connect(addr: &str) -> Result<Self, MetadataError> {
        let endpoint = Channel::from_shared(format!("http://{addr}"))
            .map_err(|error| MetadataError::Unavailable { reason: format!("bad address {addr:?}: {error}") })?
            .connect_timeout(Duration::from_millis(500))
            .http2_keep_alive_interval(Duration::from_secs(1))
            .keep_alive_timeout(Duration::from_secs(2));
        Ok(Self {
            client: MetadataClient::new(endpoint.connect_lazy()).max_decoding_message_size(MESSAGE_BYTES_MAX),
        })
    }
}

impl MetadataStore for RemoteMetadata {
    fn read<'a>(&'a self, prefix: &'a str) -> MetadataFuture<'a, Snapshot> {
        let mut client = self.client.clone();
        let request = v1::ReadRequest { prefix: prefix.to_owned() };
        async move { Ok(snapshot_of(client.read(request).await.map_err(unavailable)?.into_inner())) }.boxed()
    }

    fn commit(&self, conditions: Vec<Condition>, writes: Vec<Write>) -> MetadataFuture<'_, CommitOutcome> {
        let mut client = self.client.clone();
        let conditions = conditions.into_iter().map(|c| v1::Condition { key: c.key, revision: c.revision });
        let writes = writes.into_iter().map(|write| v1::Write {
            key: write.key,
            value: write.value.map(Into::into),
            lease: write.lease.map_or(0, |lease| lease.0),
        });
        let request = v1::CommitRequest { conditions: conditions.collect(), writes: writes.collect() };
        async move {
            let reply = client.commit(request).await.map_err(unavailable)?.into_inner();
            Ok(if reply.committed { CommitOutcome::At(reply.revision) } else { CommitOutcome::Conflict })
        }
        .boxed()
    }

    fn watch(&self, prefix: &str, from_revision: u64) -> BoxStream<'static, Snapshot> {
        let state = (self.client.clone(), prefix.to_owned(), from_revision, None);
        futures::stream::unfold(state, |(mut client, prefix, mut from, mut open)| async move {
            loop {
                let mut stream: tonic::Streaming<v1::ReadReply> = match open.take() {
                    Some(stream) => stream,
                    None => {
                        let request = v1::WatchRequest { prefix: prefix.clone(), from_revision: from };
                        match client.watch(request).await {
                            Ok(reply) => reply.into_inner(),
                            Err(_) => {
                                tokio::time::sleep(WATCH_RETRY).await;
                                continue;
                            }
                        }
                    }
                };
                match stream.next().await {
                    Some(Ok(reply)) => {
                        from = from.max(reply.revision);
                        return Some((snapshot_of(reply), (client, prefix, from, Some(stream))));
                    }
                    _ => tokio::time::sleep(WATCH_RETRY).await,
                }
            }
        })
        .boxed()
    }

    fn lease(&self, ttl: Duration) -> MetadataFuture<'_, LeaseId> {
        let mut client = self.client.clone();
        let request = v1::GrantLeaseRequest { ttl_ms: u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX) };
        async move { Ok(LeaseId(client.grant_lease(request).await.map_err(unavailable)?.into_inner().lease)) }
            .boxed()
    }

    fn keep_alive(&self, lease: LeaseId) -> MetadataFuture<'_, ()> {
        let mut client = self.client.clone();
        async move {
            let request = v1::KeepAliveRequest { lease: lease.0 };
            let reply = client.keep_alive(request).await.map_err(unavailable)?.into_inner();
            if reply.alive { Ok(()) } else { Err(MetadataError::LeaseEnded(lease.0)) }
        }
        .boxed()
    }
}

fn snapshot_of(reply: v1::ReadReply) -> Snapshot {
    let entries = reply.entries.into_iter().map(|entry| Entry {
        key: entry.key,
        value: entry.value.into(),
        revision: entry.revision,
    });
    Snapshot { revision: reply.revision, entries: entries.collect() }
}

fn unavailable(status: Status) -> MetadataError {
    MetadataError::Unavailable { reason: status.message().to_owned() }
}
