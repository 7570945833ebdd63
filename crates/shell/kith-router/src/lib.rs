//! A router: answers queries for any client, with caches in front of the nodes (Moolle's NCS), and administers the
//! cluster. It holds no data: if it dies, clients go on with another one.
//!
//! ```text
//! gRPC, frames, doors ─► service ─► pipeline: admit, record, run, count, charge
//!                                       └─► forward to the owner, or Session (kith-session) ─► caches ─► nodes
//! ```
//!
//! - `serve`: requests in, replies out. Every request takes the steps of the pipeline once, whichever protocol it came in.
//! - `cache`: the shells of the caches of networks and lists.
//! - [`admin`]: pushes, rebalances, live graphs, and the shape of the cluster.
//! - `parts`: puts the router together from these.
//! - `settings`, `options`: the TOML document and the start of the process.
//! - `staleness`: what happens when the metadata store is lost.
//! - `counts`: the metrics that start at 0.
//!
//! `serve` does not know `admin`, and a cache does not know the requests that use it. Rights are checked
//! before the pipeline (`kith_net::server::security`). Decisions are in other crates: `kith-routing` chooses nodes and
//! moves partitions, `kith-cache` chooses what is fetched and evicted, and `kith-topology` says which version is served.
//! The rest, which is here, reads clocks, opens connections and writes metadata, so its tests are mostly whole clusters
//! (`crates/top/kith/tests/system`).
//!
//! To add a setting, begin with [`RouterSettings`]. To add a step that all requests take, begin with `serve::pipeline`. To
//! add an administrative command, begin with [`admin`].

pub mod admin;
mod cache;
mod counts;
mod options;
mod parts;
mod serve;
mod settings;
mod staleness;

pub use admin::{DatabaseServer, DatabaseServers, ReadFrom, UploadSettings};
pub use options::RouterOptions;
pub use settings::{AdmissionSettings, CacheSettings, RouterSettings, SettingsFileError, SlowLogSettings};

use admin::{Admin, Coordinator, object_store};
use kith_cluster::metadata::MetadataStore;
use kith_cluster::{
    StartError,
    freshness::Freshness,
    liveness::{self, ProcessId, Registration},
    topology::{self, FollowedTopology, TopologyReceiver},
};
use kith_doors::{Backend, Doors, OpenDoors};
use kith_net::server::{
    self, Ports,
    connections::Connections,
    http::{self, Readiness},
    security::Security,
};
use kith_wire::{
    MESSAGE_BYTES_MAX, REQUEST_BYTES_MAX,
    documents::Document,
    v1::{
        cluster_server::ClusterServer, graph_server::GraphServer as GraphGrpc,
        store_server::StoreServer as StoreGrpc,
    },
};
use parts::Surroundings;
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// A running router.
#[derive(Debug)]
pub struct Router {
    /// The address on which it listens for gRPC and frames.
    pub addr: SocketAddr,
    /// Its doors, with their addresses.
    pub doors: OpenDoors,
    readiness: Readiness,
    serving: TaskTracker,
    stop: CancellationToken,
}

impl Router {
    /// Starts a router, which runs until `stop`. Returns once it answers queries.
    ///
    /// # Errors
    /// [`StartError`] if the addresses, the topology or the settings cannot be used.
    pub async fn start(
        options: RouterOptions,
        metadata: Arc<dyn MetadataStore>,
        stop: CancellationToken,
    ) -> Result<Self, StartError> {
        options.check()?;
        let copy = topology::copy_in(&options.data);
        let followed = topology::follow(Arc::clone(&metadata), Some(copy), stop.clone()).await?;
        Self::serve(options, metadata, followed, stop).await
    }

    /// Starts a router in the process of the metadata store. It shares the topology that the process follows, and keeps no
    /// copy of it on disk.
    ///
    /// # Errors
    /// As [`Router::start`].
    pub async fn start_beside(
        options: RouterOptions,
        metadata: Arc<dyn MetadataStore>,
        topology: TopologyReceiver,
        stop: CancellationToken,
    ) -> Result<Self, StartError> {
        options.check()?;
        topology::forget_copy(&options.data)?;
        Self::serve(
            options,
            metadata,
            FollowedTopology { topology, freshness: Freshness::new(Duration::ZERO) },
            stop,
        )
        .await
    }

