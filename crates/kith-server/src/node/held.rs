//! The graph versions that a node holds: prepared before a swap, current after it,
//! kept until its readers have left (architecture D7).

use kith_engine::{ComponentReader, FetchError, GraphReader, OpenError, fetch_component};
use kith_types::{PartitionCount, PartitionId};
use kith_wire::documents::{ComponentDocument, GraphDocument, TopologyDocument};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::{Duration, Instant},
};
use thiserror::Error;

/// How long a version stays after a newer one took over: longer than any query's deadline,
/// so that a query that pinned it still finds it.
const VERSION_GRACE: Duration = Duration::from_secs(60);

/// A component version cannot be made ready.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PrepareError {
    /// Its files cannot be pulled or do not pass their checks.
    #[error("fetch component {component:?} version {version}")]
    Fetch {
        /// The component.
        component: String,
        /// Its version.
        version: u64,
        /// Why.
        #[source]
        source: FetchError,
    },
    /// Its files are here but cannot be opened.
    #[error("open component {component:?} version {version}")]
    Open {
        /// The component.
        component: String,
        /// Its version.
        version: u64,
        /// Why.
        #[source]
        source: OpenError,
    },
}

/// Every graph version that this node can serve.
pub struct HeldGraphs {
    /// Where pulled components lie: `<graph>/<component>/<version>/`.
    folder: PathBuf,
    /// Where built components lie, in the same layout.
    object_store: PathBuf,
    partition_count: PartitionCount,
    partitions: Vec<PartitionId>,
    /// Graph → version → reader. Read by every request, written at a swap.
    graphs: RwLock<BTreeMap<String, BTreeMap<u64, Held>>>,
    /// One preparation at a time: two of the same component would pull it twice.
    preparing: Mutex<()>,
}

struct Held {
    reader: Arc<GraphReader>,
    components: BTreeMap<(String, u64), Arc<ComponentReader>>,
    /// Whether the topology has named it; until then it is prepared for a swap to come.
    named: bool,
    /// When a newer version took over, or the graph was dropped.
    retired: Option<Instant>,
}

/// How far a preparation is: component name, bytes done, bytes in all.
pub type Progress<'a> = &'a mut dyn FnMut(&str, u64, u64);

impl HeldGraphs {
    /// Holds nothing yet.
    pub fn new(
        folder: PathBuf,
        object_store: PathBuf,
        partition_count: PartitionCount,
        partitions: Vec<PartitionId>,
    ) -> Self {
        Self {
            folder,
            object_store,
            partition_count,
            partitions,
            graphs: RwLock::default(),
            preparing: Mutex::new(()),
        }
    }

    /// The reader of one graph version.
    pub fn get(&self, graph: &str, version: u64) -> Option<Arc<GraphReader>> {
        let graphs = self.graphs.read().unwrap_or_else(PoisonError::into_inner);
        graphs.get(graph)?.get(&version).map(|held| Arc::clone(&held.reader))
    }

    /// Newest version of each graph.
    pub fn newest(&self) -> Vec<(String, u64)> {
        let graphs = self.graphs.read().unwrap_or_else(PoisonError::into_inner);
        let newest =
            graphs.iter().filter_map(|(name, versions)| Some((name.clone(), *versions.last_key_value()?.0)));
        newest.collect()
    }

    /// How many partitions this node holds.
    pub fn partition_count(&self) -> usize {
        self.partitions.len()
    }

    /// Pulls, verifies and opens what `graph` needs at its version; nothing changes for running queries. Blocks.
    ///
    /// # Errors
    /// [`PrepareError`]; nothing is half-prepared.
    pub fn prepare(&self, graph: &GraphDocument, progress: Progress<'_>) -> Result<(), PrepareError> {
        let _one_at_a_time = self.preparing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.get(&graph.name, graph.version).is_some() {
            return Ok(());
        }
        let mut components = BTreeMap::new();
        for component in &graph.components {
            let key = (component.name.clone(), component.version);
            let reader = match self.open_already(&graph.name, &key) {
                Some(reader) => reader,
                None => Arc::new(self.pull(&graph.name, component, progress)?),
            };
            components.insert(key, reader);
        }
        let in_order = graph
            .components
            .iter()
            .map(|component| Arc::clone(&components[&(component.name.clone(), component.version)]));
        let reader = GraphReader::new(self.partition_count, in_order.collect()).map_err(|source| {
            PrepareError::Open { component: graph.name.clone(), version: graph.version, source }
        })?;
        let reader = Arc::new(reader);
        let held = Held { reader, components, named: false, retired: None };
        let mut graphs = self.graphs.write().unwrap_or_else(PoisonError::into_inner);
        graphs.entry(graph.name.clone()).or_default().insert(graph.version, held);
        Ok(())
    }

    fn open_already(&self, graph: &str, component: &(String, u64)) -> Option<Arc<ComponentReader>> {
        let graphs = self.graphs.read().unwrap_or_else(PoisonError::into_inner);
        graphs.get(graph)?.values().find_map(|held| held.components.get(component).cloned())
    }

    fn pull(
        &self,
        graph: &str,
        component: &ComponentDocument,
        progress: Progress<'_>,
    ) -> Result<ComponentReader, PrepareError> {
        let (name, version) = (&component.name, component.version);
        let path = |base: &Path| base.join(graph).join(name).join(version.to_string());
        let (source, target) = (path(&self.object_store), path(&self.folder));
        fetch_component(&source, &target, &self.partitions, &mut |state| {
            progress(name, state.bytes_done, state.bytes);
            ControlFlow::Continue(())
        })
        .map_err(|source| PrepareError::Fetch { component: name.clone(), version, source })?;
        ComponentReader::open(&target, &self.partitions).map_err(|source| PrepareError::Open {
            component: name.clone(),
            version,
            source,
        })
    }

