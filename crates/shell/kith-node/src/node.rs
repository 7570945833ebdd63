//! The process: [`Node::start`] puts the parts together, and [`Node::leave`] ends them.

use crate::{
    NodeOptions, counts, disk, home, live,
    repair::scrub,
    serve::{doors, evaluator::Evaluator, inspect, load::LoadCounter, quota, service::NodeService},
    versions::{
        HeldStores, follow,
        held::{self, ComponentFolders, Origins},
        moves, pace, prepare, repairs, residency,
        throttle::Throttle,
    },
};
use kith_cluster::metadata::MetadataStore;
use kith_cluster::{
    ClusterReader, StartError,
    data_dir::{DataDir, FolderIdentity},
    follow_lives,
    freshness::Freshness,
    liveness::{self, ProcessId, Registration},
    topology::{self, TopologyReceiver},
};
use kith_database::{Reach, Retention};
use kith_doors::{Backend, Doors, OpenDoors};
use kith_files::objects::Objects;
use kith_net::{
    server::{
        self, Ports,
        connections::Connections,
        http::{self, Readiness},
    },
    transport::TransportKind,
};
use kith_types::{NodeId, PartitionCount};
use kith_wire::{
    MESSAGE_BYTES_MAX, REQUEST_BYTES_MAX,
    documents::{Document, NodeDocument, TopologyDocument},
    v1::{cluster_server::ClusterServer, inspect_server::InspectServer, node_server::NodeServer},
};
use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::{Mutex, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// The time for which a node keeps answering after it has announced that it leaves and has handed over its leadership.
/// This is five times the interval at which clients probe nodes to which they sent no requests.
const LEAVING: Duration = Duration::from_secs(1);

/// A running node.
#[derive(Debug)]
pub struct Node {
    /// The address for gRPC and frames.
    pub addr: SocketAddr,
    /// The addresses of its doors.
    pub doors: OpenDoors,
    /// The lock on the data directory, held while the node runs.
    _data: Arc<DataDir>,
    lost: Mutex<home::LossReceiver>,
    load: Arc<LoadCounter>,
    live: Arc<live::LiveGraphs>,
    /// The token that is cancelled when the node begins to leave.
    leaving: CancellationToken,
    readiness: Readiness,
    serving: TaskTracker,
    stop: CancellationToken,
}

impl Node {
    /// Starts a node. Returns once it answers for every store. The node runs until `stop` is cancelled.
    ///
    /// # Errors
    /// [`StartError`] if the data directory, an address, the topology or the data is unusable.
    pub async fn start(
        options: NodeOptions,
        metadata: Arc<dyn MetadataStore>,
        stop: CancellationToken,
    ) -> Result<Self, StartError> {
        options.check()?;
        let data = Arc::new(DataDir::lock(&options.data)?);
        let copy = topology::copy_in(&options.data);
        let followed = topology::follow(Arc::clone(&metadata), Some(copy), stop.clone()).await?;
        let topology = followed.topology;
        Self::serve(options, data, metadata, topology, stop).await
    }

    /// Starts a node in the process of the metadata store. The node shares the topology that the process follows. It keeps
    /// no copy of it on disk, because neither of them outlives the other.
    ///
    /// # Errors
    /// The errors of [`Node::start`].
    pub async fn start_beside(
        options: NodeOptions,
        metadata: Arc<dyn MetadataStore>,
        topology: TopologyReceiver,
        stop: CancellationToken,
    ) -> Result<Self, StartError> {
        options.check()?;
        let data = Arc::new(DataDir::lock(&options.data)?);
        topology::forget_copy(&options.data)?;
        Self::serve(options, data, metadata, topology, stop).await
    }

    async fn serve(
        options: NodeOptions,
        data: Arc<DataDir>,
        metadata: Arc<dyn MetadataStore>,
        topology: TopologyReceiver,
        stop: CancellationToken,
    ) -> Result<Self, StartError> {
        http::count();
        counts::of_node(&topology, &stop);
        let first = Arc::clone(&topology.borrow());
        let id = ProcessId::node(options.node);
        id.wait_until_free(&*metadata, options.listen).await?;
        data.claim(&FolderIdentity {
            cluster_id: first.cluster.cluster_id.clone(),
            owner: format!("node {}", options.node),
        })?;
        let held = Arc::new(held_stores(&options, &data, &first, &stop)?);
        follow::prepare_served(options.node, &held, &first).await;
        let connections = Connections::new(options.connections.clone())?;
        let ports = Ports::bind(options.addresses(), &options.security, &connections).await?;
        let at = ports.addresses();
        let doors = Doors::bind(ports.resp, ports.gremlin, options.doors.clone(), &connections).await?;
        let readiness = Readiness::default();
        http::serve(ports.http, options.front_page(at), readiness.clone(), stop.clone());
        let evaluator = Arc::new(evaluator(&options, held, topology, &metadata, &stop));
        let serving = answer(ports.grpc, &evaluator, &options, stop.clone());
        options.security.follow(stop.clone());
        let backend: Arc<dyn Backend> = Arc::new(doors::OwnReads::new(Arc::clone(&evaluator)));
        let doors = doors.open(&backend, &options.security, &stop);
        let leaving = CancellationToken::new();
        let announced = evaluator.live.announced();
        register(id, &options.document(&at), announced, &metadata, (&leaving, &stop));
        let lost = look_after(&evaluator, &options, &data, metadata, &stop);
        readiness.set(true);
        tracing::info!(node = options.node, addr = %at.grpc, "node serves");
        Ok(Self {
            addr: at.grpc,
            doors,
            _data: data,
            lost: Mutex::new(lost),
            load: Arc::clone(&evaluator.load),
            live: Arc::clone(&evaluator.live),
            leaving,
            readiness,
            serving,
            stop,
        })
    }

    /// Waits until another process has taken the data directory. This node must then end, and has cancelled its `stop`.
    pub async fn lost(&self) -> StartError {
        match (&mut *self.lost.lock().await).await {
            Ok(error) => error.into(),
            // The directory is no longer watched, because the node ends for another reason.
            Err(_) => std::future::pending().await,
        }
    }

    /// Leaves without failing a read or write. Announces to all callers that it leaves, so that they ask other nodes; hands
    /// over the leadership of its partitions of live graphs; then refuses new requests and finishes the running ones.
    /// Cancels the `stop` that it was started with.
    pub async fn leave(&self) {
        tracing::info!(addr = %self.addr, "node leaves");
        self.readiness.set(false);
        self.load.leave();
        self.leaving.cancel();
        self.live.leave().await;
        tokio::time::sleep(LEAVING).await;
        self.stop.cancel();
        server::ended(&self.serving).await;
        self.ended().await;
    }

    /// Waits, for a short time, until the clients of its doors have their replies. `stop` must have been cancelled.
    pub async fn ended(&self) {
        self.doors.ended().await;
    }
}

fn held_stores(
    options: &NodeOptions,
    data: &Arc<DataDir>,
    topology: &TopologyDocument,
    stop: &CancellationToken,
) -> Result<HeldStores, StartError> {
    let cluster = &topology.cluster;
    let partition_count = PartitionCount::new(cluster.partitions)
        .ok_or(StartError::Topology { detail: format!("{} partitions", cluster.partitions) })?;
    let owned = held::PartitionOwnership::of(cluster, options.node);
    let folders = ComponentFolders::new(options.data.join("components"), partition_count).in_data_dir(data);
    let object_store = Objects::named(&cluster.object_store).map_err(|source| StartError::ObjectStore {
        location: cluster.object_store.clone(),
        source: Box::new(source),
    })?;
    let fetches = Throttle::new(options.fetch_rate, stop.clone());
    let dialer = options.security.dialer().clone();
    let origins = Origins::new(object_store, fetches, dialer);
    Ok(HeldStores::new(folders, origins, partition_count, owned))
}

fn evaluator(
    options: &NodeOptions,
    held: Arc<HeldStores>,
    topology: TopologyReceiver,
    metadata: &Arc<dyn MetadataStore>,
    stop: &CancellationToken,
) -> Evaluator {
    let live = live::LiveGraphs::start(live::Surroundings {
        outlook: live::LeadershipView {
            node: NodeId(options.node),
            topology: topology.clone(),
            lives: follow_lives(Arc::clone(metadata), stop.clone()),
            metadata: Arc::clone(metadata),
        },
        transport: TransportKind::default().build(options.security.dialer()),
        databases: Arc::new(Reach::new(
            topology::database_addresses(topology.clone()),
            options.security.dialer().clone(),
            options.databases.clone(),
        )),
        retention: Retention { changes: options.log_retention, ..Retention::default() },
        stop: stop.clone(),
    });
    Evaluator {
        node: options.node,
        held,
        load: Arc::new(LoadCounter::new(Instant::now())),
        quotas: quota::NodeQuotas::start(options.node, topology.clone(), stop.clone()),
        topology,
        file_health: Arc::default(),
        reads: Arc::default(),
        live,
        evaluate_seconds: metrics::histogram!("kith_node_evaluate_seconds"),
    }
}

/// Serves gRPC and frames.
fn answer(
    bound: server::BoundListener,
    evaluator: &Arc<Evaluator>,
    options: &NodeOptions,
    stop: CancellationToken,
) -> TaskTracker {
    let Evaluator { node, held, topology, quotas, live, .. } = &**evaluator;
    let moves = moves::Moves { node: *node, held: Arc::clone(held), topology: topology.clone() };
    let preparer = prepare::Preparer {
        node: *node,
        held: Arc::clone(held),
        topology: topology.clone(),
        warm_bytes: options.warm_bytes,
    };
    let service = Arc::new(NodeService { evaluator: Arc::clone(evaluator), moves, preparer });
    let inspect = inspect::InspectService {
        node: *node,
        held: Arc::clone(held),
        topology: topology.clone(),
        quotas: Arc::clone(quotas),
        live: Arc::clone(live),
        turns: Arc::new(tokio::sync::Semaphore::new(1)),
    };
    let node = NodeServer::from_arc(Arc::clone(&service))
        .max_decoding_message_size(REQUEST_BYTES_MAX)
        .max_encoding_message_size(MESSAGE_BYTES_MAX);
    let inspect = InspectServer::new(inspect).max_encoding_message_size(MESSAGE_BYTES_MAX);
    let cluster = ClusterServer::new(ClusterReader::new(topology.clone(), stop.clone()));
    let mut routes = server::routes();
    routes.add_service(node).add_service(inspect).add_service(cluster);
    server::spawn(bound, routes, Some(service), &options.security, stop)
}

fn register(
    id: ProcessId,
    document: &NodeDocument,
    live_value: watch::Receiver<String>,
    metadata: &Arc<dyn MetadataStore>,
    (leaving, stop): (&CancellationToken, &CancellationToken),
) {
    let registration = Registration {
        id,
        live_value,
        document: document.encode(),
        addr: document.addr.clone(),
        leaving: leaving.clone(),
    };
    liveness::register(Arc::clone(metadata), registration, Freshness::new(Duration::ZERO), stop.clone());
}

/// Starts the background work of a node: it follows the versions that it should hold, scrubs and repairs its files, paces
/// its fetches, and watches its disk and its data directory. Returns a receiver that reports when the directory is lost.
fn look_after(
    evaluator: &Evaluator,
    options: &NodeOptions,
    data: &Arc<DataDir>,
    metadata: Arc<dyn MetadataStore>,
    stop: &CancellationToken,
) -> home::LossReceiver {
    let Evaluator { node, held, topology, file_health, reads, .. } = evaluator;
    let lost = home::watch(data, Arc::clone(held), Arc::clone(file_health), stop.clone());
    let pacer = pace::Pacer { node: *node, reads: Arc::clone(reads), held: Arc::clone(held) };
    pacer.start(options.fetch_p99, stop.clone());
    let scrubber = scrub::Scrubber {
        node: *node,
        file_health: Arc::clone(file_health),
        held: Arc::clone(held),
        topology: topology.clone(),
        stop: stop.clone(),
    };
    scrubber.start(options.scrub_rate);
    tokio::spawn(disk::follow(options.data.clone(), stop.clone()));
    tokio::spawn(residency::follow(Arc::clone(held), stop.clone()));
    let repairs = repairs::Repairs { node: *node, metadata };
    let held = Arc::clone(held);
    tokio::spawn(follow::follow_versions(*node, held, topology.clone(), repairs, stop.clone()));
    lost
}
