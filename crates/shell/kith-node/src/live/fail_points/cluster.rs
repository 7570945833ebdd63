//! Three nodes over one real database and one metadata store. Each node runs the production code of live graphs in a runtime
//! of its own, and holds both partitions. The test assigns leaders, as routers would.

use super::{
    GRAPH, NODES, PARTITIONS,
    caller::Caller,
    election::{elect, leaders, succeed},
    faulty::{Network, NodeOpener, Processes},
    plan::{FailPlan, FaultAction},
    rows::{Rows, check_directions},
};
use crate::live::{LeadershipView, LiveGraphs, Surroundings};
use kith_cluster::metadata::{EmbeddedMetadata, MetadataStore, Write, keys, types::writes as types_writes};
use kith_cluster::topology;
use kith_database::{GraphIdentity, Retention, SqliteDatabase, SqliteOptions};
use kith_live::{GraphTypes, testing::fixture};
use kith_topology::types_text;
use kith_types::{NodeId, PartitionCount};
use kith_wire::documents::{
    ClusterDocument, DOCUMENT_FORMAT, Document, GroupDocument, LiveGraphDocument, NodeDocument,
};
use parking_lot::Mutex;
use std::{future::Future, pin::pin, sync::Arc};
use tokio::{
    runtime::{Builder, Runtime},
    sync::{mpsc, watch},
};
use tokio_util::sync::CancellationToken;

pub struct Cluster {
    pub count: PartitionCount,
    pub types: Arc<GraphTypes>,
    pub database: Arc<SqliteDatabase>,
    pub plan: Arc<FailPlan>,
    pub processes: Processes,
    metadata: Arc<EmbeddedMetadata>,
    wanted: mpsc::UnboundedReceiver<FaultAction>,
    runtimes: Vec<Option<Runtime>>,
    _folder: tempfile::TempDir,
}

