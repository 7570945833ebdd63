//! What the cluster gave up goes, after a grace, with its files.

use super::{HeldStores, VERSION_GRACE};
use crate::heal::aside_of;
use kith_engine::staging_of;
use kith_process::FailPoint;
use kith_wire::documents::{ServedDocument, TopologyDocument};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

impl HeldStores {
    /// Retires what the topology no longer names, and forgets what was retired long enough ago,
    /// with its files. Running queries keep what they read from.
    pub fn retire(&self, topology: &TopologyDocument, now: Instant) {
        let versions: BTreeSet<(&str, u64)> =
            named(topology).map(|store| (store.name.as_str(), store.version)).collect();
        let mut stores = self.stores.write();
        for (name, held) in stores.iter_mut() {
            held.retain(|version, held| {
                if versions.contains(&(name.as_str(), *version)) || topology.revision < held.since_revision {
                    held.retired = None;
                    return true;
                }
                let retired = *held.retired.get_or_insert(now);
                now.saturating_duration_since(retired) < VERSION_GRACE
            });
        }
        stores.retain(|_, versions| !versions.is_empty());
        drop(stores);
        // What lies in another process's directory is its own.
        if self.check_home().is_err() {
            return;
        }
        for folder in folders(&self.folder) {
            let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            // A store that is being fetched is cleaned up another time.
            if let Some(_one_at_a_time) = self.turns.try_take(&name) {
                // Looked at inside the turn: what was prepared before it is held by now.
                remove_unused(&folder, &self.used(&name, topology), 2);
                // Fails while it holds something: that is the point.
                let _ = fs::remove_dir(&folder);
            }
        }
        self.sources().clear();
    }

    /// The folders of one store that are held, named, or half fetched and still wanted.
    fn used(&self, store: &str, topology: &TopologyDocument) -> BTreeSet<PathBuf> {
        let half_fetched = self.half_fetched(store, topology);
        let stores = self.stores.read();
        let held = stores.get(store).into_iter().flat_map(|versions| versions.values());
        let held = held.flat_map(|held| held.components.keys());
        let held = held.map(|(name, version)| self.folder_of(store, name, *version));
        // What the topology names is kept also where it could not be opened: it may be all there is.
        let named = named(topology).filter(|named| named.name == store).flat_map(|named| &named.components);
        let named = named.map(|component| self.folder_of_component(store, component));
        held.chain(named).chain(half_fetched).collect()
    }

    /// The hidden folders of fetches and repairs of one store that will be asked for again after they were cut off. A push that
    /// ended is not named any more; of a version that is here whole, nothing is half fetched unless a rebalance copies more of it.
    fn half_fetched(&self, store: &str, topology: &TopologyDocument) -> BTreeSet<PathBuf> {
        let of_store = named(topology).filter(|named| named.name == store);
        let wanted = of_store.filter(|named| topology.rebalance.is_some() || !self.is_whole(named));
        let targets = wanted.flat_map(|named| &named.components);
        let targets = targets.map(|component| self.folder_of_component(store, component));
        targets.flat_map(|target| [staging_of(&target), Some(aside_of(&target))]).flatten().collect()
    }

    /// Whether everything is open that the table gives to this node of a version.
    fn is_whole(&self, store: &ServedDocument) -> bool {
        let owned = self.owned(store);
        let stores = self.stores.read();
        let held = stores.get(&store.name).and_then(|versions| versions.get(&store.version));
        held.is_some_and(|held| held.components.values().all(|component| component.covers(&owned)))
    }
}

fn named(topology: &TopologyDocument) -> impl Iterator<Item = &ServedDocument> {
    topology.stores.iter().chain(topology.kept.iter().map(|kept| &kept.at))
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

/// Removes folders at `depth` that nobody uses, and folders above them that are then empty.
fn remove_unused(folder: &Path, used: &BTreeSet<PathBuf>, depth: u32) {
    for path in folders(folder) {
        if depth == 1 {
            if used.contains(&path) {
                continue;
            }
            FailPoint::NodeRetiring.reach();
            if let Err(error) = fs::remove_dir_all(&path) {
                tracing::warn!(%error, path = %path.display(), "an unused component could not be removed");
            }
        } else {
            remove_unused(&path, used, depth - 1);
            // Fails while it holds something: that is the point.
            let _ = fs::remove_dir(&path);
        }
    }
}
