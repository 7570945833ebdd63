//! `kith dev`: runs a whole cluster on one machine, in one process or with one process per database, node and router.
//! Everything that it starts ends with it.

mod logs;
mod members;
mod plan;
mod ports;
mod processes;
mod ready;
mod roles;
mod stop;
mod temporary;

pub use kith_router::admin::cluster::Shape;
pub use ports::{PORT, PORT_GREMLIN, PORT_HTTP, PORT_RESP};
pub use ready::{ReadyDatabase, ReadyDocument, ReadyNode, ReadyRouter};
pub use stop::{StopError, stop};

use kith_cluster::metadata::{EmbeddedMetadata, MetadataService, MetadataStore};
use kith_cluster::{
    StartError,
    data_dir::{DataDir, FolderIdentity, write_atomically},
    topology,
};
use kith_net::server::{
    self,
    connections::{ConnectionSettings, Connections},
    security::Security,
};
use kith_router::RouterSettings;
use kith_router::admin::cluster;
use members::{MemberContext, Members};
use plan::Plan;
use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    num::{NonZeroU16, NonZeroU64},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// The options of a development cluster.
#[derive(Clone, Debug)]
pub struct DevOptions {
    /// Groups, nodes per group, partitions. A field that is `None` is taken from the data directory, or has its default.
    pub shape: Shape,
    /// The number of routers.
    pub routers: u32,
    /// Whether each database, node and router runs in its own operating-system process.
    pub processes: bool,
    /// The number of threads that answer requests in each process; `None` for an equal share of the processors. It has no
    /// effect without separate processes, where the caller's runtime is used.
    pub threads: Option<NonZeroU16>,
    /// The data directory; `None` for a temporary one, which is removed at the end.
    pub data: Option<PathBuf>,
    /// The URL of the object store; `None` for a folder of the data directory.
    pub objects: Option<String>,
    /// The file that lists the addresses. It is written once queries are answered.
    pub ready_file: PathBuf,
    /// The port of the first router. 0 takes its previous port, or a free one. `None` takes [`PORT`] if it is free, else the
    /// same as 0.
    pub port: Option<u16>,
    /// The HTTP port of the first router; like `port`, with [`PORT_HTTP`].
    pub http_port: Option<u16>,
    /// The port of the first router for Redis clients; like `port`, with [`PORT_RESP`].
    pub resp_port: Option<u16>,
    /// The port of the first router for Gremlin drivers; like `port`, with [`PORT_GREMLIN`].
    pub gremlin_port: Option<u16>,
    /// The settings of the routers.
    pub router: RouterSettings,
    /// The rate at which each node scrubs, in bytes per second; `None` repairs only damage that reads find.
    pub scrub_rate: Option<u64>,
    /// The rate at which each node fetches, in bytes per second; `None` for no limit.
    pub fetch_rate: Option<NonZeroU64>,
    /// The ratio to its normal value up to which fetches may raise the p99 of reads; `None` for no limit.
    pub fetch_p99: Option<f64>,
    /// The time for which the changes of live graphs are kept in their logs.
    pub log_retention: Duration,
    /// The limits on the connections of each node and router.
    pub connections: ConnectionSettings,
    /// Flags of child processes that say how they log.
    pub log_flags: Vec<String>,
    /// The file to which this process logs, if it is to be kept short like the logs of child processes.
    pub log: Option<PathBuf>,
}

/// A running development cluster.
pub struct Dev {
    ready: ReadyDocument,
    metadata: SocketAddr,
    members: Members,
    tasks: TaskTracker,
    stop: CancellationToken,
    ready_file: PathBuf,
    /// The lock of the data directory and the temporary directory, if any. They are held while the cluster runs.
    held: Held,
}

#[derive(Default)]
struct Held {
    data: Option<DataDir>,
    temporary: Option<tempfile::TempDir>,
}