    /// Retires what the topology no longer names, and forgets what was retired long enough ago,
    /// with its files. Running queries keep what they read from.
    pub fn retire(&self, topology: &TopologyDocument, now: Instant) {
        let current: BTreeMap<&str, u64> =
            topology.graphs.iter().map(|graph| (graph.name.as_str(), graph.version)).collect();
        let mut graphs = self.graphs.write().unwrap_or_else(PoisonError::into_inner);
        for (name, versions) in graphs.iter_mut() {
            let current = current.get(name.as_str()).copied();
            for (version, held) in versions.iter_mut() {
                held.named |= current == Some(*version);
                // A version above the current one, or of a graph that is not there yet, is prepared for a swap to come.
                let is_over = current.map_or(held.named, |current| *version < current);
                held.retired = is_over.then(|| held.retired.unwrap_or(now));
            }
            versions.retain(|_, held| {
                held.retired.is_none_or(|retired| now.saturating_duration_since(retired) < VERSION_GRACE)
            });
        }
        graphs.retain(|_, versions| !versions.is_empty());
        let version_folder = |graph: &str, name: &str, version: u64| {
            self.folder.join(graph).join(name).join(version.to_string())
        };
        let held = graphs.iter().flat_map(|(graph, versions)| {
            let keys = versions.values().flat_map(|held| held.components.keys());
            keys.map(|(name, version)| version_folder(graph, name, *version))
        });
        // What the topology names is kept also where it could not be opened: it may be all there is.
        let named = topology.graphs.iter().flat_map(|graph| {
            let components = graph.components.iter();
            components.map(|component| version_folder(&graph.name, &component.name, component.version))
        });
        let used: BTreeSet<PathBuf> = held.chain(named).collect();
        drop(graphs);
        if let Ok(_one_at_a_time) = self.preparing.try_lock() {
            remove_unused(&self.folder, &used, 3);
        }
    }
}

/// Removes folders at `depth` that nobody uses, and folders above them that are then empty.
fn remove_unused(folder: &Path, used: &BTreeSet<PathBuf>, depth: u32) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()) {
        if depth == 1 {
            if !used.contains(&path)
                && let Err(error) = fs::remove_dir_all(&path)
            {
                tracing::warn!(%error, path = %path.display(), "an unused component could not be removed");
            }
        } else {
            remove_unused(&path, used, depth - 1);
            // Fails while it holds something: that is the point.
            let _ = fs::remove_dir(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_wire::documents::{ClusterDocument, DOCUMENT_FORMAT};

    fn topology(graphs: Vec<GraphDocument>) -> TopologyDocument {
        let cluster = ClusterDocument {
            format: DOCUMENT_FORMAT,
            cluster_id: String::new(),
            epoch: 1,
            partitions: 24,
            groups: vec![],
            object_store: String::new(),
        };
        TopologyDocument {
            format: DOCUMENT_FORMAT,
            revision: 1,
            cluster,
            nodes: vec![],
            routers: vec![],
            graphs,
        }
    }

    fn village(version: u64) -> GraphDocument {
        GraphDocument { format: DOCUMENT_FORMAT, name: "village".into(), version, components: vec![] }
    }

    #[test]
    fn a_version_that_was_prepared_before_its_graph_was_named_serves_as_long_as_it_is_current() {
        let folder = tempfile::tempdir().unwrap();
        let partitions = PartitionCount::new(24).unwrap();
        let held = HeldGraphs::new(folder.path().to_owned(), PathBuf::new(), partitions, vec![]);
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        held.prepare(&village(7), &mut |_, _, _| {}).unwrap();
        // Something else changes the topology between the preparation and the commit, however far these are apart.
        held.retire(&topology(vec![]), at(0));
        held.retire(&topology(vec![]), at(100));
        held.retire(&topology(vec![village(7)]), at(101));
        held.retire(&topology(vec![village(7)]), at(300));
        assert!(held.get("village", 7).is_some());
        held.prepare(&village(8), &mut |_, _, _| {}).unwrap();
        held.retire(&topology(vec![village(8)]), at(301));
        held.retire(&topology(vec![village(8)]), at(360));
        assert!(held.get("village", 7).is_some(), "queries that pinned it may still run");
        held.retire(&topology(vec![village(8)]), at(361));
        assert!(held.get("village", 7).is_none() && held.get("village", 8).is_some());
        held.retire(&topology(vec![]), at(400));
        held.retire(&topology(vec![]), at(460));
        assert!(held.get("village", 8).is_none(), "the graph was dropped");
    }

    #[test]
    fn files_that_the_topology_names_are_kept_also_if_they_cannot_be_opened() {
        let folder = tempfile::tempdir().unwrap();
        let partitions = PartitionCount::new(24).unwrap();
        let held = HeldGraphs::new(folder.path().to_owned(), PathBuf::new(), partitions, vec![]);
        let component = ComponentDocument {
            name: "connection".into(),
            role: "undirected".into(),
            version: 7,
            manifest_hash: String::new(),
            columns: vec![],
            members: 0,
            edges: 0,
            bytes: 0,
            loaded_at: 0,
        };
        let (named, stray) = ("village/connection/7", "village/connection/6");
        for path in [named, stray, "hamlet/connection/1"] {
            fs::create_dir_all(folder.path().join(path)).unwrap();
        }
        let graph = GraphDocument {
            format: DOCUMENT_FORMAT,
            name: "village".into(),
            version: 9,
            components: vec![component],
        };
        held.retire(&topology(vec![graph]), Instant::now());
        let there = [named, stray, "hamlet"].map(|path| folder.path().join(path).exists());
        assert_eq!(there, [true, false, false]);
    }
}
