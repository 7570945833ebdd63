//! A router: answers queries for any client, with a network cache in front of the
//! nodes (Moolle's NCS), and does the cluster's administration.

mod admission;
mod behind;
mod counters;
mod counts;
mod doors;
mod forward;
mod frames;
mod lists;
mod networks;
mod origin;
mod pieces;
mod pipeline;
mod record;
mod service;
mod settings;
mod slow_log;
mod streams;
mod view;

pub use kith_control::UploadSettings;
pub use settings::{AdmissionSettings, CacheSettings, RouterSettings, SettingsFileError, SlowLogSettings};

use kith_client::{Caches, ListStore, Session, topology::Topology};
use kith_control::{Admin, Coordinator, Rebalancer, Stores, take_care, take_over};
use kith_doors::{Backend, DoorAt, Doors, OpenDoors};
use kith_metadata::MetadataStore;
use kith_net::{
    security::Dialer,
    server::{
        self, Addresses, FrontPage, Ports,
        connections::{ConnectionSettings, Connections},
        http::{self, Readiness},
        security::Security,
    },
};
use kith_process::{
    StartError,
    freshness::Freshness,
    liveness::{self, ProcessId, Registration},
    place, private,
    topology::{self, Followed, TopologyReceiver},
};
use kith_wire::{
    MESSAGE_BYTES_MAX, REQUEST_BYTES_MAX,
    documents::{DOCUMENT_FORMAT, Document, RouterDocument},
    v1::{
        cluster_server::ClusterServer, graph_server::GraphServer as GraphGrpc,
        store_server::StoreServer as StoreGrpc,
    },
};
use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};
use tokio::sync::watch;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How a router is run.
#[derive(Clone, Debug)]
pub struct RouterOptions {
    /// Its id.
    pub router: u32,
    /// Where it listens for gRPC and frames; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where it serves `/metrics` and friends.
    pub http: SocketAddr,
    /// Where it listens for Redis clients; `None`: nowhere.
    pub resp: Option<SocketAddr>,
    /// Further doors, which speak protocols of their own.
    pub doors: Vec<DoorAt>,
    /// Where it keeps its copy of the topology.
    pub data: PathBuf,
    /// How it answers.
    pub settings: RouterSettings,
    /// How its connections are bounded.
    pub connections: ConnectionSettings,
    /// Who may speak to it, and who it is to others.
    pub security: Security,
}

impl RouterOptions {
    /// Refuses listeners that would give what they serve to everybody, and makes the directory.
    fn check(&self) -> Result<(), StartError> {
        self.security.check_listen(self.listen)?;
        self.security.check_http(self.http)?;
        let doors = self.resp.iter().chain(self.doors.iter().map(|(addr, _)| addr));
        doors.copied().try_for_each(|addr| self.security.check_listen(addr))?;
        std::fs::create_dir_all(&self.data)
            .map_err(|source| StartError::Write { path: self.data.clone(), source })?;
        private::close(&self.data);
        Ok(())
    }

    fn addresses(&self) -> Addresses {
        Addresses { grpc: self.listen, http: self.http, resp: self.resp }
    }

    fn front_page(&self, at: Addresses) -> FrontPage {
        FrontPage { name: format!("router {}", self.router), does: "answers queries of clients", at }
    }

    fn document(&self, at: &Addresses) -> RouterDocument {
        RouterDocument {
            format: DOCUMENT_FORMAT,
            router: self.router,
            addr: at.grpc.to_string(),
            http: at.http.to_string(),
            resp: at.resp_text(),
            pid: std::process::id(),
        }
    }
}

/// A running router.
#[derive(Debug)]
pub struct Router {
    /// Where it listens for gRPC and frames.
    pub addr: SocketAddr,
    /// Where it has its doors.
    pub doors: OpenDoors,
    readiness: Readiness,
    serving: TaskTracker,
    stop: CancellationToken,
}

