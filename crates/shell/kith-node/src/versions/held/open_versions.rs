//! The versions that requests can read now.

use super::{PrepareError, component::Component};
use kith_engine::{GraphReader, ValuesReader};
use kith_types::{PartitionCount, PartitionId};
use kith_wire::documents::{ComponentDocument, HoldsDocument, ServedDocument};
use parking_lot::RwLock;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};

/// The time that a version stays after the cluster gave it up. This is longer than any query's deadline, so that a
/// query that pinned it still finds it.
pub const VERSION_GRACE: Duration = Duration::from_secs(60);

/// Reads one version of a store.
#[derive(Clone)]
pub enum VersionReader {
    /// All components of a graph.
    Graph(Arc<GraphReader>),
    /// Values by key.
    Values(Arc<ValuesReader>),
}

/// The open components, by name and version.
pub type Components = BTreeMap<(String, u64), Component>;

/// A version that requests can read.
struct OpenVersion {
    reader: VersionReader,
    components: Components,
    /// The metadata revision that named the version. An older topology does not know it yet.
    since_revision: u64,
    /// The time at which the cluster gave it up.
    retired: Option<Instant>,
}

/// The open versions of all stores, by store and version. Every request reads them, and they change when a version is
/// prepared or removed.
pub struct OpenVersions {
    partition_count: PartitionCount,
    stores: RwLock<BTreeMap<String, BTreeMap<u64, OpenVersion>>>,
}

impl OpenVersions {
    /// Returns a value without versions.
    pub fn new(partition_count: PartitionCount) -> Self {
        Self { partition_count, stores: RwLock::default() }
    }

    /// Returns the reader of one version of a store.
    pub fn get(&self, store: &str, version: u64) -> Option<VersionReader> {
        let stores = self.stores.read();
        stores.get(store)?.get(&version).map(|open| open.reader.clone())
    }

    /// Returns the readers of all versions, with store and version.
    pub fn readers(&self) -> Vec<((String, u64), VersionReader)> {
        let stores = self.stores.read();
        let each = stores.iter().flat_map(|(store, versions)| {
            versions.iter().map(|(version, open)| ((store.clone(), *version), open.reader.clone()))
        });
        each.collect()
    }

    /// Makes a version available to requests.
    ///
    /// # Errors
    /// [`PrepareError`] if the components do not make the version.
    pub fn serve(
        &self,
        store: &ServedDocument,
        revision: u64,
        components: Components,
    ) -> Result<(), PrepareError> {
        let reader = self.reader(store, &components)?;
        reader.look_first();
        let open = OpenVersion { reader, components, since_revision: revision, retired: None };
        let mut stores = self.stores.write();
        stores.entry(store.name.clone()).or_default().insert(store.version, open);
        Ok(())
    }

    /// Replaces the components of a version that is open, in whatever revision it was named.
    ///
    /// # Errors
    /// [`PrepareError`] if the components do not make the version.
    pub fn replace(&self, store: &ServedDocument, components: Components) -> Result<(), PrepareError> {
        let since = {
            let stores = self.stores.read();
            let open = stores.get(&store.name).and_then(|versions| versions.get(&store.version));
            open.map(|open| open.since_revision)
        };
        since.map_or(Ok(()), |since| self.serve(store, since, components))
    }

    /// Makes an open version read a component from newly opened files.
    ///
    /// # Errors
    /// [`PrepareError`] if the components do not make the version.
    pub fn reopen(
        &self,
        store: &ServedDocument,
        component: &ComponentDocument,
        opened: &Component,
    ) -> Result<(), PrepareError> {
        let known = {
            let stores = self.stores.read();
            let open = stores.get(&store.name).and_then(|versions| versions.get(&store.version));
            open.map(|open| open.components.clone())
        };
        let Some(mut components) = known else { return Ok(()) };
        components.insert((component.name.clone(), component.version), opened.clone());
        let reader = self.reader(store, &components)?;
        let mut stores = self.stores.write();
        let open = stores.get_mut(&store.name).and_then(|versions| versions.get_mut(&store.version));
        if let Some(open) = open {
            (open.reader, open.components) = (reader, components);
        }
        Ok(())
    }

    /// Whether a version is open with these partitions. If it was about to be removed, it stays.
    pub fn keep(&self, store: &ServedDocument, revision: u64, owned: &[PartitionId]) -> bool {
        let mut stores = self.stores.write();
        let open = stores.get_mut(&store.name).and_then(|versions| versions.get_mut(&store.version));
        let open = open.filter(|open| open.covers(owned));
        open.map(|open| {
            open.since_revision = open.since_revision.max(revision);
            open.retired = None;
        })
        .is_some()
    }

    /// Whether a version is open with these partitions.
    pub fn covers(&self, store: &ServedDocument, owned: &[PartitionId]) -> bool {
        let stores = self.stores.read();
        let open = stores.get(&store.name).and_then(|versions| versions.get(&store.version));
        open.is_some_and(|open| open.covers(owned))
    }

    /// Returns a component that some version of a store has open.
    pub fn component(&self, store: &str, component: &(String, u64)) -> Option<Component> {
        let stores = self.stores.read();
        stores.get(store)?.values().find_map(|open| open.components.get(component).cloned())
    }

    /// Returns the components that the versions of a store have open, by name and version.
    pub fn components(&self, store: &str) -> BTreeSet<(String, u64)> {
        let stores = self.stores.read();
        let open = stores.get(store).into_iter().flat_map(BTreeMap::values);
        open.flat_map(|open| open.components.keys()).cloned().collect()
    }

    /// Returns the partitions that the versions of a store have open.
    pub fn partitions(&self, store: &str) -> BTreeSet<PartitionId> {
        let stores = self.stores.read();
        let open = stores.get(store).into_iter().flat_map(BTreeMap::values);
        open.flat_map(|open| open.components.values()).flat_map(Component::partitions).copied().collect()
    }

    /// Stops holding a version. Clients with old tables get an error that sends them to another node.
    pub fn forget(&self, store: &ServedDocument) {
        let mut stores = self.stores.write();
        if let Some(versions) = stores.get_mut(&store.name) {
            versions.remove(&store.version);
        }
        stores.retain(|_, versions| !versions.is_empty());
    }

    /// Retires the versions that a topology of this revision does not name, and forgets those that were retired long enough
    /// ago.
    pub fn retire(&self, named: &BTreeSet<(&str, u64)>, revision: u64, now: Instant) {
        let mut stores = self.stores.write();
        for (name, versions) in stores.iter_mut() {
            versions.retain(|version, open| {
                if named.contains(&(name.as_str(), *version)) || revision < open.since_revision {
                    open.retired = None;
                    return true;
                }
                let retired = *open.retired.get_or_insert(now);
                now.saturating_duration_since(retired) < VERSION_GRACE
            });
        }
        stores.retain(|_, versions| !versions.is_empty());
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

impl OpenVersion {
    /// Whether all components have these partitions open.
    fn covers(&self, partitions: &[PartitionId]) -> bool {
        self.components.values().all(|component| component.covers(partitions))
    }
}
