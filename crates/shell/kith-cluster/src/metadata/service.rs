//! Serves a metadata store over gRPC to the processes that a supervisor started.

use super::{CommitOutcome, Condition, Entry, LeaseId, MetadataError, MetadataStore, Snapshot, Write};
use futures::{StreamExt, stream::BoxStream};
use kith_wire::v1;
use std::{sync::Arc, time::Duration};
use tonic::{Request, Response, Status};

/// The gRPC service `Metadata` over any store.
pub struct MetadataService {
    store: Arc<dyn MetadataStore>,
}

impl MetadataService {
    /// Serves `store`.
    pub fn new(store: Arc<dyn MetadataStore>) -> v1::metadata_server::MetadataServer<Self> {
        v1::metadata_server::MetadataServer::new(Self { store })
    }
}

#[tonic::async_trait]
impl v1::metadata_server::Metadata for MetadataService {
    type WatchStream = BoxStream<'static, Result<v1::ReadReply, Status>>;

    async fn read(&self, request: Request<v1::ReadRequest>) -> Result<Response<v1::ReadReply>, Status> {
        let snapshot = self.store.read(&request.get_ref().prefix).await.map_err(status_of)?;
        Ok(Response::new(reply_of(snapshot)))
    }

    async fn commit(&self, request: Request<v1::CommitRequest>) -> Result<Response<v1::CommitReply>, Status> {
        let request = request.into_inner();
        let conditions = request
            .conditions
            .into_iter()
            .map(|condition| Condition { key: condition.key, revision: condition.revision });
        let writes = request.writes.into_iter().map(|write| Write {
            key: write.key,
            value: write.value.map(Into::into),
            lease: (write.lease != 0).then_some(LeaseId(write.lease)),
        });
        let committed = self.store.commit(conditions.collect(), writes.collect()).await.map_err(status_of)?;
        Ok(Response::new(match committed {
            CommitOutcome::At(revision) => v1::CommitReply { committed: true, revision },
            CommitOutcome::Conflict => v1::CommitReply { committed: false, revision: 0 },
        }))
    }

    async fn watch(&self, request: Request<v1::WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let request = request.into_inner();
        let snapshots = self.store.watch(&request.prefix, request.from_revision);
        Ok(Response::new(snapshots.map(|snapshot| Ok(reply_of(snapshot))).boxed()))
    }

    async fn grant_lease(
        &self,
        request: Request<v1::GrantLeaseRequest>,
    ) -> Result<Response<v1::GrantLeaseReply>, Status> {
        let ttl = Duration::from_millis(request.get_ref().ttl_ms);
        let lease = self.store.lease(ttl).await.map_err(status_of)?;
        Ok(Response::new(v1::GrantLeaseReply { lease: lease.0 }))
    }

    async fn keep_alive(
        &self,
        request: Request<v1::KeepAliveRequest>,
    ) -> Result<Response<v1::KeepAliveReply>, Status> {
        match self.store.keep_alive(LeaseId(request.get_ref().lease)).await {
            Ok(()) => Ok(Response::new(v1::KeepAliveReply { alive: true })),
            Err(MetadataError::LeaseEnded(_)) => Ok(Response::new(v1::KeepAliveReply { alive: false })),
            Err(error) => Err(status_of(error)),
        }
    }
}

fn reply_of(snapshot: Snapshot) -> v1::ReadReply {
    let entries = snapshot.entries.into_iter().map(|Entry { key, value, revision }| v1::Entry {
        key,
        value: value.into(),
        revision,
    });
    v1::ReadReply { revision: snapshot.revision, entries: entries.collect() }
}

fn status_of(error: MetadataError) -> Status {
    let help = "reads go on without it; check the supervisor's log and its disk";
    kith_wire::status(error.code(), error.to_string(), help)
}
