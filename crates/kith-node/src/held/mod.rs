//! The store versions that a node holds: prepared before a swap, open while they may be served or rolled back to,
//! kept after that until their readers have left (architecture D7).

mod built;
mod component;
mod error;
mod moves;
mod origins;
mod owned;
mod pull;
mod retire;
mod turns;

pub use error::PrepareError;
pub use moves::{CopyError, ReleaseError};
pub use origins::Replicas;
pub use owned::Owned;

use super::{
    residency,
    throttle::{Throttle, Throttled},
    verify::{self, Found},
    warm,
};
use component::Component;
use kith_engine::{Damage, GraphReader, HeldSource, OpenError, Source, ValuesReader};
use kith_net::security::Dialer;
use kith_objects::Objects;
use kith_process::{
    FailPoint,
    data_dir::{DataDir, DataDirError},
    place,
};
use kith_types::{PartitionCount, PartitionId};
use kith_wire::documents::{ComponentDocument, HoldsDocument, ServedDocument, TopologyDocument};
use parking_lot::{Mutex, MutexGuard, RwLock};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{Arc, Weak},
    time::{Duration, Instant},
};
use tokio_util::sync::CancellationToken;
use turns::Turns;

/// How long a version stays after the cluster gave it up: longer than any query's deadline,
/// so that a query that pinned it still finds it.
const VERSION_GRACE: Duration = Duration::from_secs(60);

/// What reads one version of a store.
#[derive(Clone)]
pub enum VersionReader {
    /// A graph's components together.
    Graph(Arc<GraphReader>),
    /// Values by key.
    Values(Arc<ValuesReader>),
}

/// Every store version that this node can serve.
pub struct HeldStores {
    /// Where pulled components lie: `<store>/<component>/<version>/`.
    folder: PathBuf,
    /// Where built components lie, in the same layout, unless they say where.
    object_store: Objects,
    partition_count: PartitionCount,
    /// What the table gives to this node; written when a table comes. What is open may be more: copies on their way to it,
    /// and partitions given up that clients of an older table still ask for.
    owned: RwLock<Owned>,
    /// Store → version → reader. Read by every request, written when a version is prepared or forgotten.
    stores: RwLock<BTreeMap<String, BTreeMap<u64, Held>>>,
    /// One preparation of a store at a time: two of the same component would pull it twice.
    turns: Turns,
    /// One warm-up at a time: each counts what the one before brought in.
    warming: Mutex<()>,
    /// Folder → what peers read of it. Forgotten whenever files come or go.
    sources: Mutex<BTreeMap<PathBuf, Arc<HeldSource>>>,
    /// What is pulled, for whatever store and reason, passes through it.
    fetches: Throttle,
    /// What peers read here passes through it: as fast as they ask, unless reads suffer.
    supplies: Throttle,
    /// Connects to peers.
    dialer: Dialer,
    /// When the object store failed to answer, unless it has answered since.
    object_store_silent: Mutex<Option<Instant>>,
    /// What `folder` is in, as long as the node runs.
    home: Weak<DataDir>,
}

struct Held {
    reader: VersionReader,
    components: BTreeMap<(String, u64), Component>,
    /// The metadata revision that named it: an older topology does not know of it yet.
    since_revision: u64,
    /// When the cluster gave it up.
    retired: Option<Instant>,
}

/// What a push asks of a preparation.
#[derive(Clone, Debug, Default)]
pub struct PrepareOptions {
    /// Of a larger component, nothing is pulled.
    pub bytes_max: Option<u64>,
    /// So much of what was not open yet is brought into memory, indexes first, as far as there is room beside what is served.
    pub warm_bytes: u64,
    /// Only these partitions, which are fetched and not opened: another preparation brings the rest. Empty: all that this
    /// node owns.
    pub only: Vec<PartitionId>,
    /// Who has which partitions already. What they cannot give comes from the object store.
    pub suppliers: Vec<Supplier>,
    /// Cancelled once nobody waits for it any more.
    pub given_up: CancellationToken,
    /// Who gives what the object store does not: of a version that a push brings, nobody has it yet.
    pub replicas: Replicas,
}

/// A node that has partitions of a version.
#[derive(Clone, Debug)]
pub struct Supplier {
    /// Its address.
    pub addr: String,
    /// What it has.
    pub partitions: BTreeSet<PartitionId>,
}

/// How far a preparation is: component name, bytes done, bytes in all.
pub type Progress<'a> = &'a mut dyn FnMut(&str, u64, u64);

