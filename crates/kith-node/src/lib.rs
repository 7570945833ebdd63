//! A node: holds its partitions of every store and evaluates operator plans over them.

mod answered;
mod copies;
mod counts;
mod disk;
mod doors;
mod export;
mod heal;
mod held;
mod home;
mod inspect;
mod load;
mod moves;
mod pace;
mod peer;
mod quota;
mod repairs;
mod residency;
mod scrub;
mod service;
mod slices;
mod throttle;
mod verify;
mod warm;

use held::{
    CopyError, HeldStores, PrepareError, PrepareOptions, ReleaseError, Replicas, Supplier, VersionReader,
};
pub use kith_process::Labels;
use throttle::Throttle;

use crate::load::LoadCounter;
use futures::StreamExt;
use kith_api::topology::wanted;
use kith_doors::{Backend, DoorAt, Doors, OpenDoors};
use kith_metadata::MetadataStore;
use kith_net::server::{
    self, Addresses, FrontPage, Ports,
    connections::{ConnectionSettings, Connections},
    http::{self, Readiness},
    security::Security,
};
use kith_process::{
    ClusterReader, StartError, background,
    data_dir::{DataDir, Identity},
    freshness::Freshness,
    liveness::{self, ProcessId, Registration},
    topology::{self, TopologyReceiver},
};
use kith_types::PartitionCount;
use kith_wire::{
    MESSAGE_BYTES_MAX, REQUEST_BYTES_MAX,
    documents::{DOCUMENT_FORMAT, Document, NodeDocument, ServedDocument, TopologyDocument},
    v1::{cluster_server::ClusterServer, inspect_server::InspectServer, node_server::NodeServer},
};
use std::{
    collections::BTreeMap,
    net::SocketAddr,
    num::NonZeroU64,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::Mutex;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How often a node looks for versions to forget when nothing changes.
const RETIRE_INTERVAL: Duration = Duration::from_secs(15);
/// How long to wait before a failed preparation is tried again.
const PREPARE_RETRY: Duration = Duration::from_secs(1);

/// How long a node says that it is about to end before it does: five times the interval at which clients probe nodes that they
/// did not ask anything.
const LEAVING: Duration = Duration::from_secs(1);

/// Stores that a node prepares by itself at a time: one whose source is slow keeps no other from being served. Pushes come
/// beside these.
const STORES_AT_A_TIME: usize = 4;

/// How a node is run.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// Its id; the cluster's shape says its group and partitions. One that it does not list is a spare: it owns nothing until
    /// it is added.
    pub node: u32,
    /// Its labels.
    pub place: Labels,
    /// Where it listens for gRPC and frames; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where it serves `/metrics` and friends.
    pub http: SocketAddr,
    /// Where it listens for Redis clients; `None`: nowhere.
    pub resp: Option<SocketAddr>,
    /// Further doors, which speak protocols of their own: to the partitions that are here.
    pub doors: Vec<DoorAt>,
    /// Its data directory.
    pub data: PathBuf,
    /// Bytes a second of the rounds in which it reads all that it holds again; `None`: no rounds.
    pub scrub_rate: Option<u64>,
    /// Bytes a second that all fetches, copies and repairs together pull, until it is changed; `None`: no limit.
    pub fetch_rate: Option<NonZeroU64>,
    /// Fetches are held back while the p99 of reads is above so many times what it is without them; `None`: never.
    pub fetch_p99: Option<f64>,
    /// Bytes of a new version that are brought into memory before it serves, if there is room.
    pub warm_bytes: u64,
    /// How its connections are bounded.
    pub connections: ConnectionSettings,
    /// Who may speak to it, and who it is to others.
    pub security: Security,
}

impl NodeOptions {
    /// Slow enough to be in nobody's way, fast enough for a terabyte in a day.
    pub const SCRUB_RATE_DEFAULT: u64 = 10 << 20;
    /// All indexes of most versions, and read in well under a second.
    pub const WARM_BYTES_DEFAULT: u64 = 256 << 20;

    /// Refuses listeners that would give what they serve to everybody.
    fn check(&self) -> Result<(), StartError> {
        self.security.check_listen(self.listen)?;
        self.security.check_http(self.http)?;
        let doors = self.resp.iter().chain(self.doors.iter().map(|(addr, _)| addr));
        Ok(doors.copied().try_for_each(|addr| self.security.check_listen(addr))?)
    }

    fn addresses(&self) -> Addresses {
        Addresses { grpc: self.listen, http: self.http, resp: self.resp }
    }

    fn front_page(&self, at: Addresses) -> FrontPage {
        FrontPage { name: format!("node {}", self.node), does: "serves the partitions of one node", at }
    }

