//! Prepares and opens versions before they serve.

use super::{
    Holdings, PrepareError, PrepareOptions, Progress, component::Component, fetcher::Fetcher,
    open_versions::Components,
};
use crate::versions::warm;
use kith_cluster::FailPoint;
use kith_types::PartitionId;
use kith_wire::documents::ServedDocument;
use parking_lot::Mutex;
use std::sync::Arc;

/// Prepares and opens versions.
pub struct VersionOpener {
    holdings: Holdings,
    fetcher: Arc<Fetcher>,
    /// Allows one warm-up at a time, so that each takes into account what the previous one read.
    warming: Mutex<()>,
}

impl VersionOpener {
    /// Returns an opener that fetches what is missing.
    pub fn new(holdings: Holdings, fetcher: Arc<Fetcher>) -> Self {
        Self { holdings, fetcher, warming: Mutex::default() }
    }

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
        let Holdings { open, owned, turns, .. } = &self.holdings;
        // A version that is here need not wait for a fetch of another version of its store.
        if open.keep(store, revision, &owned.of_store(store)) {
            return Ok(());
        }
        let _one_at_a_time = turns.take(&store.name);
        if options.given_up.is_cancelled() {
            return Err(PrepareError::GivenUp { store: store.name.clone(), version: store.version });
        }
        let owned = owned.of_store(store);
        if open.keep(store, revision, &owned) {
            return Ok(());
        }
        if !options.only.is_empty() {
            let mut components = store.components.iter();
            return components
                .try_for_each(|it| self.fetcher.fetch(store, it, &options.only, options, progress));
        }
        let Some(components) = self.open_all(store, &owned, options, progress)? else { return Ok(()) };
        FailPoint::NodeOpened.reach();
        open.serve(store, revision, components)
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
            let open = self.holdings.open.component(&store.name, &key).filter(|open| open.covers(owned));
            let open = match open {
                Some(open) => open,
                // A node without partitions of the version needs no files, but still answers from those that it has.
                None if owned.is_empty()
                    && !self.holdings.folders.path_of(&store.name, component).exists() =>
                {
                    return Ok(None);
                }
                None => {
                    let open = self.fetcher.pull(store, component, owned, options, progress)?;
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
}
