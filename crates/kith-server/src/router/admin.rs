//! Administration: status, loads of graphs, and what `versions` does to stores.

use crate::{
    serve::ClusterReader,
    topology::TopologyReceiver,
    versions::{Push, Size, Stores},
};
use futures::{StreamExt, stream::BoxStream};
use kith_client::Fleet;
use kith_types::{NodeId, StoreVersion};
use kith_versions::PushId;
use kith_wire::{
    documents::{ComponentDocument, NodeDocument, TopologyDocument},
    v1,
};
use std::{sync::Arc, time::Duration};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Response, Status};

/// A node that does not answer within this time is shown as down.
const NODE_PATIENCE: Duration = Duration::from_millis(500);
/// Progress messages that may wait for their reader.
const PROGRESS_QUEUE: usize = 256;

/// The `Cluster` service of a router.
#[derive(Clone)]
pub(super) struct Admin {
    pub stores: Stores,
    pub topology: TopologyReceiver,
    pub fleet: Arc<Fleet>,
}

type ProgressStream = BoxStream<'static, Result<v1::PublishProgress, Status>>;

impl Admin {
    /// Pushes, and goes on when the caller goes away: a push ends whole or not at all.
    fn push(&self, push: Push) -> ProgressStream {
        let (sender, receiver) = mpsc::channel(PROGRESS_QUEUE);
        let stores = self.stores.clone();
        tokio::spawn(async move {
            let last = stores.push(&push, &sender).await;
            let last =
                last.map(|version| v1::PublishProgress { committed_version: version, ..Default::default() });
            let _ = sender.send(last).await;
        });
        ReceiverStream::new(receiver).boxed()
    }

    async fn node_status(&self, topology: &TopologyDocument, group: u32, node: u32) -> v1::NodeStatus {
        let document: Option<&NodeDocument> = topology.nodes.iter().find(|document| document.node == node);
        let owners =
            topology.cluster.groups.iter().find(|entry| entry.group == group).map(|entry| &entry.owners);
        let partitions =
            owners.map_or(0, |owners| owners.iter().filter(|owner| **owner == node).count() as u32);
        let mut status = v1::NodeStatus {
            node,
            group,
            addr: document.map(|document| document.addr.clone()).unwrap_or_default(),
            pid: document.map_or(0, |document| document.pid),
            partitions,
            state: "unregistered".to_owned(),
            ..Default::default()
        };
        if document.is_some() {
            let ping = self.fleet.transport().ping(&status.addr, v1::PingRequest::default());
            match tokio::time::timeout(NODE_PATIENCE, ping).await {
                Ok(Ok(reply)) => {
                    let up = self.fleet.is_up(NodeId(node));
                    status.state = if up { "up" } else { "coming back" }.to_owned();
                    status.load = reply.load;
                    status.served = reply.served;
                    status.files_damaged = reply.files_damaged;
                    status.files_repaired = reply.files_repaired;
                }
                _ => status.state = "down".to_owned(),
            }
        }
        status
    }
}

fn components(json: &[u8]) -> Result<Vec<ComponentDocument>, Status> {
    serde_json::from_slice(json).map_err(|error| {
        let help = "use the kith of this release to load";
        kith_wire::status(Code::InvalidArgument, "bad_request", error.to_string(), help)
    })
}

/// Who asks, as they say, else where they ask from.
fn asker<T>(request: &Request<T>, who: &str) -> String {
    match (who, request.remote_addr()) {
        ("", Some(addr)) => addr.to_string(),
        ("", None) => "somebody".to_owned(),
        _ => who.to_owned(),
    }
}

#[tonic::async_trait]
impl v1::cluster_server::Cluster for Admin {
    type WatchTopologyStream = BoxStream<'static, Result<v1::Topology, Status>>;
    type PublishGraphStream = ProgressStream;
    type PushStoreStream = ProgressStream;

    async fn get_topology(&self, _: Request<v1::TopologyRequest>) -> Result<Response<v1::Topology>, Status> {
        Ok(Response::new(ClusterReader::new(self.topology.clone()).now()))
    }

    async fn watch_topology(
        &self,
        _: Request<v1::TopologyRequest>,
    ) -> Result<Response<Self::WatchTopologyStream>, Status> {
        Ok(Response::new(ClusterReader::new(self.topology.clone()).changes()))
    }

    async fn status(&self, _: Request<v1::StatusRequest>) -> Result<Response<v1::ClusterStatus>, Status> {
        let topology = Arc::clone(&self.topology.borrow());
        let groups = topology.cluster.groups.iter();
        let nodes = groups.flat_map(|group| group.nodes.iter().map(|&node| (group.group, node)));
        let nodes = nodes.map(|(group, node)| self.node_status(&topology, group, node));
        let nodes = futures::future::join_all(nodes).await;
        let routers = topology.routers.iter().map(|router| v1::RouterStatus {
            addr: router.addr.clone(),
            http: router.http.clone(),
            pid: router.pid,
        });
        Ok(Response::new(v1::ClusterStatus {
            nodes,
            epoch: topology.cluster.epoch,
            routers: routers.collect(),
            partitions: topology.cluster.partitions,
        }))
    }

    async fn publish_graph(
        &self,
        request: Request<v1::PublishRequest>,
    ) -> Result<Response<Self::PublishGraphStream>, Status> {
        let who = asker(&request, &request.get_ref().who);
        let request = request.into_inner();
        Ok(Response::new(self.push(Push {
            store: request.graph,
            push: PushId(format!("load-{:016x}", rand::random::<u64>())),
            who,
            components: components(&request.components)?,
            version: None,
            missing_max: 0,
            force: false,
            size: Size::OfGraph,
        })))
    }

    async fn push_store(
        &self,
        request: Request<v1::PushRequest>,
    ) -> Result<Response<Self::PushStoreStream>, Status> {
        let who = asker(&request, &request.get_ref().who);
        let request = request.into_inner();
        Ok(Response::new(self.push(Push {
            store: request.store,
            push: PushId(request.push),
            who,
            components: components(&request.components)?,
            version: (request.version != 0).then_some(StoreVersion(request.version)),
            missing_max: request.missing_max,
            force: request.force,
            size: Size::Told { records: request.records, bytes: request.bytes },
        })))
    }

    async fn store(&self, request: Request<v1::StoreRequest>) -> Result<Response<v1::StoreReply>, Status> {
        let who = asker(&request, &request.get_ref().who);
        let request = v1::StoreRequest { who, ..request.into_inner() };
        Ok(Response::new(self.stores.command(request).await?))
    }

    async fn drop_graph(&self, request: Request<v1::DropRequest>) -> Result<Response<v1::DropReply>, Status> {
        let revision = self.stores.drop_graph(&request.get_ref().graph).await?;
        Ok(Response::new(v1::DropReply { revision }))
    }
}
