//! What a router is asked about its cluster: how it stands, and what changes it.

use super::{
    RouterClient,
    patience::{CALL_PATIENCE, within},
    topology_of,
};
use kith_api::QueryError;
use kith_wire::{documents::TopologyDocument, v1};
use std::time::Duration;
use tonic::Streaming;

/// How long a plan may take: it reads the manifests of all that moves.
const PLAN_PATIENCE: Duration = Duration::from_secs(60);

impl RouterClient {
    /// The cluster's shape, addresses and graphs.
    ///
    /// # Errors
    /// If the router does not answer or its document cannot be read.
    pub async fn topology(&self) -> Result<TopologyDocument, QueryError> {
        let mut cluster = self.cluster.clone();
        let reply = within(CALL_PATIENCE, cluster.get_topology(v1::TopologyRequest {})).await;
        topology_of(reply.map_err(|status| self.error(&status))?.get_ref())
    }

    /// The topology now and after each change.
    ///
    /// # Errors
    /// If the router does not answer.
    pub async fn watch_topology(&self) -> Result<Streaming<v1::Topology>, QueryError> {
        let reply = self.cluster.clone().watch_topology(v1::TopologyRequest {}).await;
        Ok(reply.map_err(|status| self.error(&status))?.into_inner())
    }

    /// What each node says of itself.
    ///
    /// # Errors
    /// If the router does not answer.
    pub async fn status(&self) -> Result<v1::ClusterStatus, QueryError> {
        self.counted(v1::StatusRequest::default()).await
    }

    /// As [`RouterClient::status`], with counters; or only those of the router.
    ///
    /// # Errors
    /// If the router does not answer.
    pub async fn counted(&self, request: v1::StatusRequest) -> Result<v1::ClusterStatus, QueryError> {
        let mut cluster = self.cluster.clone();
        let reply = within(CALL_PATIENCE, cluster.status(request)).await;
        Ok(reply.map_err(|status| self.error(&status))?.into_inner())
    }

    /// Looks at stores or changes one; the records that the router answers are `StoreDocument`s as JSON.
    ///
    /// # Errors
    /// If the store cannot be changed so, or the router does not answer.
    pub async fn store(&self, request: v1::StoreRequest) -> Result<v1::StoreReply, QueryError> {
        let mut cluster = self.cluster.clone();
        let reply = within(CALL_PATIENCE, cluster.store(request)).await;
        Ok(reply.map_err(|status| self.error(&status))?.into_inner())
    }

    /// Plans, begins, looks at, ends or goes on with a change of the cluster's shape; the status that the router answers is
    /// a `RebalanceStatusDocument` as JSON.
    ///
    /// # Errors
    /// If it is refused, or the router does not answer.
    pub async fn rebalance(&self, request: v1::RebalanceRequest) -> Result<v1::RebalanceReply, QueryError> {
        let mut cluster = self.cluster.clone();
        let reply = within(PLAN_PATIENCE, cluster.rebalance(request)).await;
        Ok(reply.map_err(|status| self.error(&status))?.into_inner())
    }

    /// Creates a live graph or changes its types, or shows them.
    ///
    /// # Errors
    /// If it is refused, or the router does not answer.
    pub async fn schema_of_graph(&self, request: v1::SchemaCommand) -> Result<v1::SchemaOutcome, QueryError> {
        let mut cluster = self.cluster.clone();
        let reply = within(PLAN_PATIENCE, cluster.schema(request)).await;
        Ok(reply.map_err(|status| self.error(&status))?.into_inner())
    }

    /// Looks at how fast nodes fetch, or changes it; each node answers for itself.
    ///
    /// # Errors
    /// If there is no such node, or the router does not answer.
    pub async fn fetch_rates(
        &self,
        request: v1::FetchRatesRequest,
    ) -> Result<v1::FetchRatesReply, QueryError> {
        let mut cluster = self.cluster.clone();
        let reply = within(CALL_PATIENCE, cluster.fetch_rates(request)).await;
        Ok(reply.map_err(|status| self.error(&status))?.into_inner())
    }

    /// Makes built components the next version of a store or graph: prepared on every node, then one conditional commit.
    ///
    /// # Errors
    /// If the router does not answer; errors of the push itself come in the stream.
    pub async fn push_store(
        &self,
        request: v1::PushRequest,
    ) -> Result<Streaming<v1::PushProgress>, QueryError> {
        let reply = self.cluster.clone().push_store(request).await;
        Ok(reply.map_err(|status| self.error(&status))?.into_inner())
    }
}
