//! Confirms and repairs damage in the files that versions are read from.

use super::{Held, HeldStores, PrepareError, Replicas, component::Component};
use crate::repair::verify::{self, Found};
use kith_engine::{Damage, OpenError};
use kith_wire::documents::{ComponentDocument, ServedDocument};
use std::collections::BTreeMap;

impl HeldStores {
    /// Checks the findings of a verification again while no other work changes the store's files. Files that came or went
    /// meanwhile count only if they are damaged or missing now. If `waits` is false and files are being changed, checks them
    /// without waiting. Blocks.
    ///
    /// # Errors
    /// The errors of [`verify::verify`].
    pub(crate) fn confirm(
        &self,
        store: &ServedDocument,
        component: &ComponentDocument,
        found: Found,
        waits: bool,
    ) -> Result<Found, OpenError> {
        let _one_at_a_time =
            if waits { Some(self.turns.take(&store.name)) } else { self.turns.try_take(&store.name) };
        let folder = self.folder_of_component(&store.name, component);
        verify::confirm(&folder, component, &self.owned(store), found)
    }

    /// Fetches the damaged files of a component again, from the object store or else from `replicas`. Every version that
    /// contains the component then reads the new files. Running queries keep the files that they read from. Blocks.
    ///
    /// # Errors
    /// If no origin has them intact. What is held is unchanged then.
    pub(crate) fn heal(
        &self,
        component: &ComponentDocument,
        versions: &[&ServedDocument],
        damages: &[Damage],
        replicas: &Replicas,
    ) -> Result<(), PrepareError> {
        let Some(first) = versions.first() else { return Ok(()) };
        let _one_at_a_time = self.turns.take(&first.name);
        let owned = self.owned(first);
        self.make_whole(first, component, &owned, Some(damages), replicas)?;
        let opened = self.open(first, component, &owned)?;
        for store in versions {
            self.reopen(store, component, &opened)?;
        }
        Ok(())
    }

    /// Makes a held version read a component from newly opened files.
    fn reopen(
        &self,
        store: &ServedDocument,
        component: &ComponentDocument,
        opened: &Component,
    ) -> Result<(), PrepareError> {
        let of = |stores: &BTreeMap<String, BTreeMap<u64, Held>>| {
            Some(stores.get(&store.name)?.get(&store.version)?.components.clone())
        };
        let known = of(&self.stores.read());
        let Some(mut components) = known else { return Ok(()) };
        components.insert((component.name.clone(), component.version), opened.clone());
        let reader = self.reader(store, &components)?;
        let mut stores = self.stores.write();
        let held = stores.get_mut(&store.name).and_then(|versions| versions.get_mut(&store.version));
        if let Some(held) = held {
            (held.reader, held.components) = (reader, components);
        }
        Ok(())
    }
}
