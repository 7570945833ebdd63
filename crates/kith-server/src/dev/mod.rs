//! `kith dev`: a whole cluster on one machine, in one process or with one process per
//! node and router. Whatever it starts ends with it.

mod ports;
mod processes;
mod ready;
mod stop;
mod temporary;

pub use kith_control::cluster::Shape;
pub use ports::{PORT, PORT_HTTP, PORT_RESP};
pub use ready::{ReadyDocument, ReadyNode, ReadyRouter};
pub use stop::{StopError, stop};

use futures::{FutureExt, future::join_all};
use kith_control::cluster;
use kith_metadata::{EmbeddedMetadata, MetadataService, MetadataStore};
use kith_net::server::{
    self,
    connections::{ConnectionSettings, Connections},
    security::Security,
};
use kith_node::{Node, NodeOptions};
use kith_process::{
    Labels, StartError,
    data_dir::{DataDir, Identity, write_atomically},
    topology::{self, TopologyReceiver},
};
use kith_router::{Router, RouterOptions, RouterSettings};
use kith_wire::documents::TopologyDocument;
use ports::Reserved;
use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    num::{NonZeroU16, NonZeroU64},
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How a development cluster is run.
#[derive(Clone, Debug)]
pub struct DevOptions {
    /// Groups, nodes per group, partitions; what is `None` comes from the data directory or the defaults.
    pub shape: Shape,
    /// How many routers.
    pub routers: u32,
    /// One operating-system process per node and router.
    pub processes: bool,
    /// Threads on which each process answers; `None`: its share of the processors. Without processes of their own, the caller's
    /// runtime has what it has.
    pub threads: Option<NonZeroU16>,
    /// The data directory; `None` is a temporary one, removed at the end.
    pub data: Option<PathBuf>,
    /// URL of the object store; `None`: a folder of the data directory.
    pub objects: Option<String>,
    /// Where to say what listens where, once queries are answered.
    pub ready_file: PathBuf,
    /// Port of the first router; 0 takes the one it had before, or a free one; `None` takes [`PORT`] if it is free, else what 0 takes.
    pub port: Option<u16>,
    /// Its HTTP port; likewise, with [`PORT_HTTP`].
    pub http_port: Option<u16>,
    /// Its port for Redis clients; likewise, with [`PORT_RESP`].
    pub resp_port: Option<u16>,
    /// How routers answer.
    pub router: RouterSettings,
    /// How fast each node scrubs, in bytes a second; `None`: only what reads find damaged.
    pub scrub_rate: Option<u64>,
    /// How fast each node fetches, in bytes a second; `None`: no limit.
    pub fetch_rate: Option<NonZeroU64>,
    /// How far fetches may raise the p99 of reads; `None`: as far as they do.
    pub fetch_p99: Option<f64>,
    /// How the connections of each node and router are bounded.
    pub connections: ConnectionSettings,
}

/// A running development cluster.
pub struct Dev {
    ready: ReadyDocument,
    metadata: SocketAddr,
    tasks: TaskTracker,
    stop: CancellationToken,
    ready_file: PathBuf,
    /// Kept while it runs: nodes and routers of this process, the lock, the temporary directory.
    held: Held,
}

#[derive(Default)]
struct Held {
    nodes: Vec<Node>,
    routers: Vec<Router>,
    data: Option<DataDir>,
    temporary: Option<tempfile::TempDir>,
}

/// In the data directory: where the metadata is, for nodes that are started by hand to join.
const METADATA_FILE: &str = "metadata-address";

/// Whose the data directory is.
const OWNER: &str = "supervisor";

/// Loopback: a development cluster has no security and is not for other machines.
const HOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

impl Dev {
    /// Starts the cluster; returns once queries are answered.
    ///
    /// # Errors
    /// [`StartError`]. Nothing is left running.
    pub async fn start(options: DevOptions, stop: CancellationToken) -> Result<Self, StartError> {
        let started = Self::try_start(options, stop.clone()).await;
        if started.is_err() {
            stop.cancel();
        }
        started
    }

    async fn try_start(options: DevOptions, stop: CancellationToken) -> Result<Self, StartError> {
        ReadyDocument::check_free(&options.ready_file).await?;
        let mut held = Held::default();
        let (folder, data) = match &options.data {
            // Clients elsewhere on this machine are told where the object store is.
            Some(folder) => {
                let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.clone());
                let lock = DataDir::lock(&folder)?;
                (folder, lock)
            }
            None => {
                let parent = std::env::temp_dir();
                temporary::remove_stale(&parent);
                let (folder, lock) = temporary::create(&parent)?;
                (held.temporary.insert(folder).path().to_owned(), lock)
            }
        };
        let metadata = Arc::new(EmbeddedMetadata::open(&folder.join("metadata.json"))?);
        let store: Arc<dyn MetadataStore> = metadata;
        let made = cluster::create_or_check(
            &*store,
            &options.shape,
            &folder.join("objects"),
            options.objects.as_deref(),
        )
        .await?;
        data.claim(&Identity { cluster_id: made.cluster_id.clone(), owner: OWNER.to_owned() })?;
        held.data = Some(data);
        cluster::remove_stale(&*store, options.routers).await?;
        let topology = topology::follow(Arc::clone(&store), None, stop.clone()).await?.topology;
        let (plan, reserved) = Plan::new(&options, folder.clone(), &topology.borrow());
        let tasks = TaskTracker::new();
        let metadata = serve_metadata(&store).await?;
        write_atomically(&folder.join(METADATA_FILE), format!("{metadata}\n").as_bytes())?;
        if options.processes {
            processes::start(&plan, reserved, metadata, topology.clone(), &tasks, stop.clone()).await?;
        } else {
            start_here(&plan, reserved, &store, &topology, &mut held, &stop).await?;
        }
        let ready = ready::wait(topology.clone(), &plan).await?;
        ready.write(&options.ready_file)?;
        tasks.spawn(ready::follow(topology, plan, options.ready_file.clone(), ready.clone(), stop.clone()));
        tasks.close();
        Ok(Self { ready, metadata, tasks, stop, ready_file: options.ready_file, held })
    }

    /// What listens where.
    pub fn ready(&self) -> &ReadyDocument {
        &self.ready
    }

    /// Where nodes that are started by hand find the metadata.
    pub fn metadata(&self) -> SocketAddr {
        self.metadata
    }

    /// Runs until stopped, then ends everything it started.
    pub async fn run(self) {
        self.stop.cancelled().await;
        self.tasks.wait().await;
        let routers = self.held.routers.iter().map(|router| router.ended().boxed());
        let nodes = self.held.nodes.iter().map(|node| node.ended().boxed());
        join_all(routers.chain(nodes)).await;
        // Whoever reads it next must not find a cluster that is gone.
        self.ready.remove(&self.ready_file);
        if let Some(folder) = self.held.temporary {
            temporary::remove(folder).await;
        }
    }
}

