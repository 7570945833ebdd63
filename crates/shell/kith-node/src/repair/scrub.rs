//! The scrubber. In the background it slowly rereads every byte that this node holds, and has damage repaired before a query
//! needs the data. If a read finds damage, its store is checked at once.
//!
//! Reads do not depend on it, because they verify every block themselves. It finds damage in data that is not read.
//! (Voldemort checked a version while fetching it and never again, §5.4.)

use super::verify::{ComponentState, Depth, VerifyFindings, verify};
use crate::{
    versions::held::{HeldStores, Replicas},
    versions::throttle::Throttle,
};
use kith_cluster::{background, topology::TopologyReceiver};
use kith_wire::documents::{ComponentDocument, ServedDocument, TopologyDocument};
use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU64,
    sync::Arc,
    time::Duration,
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The pause between two rounds over everything, however little there is.
const ROUND_PAUSE: Duration = Duration::from_secs(15);
/// The rate at which suspect stores are checked. They are urgent, but reads continue at the same time.
const SUSPECT_BYTES_PER_SECOND: u64 = 256 << 20;
/// The pause between two checks of suspects. Damage that cannot be repaired is found by reads again and again.
const SUSPECT_PAUSE: Duration = Duration::from_secs(5);

/// Identifies a component: store, name and version.
type Key = (String, String, u64);

/// The known damage in this node's files.
#[derive(Debug, Default)]
pub(crate) struct FileHealth {
    state: Mutex<DamageState>,
    woken: Notify,
}

#[derive(Debug, Default)]
struct DamageState {
    /// The number of damaged files per component that are not repaired yet.
    damaged: BTreeMap<Key, u64>,
    repaired: u64,
    /// Stores in which a read found damage and that have not been checked since.
    suspects: BTreeSet<String>,
}

impl FileHealth {
    /// Reports that a read of a store found damage. Its versions are checked soon.
    pub(crate) fn suspect(&self, store: &str) {
        if self.lock().suspects.insert(store.to_owned()) {
            self.woken.notify_one();
        }
    }

    /// Returns the number of damaged files that are not repaired yet, and the number of files repaired since the node
    /// started.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let state = self.lock();
        (state.damaged.values().sum(), state.repaired)
    }

    fn lock(&self) -> MutexGuard<'_, DamageState> {
        self.state.lock()
    }

    fn found(&self, key: Key, files: u64) {
        let mut state = self.lock();
        match files {
            0 => drop(state.damaged.remove(&key)),
            files => drop(state.damaged.insert(key, files)),
        }
        metrics::gauge!("kith_node_files_damaged").set(state.damaged.values().sum::<u64>() as f64);
    }

    fn repaired(&self, key: Key, files: u64) {
        self.lock().repaired += files;
        metrics::counter!("kith_node_files_repaired_total").increment(files);
        self.found(key, 0);
    }

    fn forget_all_but(&self, known: &BTreeSet<Key>) {
        self.lock().damaged.retain(|key, _| known.contains(key));
    }
}

/// Scrubs and repairs the files of one node.
#[derive(Clone)]
pub(crate) struct Scrubber {
    pub node: u32,
    pub file_health: Arc<FileHealth>,
    pub held: Arc<HeldStores>,
    pub topology: TopologyReceiver,
    pub stop: CancellationToken,
}

impl Scrubber {
    /// Runs until the node ends. `bytes_per_second` is the rate of the rounds; `None` checks only suspects.
    pub(crate) fn start(self, bytes_per_second: Option<u64>) {
        tokio::spawn(self.clone().follow_suspects());
        if let Some(rate) = bytes_per_second {
            tokio::spawn(self.rounds(rate));
        }
    }

