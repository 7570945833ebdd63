//! `kith dev`: a whole cluster on one machine, in one process or with one process per
//! database, node and router. Whatever it starts ends with it.

mod members;
mod plan;
mod ports;
mod processes;
mod ready;
mod roles;
mod stop;
mod temporary;

pub use kith_control::cluster::Shape;
pub use ports::{PORT, PORT_HTTP, PORT_RESP};
pub use ready::{ReadyDatabase, ReadyDocument, ReadyNode, ReadyRouter};
pub use stop::{StopError, stop};

use kith_control::cluster;
use kith_metadata::{EmbeddedMetadata, MetadataService, MetadataStore};
use kith_net::server::{
    self,
    connections::{ConnectionSettings, Connections},
    security::Security,
};
use kith_process::{
    StartError,
    data_dir::{DataDir, Identity, write_atomically},
    topology,
};
use kith_router::RouterSettings;
use members::{Around, Members};
use plan::Plan;
use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    num::{NonZeroU16, NonZeroU64},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How a development cluster is run.
#[derive(Clone, Debug)]
pub struct DevOptions {
    /// Groups, nodes per group, partitions; what is `None` comes from the data directory or the defaults.
    pub shape: Shape,
    /// How many routers.
    pub routers: u32,
    /// One operating-system process per database, node and router.
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
    /// How long the changes of live graphs are kept in their logs.
    pub log_retention: Duration,
    /// How the connections of each node and router are bounded.
    pub connections: ConnectionSettings,
}

/// A running development cluster.
pub struct Dev {
    ready: ReadyDocument,
    metadata: SocketAddr,
    members: Members,
    tasks: TaskTracker,
    stop: CancellationToken,
    ready_file: PathBuf,
    /// Kept while it runs: the lock, the temporary directory.
    held: Held,
}

#[derive(Default)]
struct Held {
    data: Option<DataDir>,
    temporary: Option<tempfile::TempDir>,
}

impl Held {
    /// Locks the data directory, or makes a temporary one.
    fn lock(&mut self, data: Option<&Path>) -> Result<(PathBuf, DataDir), StartError> {
        let Some(folder) = data else {
            let parent = std::env::temp_dir();
            temporary::remove_stale(&parent);
            let (folder, lock) = temporary::create(&parent)?;
            return Ok((self.temporary.insert(folder).path().to_owned(), lock));
        };
        // Absolute: clients elsewhere on this machine are told where the object store is.
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let lock = DataDir::lock(&folder)?;
        Ok((folder, lock))
    }
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
        data.claim(&Identity { cluster_id: made.cluster_id.clone(), owner: OWNER.to_owned() })?;
        held.data = Some(data);
        cluster::remove_stale(&*store, options.routers).await?;
        let topology = topology::follow(Arc::clone(&store), None, stop.clone()).await?.topology;
        let (plan, reserved) = Plan::new(&options, &folder, &topology.borrow());
        let metadata = serve_metadata(&store).await?;
        write_atomically(&folder.join(METADATA_FILE), format!("{metadata}\n").as_bytes())?;
        let mut members = Members::new(stop.clone());
        let around = Around { processes: options.processes, metadata: store, addr: metadata, topology };
        members.start(&plan, reserved, &around).await?;
        let topology = around.topology;
        let ready = ready::wait(topology.clone(), &plan).await?;
        ready.write(&options.ready_file)?;
        let tasks = TaskTracker::new();
        tasks.spawn(ready::follow(topology, plan, options.ready_file.clone(), ready.clone(), stop.clone()));
        tasks.close();
        Ok(Self { ready, metadata, members, tasks, stop, ready_file: options.ready_file, held })
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
        self.members.end().await;
        // Whoever reads it next must not find a cluster that is gone.
        self.ready.remove(&self.ready_file);
        if let Some(folder) = self.held.temporary {
            temporary::remove(folder).await;
        }
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

/// Logs of child processes go here.
fn log_file(data: &Path) -> PathBuf {
    data.with_extension("log")
}
