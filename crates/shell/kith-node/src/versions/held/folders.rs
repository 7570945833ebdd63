//! The folders of components on this disk: `<store>/<component>/<version>/`.

use super::{PrepareError, cannot_open, component::Component};
use kith_cluster::data_dir::{DataDir, DataDirError};
use kith_engine::{HeldSource, OpenError, VersionFolder};
use kith_types::{PartitionCount, PartitionId};
use kith_wire::documents::{ComponentDocument, ServedDocument};
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{Arc, Weak},
};

/// The folders of fetched components.
pub struct ComponentFolders {
    root: PathBuf,
    partition_count: PartitionCount,
    /// The sources that peers read, by folder. It is cleared whenever files come or go.
    sources: Mutex<BTreeMap<PathBuf, Arc<HeldSource>>>,
    /// The data directory that `root` is in, while the node runs.
    home: Weak<DataDir>,
}

impl ComponentFolders {
    /// Returns the folders below `root`.
    pub fn new(root: PathBuf, partition_count: PartitionCount) -> Self {
        Self { root, partition_count, sources: Mutex::default(), home: Weak::new() }
    }

    /// Sets the node's data directory.
    pub fn in_data_dir(self, home: &Arc<DataDir>) -> Self {
        Self { home: Arc::downgrade(home), ..self }
    }

    /// The folder that all of them are in.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Makes sure that the folders still belong to this node, because another process may have removed the data directory.
    pub fn check_home(&self) -> Result<(), DataDirError> {
        self.home.upgrade().map_or(Ok(()), |home| home.keep().map(drop))
    }

    /// Returns the folder of a version of a component.
    pub fn path(&self, store: &str, component: &str, version: u64) -> PathBuf {
        self.root.join(store).join(component).join(version.to_string())
    }

    /// Returns the folder of a component.
    pub fn path_of(&self, store: &str, component: &ComponentDocument) -> PathBuf {
        self.path(store, &component.name, component.version)
    }

    /// Returns what a peer reads of one version of a component.
    ///
    /// # Errors
    /// If nothing of it is here, or its files cannot be trusted.
    pub fn source(&self, store: &str, component: &str, version: u64) -> Result<Arc<HeldSource>, OpenError> {
        let folder = self.path(store, component, version);
        let known = self.sources.lock().get(&folder).cloned();
        if let Some(source) = known {
            return Ok(source);
        }
        let source = Arc::new(HeldSource::open(&folder)?);
        self.sources.lock().insert(folder, Arc::clone(&source));
        Ok(source)
    }

    /// Forgets the sources that peers read. It is called whenever files have come or gone.
    pub fn forget_sources(&self) {
        self.sources.lock().clear();
    }

    /// Opens these partitions of a folder of this version, which must all be there.
    pub fn open_folder(
        &self,
        folder: VersionFolder,
        store: &ServedDocument,
        partitions: BTreeSet<PartitionId>,
    ) -> Result<Component, OpenError> {
        Component::open(folder, &store.definition.holds, self.partition_count, partitions)
    }

    /// Opens all partitions of this very version that are complete on disk. If some of them are damaged, opens only the
    /// `required` ones.
    pub fn try_open(
        &self,
        store: &ServedDocument,
        component: &ComponentDocument,
        required: &[PartitionId],
    ) -> Result<Component, OpenError> {
        let folder = self.path_of(&store.name, component);
        let open = |partitions: BTreeSet<PartitionId>| {
            let version = VersionFolder::open_version(&folder, &component.manifest_hash)?;
            version.check_is_of(&store.name, &component.name)?;
            self.open_folder(version, store, partitions)
        };
        let required: BTreeSet<PartitionId> = required.iter().copied().collect();
        let here = HeldSource::open(&folder).map(|source| source.partitions());
        let all = here.map(|here| here.into_iter().chain(required.iter().copied()).collect());
        all.and_then(open).or_else(|_| open(required))
    }

    /// Opens as [`Self::try_open`] does.
    ///
    /// # Errors
    /// [`PrepareError::Open`].
    pub fn open(
        &self,
        store: &ServedDocument,
        component: &ComponentDocument,
        required: &[PartitionId],
    ) -> Result<Component, PrepareError> {
        self.try_open(store, component, required).map_err(|error| cannot_open(component, error))
    }
}
