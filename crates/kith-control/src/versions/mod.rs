//! Pushes, swaps and rollbacks done: a thin shell around the state machine of `kith_versions` (architecture D7). Every
//! change is one conditional write of the store's record; whatever router does it, and whenever it dies, at most one
//! version is served.

mod caretaker;
mod clean;
mod commands;
mod definition;
mod fence;
mod lifetime;
mod observe;
mod offer;
mod prepare;
mod push;
mod run;

pub use caretaker::take_care;
pub(crate) use caretaker::{is_live, wait_until_live};
pub(crate) use observe::{last_push, observed};
pub(crate) use push::Push;

use crate::UploadSettings;
use kith_metadata::MetadataStore;
use kith_net::security::Dialer;
use kith_process::{place::ReadFrom, topology::TopologyReceiver};
use kith_versions::PushId;
use kith_wire::documents::ClusterDocument;
use parking_lot::{Mutex, MutexGuard};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// How long a commit may take to come back through the watch.
const VISIBLE_WAIT: Duration = Duration::from_secs(5);

/// One start of one router. Pushes say who runs them, so that those of a router that is gone can be taken back.
#[derive(Clone, Debug)]
pub struct Coordinator(Arc<str>);

impl Coordinator {
    /// A new start of a router.
    pub fn new(router: u32) -> Self {
        Self(format!("router {router}, start {:08x}", rand::random::<u32>()).into())
    }

    /// As records and the leased key say it.
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
    /// Where versions that were built elsewhere may be read from.
    read_from: Arc<[ReadFrom]>,
    /// How long uploads may take.
    uploads: UploadSettings,
    /// Pushes that this router runs now; written by each of them.
    active: Arc<Mutex<BTreeMap<PushId, Active>>>,
}

/// A push that this router runs.
struct Active {
    store: String,
    /// Tells it that it is cancelled.
    cancelled: CancellationToken,
}

impl Stores {
    /// Runs no push yet. `coordinator`: which start of which router this is; versions that were built elsewhere are read from
    /// `read_from` alone.
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

    /// The cluster as this router sees it.
    fn cluster(&self) -> ClusterDocument {
        self.topology.borrow().cluster.clone()
    }

    /// So that whoever changed something finds it at this router at once.
    async fn wait_until_visible(&self, revision: u64) {
        let mut topology = self.topology.clone();
        let visible = topology.wait_for(|topology| revision <= topology.revision);
        if tokio::time::timeout(VISIBLE_WAIT, visible).await.is_err() {
            tracing::warn!(revision, "a commit has not come back through the watch yet");
        }
    }
}
