//! Carries out pushes, swaps and rollbacks: a thin shell around the state machine of `kith_versions`.
//! Every change is one conditional write of the store's record. Whichever router carries it out, and whenever that router
//! dies, at most one version is served.

mod caretaker;
mod clean;
mod commands;
mod definition;
mod fence;
mod lifetime;
mod observe;
mod offer;
mod prepare;
mod properties;
mod push;
mod run;

pub use caretaker::take_care;
pub(crate) use caretaker::{is_live, wait_until_live};
pub(crate) use observe::{last_push, observed};
pub(crate) use push::Push;

use crate::admin::UploadSettings;
use kith_cluster::metadata::MetadataStore;
use kith_cluster::{
    place::ReadFrom,
    topology::{TopologyReceiver, catch_up},
};
use kith_net::security::Dialer;
use kith_versions::PushId;
use kith_wire::documents::ClusterDocument;
use parking_lot::{Mutex, MutexGuard};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// The time to wait until a commit arrives through the watch.
const VISIBLE_WAIT: Duration = Duration::from_secs(5);

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

/// Changes stores, for one router.
#[derive(Clone)]
pub struct Stores {
    metadata: Arc<dyn MetadataStore>,
    topology: TopologyReceiver,
    coordinator: Coordinator,
    /// Connects to nodes.
    dialer: Dialer,
    /// The places from which versions that were built elsewhere may be read.
    read_from: Arc<[ReadFrom]>,
    /// The time limits of uploads.
    uploads: UploadSettings,
    /// The pushes that this router runs now. Each of them adds and removes itself.
    active: Arc<Mutex<BTreeMap<PushId, Active>>>,
}

/// A push that this router runs.
struct Active {
    store: String,
    /// The token that is cancelled when the push is cancelled.
    cancelled: CancellationToken,
}

impl Stores {
    /// Returns a value that runs no push yet. `coordinator` identifies this start of this router. Versions that were built
    /// elsewhere are read only from `read_from`.
    pub fn new(
        metadata: Arc<dyn MetadataStore>,
        topology: TopologyReceiver,
        coordinator: Coordinator,
        dialer: Dialer,
        read_from: Vec<ReadFrom>,
        uploads: UploadSettings,
    ) -> Self {
        let (read_from, active) = (read_from.into(), Arc::default());
        Self { metadata, topology, coordinator, dialer, read_from, uploads, active }
    }

    fn active(&self) -> MutexGuard<'_, BTreeMap<PushId, Active>> {
        self.active.lock()
    }

    /// Returns the cluster as this router sees it.
    fn cluster(&self) -> ClusterDocument {
        self.topology.borrow().cluster.clone()
    }

    /// Waits until a caller who made the change at `revision` finds it at this router.
    async fn wait_until_visible(&self, revision: u64) {
        if !catch_up(&self.topology, revision, VISIBLE_WAIT).await {
            tracing::warn!(revision, "a commit has not come back through the watch yet");
        }
    }
}