impl HeldStores {
    /// Where pulled components lie.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Holds nothing yet.
    pub fn new(
        folder: PathBuf,
        object_store: Objects,
        partition_count: PartitionCount,
        owned: Owned,
        fetches: Throttle,
        dialer: Dialer,
    ) -> Self {
        Self {
            folder,
            object_store,
            partition_count,
            owned: RwLock::new(owned),
            stores: RwLock::default(),
            turns: Turns::default(),
            warming: Mutex::default(),
            sources: Mutex::default(),
            supplies: fetches.beside(None),
            fetches,
            dialer,
            object_store_silent: Mutex::default(),
            home: Weak::new(),
        }
    }

    /// In a node's data directory.
    pub fn living_in(self, home: &Arc<DataDir>) -> Self {
        Self { home: Arc::downgrade(home), ..self }
    }

    /// Sees to it that what is written or removed is this node's: somebody may have removed the data directory.
    fn check_home(&self) -> Result<(), DataDirError> {
        self.home.upgrade().map_or(Ok(()), |home| home.keep().map(drop))
    }

    /// Connects to peers.
    pub(crate) fn dialer(&self) -> &Dialer {
        &self.dialer
    }

    /// What all fetches, copies and repairs wait for.
    pub fn fetches(&self) -> &Throttle {
        &self.fetches
    }

    /// What peers who read here wait for.
    pub fn supplies(&self) -> &Throttle {
        &self.supplies
    }

    fn throttled<'a>(&'a self, source: &'a dyn Source) -> Throttled<'a> {
        Throttled::new(source, &self.fetches)
    }

    /// What a peer reads of one version of a component.
    ///
    /// # Errors
    /// If nothing of it is here, or what is cannot be trusted.
    pub fn source(&self, store: &str, component: &str, version: u64) -> Result<Arc<HeldSource>, OpenError> {
        let folder = self.folder.join(store).join(component).join(version.to_string());
        let known = self.sources().get(&folder).cloned();
        if let Some(source) = known {
            return Ok(source);
        }
        let source = Arc::new(HeldSource::open(&folder)?);
        self.sources().insert(folder, Arc::clone(&source));
        Ok(source)
    }

