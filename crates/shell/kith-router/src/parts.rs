//! Builds the parts of a router: the service that answers queries, and the service that administers the cluster.

use crate::{
    RouterOptions,
    admin::{
        Admin, ClusterHandle, Coordinator, Databases, LiveGraphStore, Rebalancer, RouterView, Stores,
        assign_leaders, take_over,
    },
    cache::{CachedLists, CachedNetworks},
    serve::{Admission, Forwarder, GraphServer, Pipeline, Recorder, RouterCounters, SlowLog},
};
use kith_cluster::metadata::MetadataStore;
use kith_cluster::{StartError, freshness::Freshness, topology::TopologyReceiver};
use kith_net::security::Dialer;
use kith_session::{ResultCache, Session};
use kith_topology::Topology;
use std::sync::Arc;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The surroundings that the parts of a router share.
#[derive(Clone)]
pub(super) struct Surroundings {
    pub metadata: Arc<dyn MetadataStore>,
    /// The topology, as documents.
    pub documents: TopologyReceiver,
    /// The greatest possible age of the documents.
    pub freshness: Freshness,
    /// Opens connections to nodes and other routers.
    pub dialer: Dialer,
    pub stop: CancellationToken,
}

/// Returns the administration service. From now on, this router also rolls back pushes and takes over rebalances of routers
/// that are gone, and assigns leaders.
pub(super) fn admin(
    options: &RouterOptions,
    around: &Surroundings,
    coordinator: Coordinator,
    graph: &GraphServer,
) -> Admin {
    let Surroundings { metadata, documents: topology, freshness, dialer, stop } = around.clone();
    let cluster = ClusterHandle { metadata, topology, coordinator, dialer };
    let rebalancer = Rebalancer::new(cluster.clone());
    take_over(rebalancer.clone(), stop.clone());
    let (read_from, uploads) = (options.settings.read_from.clone(), options.settings.uploads.clone());
    let stores = Stores::new(cluster.clone(), graph.session.clone(), read_from, uploads);
    stores.take_care(&stop);
    assign_leaders(Arc::clone(&cluster.metadata), cluster.topology.clone(), stop.clone());
    let servers = options.settings.database_servers(options.database_password_file.clone());
    let databases = Databases::new(cluster.topology.clone(), cluster.dialer.clone(), servers);
    let live = LiveGraphStore::new(cluster.clone(), databases);
    let (session, counters) = (graph.session.clone(), Arc::clone(&graph.pipeline.counters));
    let view = Arc::new(RouterView { session, counters });
    Admin { stores, live, rebalancer, cluster, freshness, stop, view }
}

/// Returns the service that answers queries.
///
/// # Errors
/// [`StartError`] if the topology or the settings cannot be used.
pub(super) fn graph_server(
    options: &RouterOptions,
    around: &Surroundings,
) -> Result<GraphServer, StartError> {
    let Surroundings { documents, freshness, dialer, stop, .. } = around;
    let settings = &options.settings;
    let bad = |detail: String| StartError::Settings { detail };
    let mut session_settings = settings.session.clone();
    session_settings.trace_all = true;
    session_settings.admits = true;
    session_settings.tells_waits = true;
    session_settings.dialer = dialer.clone();
    let networks = Arc::new(CachedNetworks::new(&settings.cache, documents.clone()));
    let lists = CachedLists::start(&settings.cache, documents.clone());
    let caches: Vec<Arc<dyn ResultCache>> = vec![networks, Arc::clone(&lists) as Arc<dyn ResultCache>];
    let session = Session::new(decoded(documents)?, session_settings, caches)
        .map_err(|error| bad(error.to_string()))?;
    lists.fill_ahead(session.clone(), documents.clone(), stop.clone());
    let recorder = settings.record.as_deref().map(Recorder::open).transpose();
    let recorder = recorder
        .map_err(|source| StartError::Write { path: settings.record.clone().unwrap_or_default(), source })?;
    Ok(GraphServer {
        session,
        forwarder: Arc::new(Forwarder::new(documents.clone(), options.router, dialer.clone())),
        pipeline: Arc::new(Pipeline {
            admission: Admission::new(settings.admission.queries_max),
            recorder,
            slow_log: SlowLog::new(settings.slow_log.clone()),
            counters: Arc::new(RouterCounters::new()),
            freshness: freshness.clone(),
        }),
    })
}

/// The topology in the form that clients use, kept up to date from the documents.
fn decoded(documents: &TopologyReceiver) -> Result<watch::Receiver<Arc<Topology>>, StartError> {
    let mut documents = documents.clone();
    let first = Topology::from_document(Arc::clone(&documents.borrow_and_update()));
    let first = first.map_err(|error| StartError::Topology { detail: error.to_string() })?;
    let (sender, receiver) = watch::channel(Arc::new(first));
    tokio::spawn(async move {
        while documents.changed().await.is_ok() {
            let document = Arc::clone(&documents.borrow_and_update());
            let next = Topology::after(Some(&sender.borrow()), document);
            match next {
                Ok(topology) => drop(sender.send_replace(Arc::new(topology))),
                Err(error) => {
                    tracing::error!(%error, "a topology is invalid: keeping the previous one")
                }
            }
        }
    });
    Ok(receiver)
}
