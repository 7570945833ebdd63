//! The part of the service `Cluster` that every process of a cluster provides: the topology, for clients.

use crate::topology::TopologyReceiver;
use futures::{StreamExt, stream::BoxStream};
use kith_types::ErrorCode;
use kith_wire::LookupError;
use kith_wire::{documents::Document, v1};
use tokio_stream::wrappers::WatchStream;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

/// The part of the service `Cluster` that nodes serve too, so that a client can start from any process.
#[derive(Clone, Debug)]
pub struct ClusterReader {
    topology: TopologyReceiver,
    /// Ends the streams of changes, the only answers that would not end by themselves.
    stop: CancellationToken,
}

impl ClusterReader {
    /// Answers from `topology`, until `stop` is cancelled.
    pub fn new(topology: TopologyReceiver, stop: CancellationToken) -> Self {
        Self { topology, stop }
    }

    /// The topology now.
    pub fn now(&self) -> v1::Topology {
        let document = self.topology.borrow().clone();
        v1::Topology { document: document.for_clients().encode().into(), revision: document.revision }
    }

    /// The types of a live graph.
    ///
    /// # Errors
    /// `unknown_graph` if this process knows no such live graph; `schema_unavailable` if it cannot read the types.
    pub fn types(&self, graph: &str) -> Result<v1::Types, Status> {
        let document = self.topology.borrow().clone();
        let Some(live) = document.live.iter().find(|live| live.name == graph) else {
            let known = document.live.iter().map(|live| live.name.clone()).collect();
            return Err(LookupError::UnknownGraph { name: graph.to_owned(), known }.to_status());
        };
        let unread = |reason: &str| {
            let (graph, reason) = (graph.to_owned(), reason.to_owned());
            LookupError::TypesUnavailable { graph, reason }.to_status()
        };
        let text = match document.types.get(graph) {
            Some(Ok(text)) => text.as_bytes().to_vec(),
            Some(Err(reason)) => return Err(unread(reason)),
            None => return Err(unread("this process does not read them")),
        };
        let reference = serde_json::to_vec(&live.types).map_err(|error| unread(&error.to_string()))?;
        Ok(v1::Types { reference: reference.into(), text: text.into() })
    }

    /// The topology now and after each change.
    pub fn changes(&self) -> BoxStream<'static, Result<v1::Topology, Status>> {
        WatchStream::new(self.topology.clone())
            .map(|document| {
                let text = document.for_clients().encode();
                Ok(v1::Topology { document: text.into(), revision: document.revision })
            })
            .take_until(self.stop.clone().cancelled_owned())
            .boxed()
    }
}

fn only_routers(what: &str) -> Status {
    let message = format!("only routers support {what}, and this is a node");
    kith_wire::status(ErrorCode::UnsupportedOperation, message, "ask a router")
}

#[tonic::async_trait]
impl v1::cluster_server::Cluster for ClusterReader {
    type WatchTopologyStream = BoxStream<'static, Result<v1::Topology, Status>>;
    type PushStoreStream = BoxStream<'static, Result<v1::PushProgress, Status>>;

    async fn get_topology(&self, _: Request<v1::TopologyRequest>) -> Result<Response<v1::Topology>, Status> {
        Ok(Response::new(self.now()))
    }

    async fn get_types(&self, request: Request<v1::TypesRequest>) -> Result<Response<v1::Types>, Status> {
        self.types(&request.get_ref().graph).map(Response::new)
    }

    async fn watch_topology(
        &self,
        _: Request<v1::TopologyRequest>,
    ) -> Result<Response<Self::WatchTopologyStream>, Status> {
        Ok(Response::new(self.changes()))
    }

    async fn status(&self, _: Request<v1::StatusRequest>) -> Result<Response<v1::ClusterStatus>, Status> {
        Err(only_routers("cluster status"))
    }

    async fn store(&self, _: Request<v1::StoreRequest>) -> Result<Response<v1::StoreReply>, Status> {
        Err(only_routers("the administration of stores"))
    }

    async fn rebalance(
        &self,
        _: Request<v1::RebalanceRequest>,
    ) -> Result<Response<v1::RebalanceReply>, Status> {
        Err(only_routers("rebalancing"))
    }

    async fn fetch_rates(
        &self,
        _: Request<v1::FetchRatesRequest>,
    ) -> Result<Response<v1::FetchRatesReply>, Status> {
        Err(only_routers("the fetch rates of all nodes"))
    }

    async fn schema(&self, _: Request<v1::SchemaCommand>) -> Result<Response<v1::SchemaOutcome>, Status> {
        Err(only_routers("the administration of live graphs"))
    }

    async fn push_store(
        &self,
        _: Request<v1::PushRequest>,
    ) -> Result<Response<Self::PushStoreStream>, Status> {
        Err(only_routers("pushes"))
    }
}
