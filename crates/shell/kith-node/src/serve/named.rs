//! Looks up what requests name in the topology that this node follows.

use kith_cluster::topology::{TopologyReceiver, catch_up};
use kith_topology::wanted;
use kith_types::{ErrorCode, PartitionId};
use kith_wire::documents::{ServedDocument, TopologyDocument};
use std::{sync::Arc, time::Duration};
use tonic::Status;

/// The time that a node waits for metadata that the caller has already seen.
const SEEN_WAIT: Duration = Duration::from_secs(5);

/// Returns the topology once it is at least as new as the revision that the caller has seen.
///
/// # Errors
/// `metadata_unavailable` if that takes too long.
pub(crate) async fn seen(
    topology: &TopologyReceiver,
    revision: u64,
) -> Result<Arc<TopologyDocument>, Status> {
    if catch_up(topology, revision, SEEN_WAIT).await {
        return Ok(Arc::clone(&topology.borrow()));
    }
    let message = format!("this node has not seen revision {revision} of the metadata yet");
    Err(kith_wire::status(ErrorCode::MetadataUnavailable, message, "the request is repeated"))
}

/// Returns a version as the metadata describes it. Callers only identify the version: nothing else that they send becomes
/// part of a path.
pub(crate) fn version_named(
    topology: &TopologyDocument,
    store: &str,
    version: u64,
) -> Option<ServedDocument> {
    let kept = topology.kept.iter().map(|kept| &kept.at);
    let mut all = topology.stores.iter().filter(|served| served.version != 0).chain(kept);
    all.find(|at| at.name == store && at.version == version).cloned()
}

/// The error for a version that the metadata does not name.
pub(crate) fn unknown_version(node: u32, store: &str, version: u64) -> Status {
    kith_wire::status(
        ErrorCode::VersionNotKept,
        format!("the metadata that node {node} has seen names no version {version} of {store:?}"),
        "`kith store versions` lists the versions that are kept",
    )
}

/// Returns all kept versions of these stores. A store that was dropped meanwhile has none.
pub(crate) fn versions_of(topology: &TopologyDocument, stores: &[String]) -> Vec<ServedDocument> {
    wanted(topology).into_iter().filter(|version| stores.contains(&version.name)).collect()
}

/// Returns the partitions with these numbers.
///
/// # Errors
/// `bad_request` if the cluster has no such partition.
pub(crate) fn partitions_of(topology: &TopologyDocument, asked: &[u32]) -> Result<Vec<PartitionId>, Status> {
    let count = topology.cluster.partitions;
    if let Some(partition) = asked.iter().find(|partition| count <= **partition) {
        let message = format!("there is no partition {partition}, the cluster has {count}");
        return Err(kith_wire::status(ErrorCode::BadRequest, message, "use a router of this release"));
    }
    Ok(asked.iter().copied().map(PartitionId).collect())
}
