//! The node's part of a push: preparing a version and reporting the progress.

use super::{
    Replicas, Supplier,
    held::{HeldStores, PrepareError, PrepareOptions},
};
use futures::{StreamExt, stream::BoxStream};
use kith_cluster::{FailPoint, background, topology::TopologyReceiver};
use kith_types::{ErrorCode, PartitionId, with_causes};
use kith_wire::{
    documents::{Document, ServedDocument},
    v1,
};
use std::{num::NonZeroU64, sync::Arc, time::Instant};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::Status;

/// The number of progress messages of a preparation that may wait for their reader.
const PROGRESS_QUEUE: usize = 64;

/// The progress of a preparation.
pub(crate) type PrepareStream = BoxStream<'static, Result<v1::PrepareProgress, Status>>;

/// Prepares versions for one node.
#[derive(Clone)]
pub(crate) struct Preparer {
    pub node: u32,
    pub held: Arc<HeldStores>,
    pub topology: TopologyReceiver,
    /// The number of bytes of a new version that are read into memory before it serves.
    pub warm_bytes: u64,
}

impl Preparer {
    /// Prepares a version. If this fails, the stream ends with the error. A caller that drops the stream cancels the
    /// preparation.
    ///
    /// # Errors
    /// If the request cannot be decoded.
    pub fn prepare(&self, request: v1::PrepareRequest) -> Result<PrepareStream, Status> {
        let store = ServedDocument::decode(&request.record).map_err(|error| {
            kith_wire::status(ErrorCode::BadRequest, error.to_string(), "use a router of this release")
        })?;
        let revision = request.revision;
        let options = options_of(request, self.warm_bytes);
        // This is dropped with the stream: a router that failed or ended its push does not wait any more.
        let listener = options.given_up.clone().drop_guard();
        let (sender, receiver) = mpsc::channel(PROGRESS_QUEUE);
        let (held, node, topology) = (Arc::clone(&self.held), self.node, self.topology.clone());
        background::spawn(move || {
            let mut report = |component: &str, bytes_done, bytes_total| {
                let progress = v1::PrepareProgress {
                    component: component.to_owned(),
                    bytes_done,
                    bytes_total,
                    ready: false,
                    held_back: held.origins.fetches.state().held_back.map_or(0, NonZeroU64::get),
                };
                // A full queue drops a progress message, but never the preparation.
                let _ = sender.try_send(Ok(progress));
            };
            let last = match held.opener.prepare(&store, revision, &options, &mut report) {
                Ok(()) => {
                    FailPoint::NodeReady.reach();
                    Ok(v1::PrepareProgress { ready: true, ..Default::default() })
                }
                Err(error) => Err(status_of(node, &error)),
            };
            let _ = sender.blocking_send(last);
            if options.given_up.is_cancelled() {
                // Remove at once what was fetched of a version that nothing names.
                held.remover.retire(&Arc::clone(&topology.borrow()), Instant::now());
            }
        });
        let steps = ReceiverStream::new(receiver).inspect(move |_| {
            let _kept_with_the_stream = &listener;
        });
        Ok(steps.boxed())
    }
}

fn options_of(request: v1::PrepareRequest, warm_bytes: u64) -> PrepareOptions {
    let suppliers = request.suppliers.into_iter().map(|supplier| Supplier {
        addr: supplier.addr,
        partitions: supplier.partitions.into_iter().map(PartitionId).collect(),
    });
    PrepareOptions {
        bytes_max: request.quota_left_bytes,
        warm_bytes,
        only: request.only.into_iter().map(PartitionId).collect(),
        suppliers: suppliers.collect(),
        given_up: CancellationToken::new(),
        replicas: Replicas::default(),
    }
}

fn status_of(node: u32, error: &PrepareError) -> Status {
    let message = format!("node {node}: {}", with_causes(error));
    kith_wire::status(
        ErrorCode::PrepareFailed,
        message,
        "nothing was swapped; repair the cause, then load or push again",
    )
}
