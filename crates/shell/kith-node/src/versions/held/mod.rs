//! The store versions that a node holds. They are prepared before a swap, stay open while they may be served or rolled back
//! to, and are kept after that until their readers have finished.

mod built;
mod component;
mod error;
mod moves;
mod origins;
mod owned;
mod prepare;
mod pull;
mod repair;
mod retire;
#[cfg(test)]
mod tests;
mod turns;

pub use error::PrepareError;
pub use moves::{CopyError, Copying, Partitions, ReleaseError};
pub use origins::Replicas;
pub use owned::Owned;
pub use prepare::{PrepareOptions, Progress, Supplier};

use super::{
    residency,
    throttle::{Throttle, Throttled},
};
use component::Component;
use kith_cluster::{
    data_dir::{DataDir, DataDirError},
    place,
};
use kith_engine::{GraphReader, HeldSource, OpenError, Source, ValuesReader};
use kith_files::objects::Objects;
use kith_net::security::Dialer;
use kith_types::{PartitionCount, PartitionId};
use kith_wire::documents::{ComponentDocument, HoldsDocument, ServedDocument, TopologyDocument};
use parking_lot::{Mutex, MutexGuard, RwLock};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
    time::{Duration, Instant},
};
use turns::Turns;

/// The time that a version stays after the cluster gave it up. This is longer than any query's deadline, so that a
/// query that pinned it still finds it.
const VERSION_GRACE: Duration = Duration::from_secs(60);

/// Reads one version of a store.
#[derive(Clone)]
pub enum VersionReader {
    /// All components of a graph.
    Graph(Arc<GraphReader>),
    /// Values by key.
    Values(Arc<ValuesReader>),
}

/// Every store version that this node can serve.
pub struct HeldStores {
    /// The folder of fetched components: `<store>/<component>/<version>/`.
    folder: PathBuf,
    /// The place of built components, in the same layout. Components with a URL are elsewhere.
    object_store: Objects,
    partition_count: PartitionCount,
    /// The partitions that the routing table assigns to this node; it is written when a table arrives. More may be
    /// open: copies that a later table will assign, and partitions given up that clients with an older table still
    /// read.
    owned: RwLock<Owned>,
    /// The held versions by store and version. Every request reads them, and they are written when a version is
    /// prepared or removed.
    stores: RwLock<BTreeMap<String, BTreeMap<u64, Held>>>,
    /// Allows one preparation per store at a time. Two of the same component would fetch it twice.
    turns: Turns,
    /// Allows one warm-up at a time, so that each takes into account what the previous one read.
    warming: Mutex<()>,
    /// The sources that peers read, by folder. It is cleared whenever files come or go.
    sources: Mutex<BTreeMap<PathBuf, Arc<HeldSource>>>,
    /// The throttle of all fetches, for any store and reason.
    fetches: Throttle,
    /// The throttle of reads by peers. It slows them down only if queries suffer.
    supplies: Throttle,
    /// Connects to peers.
    dialer: Dialer,
    /// The time at which the object store failed to answer; `None` if it has answered since.
    object_store_silent: Mutex<Option<Instant>>,
    /// The data directory that `folder` is in, while the node runs.
    home: Weak<DataDir>,
}

/// The open components, by name and version.
type Components = BTreeMap<(String, u64), Component>;

struct Held {
    reader: VersionReader,
    components: Components,
    /// The metadata revision that named the version. An older topology does not know it yet.
    since_revision: u64,
    /// The time at which the cluster gave it up.
    retired: Option<Instant>,
}

impl HeldStores {
    /// The folder of fetched components.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns a value that holds nothing yet.
    pub fn new(
        folder: PathBuf,
        object_store: Objects,
        partition_count: PartitionCount,
        owned: Owned,
        fetches: Throttle,
        dialer: Dialer,
    ) -> Self {
        Self {
            folder,
            object_store,
            partition_count,
            owned: RwLock::new(owned),
            stores: RwLock::default(),
            turns: Turns::default(),
            warming: Mutex::default(),
            sources: Mutex::default(),
            supplies: fetches.beside(None),
            fetches,
            dialer,
            object_store_silent: Mutex::default(),
            home: Weak::new(),
        }
    }

    /// Sets the node's data directory.
    pub fn living_in(self, home: &Arc<DataDir>) -> Self {
        Self { home: Arc::downgrade(home), ..self }
    }

    /// Makes sure that the folder still belongs to this node, because another process may have removed the data directory.
    fn check_home(&self) -> Result<(), DataDirError> {
        self.home.upgrade().map_or(Ok(()), |home| home.keep().map(drop))
    }

    /// The dialer for connections to peers.
    pub(crate) fn dialer(&self) -> &Dialer {
        &self.dialer
    }