impl Cluster {
    /// Starts a cluster in which node 0 leads partition 0, and node 1 leads partition 1.
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (types, count) = (Arc::new(fixture::types()), PartitionCount::new(PARTITIONS).expect("not zero"));
        let identity = GraphIdentity { graph: types.identity, partitions: count };
        let file = folder.path().join("graph");
        let database = SqliteDatabase::create(&file, identity, SqliteOptions::default()).expect("a new file");
        let metadata = Arc::new(EmbeddedMetadata::in_memory());
        metadata.commit(Vec::new(), documents(&types)).await.expect("it takes the documents");
        let (plan, wanted) = FailPlan::new();
        let mut cluster = Self {
            count,
            types,
            database: Arc::new(database),
            plan,
            processes: Arc::new(Mutex::new(Vec::new())),
            metadata,
            wanted,
            runtimes: Vec::new(),
            _folder: folder,
        };
        for node in 0..NODES {
            let (runtime, process) = cluster.process(node).await;
            cluster.runtimes.push(Some(runtime));
            cluster.processes.lock().push(process);
        }
        for partition in count.iter() {
            elect(&cluster.metadata, partition, partition.index()).await;
        }
        cluster
    }

    async fn process(&self, node: usize) -> (Runtime, (tokio::runtime::Handle, Arc<LiveGraphs>)) {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let metadata: Arc<dyn MetadataStore> = Arc::clone(&self.metadata) as _;
        let (plan, inner) = (Arc::clone(&self.plan), Arc::clone(&self.database));
        let network = Network {
            node,
            count: self.count,
            plan: Arc::clone(&plan),
            processes: Arc::clone(&self.processes),
        };
        let started = runtime.spawn(async move {
            let stop = CancellationToken::new();
            let followed = topology::follow(Arc::clone(&metadata), None, stop.clone()).await;
            LiveGraphs::start(Surroundings {
                outlook: LeadershipView {
                    node: NodeId(node as u32),
                    topology: followed.expect("there is a cluster").topology,
                    // Without known lives, no leader hands over by itself.
                    lives: watch::channel(None).1,
                    metadata,
                },
                transport: Arc::new(network),
                databases: Arc::new(NodeOpener { node, plan, inner }),
                retention: Retention::default(),
                stop,
            })
        });
        let graphs = started.await.expect("it starts");
        let handle = runtime.handle().clone();
        (runtime, (handle, graphs))
    }

    /// Carries out `work`, and at the same time the actions that faults request.
    pub async fn while_faults<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            let wanted = tokio::select! {
                done = &mut work => return done,
                wanted = self.wanted.recv() => wanted.expect("the plan is there"),
            };
            match wanted {
                FaultAction::Death { node, done } => {
                    self.kill(node).await;
                    let _ = done.send(());
                }
                FaultAction::Look { done } => {
                    check_directions(self.rows(), &[]).await;
                    let _ = done.send(());
                }
                FaultAction::Successors { partitions, done } => {
                    let (metadata, database) = (Arc::clone(&self.metadata), Arc::clone(&self.database));
                    tokio::spawn(async move {
                        for partition in partitions {
                            succeed(&metadata, &*database, partition).await;
                        }
                        let _ = done.send(());
                    });
                }
            }
        }
    }

    /// Ends the process of a node at once and starts it again. The next node becomes the leader of the partitions that it
    /// led.
    async fn kill(&mut self, node: usize) {
        if let Some(dead) = self.runtimes[node].take() {
            dead.shutdown_background();
        }
        let (runtime, process) = self.process(node).await;
        self.runtimes[node] = Some(runtime);
        self.processes.lock()[node] = process;
        let leaders = leaders(&self.metadata).await;
        for partition in self.count.iter() {
            if leaders.of(partition).is_some_and(|leader| leader.node == NodeId(node as u32)) {
                elect(&self.metadata, partition, (node + 1) % NODES).await;
            }
        }
    }

    /// Returns access to the stored rows.
    pub fn rows(&self) -> Rows<'_> {
        Rows { database: &*self.database, types: &self.types, count: self.count }
    }

    /// Returns a caller that sends writes to the cluster.
    pub fn caller(&self) -> Caller {
        Caller {
            plan: Arc::clone(&self.plan),
            processes: Arc::clone(&self.processes),
            metadata: Arc::clone(&self.metadata),
            types: Arc::clone(&self.types),
            count: self.count,
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for runtime in self.runtimes.drain(..).flatten() {
            runtime.shutdown_background();
        }
    }
}

fn documents(types: &GraphTypes) -> Vec<Write> {
    let nodes = 0..NODES as u32;
    let group = |node: u32| GroupDocument {
        group: node,
        nodes: vec![node],
        owners: vec![node; PARTITIONS as usize],
        role: String::new(),
    };
    let cluster = ClusterDocument {
        format: DOCUMENT_FORMAT,
        cluster_id: "fail points".to_owned(),
        epoch: 1,
        partitions: PARTITIONS,
        groups: nodes.clone().map(group).collect(),
        object_store: String::new(),
        strategy: String::new(),
        listed: Vec::new(),
        partition_epochs: Vec::new(),
    };
    let (reference, text) = types_text(types);
    let mut writes = types_writes(GRAPH, &reference, text);
    let graph = LiveGraphDocument {
        format: DOCUMENT_FORMAT,
        name: GRAPH.to_owned(),
        types: reference,
        storage: "database:0".to_owned(),
        who: String::new(),
        charged_to: String::new(),
        dropping: false,
    };
    writes.push(Write::put(keys::CLUSTER, cluster.encode()));
    writes.push(Write::put(keys::live_graph(GRAPH), graph.encode()));
    writes.extend(nodes.map(|id| Write::put(keys::node(id), node_document(id).encode())));
    writes
}

fn node_document(node: u32) -> NodeDocument {
    NodeDocument {
        format: DOCUMENT_FORMAT,
        node,
        addr: node.to_string(),
        http: String::new(),
        resp: String::new(),
        pid: 0,
        zone: String::new(),
        rack: String::new(),
        region: String::new(),
    }
}
