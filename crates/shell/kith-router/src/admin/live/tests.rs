//! Tests of creating graphs while answers are lost, and while other callers drop the graphs. The database service and the
//! metadata store are real.

use super::{Databases, LiveGraphStore, apply::SchemaApply};
use crate::admin::{
    ClusterHandle, Coordinator,
    cluster::{Shape, create_cluster},
};
use futures::future::join_all;
use kith_cluster::metadata::{EmbeddedMetadata, MetadataStore, Write, keys};
use kith_cluster::topology;
use kith_database::{
    BeginTerm, Database, DatabaseError, DatabaseServers, DatabaseService, GraphFiles, GraphIdentity, Reach,
    SqliteDatabase, SqliteOptions, Storage,
};
use kith_net::{
    security::Dialer,
    server::{self, connections::Connections, security::Security},
};
use kith_topology::identity_of;
use kith_topology::versions::Trust;
use kith_types::{ErrorCode, LogPoint, PartitionCount, PartitionId, Term};
use kith_wire::{
    documents::{DOCUMENT_FORMAT, DatabaseDocument, Document, LiveGraphDocument},
    frame::PREFACE_BYTES,
    v1,
};
use parking_lot::Mutex;
use std::{collections::VecDeque, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy, copy_bidirectional},
    net::{TcpListener, TcpStream},
    sync::Notify,
};
use tokio_util::sync::CancellationToken;

const GRAPH: &str = "social";
const STORAGE: &str = "database:0";
const TYPES: &str = "[object.person]\n";
const MORE_TYPES: &str = "[object.person]\n[object.page]\n";

/// The addresses to which the next requests to the database go, in order; `None` for a request that finds no address. Once
/// the queue is empty, requests go to the database itself.
type Route = Arc<Mutex<VecDeque<Option<String>>>>;

/// The administration of a router, with a metadata store and one database process.
struct Scene {
    folder: tempfile::TempDir,
    metadata: Arc<EmbeddedMetadata>,
    store: LiveGraphStore,
    addr: SocketAddr,
    route: Route,
    stop: CancellationToken,
}

impl Scene {
    async fn start() -> Self {
        let (folder, stop) = (tempfile::tempdir().unwrap(), CancellationToken::new());
        let metadata = Arc::new(EmbeddedMetadata::in_memory());
        let shape = Shape { groups: Some(1), nodes: Some(1), partitions: Some(2), ..Shape::default() };
        create_cluster(&*metadata, &shape, folder.path().join("objects").to_str().unwrap()).await.unwrap();
        let shared: Arc<dyn MetadataStore> = metadata.clone();
        let followed = topology::follow(Arc::clone(&shared), None, stop.clone()).await.unwrap();

        let graphs = Arc::new(GraphFiles::new(folder.path().to_owned(), SqliteOptions::default()).unwrap());
        let connections = Connections::new(Default::default()).unwrap();
        let bound = server::bind(SocketAddr::from(([127, 0, 0, 1], 0)), &connections).await.unwrap();
        let addr = bound.addr;
        let service = DatabaseService::new(graphs);
        server::spawn(bound, server::routes(), Some(service), &Security::default(), stop.clone());

        let route = Route::default();
        let next = Arc::clone(&route);
        let locate = move |_| next.lock().pop_front().unwrap_or_else(|| Some(addr.to_string()));
        let reach = Reach::new(Arc::new(locate), Dialer::default(), DatabaseServers::default());
        let cluster = ClusterHandle {
            metadata: shared,
            topology: followed.topology,
            coordinator: Coordinator::new(0),
            dialer: Dialer::default(),
        };
        let store = LiveGraphStore::new(cluster, Databases { reach });
        Self { folder, metadata, store, addr, route, stop }
    }

    fn send(&self, route: impl IntoIterator<Item = Option<String>>) {
        *self.route.lock() = route.into_iter().collect();
    }

    fn direct(&self) -> Option<String> {
        Some(self.addr.to_string())
    }

