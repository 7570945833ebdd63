//! Confirms and repairs damage in the files that versions are read from.

use super::{Holdings, PrepareError, Replicas, fetcher::Fetcher};
use crate::repair::verify::{self, VerifyFindings};
use kith_engine::{Damage, OpenError};
use kith_wire::documents::{ComponentDocument, ServedDocument};
use std::sync::Arc;

/// Repairs the files of held versions.
pub struct FileRepairer {
    pub holdings: Holdings,
    pub fetcher: Arc<Fetcher>,
}

impl FileRepairer {
    /// Checks the findings of a verification again while no other work changes the store's files. Files that came or went
    /// meanwhile count only if they are damaged or missing now. If `waits` is false and files are being changed, checks them
    /// without waiting. Blocks.
    ///
    /// # Errors
    /// The errors of [`verify::verify`].
    pub fn confirm(
        &self,
        store: &ServedDocument,
        component: &ComponentDocument,
        found: VerifyFindings,
        waits: bool,
    ) -> Result<VerifyFindings, OpenError> {
        let Holdings { folders, owned, turns, .. } = &self.holdings;
        let _one_at_a_time = if waits { Some(turns.take(&store.name)) } else { turns.try_take(&store.name) };
        let folder = folders.path_of(&store.name, component);
        verify::confirm(&folder, component, &owned.of_store(store), found)
    }

    /// Fetches the damaged files of a component again, from the object store or else from `replicas`. Every version that
    /// contains the component then reads the new files. Running queries keep the files that they read from. Blocks.
    ///
    /// # Errors
    /// If no origin has them intact. What is held is unchanged then.
    pub fn heal(
        &self,
        component: &ComponentDocument,
        versions: &[&ServedDocument],
        damages: &[Damage],
        replicas: &Replicas,
    ) -> Result<(), PrepareError> {
        let Some(first) = versions.first() else { return Ok(()) };
        let Holdings { folders, open, owned, turns } = &self.holdings;
        let _one_at_a_time = turns.take(&first.name);
        let owned = owned.of_store(first);
        self.fetcher.make_whole(first, component, &owned, Some(damages), replicas)?;
        let opened = folders.open(first, component, &owned)?;
        for store in versions {
            open.reopen(store, component, &opened)?;
        }
        Ok(())
    }
}