    fn document(&self, at: &Addresses) -> NodeDocument {
        NodeDocument {
            format: DOCUMENT_FORMAT,
            node: self.node,
            addr: at.grpc.to_string(),
            http: at.http.to_string(),
            resp: at.resp_text(),
            pid: std::process::id(),
            zone: self.place.zone.clone(),
            rack: self.place.rack.clone(),
            region: self.place.region.clone(),
        }
    }
}

/// A running node.
#[derive(Debug)]
pub struct Node {
    /// Where it listens for gRPC and frames.
    pub addr: SocketAddr,
    /// Where it has its doors.
    pub doors: OpenDoors,
    /// Locked while it runs.
    _data: Arc<DataDir>,
    lost: Mutex<home::Lost>,
    load: Arc<LoadCounter>,
    readiness: Readiness,
    serving: TaskTracker,
    stop: CancellationToken,
}

impl Node {
    /// Starts a node; returns once it answers for every store there is. Runs until `stop`.
    ///
    /// # Errors
    /// [`StartError`]: the directory, the address, the topology or the data.
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

    /// Starts a node in the process of the metadata store. It shares the topology that the process follows, and keeps no
    /// copy of it on disk: neither outlives the other.
    ///
    /// # Errors
    /// As [`Node::start`].
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
        data.claim(&Identity {
            cluster_id: first.cluster.cluster_id.clone(),
            owner: format!("node {}", options.node),
        })?;
        let held = Arc::new(held_stores(&options, &first, &stop)?.living_in(&data));
        prepare_all(options.node, &held, &first, served(&first).collect()).await;
        let connections = Connections::new(options.connections)?;
        let ports = Ports::bind(options.addresses(), &options.security, &connections).await?;
        let at = ports.addresses();
        let doors = Doors::bind(ports.resp, options.doors.clone(), &connections).await?;
        let document = options.document(&at);
        let readiness = Readiness::default();
        http::serve(ports.http, options.front_page(at), readiness.clone(), stop.clone());
        let doctor: Arc<scrub::FileHealth> = Arc::default();
        let lost = home::watch(&data, Arc::clone(&held), Arc::clone(&doctor), stop.clone());
        let reads: Arc<pace::Reads> = Arc::default();
        let load = Arc::new(LoadCounter::new(Instant::now()));
        let service = Arc::new(service::NodeService {
            node: options.node,
            held: Arc::clone(&held),
            load: Arc::clone(&load),
            topology: topology.clone(),
            doctor: Arc::clone(&doctor),
            reads: Arc::clone(&reads),
            evaluate_seconds: metrics::histogram!("kith_node_evaluate_seconds"),
            quotas: quota::NodeQuotas::start(options.node, topology.clone(), stop.clone()),
            warm_bytes: options.warm_bytes,
        });
        let serving = answer(ports.grpc, Arc::clone(&service), &options.security, stop.clone());
        options.security.follow(stop.clone());
        let backend: Arc<dyn Backend> = Arc::new(doors::OwnReads::new(service));
        let doors = doors.open(&backend, &options.security, &stop);
        let pacer = pace::Pacer { node: options.node, reads, held: Arc::clone(&held) };
        pacer.start(options.fetch_p99, stop.clone());
        let scrubber = scrub::Scrubber {
            node: options.node,
            doctor,
            held: Arc::clone(&held),
            topology: topology.clone(),
            stop: stop.clone(),
        };
        scrubber.start(options.scrub_rate);
        let registration = Registration {
            id,
            live_value: String::new(),
            document: document.encode(),
            addr: document.addr.clone(),
        };
        liveness::register(Arc::clone(&metadata), registration, Freshness::new(Duration::ZERO), stop.clone());
        tokio::spawn(disk::follow(options.data.clone(), stop.clone()));
        tokio::spawn(residency::follow(Arc::clone(&held), stop.clone()));
        let repairs = repairs::Repairs { node: options.node, metadata };
        tokio::spawn(follow_versions(options.node, held, topology, repairs, stop.clone()));
        readiness.set(true);
        tracing::info!(node = options.node, addr = %at.grpc, "node serves");
        Ok(Self { addr: at.grpc, doors, _data: data, lost: Mutex::new(lost), load, readiness, serving, stop })
    }

    /// Waits until another process has taken the data directory: this one has to end then, and has cancelled its `stop`.
    pub async fn lost(&self) -> StartError {
        match (&mut *self.lost.lock().await).await {
            Ok(error) => error.into(),
            // It is not looked after any more: the node ends for another reason.
            Err(_) => std::future::pending().await,
        }
    }

    /// Leaves without a failed read: tells whoever asks that it is about to end, so that they ask others; then takes no more, and
    /// ends what is under way. Cancels the `stop` that it was started with.
    pub async fn leave(&self) {
        tracing::info!(addr = %self.addr, "node leaves");
        self.readiness.set(false);
        self.load.leave();
        tokio::time::sleep(LEAVING).await;
        self.stop.cancel();
        server::ended(&self.serving).await;
        self.ended().await;
    }

    /// Waits, once it is to stop, until the clients of its doors have their replies; not for long.
    pub async fn ended(&self) {
        self.doors.ended().await;
    }
}

