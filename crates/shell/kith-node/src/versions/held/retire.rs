//! Removes versions that the cluster gave up, with their files, after a grace period.

use super::{HeldStores, VERSION_GRACE};
use crate::repair::heal::aside_of;
use kith_cluster::FailPoint;
use kith_engine::staging_of;
use kith_wire::documents::{ServedDocument, TopologyDocument};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

impl HeldStores {
    /// Retires versions that the topology no longer names, and removes those that were retired long enough ago, with their
    /// files. Running queries keep the files that they read from.
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
        // Files in the directory of another process must not be touched.
        if self.check_home().is_err() {
            return;
        }
        for folder in folders(&self.folder) {
            let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            // A store that is being fetched is cleaned up another time.
            if let Some(_one_at_a_time) = self.turns.try_take(&name) {
                // List the used folders only after the turn is taken: a version that was prepared before is held by now.
                remove_unused(&folder, &self.used(&name, topology), 2);
                // This intentionally fails if the folder is not empty.
                let _ = fs::remove_dir(&folder);
            }
        }
        self.sources().clear();
    }

    /// Returns the folders of one store that are held, named, or partially fetched and still wanted.
    fn used(&self, store: &str, topology: &TopologyDocument) -> BTreeSet<PathBuf> {
        let half_fetched = self.half_fetched(store, topology);
        let stores = self.stores.read();
        let held = stores.get(store).into_iter().flat_map(|versions| versions.values());
        let held = held.flat_map(|held| held.components.keys());
        let held = held.map(|(name, version)| self.folder_of(store, name, *version));
        // A version that the topology names is kept even if it could not be opened: it may be the only copy.
        let named = named(topology).filter(|named| named.name == store).flat_map(|named| &named.components);
        let named = named.map(|component| self.folder_of_component(store, component));
        held.chain(named).chain(half_fetched).collect()
    }

    /// Returns the hidden folders of interrupted fetches and repairs of one store that will be continued. A push that ended
    /// is no longer named. A version that is complete here has no partial fetches, unless a rebalance copies more of it.
    fn half_fetched(&self, store: &str, topology: &TopologyDocument) -> BTreeSet<PathBuf> {
        let of_store = named(topology).filter(|named| named.name == store);
        let wanted = of_store.filter(|named| topology.rebalance.is_some() || !self.is_whole(named));
        let targets = wanted.flat_map(|named| &named.components);
        let targets = targets.map(|component| self.folder_of_component(store, component));
        targets.flat_map(|target| [staging_of(&target), Some(aside_of(&target))]).flatten().collect()
    }

    /// Whether every partition of a version that the table assigns to this node is open.
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

/// Removes unused folders at `depth`, and folders above them that are empty afterwards.
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
            // This intentionally fails if the folder is not empty.
            let _ = fs::remove_dir(&path);
        }
    }
}
