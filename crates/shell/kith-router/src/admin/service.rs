//! Administration: the gRPC service `Cluster`. `status`, `versions` and `rebalance` carry out its requests.

use crate::admin::{
    ClusterHandle, RouterView,
    caller::AdminCaller,
    fetch_rates,
    live::LiveGraphStore,
    rebalance::Rebalancer,
    versions::{Push, Stores, node_wait},
};
use futures::{StreamExt, stream::BoxStream};
use kith_cluster::metadata::records::bounds::push_id;
use kith_cluster::{ClusterReader, freshness::Freshness};
use kith_net::server::security::audit::{self, RefusedCall};
use kith_types::{ErrorCode, StoreVersion};
use kith_wire::{documents::ComponentDocument, v1};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

/// The number of progress messages that may wait for their reader.
const PROGRESS_QUEUE: usize = 256;

/// The `Cluster` service of a router.
#[derive(Clone)]
pub struct Admin {
    /// Carries out commands about stores.
    pub stores: Stores,
    /// Creates live graphs and changes their types.
    pub live: LiveGraphStore,
    /// Carries out rebalances.
    pub rebalancer: Rebalancer,
    /// The cluster.
    pub cluster: ClusterHandle,
    /// The age of the topology.
    pub freshness: Freshness,
    /// The token whose cancellation ends the streams of changes.
    pub stop: CancellationToken,
    /// The router's own view of the nodes and of itself.
    pub(crate) view: Arc<RouterView>,
}

type ProgressStream = BoxStream<'static, Result<v1::PushProgress, Status>>;

impl Admin {
    /// Pushes, and continues if the caller disconnects: a push ends completely or not at all.
    fn push(&self, push: Push, who: AdminCaller) -> ProgressStream {
        let (sender, receiver) = mpsc::channel(PROGRESS_QUEUE);
        let stores = self.stores.clone();
        tokio::spawn(async move {
            let last = stores.push(&push, &sender).await;
            let last = last.inspect_err(|status| who.note_denied("push", &push.store, status));
            let last = last.map(|served| v1::PushProgress {
                committed_version: served.version.0,
                flip_us: served.flip_us,
                routers: served.routers,
                ..Default::default()
            });
            let _ = sender.send(last).await;
        });
        ReceiverStream::new(receiver).boxed()
    }
}

/// Decodes the components of a push, and checks their names.
fn components(json: &[u8], who: &AdminCaller, store: &str) -> Result<Vec<ComponentDocument>, Status> {
    serde_json::from_slice(json).map_err(|error| {
        let reason = format!("the components of the push cannot be read: {error}");
        let (method, code) = ("push", ErrorCode::BadRequest);
        let (subject, peer) = (&who.name, who.peer);
        audit::refused(&RefusedCall { subject, method, store, code, reason: &reason, peer });
        let help = "nothing was pushed; components are a JSON list, as `kith store push` and docs/design/0005-stores.md write it";
        kith_wire::status(ErrorCode::BadRequest, reason, help)
    })
}

#[tonic::async_trait]
impl v1::cluster_server::Cluster for Admin {
    type WatchTopologyStream = BoxStream<'static, Result<v1::Topology, Status>>;
    type PushStoreStream = ProgressStream;

    async fn get_topology(&self, _: Request<v1::TopologyRequest>) -> Result<Response<v1::Topology>, Status> {
        Ok(Response::new(ClusterReader::new(self.cluster.topology.clone(), self.stop.clone()).now()))
    }

    async fn get_types(&self, request: Request<v1::TypesRequest>) -> Result<Response<v1::Types>, Status> {
        let reader = ClusterReader::new(self.cluster.topology.clone(), self.stop.clone());
        reader.types(&request.get_ref().graph).map(Response::new)
    }

    async fn watch_topology(
        &self,
        _: Request<v1::TopologyRequest>,
    ) -> Result<Response<Self::WatchTopologyStream>, Status> {
        Ok(Response::new(ClusterReader::new(self.cluster.topology.clone(), self.stop.clone()).changes()))
    }

    async fn status(
        &self,
        request: Request<v1::StatusRequest>,
    ) -> Result<Response<v1::ClusterStatus>, Status> {
        Ok(Response::new(self.cluster_status(request.into_inner()).await))
    }

    async fn push_store(
        &self,
        request: Request<v1::PushRequest>,
    ) -> Result<Response<Self::PushStoreStream>, Status> {
        let who = AdminCaller::of(&request, &request.get_ref().who);
        let request = request.into_inner();
        let components = components(&request.components, &who, &request.store)?;
        let push = Push {
            store: request.store,
            push: push_id(&match request.push {
                push if push.is_empty() => {
                    let kind = if request.graph { "load" } else { "push" };
                    format!("{kind}-{:016x}", rand::random::<u64>())
                }
                push => push,
            })?,
            who: who.name.clone(),
            standing: who.standing,
            peer: who.peer,
            components,
            version: (request.version != 0).then_some(StoreVersion(request.version)),
            missing_max: request.missing_max,
            force: request.force,
            fill_missing: request.fill_missing,
            from_peers: request.from_peers,
            node_wait: node_wait(request.node_wait_ms)?,
            is_load: request.graph,
        };
        Ok(Response::new(self.push(push, who)))
    }

    async fn store(&self, request: Request<v1::StoreRequest>) -> Result<Response<v1::StoreReply>, Status> {
        let who = AdminCaller::of(&request, &request.get_ref().who);
        let request = v1::StoreRequest { who: who.name.clone(), ..request.into_inner() };
        let store = request.store.clone();
        let done = self.stores.command(request, who.standing).await;
        let done = done.inspect_err(|status| who.note_denied("/kith.v1.Cluster/Store", &store, status));
        Ok(Response::new(done?))
    }

    async fn rebalance(
        &self,
        request: Request<v1::RebalanceRequest>,
    ) -> Result<Response<v1::RebalanceReply>, Status> {
        let who = AdminCaller::of(&request, &request.get_ref().who).name;
        let request = v1::RebalanceRequest { who, ..request.into_inner() };
        Ok(Response::new(self.rebalancer.command(request).await?))
    }

    async fn schema(
        &self,
        request: Request<v1::SchemaCommand>,
    ) -> Result<Response<v1::SchemaOutcome>, Status> {
        let who = AdminCaller::of(&request, &request.get_ref().who);
        let request = request.into_inner();
        let graph = request.graph.clone();
        let is_dry_run = matches!(
            &request.command,
            Some(v1::schema_command::Command::Apply(v1::ApplySchema { dry_run: true, .. }))
        );
        let outcome =
            self.live.command(request, who.name.clone(), who.standing).await.inspect_err(|status| {
                who.note("/kith.v1.Cluster/Schema", &graph, status, ErrorCode::UrlNotAllowed);
            })?;
        if outcome.is_new && !is_dry_run {
            self.wait_until_ready(&graph).await;
        }
        Ok(Response::new(outcome))
    }

    async fn fetch_rates(
        &self,
        request: Request<v1::FetchRatesRequest>,
    ) -> Result<Response<v1::FetchRatesReply>, Status> {
        let topology = Arc::clone(&self.cluster.topology.borrow());
        Ok(Response::new(
            fetch_rates::fetch_rates(&topology, &self.cluster.dialer, request.into_inner()).await?,
        ))
    }
}
