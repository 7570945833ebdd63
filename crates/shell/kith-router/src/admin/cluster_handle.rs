//! The cluster, as a router reads and changes it.

use kith_cluster::metadata::{MetadataError, MetadataStore, keys, records::ChangeError};
use kith_cluster::topology::{TopologyReceiver, catch_up};
use kith_net::security::Dialer;
use kith_types::ErrorCode;
use kith_wire::documents::{ClusterDocument, Document, StoreDocument};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// The time to wait until a commit arrives through the watch.
const VISIBLE_WAIT: Duration = Duration::from_secs(5);
/// The time that a router waits after its start until others can see its lease.
const LIVE_WAIT: Duration = Duration::from_secs(10);
/// The interval at which it checks this.
const LIVE_RETRY: Duration = Duration::from_millis(50);

/// Identifies one start of one router. A push names the coordinator that runs it, so that pushes of dead routers can be
/// taken back.
#[derive(Clone, Debug)]
pub struct Coordinator(Arc<str>);

impl Coordinator {
    /// Returns the identity of a new start of a router.
    pub fn new(router: u32) -> Self {
        Self(format!("router {router}, start {:08x}", rand::random::<u32>()).into())
    }

    /// The name, as records and the leased key contain it.
    pub fn name(&self) -> &str {
        &self.0
    }
}

/// The cluster, as one router reads and changes it. Cheap to clone.
#[derive(Clone)]
pub struct ClusterHandle {
    /// The records of the cluster.
    pub metadata: Arc<dyn MetadataStore>,
    /// The topology that this router follows.
    pub topology: TopologyReceiver,
    /// This start of this router.
    pub coordinator: Coordinator,
    /// Connects to nodes and routers.
    pub dialer: Dialer,
}

impl ClusterHandle {
    /// Returns the cluster as this router sees it.
    pub(crate) fn cluster(&self) -> ClusterDocument {
        self.topology.borrow().cluster.clone()
    }

    /// Returns the address of a node; `None` if it has not registered.
    pub(crate) fn addr_of_node(&self, node: u32) -> Option<String> {
        let topology = self.topology.borrow();
        topology.nodes.iter().find(|document| document.node == node).map(|document| document.addr.clone())
    }

    /// Returns the records of all stores.
    pub(crate) async fn stores(&self) -> Result<Vec<StoreDocument>, ChangeError> {
        let snapshot = self.metadata.read(keys::STORES).await?;
        let documents = snapshot.entries.iter().map(|entry| StoreDocument::decode(&entry.value));
        Ok(documents.collect::<Result<_, _>>()?)
    }

    /// Waits until a caller who made the change at `revision` finds it at this router.
    pub(crate) async fn wait_until_visible(&self, revision: u64) {
        if !catch_up(&self.topology, revision, VISIBLE_WAIT).await {
            tracing::warn!(
                revision,
                "a change has not yet come back through the watch of the metadata store"
            );
        }
    }

    /// Whether the router with this coordinator name still has a lease.
    pub(crate) async fn is_live(&self, coordinator: &str) -> Result<bool, MetadataError> {
        let live = self.metadata.read(keys::LIVE).await?;
        Ok(live.entries.iter().any(|entry| entry.value == coordinator.as_bytes()))
    }

    /// Waits for at most [`LIVE_WAIT`] until other routers can see that this one is alive. Otherwise they would take back what
    /// it begins.
    pub(crate) async fn wait_until_live(&self) -> Result<(), ChangeError> {
        let started = Instant::now();
        while !self.is_live(self.coordinator.name()).await? {
            if LIVE_WAIT < started.elapsed() {
                let message = "this router has not registered with the metadata store yet";
                let help = "try again, or ask another router";
                return Err(kith_wire::status(ErrorCode::MetadataUnavailable, message, help).into());
            }
            tokio::time::sleep(LIVE_RETRY).await;
        }
        Ok(())
    }
}
