//! Partitions that go while their stores are served (Voldemort §5.7): they are freed when no table in use names this node as
//! their owner.

use super::{
    Holdings, PrepareError, by_store, cannot_open, component::Component, open_versions::VERSION_GRACE,
};
use kith_engine::{FetchError, HeldSource, OpenError, VersionFolder, release_partitions};
use kith_types::PartitionId;
use kith_wire::documents::{ComponentDocument, ServedDocument};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    time::Instant,
};
use thiserror::Error;

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

/// Open components and their partitions, by name and version.
type Remaining<'a> = BTreeMap<(&'a str, u64), (Component, Vec<PartitionId>)>;

/// Frees partitions of store versions.
pub struct PartitionReleaser {
    pub holdings: Holdings,
}

impl PartitionReleaser {
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
            let owned = self.holdings.owned.of_store(store);
            if let Some(&partition) = partitions.iter().find(|partition| owned.contains(partition)) {
                return Err(ReleaseError::Owned { partition });
            }
        }
        let gone: BTreeSet<PartitionId> = partitions.iter().copied().collect();
        by_store(versions).values().try_for_each(|versions| self.release_of(versions, &gone))
    }

    /// Like [`PartitionReleaser::release`], for versions of one store.
    fn release_of(
        &self,
        versions: &[&ServedDocument],
        gone: &BTreeSet<PartitionId>,
    ) -> Result<(), ReleaseError> {
        let Some(first) = versions.first() else { return Ok(()) };
        let _one_at_a_time = self.holdings.turns.take(&first.name);
        let mut left = Remaining::new();
        for &store in versions {
            for component in &store.components {
                if let Some(kept) = self.opened_without(store, component, gone)? {
                    left.insert((&component.name, component.version), kept);
                }
            }
        }
        self.replace_readers(versions, &left)?;
        for ((component, version), (_, keep)) in &left {
            let folder = self.holdings.folders.path(&first.name, component, *version);
            let freed = release_partitions(&folder, keep);
            freed.map_err(|source| ReleaseError::Files { component: (*component).to_owned(), source })?;
        }
        for store in versions.iter().filter(|store| self.holdings.owned.of_store(store).is_empty()) {
            let kept = store.components.iter().filter_map(|component| {
                left.get(&(&*component.name, component.version)).map(|(_, keep)| keep)
            });
            if kept.into_iter().all(Vec::is_empty) {
                self.forget(store);
            }
        }
        self.holdings.folders.forget_sources();
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
        let folder = self.holdings.folders.path_of(&store.name, component);
        let here = match HeldSource::open(&folder) {
            Ok(source) => source.partitions(),
            Err(OpenError::NoComponent { .. }) => return Ok(None),
            Err(error) => return Err(cannot_open(component, error)),
        };
        let keep: Vec<PartitionId> = here.into_iter().filter(|partition| !gone.contains(partition)).collect();
        let open = VersionFolder::open_version(&folder, &component.manifest_hash).and_then(|folder| {
            let keep = keep.iter().copied().collect();
            self.holdings.folders.open_folder(folder, store, keep)
        });
        Ok(Some((open.map_err(|error| cannot_open(component, error))?, keep)))
    }

    /// Stops holding a version, and removes its folders.
    fn forget(&self, store: &ServedDocument) {
        self.holdings.open.forget(store);
        for component in &store.components {
            let folder = self.holdings.folders.path_of(&store.name, component);
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
        remaining: &Remaining<'_>,
    ) -> Result<(), PrepareError> {
        for &store in versions {
            let components = store.components.iter().filter_map(|component| {
                let (open, _) = remaining.get(&(&*component.name, component.version))?;
                Some(((component.name.clone(), component.version), open.clone()))
            });
            self.holdings.open.replace(store, components.collect())?;
        }
        Ok(())
    }

    /// Frees partitions that no table has assigned to this node for a grace period in which no rebalance ran. They are left
    /// over from a rebalance that ended without this node, or belong to stores that other groups hold. Blocks.
    pub fn free_strangers(&self, versions: &[ServedDocument], now: Instant) {
        let settled = self.holdings.owned.settled();
        if settled.is_none_or(|since| now.saturating_duration_since(since) < VERSION_GRACE) {
            return;
        }
        if self.holdings.folders.check_home().is_err() {
            return;
        }
        let mut by_store: BTreeMap<&str, Vec<ServedDocument>> = BTreeMap::new();
        for version in versions {
            by_store.entry(&version.name).or_default().push(version.clone());
        }
        for (store, versions) in by_store {
            let strangers = self.strangers(&versions);
            // A release that was interrupted may have left an empty folder.
            let is_empty = versions.iter().all(|it| {
                self.holdings.owned.of_store(it).is_empty()
                    && self.holdings.open.get(store, it.version).is_some()
            });
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
        let owned = self.holdings.owned.of_store(store);
        let open = self.holdings.open.partitions(&store.name).into_iter();
        open.filter(|partition| owned.binary_search(partition).is_err()).collect()
    }
}
