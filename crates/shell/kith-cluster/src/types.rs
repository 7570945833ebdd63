//! Reads the types of live graphs that a topology names, and keeps a copy of them on disk beside the copy of the topology. What
//! has been read once is not read again until the topology names other types.

use crate::data_dir::write_atomically;
use crate::metadata::{MetadataStore, types};
use futures::{StreamExt, stream};
use kith_topology::identity_of;
use kith_wire::documents::{LiveGraphDocument, TopologyDocument, TypesReference};
use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::time::{Instant, timeout_at};

/// The folder beside the copy of the topology with the types of live graphs that the topology names.
pub(crate) const TYPES_FOLDER: &str = "types";
/// The number of types that are read at the same time.
const READS_MAX: usize = 8;
/// The time that a new topology waits for types. Graphs whose types have not come by then answer with an error until
/// they have.
const WAIT: Duration = Duration::from_secs(2);

/// The types that a process has read.
pub(crate) struct TypesReader {
    store: Arc<dyn MetadataStore>,
    /// The folder with the copies on disk.
    folder: Option<PathBuf>,
    known: BTreeMap<String, (TypesReference, Arc<str>)>,
}

impl TypesReader {
    /// Returns a reader that has read nothing.
    pub fn new(store: Arc<dyn MetadataStore>, folder: Option<PathBuf>) -> Self {
        Self { store, folder, known: BTreeMap::new() }
    }

    /// Adds to a topology the types of its graphs, from the metadata store if they are not known. Returns whether there are types
    /// that could not be read.
    pub async fn add_to(&mut self, topology: &mut TopologyDocument) -> bool {
        let missing: Vec<LiveGraphDocument> =
            topology.live.iter().filter(|graph| !self.knows(graph)).cloned().collect();
        let store = &self.store;
        let read = |graph: LiveGraphDocument| async move {
            let text = types::read(&**store, &graph.name, &graph.types).await;
            (graph, text)
        };
        let mut reads = stream::iter(missing).map(read).buffer_unordered(READS_MAX);
        let mut failed = BTreeMap::new();
        let until = Instant::now() + WAIT;
        while let Ok(Some((graph, text))) = timeout_at(until, reads.next()).await {
            match text {
                Ok(text) => drop(self.known.insert(graph.name, (graph.types, text))),
                Err(error) => {
                    tracing::warn!(graph = graph.name, %error, "the types of a live graph cannot be read");
                    failed.insert(graph.name, error.to_string());
                }
            }
        }
        drop(reads);
        self.known.retain(|name, _| topology.live.iter().any(|graph| graph.name == *name));
        self.attach(topology, &failed)
    }

    /// Adds to a topology the types of its graphs, from the copies on disk.
    pub fn add_copies_to(&mut self, topology: &mut TopologyDocument) {
        let mut failed = BTreeMap::new();
        for graph in &topology.live {
            match self.copy_of(graph) {
                Ok(text) => drop(self.known.insert(graph.name.clone(), (graph.types.clone(), text))),
                Err(reason) => drop(failed.insert(graph.name.clone(), reason)),
            }
        }
        self.attach(topology, &failed);
    }

    /// Writes copies of the types that a topology names, unless they are there. Those of earlier topologies stay until
    /// [`TypesReader::remove_other_copies`] is called, which must not be before the copy of the topology is written.
    pub fn save_copies(&self, topology: &TopologyDocument) {
        let Some(folder) = &self.folder else { return };
        for graph in &topology.live {
            let (Some(Ok(text)), Ok(name)) = (topology.types.get(&graph.name), file_name(graph)) else {
                continue;
            };
            let path = folder.join(name);
            if path.exists() {
                continue;
            }
            let written = fs::create_dir_all(folder)
                .map_err(|error| error.to_string())
                .and_then(|()| write_atomically(&path, text.as_bytes()).map_err(|error| error.to_string()));
            if let Err(error) = written {
                tracing::warn!(
                    graph = graph.name,
                    error,
                    "the copy of a graph's types could not be written to disk"
                );
            }
        }
    }