/// Which nodes and routers to start, and where.
#[derive(Clone, Debug)]
struct Plan {
    /// The data directory.
    data: PathBuf,
    nodes: Vec<NodeOptions>,
    routers: Vec<RouterOptions>,
    threads: Option<NonZeroU16>,
}

impl Plan {
    /// With the usual ports kept from others until the routers start.
    fn new(options: &DevOptions, folder: PathBuf, topology: &TopologyDocument) -> (Self, Reserved) {
        let node_ids = topology.cluster.groups.iter().flat_map(|group| group.nodes.iter().copied());
        let nodes = node_ids.map(|node| {
            let known = topology.nodes.iter().find(|document| document.node == node);
            let listed = topology.cluster.listed.iter().find(|listed| listed.node == node);
            let place = listed.map(|listed| Labels {
                zone: listed.zone.clone(),
                rack: listed.rack.clone(),
                region: listed.region.clone(),
            });
            NodeOptions {
                node,
                place: place.unwrap_or_default(),
                listen: ports::before(known.map(|document| document.addr.as_str())),
                http: ports::before(known.map(|document| document.http.as_str())),
                resp: Some(ports::before(known.map(|document| document.resp.as_str()))),
                doors: Vec::new(),
                data: folder.join(format!("node-{node:03}")),
                scrub_rate: options.scrub_rate,
                fetch_rate: options.fetch_rate,
                fetch_p99: options.fetch_p99,
                warm_bytes: NodeOptions::WARM_BYTES_DEFAULT,
                connections: options.connections,
                security: Security::default(),
            }
        });
        let mut reserved = Reserved::default();
        let routers = (0..options.routers).map(|router| {
            let known = topology.routers.iter().find(|document| document.router == router);
            // The others are told by the first one, and need no port that a person knows.
            let asked = |port: Option<u16>| if router == 0 { port } else { Some(0) };
            let mut choose = |port, usual, before| reserved.choose(asked(port), usual, before);
            RouterOptions {
                router,
                listen: choose(options.port, PORT, known.map(|document| document.addr.as_str())),
                http: choose(options.http_port, PORT_HTTP, known.map(|document| document.http.as_str())),
                resp: Some(choose(
                    options.resp_port,
                    PORT_RESP,
                    known.map(|document| document.resp.as_str()),
                )),
                doors: Vec::new(),
                data: folder.join(format!("router-{router:03}")),
                settings: options.router.clone(),
                connections: options.connections,
                security: Security::default(),
            }
        });
        let (nodes, routers) = (nodes.collect(), routers.collect());
        (Self { data: folder.clone(), nodes, routers, threads: options.threads }, reserved)
    }
}

/// Serves the metadata to children, and to nodes that are started by hand to join.
async fn serve_metadata(store: &Arc<dyn MetadataStore>) -> Result<SocketAddr, StartError> {
    let connections = Connections::new(ConnectionSettings::default())?;
    let bound = server::bind(SocketAddr::new(HOST, 0), &connections).await?;
    let addr = bound.addr;
    let mut routes = server::routes();
    routes.add_service(MetadataService::new(Arc::clone(store)));
    // Outlives its clients: it stops when this process does.
    server::spawn(bound, routes, None, &Security::default(), CancellationToken::new());
    Ok(addr)
}

async fn start_here(
    plan: &Plan,
    reserved: Reserved,
    store: &Arc<dyn MetadataStore>,
    topology: &TopologyReceiver,
    held: &mut Held,
    stop: &CancellationToken,
) -> Result<(), StartError> {
    for node in plan.nodes.iter().cloned() {
        let (store, topology) = (Arc::clone(store), topology.clone());
        held.nodes.push(Node::start_beside(node, store, topology, stop.clone()).await?);
    }
    drop(reserved);
    for router in plan.routers.iter().cloned() {
        let (store, topology) = (Arc::clone(store), topology.clone());
        held.routers.push(Router::start_beside(router, store, topology, stop.clone()).await?);
    }
    Ok(())
}

/// Logs of child processes go here.
fn log_file(data: &Path) -> PathBuf {
    data.with_extension("log")
}