    /// The throttle of all fetches, copies and repairs.
    pub fn fetches(&self) -> &Throttle {
        &self.fetches
    }

    /// The throttle of reads by peers.
    pub fn supplies(&self) -> &Throttle {
        &self.supplies
    }

    fn throttled<'a>(&'a self, source: &'a dyn Source) -> Throttled<'a> {
        Throttled::new(source, &self.fetches)
    }

    /// Returns what a peer reads of one version of a component.
    ///
    /// # Errors
    /// If nothing of it is here, or its files cannot be trusted.
    pub fn source(&self, store: &str, component: &str, version: u64) -> Result<Arc<HeldSource>, OpenError> {
        let folder = self.folder.join(store).join(component).join(version.to_string());
        let known = self.sources().get(&folder).cloned();
        if let Some(source) = known {
            return Ok(source);
        }
        let source = Arc::new(HeldSource::open(&folder)?);
        self.sources().insert(folder, Arc::clone(&source));
        Ok(source)
    }

    fn sources(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Arc<HeldSource>>> {
        self.sources.lock()
    }

    /// Returns the reader of one version of a store.
    pub fn get(&self, store: &str, version: u64) -> Option<VersionReader> {
        let stores = self.stores.read();
        stores.get(store)?.get(&version).map(|held| held.reader.clone())
    }

    /// Returns the readers of all held versions, with store and version.
    pub fn readers(&self) -> Vec<((String, u64), VersionReader)> {
        let stores = self.stores.read();
        let each = stores.iter().flat_map(|(store, versions)| {
            versions.iter().map(|(version, held)| ((store.clone(), *version), held.reader.clone()))
        });
        each.collect()
    }

    /// Returns those versions that the topology serves and that are held.
    pub fn served(&self, topology: &TopologyDocument) -> Vec<(String, u64)> {
        let served = topology.stores.iter().filter(|store| self.get(&store.name, store.version).is_some());
        served.map(|store| (store.name.clone(), store.version)).collect()
    }

    /// Adopts what a table assigns to this node. The next preparation fetches what is missing.
    pub fn follow(&self, topology: &TopologyDocument, node: u32, now: Instant) {
        let next = Owned::of(&topology.cluster, node);
        let mut owned = self.owned.write();
        *owned = owned.followed_by(next, topology.rebalance.is_none(), now);
    }

    /// Returns the partitions of a store that the table assigns to this node, ascending.
    pub(crate) fn owned(&self, store: &ServedDocument) -> Arc<[PartitionId]> {
        self.owned.read().of_store(store)
    }

    /// Makes a version available to requests.
    fn serve(
        &self,
        store: &ServedDocument,
        revision: u64,
        components: Components,
    ) -> Result<(), PrepareError> {
        let reader = self.reader(store, &components)?;
        residency::begin(&reader);
        let held = Held { reader, components, since_revision: revision, retired: None };
        let mut stores = self.stores.write();
        stores.entry(store.name.clone()).or_default().insert(store.version, held);
        Ok(())
    }

    /// Returns the folder of a component's files on this node.
    pub(crate) fn folder_of(&self, store: &str, component: &str, version: u64) -> PathBuf {
        self.folder.join(store).join(component).join(version.to_string())
    }

    fn folder_of_component(&self, store: &str, component: &ComponentDocument) -> PathBuf {
        self.folder_of(store, &component.name, component.version)
    }

    /// Returns the place that a component is fetched from.
    fn source_of(&self, store: &str, component: &ComponentDocument) -> Result<Objects, PrepareError> {
        place::of(&self.object_store, store, component).map_err(|source| PrepareError::Place {
            component: component.name.clone(),
            version: component.version,
            source: Box::new(source),
        })
    }

    fn reader(&self, store: &ServedDocument, components: &Components) -> Result<VersionReader, PrepareError> {
        let odd = || PrepareError::Unsupported { store: store.name.clone() };
        let mut in_order =
            store.components.iter().filter_map(|it| components.get(&(it.name.clone(), it.version)));
        if let HoldsDocument::Values { .. } = store.definition.holds {
            return match (in_order.next().and_then(Component::values), in_order.next()) {
                (Some(reader), None) => Ok(VersionReader::Values(Arc::clone(reader))),
                _ => Err(odd()),
            };
        }
        let graph = in_order.map(|component| component.graph().map(Arc::clone).ok_or_else(odd));
        let reader = GraphReader::new(self.partition_count, graph.collect::<Result<_, _>>()?);
        let opened = reader.map_err(|source| PrepareError::Open {
            component: store.name.clone(),
            version: store.version,
            source,
        });
        Ok(VersionReader::Graph(Arc::new(opened?)))
    }
}

fn cannot_open(component: &ComponentDocument, source: OpenError) -> PrepareError {
    PrepareError::Open { component: component.name.clone(), version: component.version, source }
}
