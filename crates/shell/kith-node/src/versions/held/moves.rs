//! Partitions that come and go while their stores are served (Voldemort §5.7). They are copied from a peer before a table
//! names this node as their owner, and freed when no table in use does.

use super::{Component, HeldStores, PrepareError, Progress, VERSION_GRACE, cannot_open};
use kith_engine::{
    FetchError, FetchOptions, HeldSource, OpenError, Source, VersionFolder, fetch, release_partitions,
};
use kith_types::PartitionId;
use kith_wire::documents::{ComponentDocument, ServedDocument};
use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    fs,
    ops::ControlFlow,
    time::Instant,
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

/// The reason why partitions could not be freed.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum ReleaseError {
    /// The table assigns this partition to this node.
    #[error("the table gives partition {partition} to this node")]
    Owned { partition: PartitionId },
    /// The remaining partitions cannot be opened without it.
    #[error(transparent)]
    Open(#[from] PrepareError),
    /// The files cannot be read or removed.
    #[error("free partitions of component {component:?}")]
    Files {
        component: String,
        #[source]
        source: FetchError,
    },
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
pub struct Copying<'a> {
    /// Returns the source of a component of a store.
    pub source_of: SourceOf<'a>,
    /// The callback that gets the progress of the copy of a component.
    pub progress: Progress<'a>,
    /// The callback that gets the bytes of each piece. It may wait, and returns `Break` to end the copy.
    pub go_on: &'a mut dyn FnMut(u64) -> ControlFlow<()>,
}

/// Open components and their partitions, by name and version.
type Kept<'a> = BTreeMap<(&'a str, u64), (Component, Vec<PartitionId>)>;

/// Returns the source from which a component of a store is copied.
pub type SourceOf<'a> = &'a dyn Fn(&str, &ComponentDocument) -> Result<Box<dyn Source>, CopyError>;

impl HeldStores {
    /// Copies partitions of store versions, verifies and syncs them, and opens them in addition to those that are here.
    /// `revision` is the metadata revision that names the versions. Idempotent. Blocks.
    ///
    /// # Errors
    /// [`CopyError`]. Stores that were copied before the error are open. Components that were copied stay on disk, and are
    /// verified again before they are used.
    pub fn copy(&self, wanted: &Partitions, revision: u64, copy: &mut Copying<'_>) -> Result<(), CopyError> {
        for versions in by_store(&wanted.versions).values() {
            self.copy_store(versions, &wanted.partitions, revision, copy)?;
        }
        Ok(())
    }

    /// Like [`HeldStores::copy`], for versions of one store.
    fn copy_store(
        &self,
        versions: &[&ServedDocument],
        partitions: &[PartitionId],
        revision: u64,
        copy: &mut Copying<'_>,
    ) -> Result<(), CopyError> {
        let Some(first) = versions.first() else { return Ok(()) };
        let _one_at_a_time = self.turns.take(&first.name);
        let mut opened: BTreeMap<(&str, u64), Component> = BTreeMap::new();
        for &store in versions {
            for component in &store.components {
                let key = (component.name.as_str(), component.version);
                if let Entry::Vacant(place) = opened.entry(key) {
                    self.copy_component(store, component, partitions, copy)?;
                    place.insert(self.open(store, component, partitions)?);
                }
            }
        }
        for &store in versions {
            let components = store.components.iter().filter_map(|component| {
                let open = opened.get(&(&*component.name, component.version))?;
                Some(((component.name.clone(), component.version), open.clone()))
            });
            self.serve(store, revision, components.collect())?;
        }
        Ok(())
    }

    fn copy_component(
        &self,
        store: &ServedDocument,
        component: &ComponentDocument,
        partitions: &[PartitionId],
        copy: &mut Copying<'_>,
    ) -> Result<(), CopyError> {
        let source = (copy.source_of)(&store.name, component)?;
        let hash = Some(component.manifest_hash.clone()).filter(|hash| !hash.is_empty());
        let options = FetchOptions { manifest_hash: hash, ..FetchOptions::default() };
        let folder = self.folder_of_component(&store.name, component);
        let mut copied = 0;
        let fetched = fetch(&self.throttled(&*source), &folder, partitions, &options, &mut |state| {
            (copy.progress)(&component.name, state.bytes_done, state.bytes);
            let fresh = state.bytes_copied - copied;
            copied = state.bytes_copied;
            (copy.go_on)(fresh)
        });
        self.sources().clear();
        let (component, version) = (component.name.clone(), component.version);
        fetched.map(drop).map_err(|source| CopyError::Fetch { component, version, source })
    }

    /// Frees partitions of store versions. From then on, requests for them get `not_owner`. Running queries keep the files
    /// that they read from. If nothing of a store is left and nothing of it is assigned to this node, its folders are
    /// removed. Idempotent. Blocks.
    ///
    /// # Errors
    /// [`ReleaseError`]. Partitions that the table assigns to this node are never freed.
    pub fn release(
        &self,
        versions: &[ServedDocument],
        partitions: &[PartitionId],
    ) -> Result<(), ReleaseError> {
        for store in versions {
            let owned = self.owned(store);
            if let Some(&partition) = partitions.iter().find(|partition| owned.contains(partition)) {
                return Err(ReleaseError::Owned { partition });
            }
        }
        let gone: BTreeSet<PartitionId> = partitions.iter().copied().collect();
        by_store(versions).values().try_for_each(|versions| self.release_of(versions, &gone))
    }

