//! Tests of the graphs that a node opens, and of its announcement of graphs that it cannot open. The database service, the
//! metadata store and the connections are real.

use crate::live::{LeadershipView, LiveGraphs, Surroundings};
use kith_cluster::metadata::{EmbeddedMetadata, MetadataStore};
use kith_cluster::{
    LivesReceiver, follow_lives,
    freshness::Freshness,
    liveness::{self, ProcessId, Registration},
};
use kith_database::{
    DatabaseServers, DatabaseService, GraphFiles, GraphIdentity, Reach, Retention, SqliteOptions, Storage,
};
use kith_live::GraphTypes;
use kith_net::{
    security::Dialer,
    server::{self, connections::Connections, security::Security},
    transport::TransportKind,
};
use kith_topology::types_text;
use kith_types::{NodeId, PartitionCount};
use kith_wire::documents::TopologyDocument;
use serde_json::json;
use std::{collections::BTreeSet, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{net::TcpListener, sync::watch};
use tokio_util::sync::CancellationToken;

/// A time limit that is far longer than any step of the tests takes.
const TIMEOUT: Duration = Duration::from_secs(60);
const PARTITIONS: u32 = 2;

fn types(graph: u64) -> GraphTypes {
    GraphTypes::new(graph, &"[object.person]\n".parse().unwrap()).unwrap()
}

/// Returns a topology with these graphs, which are given by name, identity and storage.
fn topology(graphs: &[(&str, u64, &str)]) -> Arc<TopologyDocument> {
    let document = |(name, graph, storage): &(&str, u64, &str)| {
        let (reference, _) = types_text(&types(*graph));
        json!({"format": 1, "name": name, "types": reference, "storage": storage, "who": ""})
    };
    let text =
        |(name, graph, _): &(&str, u64, &str)| ((*name).to_owned(), Ok(types_text(&types(*graph)).1.into()));
    let live: Vec<_> = graphs.iter().map(document).collect();
    let topology = json!({
        "format": 1, "revision": 1, "routers": [], "stores": [], "nodes": [], "leaders": [], "live": live,
        "cluster": {
            "format": 1, "cluster_id": "", "epoch": 1, "partitions": PARTITIONS, "object_store": "",
            "groups": [{"group": 0, "nodes": [0], "owners": [0, 0], "role": ""}],
        },
    });
    let topology: TopologyDocument = serde_json::from_value(topology).unwrap();
    Arc::new(TopologyDocument { types: graphs.iter().map(text).collect(), ..topology })
}

/// A node, and a database process with the id 0.
struct Scene {
    graphs: Arc<LiveGraphs>,
    topology: watch::Sender<Arc<TopologyDocument>>,
    lives: LivesReceiver,
    databases: Reach,
    _folder: tempfile::TempDir,
    stop: CancellationToken,
}

impl Scene {
    async fn start() -> Self {
        let (folder, stop) = (tempfile::tempdir().unwrap(), CancellationToken::new());
        let files = GraphFiles::new(folder.path().to_owned(), SqliteOptions::default()).unwrap();
        let connections = Connections::new(Default::default()).unwrap();
        let bound = server::bind(SocketAddr::from(([127, 0, 0, 1], 0)), &connections).await.unwrap();
        let addr = bound.addr.to_string();
        let service = DatabaseService::new(Arc::new(files));
        server::spawn(bound, server::routes(), Some(service), &Security::default(), stop.clone());
        let locate = Arc::new(move |database| (database == 0).then(|| addr.clone()));
        let servers = DatabaseServers { loopback: true, ..DatabaseServers::default() };
        let databases = Reach::new(locate, Dialer::default(), servers);

        let metadata: Arc<dyn MetadataStore> = Arc::new(EmbeddedMetadata::in_memory());
        let lives = follow_lives(Arc::clone(&metadata), stop.clone());
        let (sender, receiver) = watch::channel(topology(&[]));
        let graphs = LiveGraphs::start(Surroundings {
            outlook: LeadershipView {
                node: NodeId(0),
                topology: receiver,
                lives: lives.clone(),
                metadata: Arc::clone(&metadata),
            },
            transport: TransportKind::default().build(&Dialer::default()),
            databases: Arc::new(databases.clone()),
            retention: Retention::default(),
            stop: stop.clone(),
        });
        let registration = Registration {
            id: ProcessId::node(0),
            live_value: graphs.announced(),
            document: b"{}".to_vec(),
            addr: String::new(),
            leaving: CancellationToken::new(),
        };
        liveness::register(metadata, registration, Freshness::new(Duration::ZERO), stop.clone());
        Self { graphs, topology: sender, lives, databases, _folder: folder, stop }
    }

    async fn create(&self, name: &str, graph: u64) {
        let identity = GraphIdentity { graph, partitions: PartitionCount::new(PARTITIONS).unwrap() };
        Storage::Process(0).create(name, identity, &self.databases).await.unwrap().close().await;
    }

    async fn wait_until(&self, what: &str, holds: impl Fn() -> bool) {
        let held = async {
            while !holds() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        assert!(tokio::time::timeout(TIMEOUT, held).await.is_ok(), "{what}: {:?}", self.graphs);
    }

    /// Returns the graphs that the node cannot open, as other processes know them.
    fn unable(&self) -> BTreeSet<String> {
        let lives = self.lives.borrow().clone();
        lives.and_then(|lives| lives.unable.get(&NodeId(0)).cloned()).unwrap_or_default()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

#[tokio::test]
async fn a_database_that_hangs_holds_up_no_other_graph() {
    let scene = Scene::start().await;
    scene.create("quick", 1).await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let hanging = format!("mysql://root@{}/x", silent.local_addr().unwrap());
    // The hanging graph comes first in the topology.
    scene.topology.send_replace(topology(&[("hanging", 2, &hanging), ("quick", 1, "database:0")]));
    let (first_attempt, _) = silent.accept().await.unwrap();
    scene.wait_until("the other graph is opened", || scene.graphs.get("quick").is_some()).await;
    let is_open =
        first_attempt.try_read(&mut [0]).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
    assert!(is_open, "the first attempt is still under way");
    assert!(scene.graphs.get("hanging").is_none());

    // Another graph of the same name replaces the open one. Nothing waits for the graph that was dropped.
    scene.topology.send_replace(topology(&[("hanging", 2, &hanging), ("quick", 3, "database:0")]));
    scene.wait_until("the old graph is closed", || scene.graphs.get("quick").is_none()).await;
    scene.topology.send_replace(topology(&[("hanging", 2, &hanging), ("quick", 1, "database:0")]));
    let is_back = || scene.graphs.get("quick").is_some_and(|graph| graph.identity() == 1);
    scene.wait_until("the graph is opened again", is_back).await;
}

#[tokio::test]
async fn a_node_announces_which_graphs_it_cannot_open() {
    let scene = Scene::start().await;
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<String>>();
    // No node can open a graph that has not been created yet, so this is not announced.
    scene.topology.send_replace(topology(&[("away", 1, "database:9"), ("new", 2, "database:0")]));
    scene.wait_until("others know it", || scene.unable() == names(&["away"])).await;
    let reason = |name: &str| scene.graphs.find(name).map(|graph| graph.is_some()).map_err(|e| e.to_string());
    assert!(reason("away").is_err_and(|reason| reason.contains("no process of the cluster is database 9")));
    assert!(reason("new").is_err_and(|reason| reason.contains("there is no graph")));
    assert_eq!(reason("unknown"), Ok(false));
    scene.create("new", 2).await;
    scene.wait_until("it is opened", || scene.graphs.get("new").is_some()).await;
    assert_eq!(scene.unable(), names(&["away"]));
    scene.create("away", 3).await;
    scene.topology.send_replace(topology(&[("away", 3, "database:0"), ("new", 2, "nowhere:0")]));
    scene.wait_until("it can be opened", || scene.graphs.get("away").is_some()).await;
    scene.wait_until("others know it", || scene.unable().is_empty()).await;
    assert!(scene.graphs.get("new").is_some(), "an open graph stays open");
    scene.topology.send_replace(topology(&[("newer", 4, "nowhere:0")]));
    scene.wait_until("it is not understood", || scene.unable() == names(&["newer"])).await;
    assert!(reason("newer").is_err_and(|reason| reason.contains("cannot read its types or its storage")));
    assert!(scene.graphs.get("new").is_none());
}

#[tokio::test]
async fn a_graph_whose_types_cannot_be_read_is_not_served_until_they_can() {
    let scene = Scene::start().await;
    scene.create("social", 1).await;
    let readable = topology(&[("social", 1, "database:0")]);
    let failing = |document: &TopologyDocument| {
        let types = [("social".to_owned(), Err("they are damaged".to_owned()))].into();
        Arc::new(TopologyDocument { types, ..document.clone() })
    };
    scene.topology.send_replace(failing(&readable));
    let reason = || scene.graphs.find("social").err().map(|error| error.to_string());
    scene
        .wait_until("the reason is known", || reason().is_some_and(|it| it.contains("they are damaged")))
        .await;
    scene.topology.send_replace(Arc::clone(&readable));
    scene.wait_until("it is opened", || scene.graphs.get("social").is_some()).await;
    scene.topology.send_replace(failing(&readable));
    scene
        .topology
        .send_replace(failing(&topology(&[("social", 1, "database:0"), ("more", 2, "database:0")])));
    scene.wait_until("the other graph is known", || scene.graphs.find("more").is_err()).await;
    assert!(scene.graphs.get("social").is_some(), "an open graph keeps the types that it has");
    scene.topology.send_replace(failing(&topology(&[("social", 5, "database:0")])));
    scene.wait_until("the name belongs to another graph", || scene.graphs.get("social").is_none()).await;
}