    async fn serve(
        options: RouterOptions,
        metadata: Arc<dyn MetadataStore>,
        followed: FollowedTopology,
        stop: CancellationToken,
    ) -> Result<Self, StartError> {
        http::count();
        let FollowedTopology { topology: documents, freshness } = followed;
        let connections = Connections::new(options.connections.clone())?;
        let dialer = options.security.dialer().clone().with_reply_budget(Arc::clone(connections.replies()));
        counts::of_router(&documents, &stop);
        let cluster = documents.borrow().cluster.clone();
        object_store::check_claim(&cluster).await?;
        let id = ProcessId::router(options.router);
        id.wait_until_free(&*metadata, options.listen).await?;
        let around = Surroundings { metadata, documents, freshness, dialer, stop: stop.clone() };
        let graph = Arc::new(parts::graph_server(&options, &around)?);
        let coordinator = Coordinator::new(options.router);
        let live_value = coordinator.name().to_owned();
        let admin = parts::admin(&options, &around, coordinator, &graph);
        let ports = Ports::bind(options.addresses(), &options.security, &connections).await?;
        let at = ports.addresses();
        let doors = Doors::bind(ports.resp, ports.gremlin, options.doors.clone(), &connections).await?;
        options.doors.iter().for_each(|(_, door)| counts::of_requests(door.names().name));
        let document = options.document(&at);
        let readiness = Readiness::default();
        http::serve(ports.http, options.front_page(at), readiness.clone(), stop.clone());
        // The first queries should not have to wait for connections.
        tokio::join!(graph.session.warm(), graph.forwarder.warm(stop.clone()));
        let backend = Arc::clone(&graph) as Arc<dyn Backend>;
        let doors = doors.open(&backend, &options.security, &stop);
        let watch = staleness::Watch {
            addr: document.addr.clone(),
            freshness: around.freshness.clone(),
            topology: around.documents,
            dialer: around.dialer,
            readiness: readiness.clone(),
            counters: Arc::clone(&graph.pipeline.counters),
            fleet: Arc::clone(graph.session.executor().fleet()),
        };
        let serving = answer(ports.grpc, graph, admin, &options.security, stop.clone());
        options.security.follow(stop.clone());
        watch.start(stop.clone());
        let registration = Registration {
            id,
            live_value: liveness::fixed(live_value),
            document: document.encode(),
            addr: document.addr.clone(),
            leaving: CancellationToken::new(),
        };
        liveness::register(around.metadata, registration, around.freshness, stop.clone());
        readiness.set(true);
        tracing::info!(router = options.router, addr = %at.grpc, "router serves");
        Ok(Self { addr: at.grpc, doors, readiness, serving, stop })
    }

    /// Stops accepting queries, and waits for a limited time until those under way have ended. Cancels the `stop` that the
    /// router was started with.
    pub async fn leave(&self) {
        tracing::info!(addr = %self.addr, "router leaves");
        self.readiness.set(false);
        self.stop.cancel();
        server::ended(&self.serving).await;
        self.ended().await;
    }

    /// Waits, for a limited time, until the clients of its doors have their replies. Call it once the router is stopping.
    pub async fn ended(&self) {
        self.doors.ended().await;
    }
}

fn answer(
    bound: server::BoundListener,
    graph: Arc<serve::GraphServer>,
    admin: Admin,
    security: &Security,
    stop: CancellationToken,
) -> TaskTracker {
    let queries = GraphGrpc::from_arc(Arc::clone(&graph))
        .max_decoding_message_size(REQUEST_BYTES_MAX)
        .max_encoding_message_size(MESSAGE_BYTES_MAX);
    let reads = StoreGrpc::from_arc(Arc::clone(&graph))
        .max_decoding_message_size(REQUEST_BYTES_MAX)
        .max_encoding_message_size(MESSAGE_BYTES_MAX);
    let cluster = ClusterServer::new(admin).max_decoding_message_size(REQUEST_BYTES_MAX);
    let mut routes = server::routes();
    routes.add_service(queries).add_service(reads).add_service(cluster);
    server::spawn(bound, routes, Some(graph), security, stop)
}