    async fn rounds(self, rate: u64) {
        loop {
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = tokio::time::sleep(ROUND_PAUSE) => {}
            }
            self.look(None, rate).await;
            metrics::counter!("kith_node_scrub_rounds_total").increment(1);
        }
    }

    async fn follow_suspects(self) {
        loop {
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = self.file_health.woken.notified() => {}
            }
            let suspects = self.file_health.lock().suspects.clone();
            for store in &suspects {
                self.look(Some(store.clone()), SUSPECT_BYTES_PER_SECOND).await;
            }
            // Damage that is read from here on is reported again.
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = tokio::time::sleep(SUSPECT_PAUSE) => {}
            }
            self.file_health.lock().suspects.retain(|store| !suspects.contains(store));
        }
    }

    /// Checks the components of one store, or of all stores.
    async fn look(&self, store: Option<String>, rate: u64) {
        let this = self.clone();
        let looked = background::run(move || {
            let topology = Arc::clone(&this.topology.borrow());
            let components = components(&topology);
            this.file_health.forget_all_but(&components.keys().cloned().collect());
            let throttle = Throttle::new(NonZeroU64::new(rate.max(1)), this.stop.clone());
            for held in components.values() {
                if store.as_ref().is_none_or(|store| store == held.store) && !this.stop.is_cancelled() {
                    this.examine(held, &throttle);
                }
            }
        });
        if let Err(error) = looked.await {
            tracing::error!(%error, node = self.node, "a scrub ended unexpectedly");
        }
    }

    fn examine(&self, wanted: &WantedComponent<'_>, throttle: &Throttle) {
        let WantedComponent { store, component, versions } = wanted;
        let Some(first) = versions.first() else { return };
        // A component that was never opened here is left to its preparation, which may be running.
        if !versions.iter().any(|version| self.held.open.get(store, version.version).is_some()) {
            return;
        }
        let folder = self.held.folders.path(store, &component.name, component.version);
        let owned = self.held.owned.of_store(first);
        let looked = verify(&folder, component, &owned, Depth::Deep, &mut |bytes| throttle.pass(bytes));
        let confirmed = looked.and_then(|found| match found.is_cut {
            true => Ok(found),
            false => self.held.repairer.confirm(first, component, found, true),
        });
        let found = match confirmed {
            Ok(found) => found,
            Err(error) => {
                let source = std::error::Error::source(&error).map(ToString::to_string);
                let (node, name) = (self.node, &component.name);
                tracing::warn!(%error, source, node, store, component = name, "not scrubbed: this process lacks descriptors or memory");
                metrics::counter!("kith_node_scrubs_put_off_total").increment(1);
                return;
            }
        };
        if found.is_cut {
            return;
        }
        let files = found.damages.len().max(usize::from(found.state != ComponentState::Ok)) as u64;
        self.file_health.found(wanted.key(), files);
        if found.state != ComponentState::Ok {
            self.repair(wanted, &found, files);
        }
    }

    /// Repairs the `files` damaged files of a component.
    fn repair(&self, wanted: &WantedComponent<'_>, found: &VerifyFindings, files: u64) {
        let WantedComponent { store, component, versions } = wanted;
        let (node, name, version) = (self.node, &component.name, component.version);
        let first = found.damages.first().map(ToString::to_string);
        tracing::error!(node, store, component = name, version, state = ?found.state, files, first, "damage found");
        metrics::counter!("kith_node_damage_found_total").increment(files);
        let replicas = versions.first().map(|first| Replicas::of(&self.topology.borrow(), node, first));
        match self.held.repairer.heal(component, versions, &found.damages, &replicas.unwrap_or_default()) {
            Ok(()) => {
                tracing::warn!(node, store, component = name, version, files, "damage repaired");
                self.file_health.repaired(wanted.key(), files);
            }
            Err(error) => {
                let source = std::error::Error::source(&error).map(ToString::to_string);
                tracing::error!(%error, source, node, store, component = name, version, "damage cannot be repaired yet");
            }
        }
    }
}

/// A component that the cluster wants on this node.
struct WantedComponent<'a> {
    store: &'a str,
    component: &'a ComponentDocument,
    /// The versions of the store that contain it.
    versions: Vec<&'a ServedDocument>,
}

impl WantedComponent<'_> {
    fn key(&self) -> Key {
        (self.store.to_owned(), self.component.name.clone(), self.component.version)
    }
}

/// Returns every component that the cluster wants on this node.
fn components(topology: &TopologyDocument) -> BTreeMap<Key, WantedComponent<'_>> {
    let kept = topology.kept.iter().filter(|kept| kept.is_whole).map(|kept| &kept.at);
    let mut components: BTreeMap<Key, WantedComponent<'_>> = BTreeMap::new();
    for version in topology.stores.iter().chain(kept) {
        for component in &version.components {
            let wanted = WantedComponent { store: &version.name, component, versions: Vec::new() };
            components.entry(wanted.key()).or_insert(wanted).versions.push(version);
        }
    }
    components
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_counted_until_it_is_repaired_or_gone() {
        let file_health = FileHealth::default();
        let key = |name: &str| ("s".to_owned(), name.to_owned(), 1);
        file_health.found(key("a"), 2);
        file_health.found(key("b"), 3);
        file_health.found(key("b"), 3);
        assert_eq!(file_health.counts(), (5, 0));
        file_health.repaired(key("a"), 2);
        assert_eq!(file_health.counts(), (3, 2));
        file_health.forget_all_but(&BTreeSet::new());
        assert_eq!(file_health.counts(), (0, 2));
    }
}