    /// Like [`HeldStores::release`], for versions of one store.
    fn release_of(
        &self,
        versions: &[&ServedDocument],
        gone: &BTreeSet<PartitionId>,
    ) -> Result<(), ReleaseError> {
        let Some(first) = versions.first() else { return Ok(()) };
        let _one_at_a_time = self.turns.take(&first.name);
        let mut left = Kept::new();
        for &store in versions {
            for component in &store.components {
                if let Some(kept) = self.opened_without(store, component, gone)? {
                    left.insert((&component.name, component.version), kept);
                }
            }
        }
        self.replace_readers(versions, &left)?;
        for ((component, version), (_, keep)) in &left {
            let folder = self.folder_of(&first.name, component, *version);
            let freed = release_partitions(&folder, keep);
            freed.map_err(|source| ReleaseError::Files { component: (*component).to_owned(), source })?;
        }
        for store in versions.iter().filter(|store| self.owned(store).is_empty()) {
            let kept = store.components.iter().filter_map(|component| {
                left.get(&(&*component.name, component.version)).map(|(_, keep)| keep)
            });
            if kept.into_iter().all(Vec::is_empty) {
                self.forget(store);
            }
        }
        self.sources().clear();
        Ok(())
    }

    /// Opens a component without these partitions. Returns it with its remaining partitions, or `None` if nothing of it is
    /// here.
    fn opened_without(
        &self,
        store: &ServedDocument,
        component: &ComponentDocument,
        gone: &BTreeSet<PartitionId>,
    ) -> Result<Option<(Component, Vec<PartitionId>)>, PrepareError> {
        let folder = self.folder_of_component(&store.name, component);
        let here = match HeldSource::open(&folder) {
            Ok(source) => source.partitions(),
            Err(OpenError::NoComponent { .. }) => return Ok(None),
            Err(error) => return Err(cannot_open(component, error)),
        };
        let keep: Vec<PartitionId> = here.into_iter().filter(|partition| !gone.contains(partition)).collect();
        let open = VersionFolder::open_version(&folder, &component.manifest_hash).and_then(|folder| {
            let keep = keep.iter().copied().collect();
            Component::open(folder, &store.definition.holds, self.partition_count, keep)
        });
        Ok(Some((open.map_err(|error| cannot_open(component, error))?, keep)))
    }

    /// Stops holding a version. Clients with old tables get an error that sends them to another node.
    fn forget(&self, store: &ServedDocument) {
        let mut stores = self.stores.write();
        if let Some(versions) = stores.get_mut(&store.name) {
            versions.remove(&store.version);
        }
        stores.retain(|_, versions| !versions.is_empty());
        drop(stores);
        for component in &store.components {
            let folder = self.folder_of_component(&store.name, component);
            if folder.exists()
                && let Err(error) = fs::remove_dir_all(&folder)
            {
                tracing::warn!(%error, path = %folder.display(), "an empty component could not be removed");
            }
        }
    }

    /// Replaces the components that the held versions read from.
    fn replace_readers(
        &self,
        versions: &[&ServedDocument],
        components: &Kept<'_>,
    ) -> Result<(), PrepareError> {
        for &store in versions.iter().filter(|store| self.get(&store.name, store.version).is_some()) {
            let since = {
                let stores = self.stores.read();
                let held = stores.get(&store.name).and_then(|versions| versions.get(&store.version));
                held.map_or(0, |held| held.since_revision)
            };
            let components = store.components.iter().filter_map(|component| {
                let (open, _) = components.get(&(&*component.name, component.version))?;
                Some(((component.name.clone(), component.version), open.clone()))
            });
            self.serve(store, since, components.collect())?;
        }
        Ok(())
    }

    /// Frees partitions that no table has assigned to this node for a grace period in which no rebalance ran. They are left
    /// over from a rebalance that ended without this node, or belong to stores that other groups hold. Blocks.
    pub fn free_strangers(&self, versions: &[ServedDocument], now: Instant) {
        let settled = self.owned.read().settled();
        if settled.is_none_or(|since| now.saturating_duration_since(since) < VERSION_GRACE) {
            return;
        }
        if self.check_home().is_err() {
            return;
        }
        let mut by_store: BTreeMap<&str, Vec<ServedDocument>> = BTreeMap::new();
        for version in versions {
            by_store.entry(&version.name).or_default().push(version.clone());
        }
        for (store, versions) in by_store {
            let strangers = self.strangers(&versions);
            // A release that was interrupted may have left an empty folder.
            let is_empty =
                versions.iter().all(|it| self.owned(it).is_empty() && self.get(store, it.version).is_some());
            if strangers.is_empty() && !is_empty {
                continue;
            }
            match self.release(&versions, &strangers) {
                Ok(()) => {
                    tracing::info!(
                        store,
                        partitions = strangers.len(),
                        "freed partitions that no table names"
                    );
                }
                Err(error) => {
                    tracing::warn!(%error, store, "partitions that no table names could not be freed");
                }
            }
        }
    }

    /// Returns the partitions that are open in versions of one store and not assigned to this node.
    fn strangers(&self, versions: &[ServedDocument]) -> Vec<PartitionId> {
        let Some(store) = versions.first() else { return Vec::new() };
        let owned = self.owned(store);
        let stores = self.stores.read();
        let held = stores.get(&store.name).into_iter().flat_map(BTreeMap::values);
        let open = held.flat_map(|held| held.components.values()).flat_map(Component::partitions);
        let strangers = open.filter(|partition| owned.binary_search(partition).is_err());
        strangers.copied().collect::<BTreeSet<_>>().into_iter().collect()
    }
}

/// Groups versions by store.
fn by_store(versions: &[ServedDocument]) -> BTreeMap<&str, Vec<&ServedDocument>> {
    let mut stores: BTreeMap<&str, Vec<&ServedDocument>> = BTreeMap::new();
    for version in versions {
        stores.entry(&version.name).or_default().push(version);
    }
    stores
}
