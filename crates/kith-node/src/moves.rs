//! What a rebalance asks of a node: copy partitions from a peer, free what it gave up.

use super::{
    CopyError, Copying, Partitions, ReleaseError,
    held::HeldStores,
    named::{partitions_of, seen, versions_of},
};
use futures::{StreamExt, stream::BoxStream};
use kith_engine::{FetchError, Source};
use kith_process::{PeerSource, background, topology::TopologyReceiver};
use kith_types::{ErrorCode, with_causes};
use kith_wire::{documents::ComponentDocument, v1};
use std::{num::NonZeroU64, ops::ControlFlow, sync::Arc, time::Instant};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

/// Progress messages that may wait for their reader.
const PROGRESS_QUEUE: usize = 64;

/// A copy's steps.
pub(super) type CopyStream = BoxStream<'static, Result<v1::PrepareProgress, Status>>;

/// Carries out moves for one node.
#[derive(Clone)]
pub(super) struct Moves {
    pub node: u32,
    pub held: Arc<HeldStores>,
    pub topology: TopologyReceiver,
}

impl Moves {
    /// Copies partitions from a peer. Ends early if the caller goes away.
    ///
    /// # Errors
    /// If the request names what the metadata does not; the stream ends with the error of the copy.
    pub async fn copy(&self, request: v1::CopyRequest) -> Result<CopyStream, Status> {
        let topology = seen(&self.topology, request.revision).await?;
        let wanted = Partitions {
            versions: versions_of(&topology, &request.stores),
            partitions: partitions_of(&topology, &request.partitions)?,
        };
        let (sender, receiver) = mpsc::channel(PROGRESS_QUEUE);
        let (held, node) = (Arc::clone(&self.held), self.node);
        background::spawn(move || {
            let ended = copy(&held, &request, &wanted, topology.revision, &sender);
            let ended = ended.map_err(|error| copy_status(node, &error));
            let last = ended.map(|()| v1::PrepareProgress { ready: true, ..Default::default() });
            // Nobody listening is fine: a copy that is here is proven before it is used.
            let _ = sender.blocking_send(last);
        });
        Ok(ReceiverStream::new(receiver).boxed())
    }

    /// Frees what this node gave up.
    ///
    /// # Errors
    /// `release_failed`, and as [`Moves::copy`].
    pub async fn release(&self, request: v1::ReleaseRequest) -> Result<(), Status> {
        let topology = seen(&self.topology, request.revision).await?;
        let versions = versions_of(&topology, &request.stores);
        let partitions = partitions_of(&topology, &request.partitions)?;
        let (held, node) = (Arc::clone(&self.held), self.node);
        let freed = tokio::task::spawn_blocking(move || {
            // The table that this request rests on may have come this moment.
            held.follow(&topology, node, Instant::now());
            held.release(&versions, &partitions)
        });
        let freed = freed.await.map_err(|error| Status::internal(error.to_string()))?;
        freed.map_err(|error| release_status(self.node, &error))
    }
}

fn copy(
    held: &HeldStores,
    request: &v1::CopyRequest,
    wanted: &Partitions,
    revision: u64,
    sender: &mpsc::Sender<Result<v1::PrepareProgress, Status>>,
) -> Result<(), CopyError> {
    let mut report = |component: &str, bytes_done, bytes_total| {
        let component = component.to_owned();
        // A full queue drops a progress message, nothing else.
        let _ = sender.try_send(Ok(v1::PrepareProgress {
            component,
            bytes_done,
            bytes_total,
            ..Default::default()
        }));
    };
    let pace = held.fetches().beside(NonZeroU64::new(request.bytes_per_second));
    let mut go_on = |bytes: u64| match sender.is_closed() {
        true => ControlFlow::Break(()),
        false => pace.pass(bytes),
    };
    let source_of = |store: &str, component: &ComponentDocument| {
        let version = component.version;
        let peer = PeerSource::new(held.dialer(), &request.from, store, &component.name, version);
        let peer = peer.map_err(|status| CopyError::Donor { detail: status.message().to_owned() })?;
        Ok(Box::new(peer) as Box<dyn Source>)
    };
    let mut copy = Copying { source_of: &source_of, progress: &mut report, go_on: &mut go_on };
    held.copy(wanted, revision, &mut copy)
}

/// Says whose fault it is: another donor helps, or mending this node, or another try.
fn copy_status(node: u32, error: &CopyError) -> Status {
    let message = format!("node {node}: {}", with_causes(error));
    match error {
        CopyError::Fetch {
            source: FetchError::Source(_) | FetchError::Cancelled | FetchError::Busy { .. },
            ..
        } => kith_wire::status(ErrorCode::CopyInterrupted, message, "it is tried again"),
        CopyError::Donor { .. }
        | CopyError::Fetch { source: FetchError::Damaged(_) | FetchError::Manifest(_), .. } => {
            kith_wire::status(ErrorCode::DonorUnfit, message, "another replica is asked")
        }
        _ => {
            let help = "mend the node, then `kith cluster rebalance --continue`, or --abort";
            kith_wire::status(ErrorCode::StealerUnfit, message, help)
        }
    }
}

fn release_status(node: u32, error: &ReleaseError) -> Status {
    let message = format!("node {node}: {}", with_causes(error));
    kith_wire::status(ErrorCode::ReleaseFailed, message, "it is tried again")
}
