//! Partitions come and go while their stores are served (Voldemort §5.7): copied from a peer before a table names this
//! node as their owner, freed when no table in use does.

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

/// Partitions cannot be copied; what was answered before is answered still.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum CopyError {
    /// The donor is no node that can be asked.
    #[error("the donor cannot be asked: {detail}")]
    Donor { detail: String },
    /// Files cannot be copied.
    #[error("copy component {component:?} version {version}")]
    Fetch {
        component: String,
        version: u64,
        #[source]
        source: FetchError,
    },
    /// What was copied cannot be opened.
    #[error(transparent)]
    Open(#[from] PrepareError),
}

/// Partitions cannot be freed.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum ReleaseError {
    /// The table gives it to this node.
    #[error("the table gives partition {partition} to this node")]
    Owned { partition: PartitionId },
    /// The rest cannot be opened without it.
    #[error(transparent)]
    Open(#[from] PrepareError),
    /// Files cannot be read or removed.
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

/// How partitions are copied: from where, who is told, and how fast.
pub struct Copying<'a> {
    /// Where a component of a store is copied from.
    pub source_of: SourceOf<'a>,
    /// Told how far the copy of a component is.
    pub progress: Progress<'a>,
    /// Called after each piece with its bytes. It may wait, and ends the copy by `Break`.
    pub go_on: &'a mut dyn FnMut(u64) -> ControlFlow<()>,
}

/// By name and version, components that are open, and the partitions that they have.
type Kept<'a> = BTreeMap<(&'a str, u64), (Component, Vec<PartitionId>)>;

/// Finds where a component of a store is copied from.
pub type SourceOf<'a> = &'a dyn Fn(&str, &ComponentDocument) -> Result<Box<dyn Source>, CopyError>;

impl HeldStores {
    /// Copies partitions of store versions, verifies, syncs and opens them beside those that are here. `revision` is the
    /// metadata's that names the versions. Idempotent. Blocks.
    ///
    /// # Errors
    /// [`CopyError`]. Stores copied before it are open; components copied before it stay, and are proven again before they
    /// are used.
    pub fn copy(&self, wanted: &Partitions, revision: u64, copy: &mut Copying<'_>) -> Result<(), CopyError> {
        for versions in by_store(&wanted.versions).values() {
            self.copy_store(versions, &wanted.partitions, revision, copy)?;
        }
        Ok(())
    }

    /// As [`HeldStores::copy`], of versions of one store.
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

    /// Frees partitions of store versions: from then on they are answered with *not owner*. Running queries keep what they
    /// read from. A store of which nothing is left and nothing is this node's leaves no trace. Idempotent. Blocks.
    ///
    /// # Errors
    /// [`ReleaseError`]; nothing that the table gives to this node is ever freed.
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

    /// As [`HeldStores::release`], of versions of one store.
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

    /// A component opened without these partitions, and the partitions that are left; `None`: nothing of it is here.
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

    /// Is no node of a version any more: readers of old tables are told to ask another.
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

    /// Has the versions that are answered from read from these components.
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

    /// Frees what no table has given to this node for a grace in which no rebalance ran: leftovers of one that ended
    /// without this node, and stores that are other groups' to hold. Blocks.
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
            // Of a release that was cut off, an empty folder may be left.
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

    /// What is open of versions of one store and is not this node's.
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

/// The versions of each store.
fn by_store(versions: &[ServedDocument]) -> BTreeMap<&str, Vec<&ServedDocument>> {
    let mut stores: BTreeMap<&str, Vec<&ServedDocument>> = BTreeMap::new();
    for version in versions {
        stores.entry(&version.name).or_default().push(version);
    }
    stores
}