    /// Removes the copies of types that a topology does not name.
    pub fn remove_other_copies(&self, topology: &TopologyDocument) {
        let Some(files) = self.folder.as_ref().and_then(|folder| fs::read_dir(folder).ok()) else { return };
        let named: BTreeSet<OsString> =
            topology.live.iter().filter_map(|graph| file_name(graph).ok()).map(OsString::from).collect();
        for file in files.flatten().filter(|file| !named.contains(&file.file_name())) {
            // A copy that stays does no harm: nothing names it.
            let _ = fs::remove_file(file.path());
        }
    }

    fn knows(&self, graph: &LiveGraphDocument) -> bool {
        self.known.get(&graph.name).is_some_and(|(reference, _)| *reference == graph.types)
    }

    fn copy_of(&self, graph: &LiveGraphDocument) -> Result<Arc<str>, String> {
        copy_in(self.folder.as_ref().ok_or("there is no copy on disk")?, graph)
    }

    /// Adds the known types to a topology, and the reasons why others are not known. Returns whether there are any such.
    fn attach(&self, topology: &mut TopologyDocument, failed: &BTreeMap<String, String>) -> bool {
        let text = |graph: &LiveGraphDocument| match self.known.get(&graph.name) {
            Some((reference, text)) if *reference == graph.types => Ok(Arc::clone(text)),
            _ => Err(failed
                .get(&graph.name)
                .cloned()
                .unwrap_or_else(|| format!("the metadata store has not answered for {} s", WAIT.as_secs()))),
        };
        topology.types = topology.live.iter().map(|graph| (graph.name.clone(), text(graph))).collect();
        topology.types.values().any(Result::is_err)
    }
}

/// Adds to a copy of the topology the types of its graphs, from the copies in the folder beside it.
pub fn add_types_beside(path: &Path, topology: &mut TopologyDocument) {
    let folder = path.with_file_name(TYPES_FOLDER);
    topology.types =
        topology.live.iter().map(|graph| (graph.name.clone(), copy_in(&folder, graph))).collect();
}

fn copy_in(folder: &Path, graph: &LiveGraphDocument) -> Result<Arc<str>, String> {
    let path = folder.join(file_name(graph)?);
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    graph.types.check(&text)?;
    Ok(text.into())
}

/// The name of the file with the copy of a graph's types.
fn file_name(graph: &LiveGraphDocument) -> Result<String, String> {
    let LiveGraphDocument { name, types, .. } = graph;
    Ok(format!("{name}-{:016x}-{}.json", identity_of(types)?, types.revision))
}

#[cfg(test)]
mod tests {
    use crate::metadata::{
        CommitOutcome, Condition, EmbeddedMetadata, LeaseId, MetadataError, MetadataFuture, MetadataStore,
        Snapshot, Write, keys, types,
    };
    use crate::topology::{copy_in, follow};
    use futures::FutureExt;
    use kith_wire::documents::{Document, LiveGraphDocument, TopologyDocument, TypesReference};
    use serde_json::json;
    use std::{fs, sync::Arc, time::Duration};
    use tokio_util::sync::CancellationToken;

    const TEXT: &str =
        r#"{"identity":"0000000000000007","revision":1,"objects":[{"number":1,"name":"person"}]}"#;

    fn reference(revision: u64) -> TypesReference {
        let digest = "c7032bbe02d00610fe9f83ffe7122aeefc93150ae03a2e1326e82d99d2657d29".to_owned();
        TypesReference { identity: "0000000000000007".to_owned(), revision, bytes: TEXT.len() as u64, digest }
    }

    /// A metadata store that does not answer.
    struct Away;

