//! The database process (`kith database`), which keeps the rows and logs of live graphs for the nodes of its cluster,
//! one SQLite file for each graph (`docs/design/0019-live-graph.md`). The command line and `kith dev` start it. This
//! module only puts the process together: the rows, their format and the protocol are in `kith-database`.
//!
//! ```text
//! metadata store ─► topology ─► this process registers its id and address
//! nodes, routers ─► frames ─► DatabaseService ─► GraphFiles ─► DATA/… one file for each graph (kith-database)
//! ```
//!
//! - [`DatabaseServer`]: starts the process, beside a metadata store or on its own, and ends it.
//! - [`DatabaseOptions`] (`options`): the data directory, addresses and security, and their check.
//! - `counts`: its counters, which start at 0.
//!
//! The data directory stays locked while the process runs, so that two processes never open the same files. The process
//! decides nothing about writes: a commit is conditional on the term and position that the leader names.
//!
//! A new call of databases belongs to `kith_database::DatabaseService`; a new option belongs to [`DatabaseOptions`].

mod counts;
mod options;

pub use options::DatabaseOptions;

use kith_cluster::metadata::MetadataStore;
use kith_cluster::{
    StartError,
    data_dir::{DataDir, FolderIdentity},
    freshness::Freshness,
    liveness::{self, ProcessId, Registration},
    topology::{self, TopologyReceiver},
};
use kith_database::{DatabaseService, GraphFiles, SqliteOptions};
use kith_net::server::{
    self, Ports,
    connections::Connections,
    http::{self, Readiness},
};
use kith_wire::documents::Document;
use std::{fmt, net::SocketAddr, sync::Arc, time::Duration};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// A running database process.
pub struct DatabaseServer {
    /// The address on which it serves frames, and health checks over gRPC.
    pub addr: SocketAddr,
    /// The data directory, which stays locked while the process runs.
    _data: DataDir,
    graphs: Arc<GraphFiles>,
    readiness: Readiness,
    serving: TaskTracker,
    stop: CancellationToken,
}

impl fmt::Debug for DatabaseServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatabaseServer").field("addr", &self.addr).finish_non_exhaustive()
    }
}

impl DatabaseServer {
    /// Starts a database process, and returns once it answers requests. It runs until `stop` is cancelled.
    ///
    /// # Errors
    /// [`StartError`] if the data directory, the addresses or the topology cannot be used.
    pub async fn start(
        options: DatabaseOptions,
        metadata: Arc<dyn MetadataStore>,
        stop: CancellationToken,
    ) -> Result<Self, StartError> {
        options.check()?;
        let data = DataDir::lock(&options.data)?;
        let copy = topology::copy_in(&options.data);
        let followed =
            topology::follow_without_types(Arc::clone(&metadata), Some(copy), stop.clone()).await?;
        Self::serve(options, data, metadata, followed.topology, stop).await
    }

    /// Starts a database within the process of the metadata store. It shares the topology that this process follows,
    /// and keeps no copy of the topology on disk.
    ///
    /// # Errors
    /// As [`DatabaseServer::start`].
    pub async fn start_beside(
        options: DatabaseOptions,
        metadata: Arc<dyn MetadataStore>,
        topology: TopologyReceiver,
        stop: CancellationToken,
    ) -> Result<Self, StartError> {
        options.check()?;
        let data = DataDir::lock(&options.data)?;
        topology::forget_copy(&options.data)?;
        Self::serve(options, data, metadata, topology, stop).await
    }

    async fn serve(
        options: DatabaseOptions,
        data: DataDir,
        metadata: Arc<dyn MetadataStore>,
        topology: TopologyReceiver,
        stop: CancellationToken,
    ) -> Result<Self, StartError> {
        http::count();
        counts::of_database();
        let id = ProcessId::database(options.database);
        id.wait_until_free(&*metadata, options.listen).await?;
        let cluster_id = topology.borrow().cluster.cluster_id.clone();
        data.claim(&FolderIdentity { cluster_id, owner: format!("database {}", options.database) })?;
        let graphs = GraphFiles::new(options.data.clone(), SqliteOptions::default());
        let graphs = graphs.map_err(|source| StartError::Write { path: options.data.clone(), source })?;
        let graphs = Arc::new(graphs);
        let connections = Connections::new(options.connections.clone())?;
        let ports = Ports::bind(options.addresses(), &options.security, &connections).await?;
        let at = ports.addresses();
        let readiness = Readiness::default();
        http::serve(ports.http, options.front_page(at), readiness.clone(), stop.clone());
        let service = DatabaseService::new(Arc::clone(&graphs));
        let serving =
            server::spawn(ports.grpc, server::routes(), Some(service), &options.security, stop.clone());
        options.security.follow(stop.clone());
        let document = options.document(&at);
        let registration = Registration {
            id,
            live_value: liveness::fixed(String::new()),
            document: document.encode(),
            addr: document.addr.clone(),
            leaving: CancellationToken::new(),
        };
        liveness::register(metadata, registration, Freshness::new(Duration::ZERO), stop.clone());
        readiness.set(true);
        tracing::info!(database = options.database, addr = %at.grpc, "database serves");
        Ok(Self { addr: at.grpc, _data: data, graphs, readiness, serving, stop })
    }

    /// Stops accepting requests, and waits for transactions under way. Cancels the token `stop` that the process was
    /// started with.
    pub async fn leave(&self) {
        tracing::info!(addr = %self.addr, "database leaves");
        self.readiness.set(false);
        self.stop.cancel();
        self.ended().await;
    }

    /// Waits, after `stop` was cancelled, until transactions under way have ended and all files are closed.
    pub async fn ended(&self) {
        server::ended(&self.serving).await;
        self.graphs.close().await;
    }
}
