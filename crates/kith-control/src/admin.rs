//! Administration: status, and what `versions` does to stores.

use crate::{
    fetch_rates, own_status,
    rebalance::Rebalancer,
    shape,
    versions::{Push, Stores, last_push, observed},
};
use futures::{StreamExt, future::BoxFuture, stream::BoxStream};
use kith_metadata::records::{
    bounds::{cut_who, node_wait, push_id},
    now,
};
use kith_net::{
    security::Dialer,
    server::{
        Peer,
        security::{
            Asker,
            audit::{self, Refused},
        },
    },
};
use kith_process::{ClusterReader, freshness::Freshness, topology::TopologyReceiver};
use kith_types::{ErrorCode, NodeId, StoreVersion};
use kith_versions::Trust;
use kith_wire::{
    documents::{ComponentDocument, NodeDocument, RouterDocument, TopologyDocument},
    v1,
};
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

/// A node or router that does not answer within this time is shown as down.
const NODE_PATIENCE: Duration = Duration::from_millis(500);
/// Progress messages that may wait for their reader.
const PROGRESS_QUEUE: usize = 256;

/// The `Cluster` service of a router.
#[derive(Clone)]
pub struct Admin {
    /// Carries out what is asked of stores.
    pub stores: Stores,
    /// Carries out rebalances.
    pub rebalancer: Rebalancer,
    /// The cluster.
    pub topology: TopologyReceiver,
    /// How old it may be.
    pub freshness: Freshness,
    /// Connects to nodes and to other routers.
    pub dialer: Dialer,
    /// Ends the streams of changes.
    pub stop: CancellationToken,
    /// What the router knows of the nodes, and of itself.
    pub view: Arc<dyn RouterView>,
}

/// What a router knows by answering queries, as far as the status of the cluster shows it.
pub trait RouterView: Send + Sync + 'static {
    /// Asks a node about itself, over the connections that queries take.
    fn ping<'a>(
        &'a self,
        addr: &'a str,
        request: v1::PingRequest,
    ) -> BoxFuture<'a, Result<v1::PingReply, Status>>;

    /// Whether queries are sent to a node now.
    fn is_up(&self, node: NodeId) -> bool;

    /// How long answers of a store took since the router started: how many, their p50 and their p99.
    fn latencies_of(&self, store: &str) -> (u64, Duration, Duration);

    /// What the router did since it started.
    fn counters(&self) -> v1::RouterCounters;
}

type ProgressStream = BoxStream<'static, Result<v1::PushProgress, Status>>;