impl Held {
    /// Locks the data directory, or creates and locks a temporary one.
    fn lock(&mut self, data: Option<&Path>) -> Result<(PathBuf, DataDir), StartError> {
        let Some(folder) = data else {
            let parent = std::env::temp_dir();
            temporary::remove_stale(&parent);
            let (folder, lock) = temporary::create(&parent)?;
            return Ok((self.temporary.insert(folder).path().to_owned(), lock));
        };
        // The path is made absolute because clients elsewhere on this machine learn from it where the object store is.
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let lock = DataDir::lock(&folder)?;
        Ok((folder, lock))
    }
}

/// The file in the data directory that has the address of the metadata, for nodes that are started by hand.
const METADATA_FILE: &str = "metadata-address";

/// The owner of the data directory, as its identity file names it.
const OWNER: &str = "supervisor";

/// Loopback only: a development cluster has no security, and is not meant for other machines.
const HOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

impl Dev {
    /// Starts the cluster. Returns once queries are answered.
    ///
    /// # Errors
    /// [`StartError`]. Nothing is left running then.
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
        let (folder, data) = held.lock(options.data.as_deref())?;
        let metadata = Arc::new(EmbeddedMetadata::open(&folder.join("metadata.json"))?);
        let store: Arc<dyn MetadataStore> = metadata;
        let made = cluster::create_or_check(
            &*store,
            &options.shape,
            &folder.join("objects"),
            options.objects.as_deref(),
        )
        .await?;
        data.claim(&FolderIdentity { cluster_id: made.cluster_id.clone(), owner: OWNER.to_owned() })?;
        held.data = Some(data);
        cluster::remove_stale(&*store, options.routers).await?;
        // Nodes and routers in this process share this topology, so it contains the types of live graphs.
        let topology = topology::follow(Arc::clone(&store), None, stop.clone()).await?.topology;
        let (plan, reserved) = Plan::new(&options, &folder, &topology.borrow());
        let logs = options.log.clone().into_iter().chain(plan.logs()).collect();
        let metadata = serve_metadata(&store).await?;
        write_atomically(&folder.join(METADATA_FILE), format!("{metadata}\n").as_bytes())?;
        let mut members = Members::new(stop.clone());
        let around =
            MemberContext { processes: options.processes, metadata: store, addr: metadata, topology };
        members.start(&plan, reserved, &around).await?;
        let topology = around.topology;
        let ready = ready::wait(topology.clone(), &plan).await?;
        ready.write(&options.ready_file)?;
        let tasks = TaskTracker::new();
        tasks.spawn(ready::follow(topology, plan, options.ready_file.clone(), ready.clone(), stop.clone()));
        tasks.spawn(logs::keep_short(logs, stop.clone()));
        tasks.close();
        Ok(Self { ready, metadata, members, tasks, stop, ready_file: options.ready_file, held })
    }

    /// The content of the ready file.
    pub fn ready(&self) -> &ReadyDocument {
        &self.ready
    }

    /// The address of the metadata, for nodes that are started by hand.
    pub fn metadata(&self) -> SocketAddr {
        self.metadata
    }

    /// Runs until stopped, then stops everything that it started.
    pub async fn run(self) {
        self.stop.cancelled().await;
        self.tasks.wait().await;
        self.members.end().await;
        // A later reader must not find a cluster that is gone.
        self.ready.remove(&self.ready_file);
        if let Some(folder) = self.held.temporary {
            temporary::remove(folder).await;
        }
    }
}

/// Serves the metadata to children, and to nodes that are started by hand.
async fn serve_metadata(store: &Arc<dyn MetadataStore>) -> Result<SocketAddr, StartError> {
    let connections = Connections::new(ConnectionSettings::default())?;
    let bound = server::bind(SocketAddr::new(HOST, 0), &connections).await?;
    let addr = bound.addr;
    let mut routes = server::routes();
    routes.add_service(MetadataService::new(Arc::clone(store)));
    // The service outlives its clients: it ends with this process.
    server::spawn(bound, routes, None, &Security::default(), CancellationToken::new());
    Ok(addr)
}

/// Returns the file for the log of a child process.
fn log_file(data: &Path) -> PathBuf {
    data.with_extension("log")
}
