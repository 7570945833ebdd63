//! The node's part of a rebalance: copying partitions from a peer, and freeing partitions that it gave up.

use super::{CopyError, CopyTerms, Partitions, ReleaseError, held::HeldStores, peer::PeerSource};
use crate::serve::named::{partitions_of, seen, versions_of};
use futures::{StreamExt, stream::BoxStream};
use kith_cluster::{background, topology::TopologyReceiver};
use kith_engine::{FetchError, Source};
use kith_types::{ErrorCode, with_causes};
use kith_wire::{documents::ComponentDocument, v1};
use std::{num::NonZeroU64, ops::ControlFlow, sync::Arc, time::Instant};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

/// The number of progress messages that may wait for their reader.
const PROGRESS_QUEUE: usize = 64;

/// The progress of a copy.
pub(crate) type CopyStream = BoxStream<'static, Result<v1::PrepareProgress, Status>>;

/// Carries out copies and releases for one node.
#[derive(Clone)]
pub(crate) struct Moves {
    pub node: u32,
    pub held: Arc<HeldStores>,
    pub topology: TopologyReceiver,
}

impl Moves {
    /// Copies partitions from a peer. Ends early if the caller disconnects.
    ///
    /// # Errors
    /// If the request names a partition that does not exist, or the metadata is not up to date. An error of the copy itself
    /// ends the stream.
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
            // The caller may have left. A copy that is here is verified before it is used.
            let _ = sender.blocking_send(last);
        });
        Ok(ReceiverStream::new(receiver).boxed())
    }

    /// Frees partitions that this node gave up.
    ///
    /// # Errors
    /// `release_failed`, and the errors of [`Moves::copy`].
    pub async fn release(&self, request: v1::ReleaseRequest) -> Result<(), Status> {
        let topology = seen(&self.topology, request.revision).await?;
        let versions = versions_of(&topology, &request.stores);
        let partitions = partitions_of(&topology, &request.partitions)?;
        let (held, node) = (Arc::clone(&self.held), self.node);
        let freed = tokio::task::spawn_blocking(move || {
            // The table that this request is based on may have just arrived.
            held.owned.follow(&topology, node, Instant::now());
            held.releaser.release(&versions, &partitions)
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
        // A full queue drops a progress message, but nothing else.
        let _ = sender.try_send(Ok(v1::PrepareProgress {
            component,
            bytes_done,
            bytes_total,
            ..Default::default()
        }));
    };
    let pace = held.origins.fetches.beside(NonZeroU64::new(request.bytes_per_second));
    let mut go_on = |bytes: u64| match sender.is_closed() {
        true => ControlFlow::Break(()),
        false => pace.pass(bytes),
    };
    let source_of = |store: &str, component: &ComponentDocument| {
        let version = component.version;
        let peer = PeerSource::new(&held.origins.dialer, &request.from, store, &component.name, version);
        let peer = peer.map_err(|status| CopyError::Donor { detail: status.message().to_owned() })?;
        Ok(Box::new(peer) as Box<dyn Source>)
    };
    let mut copy = CopyTerms { source_of: &source_of, progress: &mut report, go_on: &mut go_on };
    held.copier.copy(wanted, revision, &mut copy)
}

/// Returns a status whose code says what would help: another donor, a repair of this node, or another attempt.
fn copy_status(node: u32, error: &CopyError) -> Status {
    let message = format!("node {node}: {}", with_causes(error));
    match error {
        CopyError::Fetch {
            source: FetchError::Source(_) | FetchError::Cancelled | FetchError::Busy { .. },
            ..
        } => kith_wire::status(ErrorCode::CopyInterrupted, message, "the copy is repeated"),
        CopyError::Donor { .. }
        | CopyError::Fetch { source: FetchError::Damaged(_) | FetchError::Manifest(_), .. } => {
            kith_wire::status(ErrorCode::DonorUnfit, message, "another replica is asked")
        }
        _ => {
            let help = "repair the node, then `kith cluster rebalance --continue`, or --abort";
            kith_wire::status(ErrorCode::StealerUnfit, message, help)
        }
    }
}

fn release_status(node: u32, error: &ReleaseError) -> Status {
    let message = format!("node {node}: {}", with_causes(error));
    kith_wire::status(ErrorCode::ReleaseFailed, message, "the release is repeated")
}