impl Admin {
    /// Pushes, and goes on when the caller goes away: a push ends whole or not at all.
    fn push(&self, push: Push, who: Who) -> ProgressStream {
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

    async fn router_status(&self, router: &RouterDocument) -> v1::RouterStatus {
        let told = tokio::time::timeout(NODE_PATIENCE, own_status(&self.dialer, &router.addr)).await;
        let told = told.ok().and_then(Result::ok);
        v1::RouterStatus {
            addr: router.addr.clone(),
            http: router.http.clone(),
            pid: router.pid,
            router: router.router,
            state: if told.is_some() { "up" } else { "down" }.to_owned(),
            revision: told.as_ref().map_or(0, |told| told.revision),
            metadata_age_ms: told.map_or(0, |told| told.metadata_age_ms),
        }
    }

    async fn store_statuses(&self) -> Vec<v1::StoreStatus> {
        let read = tokio::time::timeout(NODE_PATIENCE, self.stores.documents()).await;
        let documents = read.ok().and_then(Result::ok).unwrap_or_default();
        let statuses = documents.into_iter().map(|store| {
            let (answers, p50, p99) = self.view.latencies_of(&store.name);
            let age = observed(&store, now()).version_age.unwrap_or_default();
            v1::StoreStatus {
                version: store.current().map_or(0, |current| current.version),
                version_age_ms: age.as_millis() as u64,
                last_push: last_push(&store).unwrap_or_default().to_owned(),
                running: store.running.map(|running| running.push).unwrap_or_default(),
                frozen: store.frozen.is_some(),
                answers,
                p50_us: p50.as_micros() as u64,
                p99_us: p99.as_micros() as u64,
                store: store.name,
            }
        });
        statuses.collect()
    }

    async fn node_status(
        &self,
        topology: &TopologyDocument,
        group: Option<u32>,
        node: u32,
        counters: bool,
    ) -> v1::NodeStatus {
        let document: Option<&NodeDocument> = topology.nodes.iter().find(|document| document.node == node);
        let partitions = topology.cluster.partitions_of(node).len() as u32;
        let listed = topology.cluster.listed.iter().find(|listed| listed.node == node);
        let zone = listed.map(|listed| &listed.zone).filter(|zone| !zone.is_empty());
        let zone = zone.or(document.map(|document| &document.zone)).cloned().unwrap_or_default();
        let mut status = v1::NodeStatus {
            node,
            group: group.unwrap_or_default(),
            spare: group.is_none(),
            zone,
            addr: document.map(|document| document.addr.clone()).unwrap_or_default(),
            pid: document.map_or(0, |document| document.pid),
            partitions,
            state: "unregistered".to_owned(),
            ..Default::default()
        };
        if document.is_some() {
            let request = v1::PingRequest { counters, disk: true, ..Default::default() };
            let ping = self.view.ping(&status.addr, request);
            match tokio::time::timeout(NODE_PATIENCE, ping).await {
                Ok(Ok(reply)) => {
                    let up = self.view.is_up(NodeId(node));
                    status.state = if up { "up" } else { "coming back" }.to_owned();
                    status.load = reply.load;
                    status.served = reply.served;
                    status.files_damaged = reply.files_damaged;
                    status.files_repaired = reply.files_repaired;
                    status.fetch_held_back = reply.fetch_held_back;
                    status.counters = reply.counters;
                    status.disk_free = reply.disk_free;
                }
                _ => status.state = "down".to_owned(),
            }
        }
        status
    }
}

/// The components of a push, their names checked.
fn components(json: &[u8], who: &Who, store: &str) -> Result<Vec<ComponentDocument>, Status> {
    serde_json::from_slice(json).map_err(|error| {
        let reason = format!("the components of the push cannot be read: {error}");
        let (method, code) = ("push", ErrorCode::BadRequest);
        let (subject, peer) = (&who.name, who.peer);
        audit::refused(&Refused { subject, method, store, code, reason: &reason, peer });
        let help = "nothing was pushed; components are a JSON list, as `kith store push` and docs/design/0005-stores.md write it";
        kith_wire::status(ErrorCode::BadRequest, reason, help)
    })
}

/// Who asks, and what is known of them.
#[derive(Clone, Debug)]
struct Who {
    /// As the file of rights calls them, else as they say, else where they ask from.
    name: String,
    standing: Trust,
    peer: Option<SocketAddr>,
}

impl Who {
    /// Whoever sent a request, in which they say that they are `claimed`.
    fn of<T>(request: &Request<T>, claimed: &str) -> Self {
        let peer = request.extensions().get::<Peer>().and_then(|peer| peer.addr);
        if let Some(Asker { name, is_administrator }) = request.extensions().get::<Asker>() {
            let standing = if *is_administrator { Trust::Administrator } else { Trust::Proven };
            return Self { name: name.to_string(), standing, peer };
        }
        let name = match (claimed, peer) {
            ("", Some(addr)) => addr.to_string(),
            ("", None) => "somebody".to_owned(),
            _ => cut_who(claimed),
        };
        Self { name, standing: Trust::Claimed, peer }
    }

    /// One line in the audit log, if this is the answer to whoever asked for what is somebody else's.
    fn note_denied(&self, method: &str, store: &str, status: &Status) {
        let code = kith_wire::code_of(status);
        if code != ErrorCode::PermissionDenied {
            return;
        }
        audit::refused(&Refused {
            subject: &self.name,
            method,
            store,
            code,
            reason: status.message(),
            peer: self.peer,
        });
    }
}

#[tonic::async_trait]
impl v1::cluster_server::Cluster for Admin {
    type WatchTopologyStream = BoxStream<'static, Result<v1::Topology, Status>>;
    type PushStoreStream = ProgressStream;