fn held_stores(
    options: &NodeOptions,
    topology: &TopologyDocument,
    stop: &CancellationToken,
) -> Result<HeldStores, StartError> {
    let cluster = &topology.cluster;
    let partition_count = PartitionCount::new(cluster.partitions)
        .ok_or(StartError::Topology { detail: format!("{} partitions", cluster.partitions) })?;
    let owned = held::Owned::of(cluster, options.node);
    let components = options.data.join("components");
    let object_store = kith_process::place::objects(&cluster.object_store).map_err(|source| {
        StartError::ObjectStore { location: cluster.object_store.clone(), source: Box::new(source) }
    })?;
    let fetches = Throttle::new(options.fetch_rate, stop.clone());
    let dialer = options.security.dialer().clone();
    Ok(HeldStores::new(components, object_store, partition_count, owned, fetches, dialer))
}

fn answer(
    bound: server::Bound,
    service: Arc<service::NodeService>,
    security: &Security,
    stop: CancellationToken,
) -> TaskTracker {
    let node = NodeServer::from_arc(Arc::clone(&service))
        .max_decoding_message_size(REQUEST_BYTES_MAX)
        .max_encoding_message_size(MESSAGE_BYTES_MAX);
    let cluster = ClusterServer::new(ClusterReader::new(service.topology.clone(), stop.clone()));
    let inspect = inspect::InspectService {
        node: service.node,
        held: Arc::clone(&service.held),
        topology: service.topology.clone(),
        quotas: Arc::clone(&service.quotas),
        turns: Arc::new(tokio::sync::Semaphore::new(1)),
    };
    let inspect = InspectServer::new(inspect).max_encoding_message_size(MESSAGE_BYTES_MAX);
    let mut routes = server::routes();
    routes.add_service(node).add_service(inspect).add_service(cluster);
    server::spawn(bound, routes, Some(service), security, stop)
}

/// Prepares versions, several stores at a time; one that fails is tried again by [`follow_versions`], and refused until then.
async fn prepare_all(
    node: u32,
    held: &Arc<HeldStores>,
    topology: &Arc<TopologyDocument>,
    versions: Vec<ServedDocument>,
) -> bool {
    let mut stores: BTreeMap<String, Vec<ServedDocument>> = BTreeMap::new();
    for version in versions {
        stores.entry(version.name.clone()).or_default().push(version);
    }
    let prepared = stores.into_values().map(|versions| {
        let (held, topology) = (Arc::clone(held), Arc::clone(topology));
        background::run(move || prepare_store(node, &held, &topology, &versions))
    });
    let prepared = futures::stream::iter(prepared).buffer_unordered(STORES_AT_A_TIME);
    prepared.fold(true, async |all, prepared| all & prepared.unwrap_or(false)).await
}

fn prepare_store(
    node: u32,
    held: &HeldStores,
    topology: &TopologyDocument,
    versions: &[ServedDocument],
) -> bool {
    let mut all = true;
    for store in versions {
        let options =
            PrepareOptions { replicas: Replicas::of(topology, node, store), ..PrepareOptions::default() };
        if let Err(error) = held.prepare(store, topology.revision, &options, &mut |_, _, _| {}) {
            let source = std::error::Error::source(&error).map(ToString::to_string);
            let (store, version) = (&store.name, store.version);
            tracing::error!(%error, source, store, version, "a version cannot be served yet");
            all = false;
        }
    }
    all
}

fn served(topology: &TopologyDocument) -> impl Iterator<Item = ServedDocument> {
    topology.stores.iter().filter(|store| store.version != 0).cloned()
}

async fn follow_versions(
    node: u32,
    held: Arc<HeldStores>,
    mut topology: TopologyReceiver,
    repairs: repairs::Repairs,
    stop: CancellationToken,
) {
    let follow = async {
        loop {
            let current = Arc::clone(&topology.borrow_and_update());
            held.follow(&current, node, Instant::now());
            let mut done = prepare_all(node, &held, &current, wanted(&current)).await;
            held.retire(&current, Instant::now());
            let (stores, versions) = (Arc::clone(&held), wanted(&current));
            let freed = tokio::task::spawn_blocking(move || stores.free_strangers(&versions, Instant::now()));
            done &= freed.await.is_ok();
            done &= repairs.tell(&held, &current).await;
            let wait = if done { RETIRE_INTERVAL } else { PREPARE_RETRY };
            tokio::select! {
                changed = topology.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(wait) => {}
            }
        }
    };
    // What runs in the background ends by itself; nothing begins after it.
    stop.run_until_cancelled(follow).await;
}
