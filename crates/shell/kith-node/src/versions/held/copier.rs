//! Partitions that come while their stores are served (Voldemort §5.7): they are copied from a peer before a table names this
//! node as their owner.

use super::{
    PrepareError, Progress, by_store, component::Component, folders::ComponentFolders,
    open_versions::OpenVersions, origins::Origins, turns::Turns,
};
use kith_engine::{FetchError, FetchOptions, Source, fetch};
use kith_types::PartitionId;
use kith_wire::documents::{ComponentDocument, ServedDocument};
use std::{
    collections::{BTreeMap, btree_map::Entry},
    ops::ControlFlow,
    sync::Arc,
};
use thiserror::Error;

/// The reason why partitions could not be copied. Partitions that were answered before are still answered.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum CopyError {
    /// The donor cannot be asked.
    #[error("the donor cannot be asked: {detail}")]
    Donor { detail: String },
    /// The files cannot be copied.
    #[error("copy component {component:?} version {version}")]
    Fetch {
        component: String,
        version: u64,
        #[source]
        source: FetchError,
    },
    /// The copied files cannot be opened.
    #[error(transparent)]
    Open(#[from] PrepareError),
}

/// Partitions of store versions.
#[derive(Clone, Debug)]
pub struct Partitions {
    /// Versions of any stores.
    pub versions: Vec<ServedDocument>,
    /// The partitions of each of them.
    pub partitions: Vec<PartitionId>,
}

/// The terms of a copy of partitions: the source, the progress callback, and the throttle.
pub struct CopyTerms<'a> {
    /// Returns the source of a component of a store.
    pub source_of: SourceOf<'a>,
    /// The callback that gets the progress of the copy of a component.
    pub progress: Progress<'a>,
    /// The callback that gets the bytes of each piece. It may wait, and returns `Break` to end the copy.
    pub go_on: &'a mut dyn FnMut(u64) -> ControlFlow<()>,
}

/// Returns the source from which a component of a store is copied.
pub type SourceOf<'a> = &'a dyn Fn(&str, &ComponentDocument) -> Result<Box<dyn Source>, CopyError>;

/// Copies partitions of store versions.
pub struct PartitionCopier {
    pub folders: Arc<ComponentFolders>,
    pub origins: Arc<Origins>,
    pub open: Arc<OpenVersions>,
    pub turns: Arc<Turns>,
}

impl PartitionCopier {
    /// Copies partitions of store versions, verifies and syncs them, and opens them in addition to those that are here.
    /// `revision` is the metadata revision that names the versions. Idempotent. Blocks.
    ///
    /// # Errors
    /// [`CopyError`]. Stores that were copied before the error are open. Components that were copied stay on disk, and are
    /// verified again before they are used.
    pub fn copy(
        &self,
        wanted: &Partitions,
        revision: u64,
        copy: &mut CopyTerms<'_>,
    ) -> Result<(), CopyError> {
        for versions in by_store(&wanted.versions).values() {
            self.copy_store(versions, &wanted.partitions, revision, copy)?;
        }
        Ok(())
    }

    /// Like [`PartitionCopier::copy`], for versions of one store.
    fn copy_store(
        &self,
        versions: &[&ServedDocument],
        partitions: &[PartitionId],
        revision: u64,
        copy: &mut CopyTerms<'_>,
    ) -> Result<(), CopyError> {
        let Some(first) = versions.first() else { return Ok(()) };
        let _one_at_a_time = self.turns.take(&first.name);
        let mut opened: BTreeMap<(&str, u64), Component> = BTreeMap::new();
        for &store in versions {
            for component in &store.components {
                let key = (component.name.as_str(), component.version);
                if let Entry::Vacant(slot) = opened.entry(key) {
                    self.copy_component(store, component, partitions, copy)?;
                    slot.insert(self.folders.open(store, component, partitions)?);
                }
            }
        }
        for &store in versions {
            let components = store.components.iter().filter_map(|component| {
                let open = opened.get(&(&*component.name, component.version))?;
                Some(((component.name.clone(), component.version), open.clone()))
            });
            self.open.serve(store, revision, components.collect())?;
        }
        Ok(())
    }

    fn copy_component(
        &self,
        store: &ServedDocument,
        component: &ComponentDocument,
        partitions: &[PartitionId],
        copy: &mut CopyTerms<'_>,
    ) -> Result<(), CopyError> {
        let source = (copy.source_of)(&store.name, component)?;
        let hash = Some(component.manifest_hash.clone()).filter(|hash| !hash.is_empty());
        let options = FetchOptions { manifest_hash: hash, ..FetchOptions::default() };
        let folder = self.folders.path_of(&store.name, component);
        let mut copied = 0;
        let fetched = fetch(&self.origins.throttled(&*source), &folder, partitions, &options, &mut |state| {
            (copy.progress)(&component.name, state.bytes_done, state.bytes);
            let fresh = state.bytes_copied - copied;
            copied = state.bytes_copied;
            (copy.go_on)(fresh)
        });
        self.folders.forget_sources();
        let (component, version) = (component.name.clone(), component.version);
        fetched.map(drop).map_err(|source| CopyError::Fetch { component, version, source })
    }
}
