//! Prepares versions before they serve.

use super::{Components, HeldStores, PrepareError, Replicas, component::Component};
use crate::versions::warm;
use kith_cluster::FailPoint;
use kith_types::PartitionId;
use kith_wire::documents::ServedDocument;
use std::collections::BTreeSet;
use tokio_util::sync::CancellationToken;

/// The options of a preparation.
#[derive(Clone, Debug, Default)]
pub struct PrepareOptions {
    /// Components larger than this many bytes are refused.
    pub bytes_max: Option<u64>,
    /// The number of bytes of newly opened files to read into memory, indexes first, as far as memory is free.
    pub warm_bytes: u64,
    /// The partitions to fetch without opening them, because another preparation fetches the rest. Empty for all that this
    /// node owns.
    pub only: Vec<PartitionId>,
    /// The nodes that have partitions already. What they cannot supply comes from the object store.
    pub suppliers: Vec<Supplier>,
    /// The token that is cancelled when the caller has given up.
    pub given_up: CancellationToken,
    /// The nodes that supply what the object store does not. Empty for a version that is being pushed, because no node has
    /// it yet.
    pub replicas: Replicas,
}

/// A node that has partitions of a version.
#[derive(Clone, Debug)]
pub struct Supplier {
    /// Its address.
    pub addr: String,
    /// The partitions that it has.
    pub partitions: BTreeSet<PartitionId>,
}

/// The callback that gets the progress: the component's name, bytes done, and total bytes.
pub type Progress<'a> = &'a mut dyn FnMut(&str, u64, u64);

impl HeldStores {
    /// Fetches, verifies and opens what a store needs at one version. Running queries are not affected. `revision` is the
    /// metadata revision that names the version. Blocks.
    ///
    /// # Errors
    /// [`PrepareError`]. The version is not held then.
    pub fn prepare(
        &self,
        store: &ServedDocument,
        revision: u64,
        options: &PrepareOptions,
        progress: Progress<'_>,
    ) -> Result<(), PrepareError> {
        let owned = self.owned(store);
        // A version that is here need not wait for a fetch of another version of its store.
        if self.is_here(store, revision, &owned) {
            return Ok(());
        }
        let _one_at_a_time = self.turns.take(&store.name);
        if options.given_up.is_cancelled() {
            return Err(PrepareError::GivenUp { store: store.name.clone(), version: store.version });
        }
        let owned = self.owned(store);
        if self.is_here(store, revision, &owned) {
            return Ok(());
        }
        if !options.only.is_empty() {
            let mut components = store.components.iter();
            return components.try_for_each(|it| self.fetch(store, it, &options.only, options, progress));
        }
        let Some(components) = self.open_all(store, &owned, options, progress)? else { return Ok(()) };
        FailPoint::NodeOpened.reach();
        self.serve(store, revision, components)
    }

    /// Opens the components of a version, and fetches those that are not here. Returns `None` if this node does not need
    /// them.
    fn open_all(
        &self,
        store: &ServedDocument,
        owned: &[PartitionId],
        options: &PrepareOptions,
        progress: Progress<'_>,
    ) -> Result<Option<Components>, PrepareError> {
        let mut components = Components::new();
        let mut cold = options.warm_bytes;
        for component in &store.components {
            let key = (component.name.clone(), component.version);
            let open = self.open_already(&store.name, &key).filter(|open| open.covers(owned));
            let open = match open {
                Some(open) => open,
                // A node without partitions of the version needs no files, but still answers from those that it has.
                None if owned.is_empty() && !self.folder_of_component(&store.name, component).exists() => {
                    return Ok(None);
                }
                None => {
                    let open = self.pull(store, component, owned, options, progress)?;
                    cold = cold.saturating_sub(self.warm(&open, cold));
                    open
                }
            };
            components.insert(key, open);
        }
        Ok(Some(components))
    }

    /// Reads at most `bytes_max` bytes of a component into memory. Returns the number of bytes read.
    fn warm(&self, component: &Component, bytes_max: u64) -> u64 {
        if bytes_max == 0 {
            return 0;
        }
        let _one_at_a_time = self.warming.lock();
        let warmed = component.warm(warm::budget(bytes_max));
        metrics::counter!("kith_node_warmed_bytes_total").increment(warmed);
        warmed
    }

    /// Whether a version is held with these partitions. If it was about to be removed, it stays.
    fn is_here(&self, store: &ServedDocument, revision: u64, owned: &[PartitionId]) -> bool {
        let mut stores = self.stores.write();
        let held = stores.get_mut(&store.name).and_then(|versions| versions.get_mut(&store.version));
        let held = held.filter(|held| held.components.values().all(|component| component.covers(owned)));
        held.map(|held| {
            held.since_revision = held.since_revision.max(revision);
            held.retired = None;
        })
        .is_some()
    }

    fn open_already(&self, store: &str, component: &(String, u64)) -> Option<Component> {
        let stores = self.stores.read();
        stores.get(store)?.values().find_map(|held| held.components.get(component).cloned())
    }
}