    /// Starts a relay to the database that loses the answer to the request that creates the graph. Returns its address.
    async fn lossy(&self) -> Option<String> {
        let (listener, addr) = listen().await;
        let (server, file) = (self.addr, self.file());
        tokio::spawn(async move {
            let (mut client, _) = listener.accept().await.unwrap();
            let mut server = TcpStream::connect(server).await.unwrap();
            relay_prefaces(&mut client, &mut server).await;
            let none = GraphIdentity { graph: 0, partitions: PartitionCount::new(2).unwrap() };
            let is_created = async || {
                let opened = SqliteDatabase::open(&file, none, SqliteOptions::default());
                matches!(opened, Err(DatabaseError::OtherGraph { .. }))
            };
            let created = async {
                while !is_created().await {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            tokio::select! {
                _ = copy(&mut client, &mut server) => {}
                () = created => {}
            }
        });
        addr
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join(format!("{GRAPH}.sqlite"))
    }

    async fn document(&self) -> Option<LiveGraphDocument> {
        let key = keys::live_graph(GRAPH);
        let snapshot = self.metadata.read(&key).await.unwrap();
        snapshot.get(&key).map(|entry| LiveGraphDocument::decode(&entry.value).unwrap())
    }

    /// Opens the database of the graph as nodes do.
    async fn open(&self) -> Arc<dyn Database> {
        let graph = identity_of(&self.document().await.unwrap().types).unwrap();
        let identity = GraphIdentity { graph, partitions: PartitionCount::new(2).unwrap() };
        let storage: Storage = STORAGE.parse().unwrap();
        storage.open(GRAPH, identity, &self.store.databases.reach).await.unwrap()
    }

    /// Applies the types. The error is the text of the status.
    async fn apply(&self, types: &str) -> Result<(), String> {
        self.apply_as(GRAPH, types, ("ada", Trust::Claimed)).await
    }

    async fn apply_as(&self, graph: &str, types: &str, (who, standing): (&str, Trust)) -> Result<(), String> {
        let [graph, text, who] = [graph, types, who].map(str::to_owned);
        let storage = Some(STORAGE.parse().unwrap());
        let asked = SchemaApply { graph, text, storage, dry_run: false, who, standing };
        self.store.apply(asked).await.map(drop).map_err(|status| status.to_string())
    }

    /// Enters the database process in the metadata.
    async fn register(&self) {
        let [addr, http] = [self.addr.to_string(), self.addr.to_string()];
        let document = DatabaseDocument { format: DOCUMENT_FORMAT, database: 0, addr, http, pid: 1 };
        let write = Write::put(keys::database(0), document.encode());
        self.metadata.commit(vec![], vec![write]).await.unwrap();
    }

    /// Returns the keys of the types that the metadata store has.
    async fn types_kept(&self) -> Vec<String> {
        let snapshot = self.metadata.read(keys::TYPES).await.unwrap();
        snapshot.entries.into_iter().map(|entry| entry.key).collect()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Lets a client open its connection, so that it sends its request.
async fn relay_prefaces(client: &mut TcpStream, server: &mut TcpStream) {
    let mut preface = [0; PREFACE_BYTES];
    client.read_exact(&mut preface).await.unwrap();
    server.write_all(&preface).await.unwrap();
    server.read_exact(&mut preface).await.unwrap();
    client.write_all(&preface).await.unwrap();
}

async fn listen() -> (TcpListener, Option<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    (listener, Some(addr))
}

#[tokio::test]
async fn a_graph_is_created_although_the_answer_is_lost() {
    let scene = Scene::start().await;
    scene.send([scene.direct(), scene.lossy().await]);
    assert_eq!(scene.apply(TYPES).await, Ok(()));
    assert!(scene.document().await.is_some_and(|document| !document.dropping));
    scene.open().await;
}

#[tokio::test]
async fn a_graph_is_created_in_a_database_process_that_has_just_registered() {
    let scene = Scene::start().await;
    scene.register().await;
    let [graph, text, who] = [GRAPH, TYPES, "ada"].map(str::to_owned);
    let standing = Trust::Claimed;
    let asked = SchemaApply { graph, text, storage: None, dry_run: false, who, standing };
    let applied = scene.store.apply(asked).await.unwrap();
    assert_eq!(applied.storage, STORAGE);
}

#[tokio::test]
async fn a_graph_whose_creation_cannot_be_taken_back_keeps_its_name_until_it_is_applied_again() {
    let scene = Scene::start().await;
    scene.send([scene.direct(), scene.lossy().await, None, None]);
    let refused = scene.apply(TYPES).await.unwrap_err();
    assert!(refused.contains("was created is not known"), "{refused}");
    assert!(scene.file().exists());
    assert!(scene.document().await.is_some_and(|document| !document.dropping));
    assert_eq!(scene.apply(TYPES).await, Ok(()));
    scene.open().await;
    scene.store.removal().drop_graph(GRAPH, false).await.unwrap();
    assert!(!scene.file().exists());
}

#[tokio::test]
async fn a_creation_that_is_taken_back_leaves_nothing_in_the_database() {
    let scene = Scene::start().await;
    scene.send([scene.direct(), scene.lossy().await, None]);
    let refused = scene.apply(TYPES).await.unwrap_err();
    assert!(refused.contains("unavailable") && !refused.contains("not known"), "{refused}");
    assert!(!scene.file().exists());
    assert_eq!(scene.document().await, None);
}

/// Applies types, and drops the graph after the router has read the metadata and before it creates the database. Returns the
/// error of the applying request.
async fn dropped_meanwhile(scene: &Scene, types: &str, keep_rows: bool) -> String {
    let (listener, gate) = listen().await;
    let (arrived, dropped) = (Notify::new(), Notify::new());
    let is_new = scene.document().await.is_none();
    scene.send(is_new.then(|| scene.direct()).into_iter().chain([gate]));
    let relay = async {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut server = TcpStream::connect(scene.addr).await.unwrap();
        relay_prefaces(&mut client, &mut server).await;
        arrived.notify_one();
        dropped.notified().await;
        // The copy ends when the connection closes.
        let _ = copy_bidirectional(&mut client, &mut server).await;
    };
    let drop = async {
        arrived.notified().await;
        scene.store.removal().drop_graph(GRAPH, keep_rows).await.unwrap();
        dropped.notify_one();
    };
    let applied = async { tokio::join!(scene.apply(types), drop).0 };
    tokio::select! {
        refused = applied => refused.unwrap_err(),
        () = async { relay.await; std::future::pending().await } => unreachable!("the relay branch never ends"),
    }
}

#[tokio::test]
async fn labels_are_added_once_although_many_writes_name_them_at_the_same_time() {
    let scene = Scene::start().await;
    scene.apply("open = true").await.unwrap();
    let add = async |objects: &[&str]| {
        let objects = objects.iter().map(ToString::to_string).collect();
        let asked = v1::AddTypes { objects, associations: vec!["knows".to_owned()] };
        scene.store.add_types(GRAPH, &asked).await
    };
    let names = ["a", "b", "c", "d", "e", "f"];
    let added = join_all(names.iter().map(async |name| add(&["shared", name]).await)).await;
    let last = added.into_iter().map(|outcome| outcome.unwrap().revision).max().unwrap();
    let types = scene.store.records.existing(GRAPH).await.unwrap().2;
    assert_eq!((types.revision, types.objects.len(), types.associations.len()), (last, 7, 2));
    let again = add(&["shared"]).await.unwrap();
    assert_eq!((again.revision, again.changes.len()), (last, 0));

    let refused = add(&["~shared"]).await.unwrap_err().to_string();
    assert!(refused.contains("does not begin with"), "{refused}");
    scene.apply(TYPES).await.unwrap();
    let refused = add(&["late"]).await.unwrap_err().to_string();
    assert!(refused.contains("the graph is not open"), "{refused}");
    assert_eq!(add(&["shared", "person"]).await.unwrap().changes.len(), 0, "they exist");
    let refused = scene.store.add_types("nowhere", &v1::AddTypes::default()).await.unwrap_err().to_string();
    assert!(refused.contains("nowhere"), "{refused}");
}

#[tokio::test]
async fn a_graph_that_is_dropped_while_it_is_created_or_changed_leaves_nothing_behind() {
    let scene = Scene::start().await;
    for is_new in [true, false] {
        if !is_new {
            scene.apply(TYPES).await.unwrap();
        }
        let refused = dropped_meanwhile(&scene, MORE_TYPES, false).await;
        assert!(refused.contains("was dropped at the same time"), "{refused}");
        assert!(!scene.file().exists(), "is new: {is_new}");
        assert_eq!(scene.document().await, None);
    }
}

#[tokio::test]
async fn rows_that_a_drop_leaves_on_purpose_stay_although_the_types_are_applied_at_the_same_time() {
    let scene = Scene::start().await;
    scene.apply(TYPES).await.unwrap();
    let database = scene.open().await;
    let begin = BeginTerm { partition: PartitionId(0), term: Term(5), leader: 1 };
    database.begin_term(begin).await.unwrap();
    let refused = dropped_meanwhile(&scene, TYPES, true).await;
    assert!(refused.contains("was dropped at the same time"), "{refused}");
    assert_eq!(database.points(vec![PartitionId(0)]).await, Ok(vec![LogPoint::new(5, 0)]));
}

/// Types that take nearly 1 MiB.
fn large_types() -> String {
    let field = |field: u32| format!("a_field_with_a_long_name_{field} = \"text\"\n");
    let fields: String = (0..200).map(field).collect();
    (0..60).map(|number| format!("[object.type_{number}.fields]\n{fields}")).collect()
}

#[tokio::test]
async fn a_subject_may_have_only_so_many_types_and_the_topology_holds_none_of_them() {
    let scene = Scene::start().await;
    let (large, limited) = (large_types(), ("tenant", Trust::Proven));
    scene.apply_as("mine", TYPES, limited).await.unwrap();
    let mut refused = None;
    for number in 0..41 {
        if let Err(error) = scene.apply_as(&format!("tenant-{number}"), &large, limited).await {
            refused.get_or_insert((number, error));
        }
    }
    let (number, error) = refused.expect("a bound");
    assert!((4..16).contains(&number), "{number}: {error}");
    assert!(
        error.contains("\\\"tenant\\\" would have") && error.contains("one subject may have 4194304"),
        "{error}"
    );
    // Graphs that exist cannot grow beyond the bound either, and still take small changes.
    let error =
        scene.apply_as("mine", &format!("{TYPES}{large}"), ("root", Trust::Administrator)).await.unwrap_err();
    assert!(error.contains("one subject may have 4194304"), "{error}");
    scene.apply_as("mine", MORE_TYPES, limited).await.unwrap();
    // Nobody else is affected.
    scene.apply_as("other", &large, ("other", Trust::Proven)).await.unwrap();
    let topology = scene.store.records.cluster.topology.borrow().encode();
    assert!(topology.len() < 64 << 10, "{} bytes", topology.len());
    let all = scene.metadata.read("").await.unwrap().entries;
    assert!(all.iter().map(|entry| entry.value.len()).sum::<usize>() < 64 << 10);
}

#[tokio::test]
async fn writes_to_an_open_graph_add_types_up_to_the_bound_of_its_subject() {
    let scene = Scene::start().await;
    let limited = ("tenant", Trust::Proven);
    scene.apply_as("mine", "open = true", limited).await.unwrap();
    scene.apply_as("other", "open = true", ("other", Trust::Proven)).await.unwrap();
    scene.apply_as("full", TYPES, limited).await.unwrap();
    // Pretend that the types of the subject's graphs take all but a few bytes of what it may have.
    let document = async |graph: &str| {
        let key = keys::live_graph(graph);
        let snapshot = scene.metadata.read(&key).await.unwrap();
        LiveGraphDocument::decode(&snapshot.get(&key).unwrap().value).unwrap()
    };
    let mut full = document("full").await;
    full.types.bytes = (4 << 20) - document("mine").await.types.bytes - 10;
    let write = Write::put(keys::live_graph("full"), full.encode());
    scene.metadata.commit(Vec::new(), vec![write]).await.unwrap();
    let asked = v1::AddTypes { objects: vec!["page".to_owned()], associations: vec!["knows".to_owned()] };
    let before = scene.store.records.existing("mine").await.unwrap().2;
    let refused = scene.store.add_types("mine", &asked).await.unwrap_err();
    assert_eq!(kith_wire::code_of(&refused), ErrorCode::OutOfRange);
    let message = refused.message();
    assert!(message.contains("\"tenant\" would have") && message.contains("may have 4194304"), "{message}");
    assert_eq!(scene.store.records.existing("mine").await.unwrap().2.revision, before.revision);
    // Nobody else is affected, and a subject that makes room goes on.
    assert!(!scene.store.add_types("other", &asked).await.unwrap().changes.is_empty());
    scene.store.removal().drop_graph("full", false).await.unwrap();
    assert!(!scene.store.add_types("mine", &asked).await.unwrap().changes.is_empty());
}

#[tokio::test]
async fn graphs_of_one_subject_are_counted_although_they_are_created_at_the_same_time() {
    let scene = Scene::start().await;
    let names: Vec<String> = (0..70).map(|number| format!("tenant-{number}")).collect();
    let limited = ("tenant", Trust::Proven);
    let mut created = 0;
    for names in names.chunks(10) {
        let applied = names.iter().map(|name| scene.apply_as(name, TYPES, limited));
        created += join_all(applied).await.into_iter().filter(Result::is_ok).count();
    }
    assert!((60..=64).contains(&created), "{created}");
    while created < 64 {
        scene.apply_as(&format!("more-{created}"), TYPES, limited).await.unwrap();
        created += 1;
    }
    let error = scene.apply_as("late", TYPES, limited).await.unwrap_err();
    assert!(error.contains("65 live graphs; one subject may have 64"), "{error}");
    scene.store.removal().drop_graph("tenant-0", false).await.unwrap();
    scene.apply_as("late", TYPES, limited).await.unwrap();
}

#[tokio::test]
async fn the_metadata_store_keeps_the_last_types_and_those_before_and_none_of_a_dropped_graph() {
    let scene = Scene::start().await;
    for types in ["", "[object.b]\n", "[object.b]\n[object.c]\n", "[object.b]\n[object.c]\n[object.d]\n"] {
        scene.apply(&format!("[object.a]\n{types}")).await.unwrap();
    }
    let identity = scene.document().await.unwrap().types.identity;
    assert_eq!(scene.types_kept().await, [3, 4].map(|revision| keys::types(GRAPH, &identity, revision)));
    scene.store.removal().drop_graph(GRAPH, false).await.unwrap();
    assert_eq!(scene.types_kept().await, [""; 0]);
}

#[tokio::test]
async fn types_that_are_lost_or_damaged_are_an_error_and_the_graph_can_be_dropped() {
    let scene = Scene::start().await;
    scene.apply(TYPES).await.unwrap();
    let [key] = &scene.types_kept().await[..] else { panic!("one document of types") };
    for write in [Write::put(key.clone(), b"{}".to_vec()), Write::delete(key.clone())] {
        scene.metadata.commit(Vec::new(), vec![write]).await.unwrap();
        let added = v1::AddTypes { objects: vec!["page".to_owned()], associations: Vec::new() };
        let errors = [
            scene.apply(MORE_TYPES).await.unwrap_err(),
            scene.store.records.existing(GRAPH).await.unwrap_err().to_string(),
            scene.store.add_types(GRAPH, &added).await.unwrap_err().to_string(),
        ];
        for error in errors {
            assert!(error.contains("the types of graph \\\"social\\\" cannot be read"), "{error}");
        }
    }
    scene.store.removal().drop_graph(GRAPH, false).await.unwrap();
    assert_eq!(scene.document().await, None);
    scene.apply(TYPES).await.unwrap();
}
