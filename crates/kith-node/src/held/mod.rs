//! The store versions that a node holds: prepared before a swap, open while they may be served or rolled back to,
//! kept after that until their readers have left (architecture D7).

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
use kith_engine::{GraphReader, HeldSource, OpenError, Source, ValuesReader};
use kith_net::security::Dialer;
use kith_objects::Objects;
use kith_process::{
    data_dir::{DataDir, DataDirError},
    place,
};
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

/// How long a version stays after the cluster gave it up: longer than any query's deadline,
/// so that a query that pinned it still finds it.
const VERSION_GRACE: Duration = Duration::from_secs(60);

/// What reads one version of a store.
#[derive(Clone)]
pub enum VersionReader {
    /// A graph's components together.
    Graph(Arc<GraphReader>),
    /// Values by key.
    Values(Arc<ValuesReader>),
}

/// Every store version that this node can serve.
pub struct HeldStores {
    /// Where pulled components lie: `<store>/<component>/<version>/`.
    folder: PathBuf,
    /// Where built components lie, in the same layout, unless they say where.
    object_store: Objects,
    partition_count: PartitionCount,
    /// What the table gives to this node; written when a table comes. What is open may be more: copies on their way to it,
    /// and partitions given up that clients of an older table still ask for.
    owned: RwLock<Owned>,
    /// Store → version → reader. Read by every request, written when a version is prepared or forgotten.
    stores: RwLock<BTreeMap<String, BTreeMap<u64, Held>>>,
    /// One preparation of a store at a time: two of the same component would pull it twice.
    turns: Turns,
    /// One warm-up at a time: each counts what the one before brought in.
    warming: Mutex<()>,
    /// Folder → what peers read of it. Forgotten whenever files come or go.
    sources: Mutex<BTreeMap<PathBuf, Arc<HeldSource>>>,
    /// What is pulled, for whatever store and reason, passes through it.
    fetches: Throttle,
    /// What peers read here passes through it: as fast as they ask, unless reads suffer.
    supplies: Throttle,
    /// Connects to peers.
    dialer: Dialer,
    /// When the object store failed to answer, unless it has answered since.
    object_store_silent: Mutex<Option<Instant>>,
    /// What `folder` is in, as long as the node runs.
    home: Weak<DataDir>,
}

/// Components that are open, by name and version.
type Components = BTreeMap<(String, u64), Component>;

struct Held {
    reader: VersionReader,
    components: Components,
    /// The metadata revision that named it: an older topology does not know of it yet.
    since_revision: u64,
    /// When the cluster gave it up.
    retired: Option<Instant>,
}

impl HeldStores {
    /// Where pulled components lie.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Holds nothing yet.
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

    /// In a node's data directory.
    pub fn living_in(self, home: &Arc<DataDir>) -> Self {
        Self { home: Arc::downgrade(home), ..self }
    }

    /// Sees to it that what is written or removed is this node's: somebody may have removed the data directory.
    fn check_home(&self) -> Result<(), DataDirError> {
        self.home.upgrade().map_or(Ok(()), |home| home.keep().map(drop))
    }

    /// Connects to peers.
    pub(crate) fn dialer(&self) -> &Dialer {
        &self.dialer
    }

    /// What all fetches, copies and repairs wait for.
    pub fn fetches(&self) -> &Throttle {
        &self.fetches
    }

    /// What peers who read here wait for.
    pub fn supplies(&self) -> &Throttle {
        &self.supplies
    }

    fn throttled<'a>(&'a self, source: &'a dyn Source) -> Throttled<'a> {
        Throttled::new(source, &self.fetches)
    }

    /// What a peer reads of one version of a component.
    ///
    /// # Errors
    /// If nothing of it is here, or what is cannot be trusted.
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

    /// The reader of one version of a store.
    pub fn get(&self, store: &str, version: u64) -> Option<VersionReader> {
        let stores = self.stores.read();
        stores.get(store)?.get(&version).map(|held| held.reader.clone())
    }

    /// The readers of all versions held, with store and version.
    pub fn readers(&self) -> Vec<((String, u64), VersionReader)> {
        let stores = self.stores.read();
        let each = stores.iter().flat_map(|(store, versions)| {
            versions.iter().map(|(version, held)| ((store.clone(), *version), held.reader.clone()))
        });
        each.collect()
    }

    /// Of the versions that the topology serves, those that are here.
    pub fn served(&self, topology: &TopologyDocument) -> Vec<(String, u64)> {
        let served = topology.stores.iter().filter(|store| self.get(&store.name, store.version).is_some());
        served.map(|store| (store.name.clone(), store.version)).collect()
    }

    /// Takes on what a table gives to this node. What is missing comes with the next preparation.
    pub fn follow(&self, topology: &TopologyDocument, node: u32, now: Instant) {
        let next = Owned::of(&topology.cluster, node);
        let mut owned = self.owned.write();
        *owned = owned.followed_by(next, topology.rebalance.is_none(), now);
    }

    /// What the table gives to this node of a store, ascending.
    pub(crate) fn owned(&self, store: &ServedDocument) -> Arc<[PartitionId]> {
        self.owned.read().of_store(store)
    }

    /// Makes a version one that is answered from.
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

    /// Where a component's files lie on this node.
    pub(super) fn folder_of(&self, store: &str, component: &str, version: u64) -> PathBuf {
        self.folder.join(store).join(component).join(version.to_string())
    }

    fn folder_of_component(&self, store: &str, component: &ComponentDocument) -> PathBuf {
        self.folder_of(store, &component.name, component.version)
    }

    /// Where a component is pulled from.
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
