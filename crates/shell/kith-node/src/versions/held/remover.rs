//! Removes versions that the cluster gave up, with their files, after a grace period.

use super::Holdings;
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

/// Removes versions and their files.
pub struct VersionRemover {
    pub holdings: Holdings,
}

impl VersionRemover {
    /// Retires versions that the topology no longer names, and removes those that were retired long enough ago, with their
    /// files. Running queries keep the files that they read from.
    pub fn retire(&self, topology: &TopologyDocument, now: Instant) {
        let Holdings { folders, open, turns, .. } = &self.holdings;
        let versions: BTreeSet<(&str, u64)> =
            named(topology).map(|store| (store.name.as_str(), store.version)).collect();
        open.retire(&versions, topology.revision, now);
        // Files in the directory of another process must not be touched.
        if folders.check_home().is_err() {
            return;
        }
        for folder in folders_in(folders.root()) {
            let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            // A store that is being fetched is cleaned up another time.
            if let Some(_one_at_a_time) = turns.try_take(&name) {
                // List the used folders only after the turn is taken: a version that was prepared before is held by now.
                remove_unused(&folder, &self.used(&name, topology), 2);
                // This intentionally fails if the folder is not empty.
                let _ = fs::remove_dir(&folder);
            }
        }
        folders.forget_sources();
    }

    /// Returns the folders of one store that are held, named, or partially fetched and still wanted.
    fn used(&self, store: &str, topology: &TopologyDocument) -> BTreeSet<PathBuf> {
        let Holdings { folders, open, .. } = &self.holdings;
        let held = open.components(store).into_iter();
        let held = held.map(|(name, version)| folders.path(store, &name, version));
        // A version that the topology names is kept even if it could not be opened: it may be the only copy.
        let named = named(topology).filter(|named| named.name == store).flat_map(|named| &named.components);
        let named = named.map(|component| folders.path_of(store, component));
        held.chain(named).chain(self.half_fetched(store, topology)).collect()
    }

    /// Returns the hidden folders of interrupted fetches and repairs of one store that will be continued. A push that ended
    /// is no longer named. A version that is complete here has no partial fetches, unless a rebalance copies more of it.
    fn half_fetched(&self, store: &str, topology: &TopologyDocument) -> BTreeSet<PathBuf> {
        let Holdings { folders, open, owned, .. } = &self.holdings;
        let of_store = named(topology).filter(|named| named.name == store);
        let wanted = of_store
            .filter(|named| topology.rebalance.is_some() || !open.covers(named, &owned.of_store(named)));
        let targets = wanted.flat_map(|named| &named.components);
        let targets = targets.map(|component| folders.path_of(store, component));
        targets.flat_map(|target| [staging_of(&target), Some(aside_of(&target))]).flatten().collect()
    }
}

fn named(topology: &TopologyDocument) -> impl Iterator<Item = &ServedDocument> {
    topology.stores.iter().chain(topology.kept.iter().map(|kept| &kept.at))
}

fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

/// Removes unused folders at `depth`, and folders above them that are empty afterwards.
fn remove_unused(folder: &Path, used: &BTreeSet<PathBuf>, depth: u32) {
    for path in folders_in(folder) {
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