    async fn get_topology(&self, _: Request<v1::TopologyRequest>) -> Result<Response<v1::Topology>, Status> {
        Ok(Response::new(ClusterReader::new(self.topology.clone(), self.stop.clone()).now()))
    }

    async fn watch_topology(
        &self,
        _: Request<v1::TopologyRequest>,
    ) -> Result<Response<Self::WatchTopologyStream>, Status> {
        Ok(Response::new(ClusterReader::new(self.topology.clone(), self.stop.clone()).changes()))
    }

    async fn status(
        &self,
        request: Request<v1::StatusRequest>,
    ) -> Result<Response<v1::ClusterStatus>, Status> {
        let v1::StatusRequest { counters, own } = request.into_inner();
        let told = counters.then(|| self.view.counters());
        let topology = Arc::clone(&self.topology.borrow());
        let revision = topology.revision;
        let metadata_age_ms = u64::try_from(self.freshness.age().as_millis()).unwrap_or(u64::MAX);
        if own {
            let own = v1::ClusterStatus { counters: told, revision, metadata_age_ms, ..Default::default() };
            return Ok(Response::new(own));
        }
        let groups = topology.cluster.groups.iter();
        let listed: Vec<(Option<u32>, u32)> =
            groups.flat_map(|group| group.nodes.iter().map(|&node| (Some(group.group), node))).collect();
        let is_spare = |node: &u32| !listed.iter().any(|(_, known)| known == node);
        let spares = topology.nodes.iter().map(|known| known.node).filter(is_spare).map(|node| (None, node));
        let nodes = listed.iter().copied().chain(spares);
        let nodes = nodes.map(|(group, node)| self.node_status(&topology, group, node, counters));
        let mut nodes = futures::future::join_all(nodes).await;
        // A node that was removed and ended is nobody's business any more.
        nodes.retain(|node| !node.spare || node.state != "down");
        let is_away =
            |node: &&v1::NodeStatus| !node.spare && ["down", "unregistered"].contains(&node.state.as_str());
        let nodes_down: Vec<u32> = nodes.iter().filter(is_away).map(|node| node.node).collect();
        let routers = topology.routers.iter().map(|router| self.router_status(router));
        let routers = futures::future::join_all(routers).await;
        Ok(Response::new(v1::ClusterStatus {
            nodes,
            epoch: topology.cluster.epoch,
            routers,
            partitions: topology.cluster.partitions,
            counters: told,
            revision,
            metadata_age_ms,
            stores: self.store_statuses().await,
            groups: shape::groups(&topology, &nodes_down),
        }))
    }

    async fn push_store(
        &self,
        request: Request<v1::PushRequest>,
    ) -> Result<Response<Self::PushStoreStream>, Status> {
        let who = Who::of(&request, &request.get_ref().who);
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
            from_peers: request.from_peers,
            node_wait: node_wait(request.node_wait_ms)?,
            is_load: request.graph,
        };
        Ok(Response::new(self.push(push, who)))
    }

    async fn store(&self, request: Request<v1::StoreRequest>) -> Result<Response<v1::StoreReply>, Status> {
        let who = Who::of(&request, &request.get_ref().who);
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
        let who = Who::of(&request, &request.get_ref().who).name;
        let request = v1::RebalanceRequest { who, ..request.into_inner() };
        Ok(Response::new(self.rebalancer.command(request).await?))
    }

    async fn fetch_rates(
        &self,
        request: Request<v1::FetchRatesRequest>,
    ) -> Result<Response<v1::FetchRatesReply>, Status> {
        let topology = Arc::clone(&self.topology.borrow());
        Ok(Response::new(fetch_rates::fetch_rates(&topology, &self.dialer, request.into_inner()).await?))
    }
}
