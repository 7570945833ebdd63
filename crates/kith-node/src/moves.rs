//! What a rebalance asks of a node: copy partitions from a peer, free what it gave up.

use super::{CopyError, ReleaseError, held::HeldStores, service::NodeService};
use futures::{StreamExt, stream::BoxStream};
use kith_api::topology::wanted;
use kith_engine::{FetchError, Source};
use kith_process::{PeerSource, background, topology::TopologyReceiver};
use kith_types::{ErrorCode, PartitionId};
use kith_wire::{
    documents::{ServedDocument, TopologyDocument},
    v1,
};
use std::{
    num::NonZeroU64,
    ops::ControlFlow,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

/// Progress messages that may wait for their reader.
const PROGRESS_QUEUE: usize = 64;
/// How long a node waits for the metadata that whoever asks has seen already.
const SEEN_WAIT: Duration = Duration::from_secs(5);

/// A copy's steps.
pub(super) type CopyStream = BoxStream<'static, Result<v1::PrepareProgress, Status>>;

impl NodeService {
    /// Copies partitions from a peer. Ends early if the caller goes away.
    pub(super) async fn copy_from(&self, request: v1::CopyRequest) -> Result<CopyStream, Status> {
        let topology = seen(&self.topology, request.revision).await?;
        let versions = versions_of(&topology, &request.stores);
        let partitions = partitions_of(&topology, &request.partitions)?;
        let (sender, receiver) = mpsc::channel(PROGRESS_QUEUE);
        let (held, node) = (Arc::clone(&self.held), self.node);
        background::spawn(move || {
            let ended = copy(&held, &request, &versions, &partitions, topology.revision, &sender);
            let ended = ended.map_err(|error| copy_status(node, &error));
            let last = ended.map(|()| v1::PrepareProgress { ready: true, ..Default::default() });
            // Nobody listening is fine: a copy that is here is proven before it is used.
            let _ = sender.blocking_send(last);
        });
        Ok(ReceiverStream::new(receiver).boxed())
    }

    /// Frees what this node gave up.
    pub(super) async fn release_partitions(&self, request: v1::ReleaseRequest) -> Result<(), Status> {
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
    versions: &[ServedDocument],
    partitions: &[PartitionId],
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
    let source_of = |store: &str, component: &kith_wire::documents::ComponentDocument| {
        let version = component.version;
        let peer = PeerSource::new(held.dialer(), &request.from, store, &component.name, version);
        let peer = peer.map_err(|status| CopyError::Donor { detail: status.message().to_owned() })?;
        Ok(Box::new(peer) as Box<dyn Source>)
    };
    held.copy(versions, partitions, &source_of, revision, &mut report, &mut go_on)
}

/// The topology, once it is at least as new as what the caller has seen.
pub(super) async fn seen(
    topology: &TopologyReceiver,
    revision: u64,
) -> Result<Arc<TopologyDocument>, Status> {
    let mut topology = topology.clone();
    let newer = topology.wait_for(|topology| revision <= topology.revision);
    match tokio::time::timeout(SEEN_WAIT, newer).await {
        Ok(Ok(topology)) => Ok(Arc::clone(&topology)),
        _ => {
            let message = format!("this node has not seen revision {revision} of the metadata yet");
            Err(kith_wire::status(ErrorCode::MetadataUnavailable, message, "it is asked again"))
        }
    }
}

/// All kept versions of these stores; one that was dropped meanwhile has none.
fn versions_of(topology: &TopologyDocument, stores: &[String]) -> Vec<ServedDocument> {
    wanted(topology).into_iter().filter(|version| stores.contains(&version.name)).collect()
}

fn partitions_of(topology: &TopologyDocument, asked: &[u32]) -> Result<Vec<PartitionId>, Status> {
    let count = topology.cluster.partitions;
    if let Some(partition) = asked.iter().find(|partition| count <= **partition) {
        let message = format!("there is no partition {partition}, the cluster has {count}");
        return Err(kith_wire::status(ErrorCode::BadRequest, message, "use a router of this release"));
    }
    Ok(asked.iter().copied().map(PartitionId).collect())
}

fn with_causes(node: u32, error: &dyn std::error::Error) -> String {
    let mut message = format!("node {node}: {error}");
    let mut source = error.source();
    while let Some(inner) = source {
        message.push_str(&format!(": {inner}"));
        source = inner.source();
    }
    message
}

/// Says whose fault it is: another donor helps, or mending this node, or another try.
fn copy_status(node: u32, error: &CopyError) -> Status {
    let message = with_causes(node, error);
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
    let message = with_causes(node, error);
    kith_wire::status(ErrorCode::ReleaseFailed, message, "it is tried again")
}
