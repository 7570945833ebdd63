//! Administrative calls to a router: they look at its cluster and change it.

use super::KnownTypes;
use super::{
    RouterClient,
    timeouts::{CALL_TIMEOUT, within},
    topology_of,
};
use kith_query::QueryError;
use kith_wire::{
    LookupError,
    documents::{TopologyDocument, TypesReference},
    v1,
};
use std::{sync::Arc, time::Duration};
use tonic::Streaming;

/// The time limit of a plan. Planning reads the manifests of all partitions that move.
const PLAN_TIMEOUT: Duration = Duration::from_secs(60);

impl RouterClient {
    /// The cluster's shape, addresses and graphs.
    ///
    /// # Errors
    /// If the router does not answer or its document cannot be read.
    pub async fn topology(&self) -> Result<TopologyDocument, QueryError> {
        let mut cluster = self.cluster.clone();
        let reply = within(CALL_TIMEOUT, cluster.get_topology(v1::TopologyRequest {})).await;
        topology_of(reply.map_err(|status| self.error(&status))?.get_ref())
    }

    /// As [`RouterClient::topology`], with the types of the live graphs that are wanted. Types that cannot be read become errors
    /// about their graphs only.
    ///
    /// # Errors
    /// If the router does not answer or its document cannot be read.
    pub async fn topology_with_types(
        &self,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<TopologyDocument, QueryError> {
        let mut topology = self.topology().await?;
        KnownTypes::default().add_to(self, &mut topology, is_wanted).await;
        Ok(topology)
    }

    /// The types of a live graph, and the reference to them.
    ///
    /// # Errors
    /// If there is no such live graph, its types cannot be read, or the router does not answer.
    pub(crate) async fn types(&self, graph: &str) -> Result<(TypesReference, Arc<str>), QueryError> {
        let mut cluster = self.cluster.clone();
        let request = v1::TypesRequest { graph: graph.to_owned() };
        let reply = within(CALL_TIMEOUT, cluster.get_types(request)).await;
        let v1::Types { reference, text } = reply.map_err(|status| self.error(&status))?.into_inner();
        let unread = |reason: String| LookupError::TypesUnavailable { graph: graph.to_owned(), reason };
        let reference: TypesReference =
            serde_json::from_slice(&reference).map_err(|error| unread(error.to_string()))?;
        let text = std::str::from_utf8(&text).map_err(|error| unread(error.to_string()))?;
        reference.check(text).map_err(unread)?;
        Ok((reference, text.into()))
    }

    /// Streams the topology now and after each change.
    ///
    /// # Errors
    /// If the router does not answer.
    pub async fn watch_topology(&self) -> Result<Streaming<v1::Topology>, QueryError> {
        let reply = self.cluster.clone().watch_topology(v1::TopologyRequest {}).await;
        Ok(reply.map_err(|status| self.error(&status))?.into_inner())
    }

    /// The status of each node, as the node reports it.
    ///
    /// # Errors
    /// If the router does not answer.
    pub async fn status(&self) -> Result<v1::ClusterStatus, QueryError> {
        self.counted(v1::StatusRequest::default()).await
    }

    /// Returns what [`RouterClient::status`] returns, with counters; or only the counters of the router.
    ///
    /// # Errors
    /// If the router does not answer.
    pub async fn counted(&self, request: v1::StatusRequest) -> Result<v1::ClusterStatus, QueryError> {
        let mut cluster = self.cluster.clone();
        let reply = within(CALL_TIMEOUT, cluster.status(request)).await;
        Ok(reply.map_err(|status| self.error(&status))?.into_inner())
    }

    /// Looks at stores or changes one. The reply carries `StoreDocument`s as JSON.
    ///
    /// # Errors
    /// If the change is refused, or the router does not answer.
    pub async fn store(&self, request: v1::StoreRequest) -> Result<v1::StoreReply, QueryError> {
        let mut cluster = self.cluster.clone();
        let reply = within(CALL_TIMEOUT, cluster.store(request)).await;
        Ok(reply.map_err(|status| self.error(&status))?.into_inner())
    }

    /// Plans, begins, shows, ends or resumes a rebalance. The reply carries a `RebalanceStatusDocument` as JSON.
    ///
    /// # Errors
    /// If it is refused, or the router does not answer.
    pub async fn rebalance(&self, request: v1::RebalanceRequest) -> Result<v1::RebalanceReply, QueryError> {
        let mut cluster = self.cluster.clone();
        let reply = within(PLAN_TIMEOUT, cluster.rebalance(request)).await;
        Ok(reply.map_err(|status| self.error(&status))?.into_inner())
    }

    /// Creates a live graph or changes its types, or shows them.
    ///
    /// # Errors
    /// If it is refused, or the router does not answer.
    pub async fn schema_of_graph(&self, request: v1::SchemaCommand) -> Result<v1::SchemaOutcome, QueryError> {
        let mut cluster = self.cluster.clone();
        let reply = within(PLAN_TIMEOUT, cluster.schema(request)).await;
        Ok(reply.map_err(|status| self.error(&status))?.into_inner())
    }

    /// Shows or changes the rate at which nodes fetch. Each node answers for itself.
    ///
    /// # Errors
    /// If there is no such node, or the router does not answer.
    pub async fn fetch_rates(
        &self,
        request: v1::FetchRatesRequest,
    ) -> Result<v1::FetchRatesReply, QueryError> {
        let mut cluster = self.cluster.clone();
        let reply = within(CALL_TIMEOUT, cluster.fetch_rates(request)).await;
        Ok(reply.map_err(|status| self.error(&status))?.into_inner())
    }

    /// Makes built components the next version of a store or graph: prepares them on every node, then commits with one
    /// conditional write.
    ///
    /// # Errors
    /// If the router does not answer. Errors of the push itself come in the stream.
    pub async fn push_store(
        &self,
        request: v1::PushRequest,
    ) -> Result<Streaming<v1::PushProgress>, QueryError> {
        let reply = self.cluster.clone().push_store(request).await;
        Ok(reply.map_err(|status| self.error(&status))?.into_inner())
    }
}