    fn sources(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Arc<HeldSource>>> {
        self.sources.lock()
    }

    /// The reader of one version of a store.
    pub fn get(&self, store: &str, version: u64) -> Option<VersionReader> {
        let stores = self.stores.read();
        stores.get(store)?.get(&version).map(|held| held.reader.clone())
    }

    /// The readers of all versions held, with store and version.
    pub fn readers(&self) -> Vec<((String, u64), VersionReader)> {
        let stores = self.stores.read();
        let each = stores.iter().flat_map(|(store, versions)| {
            versions.iter().map(|(version, held)| ((store.clone(), *version), held.reader.clone()))
        });
        each.collect()
    }

    /// Of the versions that the topology serves, those that are here.
    pub fn served(&self, topology: &TopologyDocument) -> Vec<(String, u64)> {
        let served = topology.stores.iter().filter(|store| self.get(&store.name, store.version).is_some());
        served.map(|store| (store.name.clone(), store.version)).collect()
    }

    /// Takes on what a table gives to this node. What is missing comes with the next preparation.
    pub fn follow(&self, topology: &TopologyDocument, node: u32, now: Instant) {
        let next = Owned::of(&topology.cluster, node);
        let mut owned = self.owned.write();
        *owned = owned.followed_by(next, topology.rebalance.is_none(), now);
    }

    /// What the table gives to this node of a store, ascending.
    pub(crate) fn owned(&self, store: &ServedDocument) -> Arc<[PartitionId]> {
        self.owned.read().of_store(store)
    }

    /// Pulls, verifies and opens what a store needs at one version; nothing changes for running queries. `revision`
    /// is the metadata's that names the version. Blocks.
    ///
    /// # Errors
    /// [`PrepareError`]; nothing is half-prepared.
    pub fn prepare(
        &self,
        store: &ServedDocument,
        revision: u64,
        options: &PrepareOptions,
        progress: Progress<'_>,
    ) -> Result<(), PrepareError> {
        let owned = self.owned(store);
        // What is here need not wait for a fetch of another version of its store.
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
        let mut components = BTreeMap::new();
        let mut cold = options.warm_bytes;
        for component in &store.components {
            let key = (component.name.clone(), component.version);
            let open = self.open_already(&store.name, &key).filter(|open| open.covers(&owned));
            let open = match open {
                Some(open) => open,
                // A node without partitions of it has no use for files, but goes on answering from those it has.
                None if owned.is_empty() && !self.folder_of_component(&store.name, component).exists() => {
                    return Ok(());
                }
                None => {
                    let open = self.pull(store, component, &owned, options, progress)?;
                    cold = cold.saturating_sub(self.warm(&open, cold));
                    open
                }
            };
            components.insert(key, open);
        }
        FailPoint::NodeOpened.reach();
        self.serve(store, revision, components)
    }

    /// Brings at most so much of a component into memory; gives the bytes.
    fn warm(&self, component: &Component, bytes_max: u64) -> u64 {
        if bytes_max == 0 {
            return 0;
        }
        let _one_at_a_time = self.warming.lock();
        let warmed = component.warm(warm::budget(bytes_max));
        metrics::counter!("kith_node_warmed_bytes_total").increment(warmed);
        warmed
    }

    /// Makes a version one that is answered from.
    fn serve(
        &self,
        store: &ServedDocument,
        revision: u64,
        components: BTreeMap<(String, u64), Component>,
    ) -> Result<(), PrepareError> {
        let reader = self.reader(store, &components)?;
        residency::begin(&reader);
        let held = Held { reader, components, since_revision: revision, retired: None };
        let mut stores = self.stores.write();
        stores.entry(store.name.clone()).or_default().insert(store.version, held);
        Ok(())
    }

    /// Where a component's files lie on this node.
    pub(super) fn folder_of(&self, store: &str, component: &str, version: u64) -> PathBuf {
        self.folder.join(store).join(component).join(version.to_string())
    }

    fn folder_of_component(&self, store: &str, component: &ComponentDocument) -> PathBuf {
        self.folder_of(store, &component.name, component.version)
    }

    /// Where a component is pulled from.
    fn source_of(&self, store: &str, component: &ComponentDocument) -> Result<Objects, PrepareError> {
        place::of(&self.object_store, store, component).map_err(|source| PrepareError::Place {
            component: component.name.clone(),
            version: component.version,
            source: Box::new(source),
        })
    }

    /// Whether a version is held with these partitions; if it was about to be forgotten, it stays.
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

    fn reader(
        &self,
        store: &ServedDocument,
        components: &BTreeMap<(String, u64), Component>,
    ) -> Result<VersionReader, PrepareError> {
        let odd = || PrepareError::Unsupported { store: store.name.clone() };
        let mut in_order =
            store.components.iter().filter_map(|it| components.get(&(it.name.clone(), it.version)));
        if let HoldsDocument::Values { .. } = store.definition.holds {
            return match (in_order.next().and_then(Component::values), in_order.next()) {
                (Some(reader), None) => Ok(VersionReader::Values(Arc::clone(reader))),
                _ => Err(odd()),
            };
        }
        let graph = in_order.map(|component| component.graph().map(Arc::clone).ok_or_else(odd));
        let reader = GraphReader::new(self.partition_count, graph.collect::<Result<_, _>>()?);
        let opened = reader.map_err(|source| PrepareError::Open {
            component: store.name.clone(),
            version: store.version,
            source,
        });
        Ok(VersionReader::Graph(Arc::new(opened?)))
    }

    fn open_already(&self, store: &str, component: &(String, u64)) -> Option<Component> {
        let stores = self.stores.read();
        stores.get(store)?.values().find_map(|held| held.components.get(component).cloned())
    }

    /// Looks again at what a verification found, now that nobody changes the files: of what came or went meanwhile, only what is
    /// damaged or missing still counts. Without `waits`, files that are being changed are looked at as they are. Blocks.
    ///
    /// # Errors
    /// As [`verify::verify`].
    pub(super) fn confirm(
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

    /// Pulls damaged files of a component anew, from the object store or else from `replicas`, and has every version that is
    /// made of it read the new ones. Queries that run keep what they read from. Blocks.
    ///
    /// # Errors
    /// If nobody has them whole; what is held is as before then.
    pub(super) fn heal(
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

    /// Has a version that is held read a component from files opened anew.
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

fn cannot_open(component: &ComponentDocument, source: OpenError) -> PrepareError {
    PrepareError::Open { component: component.name.clone(), version: component.version, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_wire::documents::{ClusterDocument, DOCUMENT_FORMAT, DefinitionDocument, KeptDocument};
    use std::fs;

    fn topology(revision: u64, stores: Vec<ServedDocument>, kept: Vec<ServedDocument>) -> TopologyDocument {
        let cluster = ClusterDocument {
            format: DOCUMENT_FORMAT,
            cluster_id: String::new(),
            epoch: 1,
            partitions: 24,
            groups: vec![],
            object_store: String::new(),
            strategy: String::new(),
            listed: vec![],
            partition_epochs: vec![],
        };
        TopologyDocument {
            format: DOCUMENT_FORMAT,
            revision,
            cluster,
            nodes: vec![],
            routers: vec![],
            stores,
            kept: kept.into_iter().map(|at| KeptDocument { is_whole: true, at }).collect(),
            rebalance: None,
        }
    }

    fn village(version: u64, components: &[u64]) -> ServedDocument {
        let component = |version: &u64| ComponentDocument {
            name: "connection".into(),
            role: "undirected".into(),
            version: *version,
            manifest_hash: String::new(),
            columns: vec![],
            members: 0,
            edges: 0,
            bytes: 0,
            loaded_at: 0,
            schema: None,
            folder: None,
            url: None,
        };
        ServedDocument {
            format: DOCUMENT_FORMAT,
            name: "village".into(),
            definition: DefinitionDocument::new(HoldsDocument::Graph),
            version,
            components: components.iter().map(component).collect(),
            excluded: vec![],
        }
    }

    fn held(folder: &Path) -> HeldStores {
        HeldStores::new(
            folder.to_owned(),
            place::objects("nowhere").unwrap(),
            PartitionCount::new(24).unwrap(),
            Owned::of(&topology(1, vec![], vec![]).cluster, 0),
            Throttle::new(None, CancellationToken::new()),
            Dialer::default(),
        )
    }

    #[test]
    fn files_that_the_topology_names_are_kept_also_if_they_cannot_be_opened() {
        let folder = tempfile::tempdir().unwrap();
        let paths =
            ["village/connection/7", "village/connection/6", "village/connection/5", "hamlet/connection/1"];
        for path in paths {
            fs::create_dir_all(folder.path().join(path)).unwrap();
        }
        held(folder.path())
            .retire(&topology(1, vec![village(9, &[7])], vec![village(8, &[6])]), Instant::now());
        let there = paths.map(|path| folder.path().join(path).exists());
        assert_eq!(there, [true, true, false, false]);
    }

    #[test]
    fn what_is_half_fetched_stays_while_it_is_wanted() {
        let folder = tempfile::tempdir().unwrap();
        let held = held(folder.path());
        let there =
            |paths: &[&str]| paths.iter().map(|it| folder.path().join(it).exists()).collect::<Vec<_>>();
        let paths = ["village/connection/.7.fetching", "village/connection/.7.aside"];
        let begin = || paths.map(|path| fs::create_dir_all(folder.path().join(path)).unwrap());
        let pushed = |revision| {
            let mut topology = topology(revision, vec![], vec![village(8, &[7])]);
            topology.kept[0].is_whole = false;
            topology
        };
        begin();
        held.retire(&pushed(5), Instant::now());
        assert_eq!(there(&paths), [true, true], "the push will ask for the version again");
        held.retire(&topology(6, vec![], vec![]), Instant::now());
        assert_eq!(there(&paths), [false, false], "the push has ended");
        // The version is open, so nothing of it is missing unless a rebalance copies partitions.
        held.prepare(&village(8, &[]), 7, &PrepareOptions::default(), &mut |_, _, _| {}).unwrap();
        begin();
        let mut rebalanced = topology(8, vec![village(8, &[7])], vec![]);
        rebalanced.rebalance = Some("r".to_owned());
        held.retire(&rebalanced, Instant::now());
        assert_eq!(there(&paths), [true, true]);
        held.retire(&topology(9, vec![village(8, &[7])], vec![]), Instant::now());
        assert_eq!(there(&paths), [false, false]);
    }

    #[test]
    fn a_version_is_held_while_it_is_named_and_for_a_grace_after() {
        let folder = tempfile::tempdir().unwrap();
        let (held, start) = (held(folder.path()), Instant::now());
        for version in [1, 2, 3] {
            held.prepare(&village(version, &[]), 5, &PrepareOptions::default(), &mut |_, _, _| {}).unwrap();
        }
        let here = || [1, 2, 3].map(|version| held.get("village", version).is_some());
        let late = start + VERSION_GRACE;
        // Rolled back from 3 to 2, which is served; 3 is kept, 1 is not.
        let rolled_back = topology(9, vec![village(2, &[])], vec![village(3, &[])]);
        held.retire(&rolled_back, start);
        assert_eq!(here(), [true, true, true]);
        assert_eq!(held.served(&rolled_back), [("village".to_owned(), 2)]);
        held.retire(&rolled_back, late);
        assert_eq!(here(), [false, true, true]);
    }

    #[test]
    fn a_version_that_the_topology_cannot_know_yet_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (held, start) = (held(folder.path()), Instant::now());
        held.prepare(&village(4, &[]), 8, &PrepareOptions::default(), &mut |_, _, _| {}).unwrap();
        for now in [start, start + VERSION_GRACE * 2] {
            held.retire(&topology(7, vec![], vec![]), now);
            assert!(held.get("village", 4).is_some());
        }
        held.retire(&topology(8, vec![], vec![]), start);
        held.retire(&topology(8, vec![], vec![]), start + VERSION_GRACE);
        assert!(held.get("village", 4).is_none());
    }
}