impl Router {
    /// Starts a router; returns once it answers. Runs until `stop`.
    ///
    /// # Errors
    /// [`StartError`]: the addresses, the topology or the settings.
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
        Self::serve(options, metadata, Followed { topology, freshness: Freshness::new(Duration::ZERO) }, stop)
            .await
    }

    async fn serve(
        options: RouterOptions,
        metadata: Arc<dyn MetadataStore>,
        followed: Followed,
        stop: CancellationToken,
    ) -> Result<Self, StartError> {
        http::count();
        let Followed { topology: documents, freshness } = followed;
        let connections = Connections::new(options.connections)?;
        let dialer = options.security.dialer().clone().with_reply_budget(Arc::clone(connections.replies()));
        counts::of_router(&documents, &stop);
        let cluster = documents.borrow().cluster.clone();
        place::check_claim(&cluster).await?;
        let id = ProcessId::router(options.router);
        id.wait_until_free(&*metadata, options.listen).await?;
        let graph = Arc::new(graph_server(&options, &dialer, &documents, freshness, &stop)?);
        let coordinator = Coordinator::new(options.router);
        let live_value = coordinator.name().to_owned();
        let rebalancer =
            Rebalancer::new(Arc::clone(&metadata), documents.clone(), coordinator.clone(), dialer.clone());
        take_over(rebalancer.clone(), stop.clone());
        let (read_from, uploads) = (options.settings.read_from.clone(), options.settings.uploads.clone());
        let (changes, to_nodes) = (documents.clone(), dialer.clone());
        let stores = Stores::new(Arc::clone(&metadata), changes, coordinator, to_nodes, read_from, uploads);
        take_care(stores.clone(), stop.clone());
        let (session, counters) = (graph.session.clone(), Arc::clone(&graph.pipeline.counters));
        let (freshness, watched) = (graph.pipeline.freshness.clone(), Arc::clone(&graph.pipeline.counters));
        let fleet = Arc::clone(graph.session.executor().fleet());
        let admin = Admin {
            freshness: freshness.clone(),
            stores,
            rebalancer,
            topology: documents.clone(),
            dialer: dialer.clone(),
            stop: stop.clone(),
            view: Arc::new(view::View { session, counters }),
        };
        let ports = Ports::bind(options.addresses(), &options.security, &connections).await?;
        let at = ports.addresses();
        let doors = Doors::bind(ports.resp, options.doors.clone(), &connections).await?;
        options.doors.iter().for_each(|(_, door)| counts::of_door(door.words().name));
        let document = options.document(&at);
        let readiness = Readiness::default();
        http::serve(ports.http, options.front_page(at), readiness.clone(), stop.clone());
        // The first queries shall not be the ones to connect.
        tokio::join!(graph.session.warm(), graph.forwarder.warm(stop.clone()));
        let backend = Arc::clone(&graph) as Arc<dyn Backend>;
        let doors = doors.open(&backend, &options.security, &stop);
        let serving = answer(ports.grpc, graph, admin, &options.security, stop.clone());
        options.security.follow(stop.clone());
        let (addr, document) = (document.addr.clone(), document.encode());
        let watch = behind::Watch {
            addr: addr.clone(),
            freshness: freshness.clone(),
            topology: documents,
            dialer,
            readiness: readiness.clone(),
            counters: watched,
            fleet,
        };
        watch.start(stop.clone());
        let registration = Registration { id, live_value, document, addr };
        liveness::register(metadata, registration, freshness, stop.clone());
        readiness.set(true);
        tracing::info!(router = options.router, addr = %at.grpc, "router serves");
        Ok(Self { addr: at.grpc, doors, readiness, serving, stop })
    }

    /// Takes no more queries and ends those under way. Cancels the `stop` that it was started with.
    pub async fn leave(&self) {
        tracing::info!(addr = %self.addr, "router leaves");
        self.readiness.set(false);
        self.stop.cancel();
        server::ended(&self.serving).await;
        self.ended().await;
    }

    /// Waits, once it is to stop, until the clients of its doors have their replies; not for long.
    pub async fn ended(&self) {
        self.doors.ended().await;
    }
}

fn answer(
    bound: server::Bound,
    graph: Arc<service::GraphServer>,
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

fn graph_server(
    options: &RouterOptions,
    dialer: &Dialer,
    documents: &TopologyReceiver,
    freshness: Freshness,
    stop: &CancellationToken,
) -> Result<service::GraphServer, StartError> {
    let settings = &options.settings;
    let bad = |detail: String| StartError::Settings { detail };
    let mut session_settings = settings.session.clone();
    session_settings.trace_all = true;
    session_settings.admits = true;
    session_settings.tells_waits = true;
    session_settings.dialer = dialer.clone();
    let networks = Arc::new(networks::CachedNetworks::new(&settings.cache, documents.clone()));
    let lists = lists::CachedLists::start(&settings.cache, documents.clone());
    let caches = Caches { networks, lists: Some(Arc::clone(&lists) as Arc<dyn ListStore>) };
    let session = Session::new(decoded(documents)?, session_settings, caches)
        .map_err(|error| bad(error.to_string()))?;
    lists.fill_ahead(session.clone(), documents.clone(), stop.clone());
    let recorder = settings.record.as_deref().map(record::Recorder::open).transpose();
    let recorder = recorder
        .map_err(|source| StartError::Write { path: settings.record.clone().unwrap_or_default(), source })?;
    Ok(service::GraphServer {
        session,
        forwarder: Arc::new(forward::Forwarder::new(documents.clone(), options.router, dialer.clone())),
        pipeline: Arc::new(pipeline::Pipeline {
            admission: admission::Admission::new(settings.admission.queries_max),
            recorder,
            slow_log: slow_log::SlowLog::new(settings.slow_log.clone()),
            counters: Arc::new(counters::RouterCounters::new()),
            freshness,
        }),
    })
}

/// The topology as clients know it, kept fresh from the documents.
fn decoded(documents: &TopologyReceiver) -> Result<watch::Receiver<Arc<Topology>>, StartError> {
    let mut documents = documents.clone();
    let first = Topology::from_document(Arc::clone(&documents.borrow_and_update()));
    let first = first.map_err(|error| StartError::Topology { detail: error.to_string() })?;
    let (sender, receiver) = watch::channel(Arc::new(first));
    tokio::spawn(async move {
        while documents.changed().await.is_ok() {
            let document = Arc::clone(&documents.borrow_and_update());
            match Topology::from_document(document) {
                Ok(topology) => drop(sender.send_replace(Arc::new(topology))),
                Err(error) => {
                    tracing::error!(%error, "a topology makes no sense: staying with the one before")
                }
            }
        }
    });
    Ok(receiver)
}