    impl MetadataStore for Away {
        fn read<'a>(&'a self, _: &'a str) -> MetadataFuture<'a, Snapshot> {
            let away = MetadataError::Unavailable { reason: "it is away".to_owned() };
            async move { Err(away) }.boxed()
        }
        fn commit(&self, _: Vec<Condition>, _: Vec<Write>) -> MetadataFuture<'_, CommitOutcome> {
            async { Ok(CommitOutcome::Conflict) }.boxed()
        }
        fn watch(&self, _: &str, _: u64) -> futures::stream::BoxStream<'static, Snapshot> {
            Box::pin(futures::stream::pending())
        }
        fn lease(&self, _: Duration) -> MetadataFuture<'_, LeaseId> {
            async { Ok(LeaseId(1)) }.boxed()
        }
        fn keep_alive(&self, _: LeaseId) -> MetadataFuture<'_, ()> {
            async { Ok(()) }.boxed()
        }
    }

    fn graph(reference: TypesReference) -> Write {
        let document = LiveGraphDocument {
            format: 1,
            name: "social".to_owned(),
            types: reference,
            storage: "database:0".to_owned(),
            who: String::new(),
            charged_to: String::new(),
            dropping: false,
        };
        Write::put(keys::live_graph("social"), document.encode())
    }

    async fn cluster() -> Arc<EmbeddedMetadata> {
        let metadata = Arc::new(EmbeddedMetadata::in_memory());
        let cluster = json!({
            "format": 1, "cluster_id": "", "epoch": 1, "partitions": 1, "object_store": "",
            "groups": [{"group": 0, "nodes": [0], "owners": [0], "role": ""}],
        });
        let mut writes = types::writes("social", &reference(1), TEXT.to_owned());
        writes.push(Write::put(keys::CLUSTER, cluster.to_string().into_bytes()));
        writes.push(graph(reference(1)));
        metadata.commit(Vec::new(), writes).await.unwrap();
        metadata
    }

    fn text(topology: &TopologyDocument) -> Result<&str, &str> {
        topology.types["social"].as_deref().map_err(String::as_str)
    }

    #[tokio::test]
    async fn types_come_with_the_topology_and_errors_name_what_is_missing() {
        let (metadata, folder, stop) =
            (cluster().await, tempfile::tempdir().unwrap(), CancellationToken::new());
        let store: Arc<dyn MetadataStore> = metadata.clone();
        let copy = copy_in(folder.path());
        let mut topology = follow(store, Some(copy.clone()), stop.clone()).await.unwrap().topology;
        let first = Arc::clone(&topology.borrow_and_update());
        assert_eq!(text(&first), Ok(TEXT));
        assert!(!String::from_utf8(first.encode()).unwrap().contains("person"));

        // A change of something else reads nothing again: the text is the same one.
        metadata.commit(Vec::new(), vec![Write::put("routers/x", b"".to_vec())]).await.unwrap();
        metadata.commit(Vec::new(), vec![Write::delete("routers/x")]).await.unwrap();
        let later = topology.wait_for(|topology| first.revision < topology.revision).await.unwrap().clone();
        assert!(Arc::ptr_eq(
            first.types["social"].as_ref().unwrap(),
            later.types["social"].as_ref().unwrap()
        ));

        // A process that starts without the metadata store has the types, and fails for damaged ones only.
        let (away, started) = (Arc::new(Away), CancellationToken::new());
        let alone = follow(away.clone(), Some(copy.clone()), started.clone()).await.unwrap().topology;
        assert_eq!(text(&alone.borrow()), Ok(TEXT));
        let files = fs::read_dir(folder.path().join("types")).unwrap().map(|file| file.unwrap().path());
        let [file] = &files.collect::<Vec<_>>()[..] else { panic!("one file") };
        fs::write(file, TEXT.replace("person", "parson")).unwrap();
        let alone = follow(away.clone(), Some(copy.clone()), started.clone()).await.unwrap().topology;
        assert!(text(&alone.borrow()).unwrap_err().contains("damaged"));

        // Types that are missing make an error about this graph, until they are there.
        metadata.commit(Vec::new(), vec![graph(reference(2))]).await.unwrap();
        let is_missing = |topology: &Arc<TopologyDocument>| text(topology).is_err();
        let reason = text(&topology.wait_for(is_missing).await.unwrap()).unwrap_err().to_owned();
        assert!(reason.contains("\"social\"") && reason.contains("has no document"), "{reason}");
        let late = types::writes("social", &reference(2), TEXT.to_owned());
        metadata.commit(Vec::new(), late).await.unwrap();
        topology.wait_for(|topology| !is_missing(topology)).await.unwrap();
        stop.cancel();
    }
}
