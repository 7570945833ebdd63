//! Batch reads of stores of values, over gRPC and in frames.

use super::{
    pipeline::{Entered, Passage},
    query_json::{aggregate_json, batch_json, compute_json},
    service::GraphServer,
};
use futures::stream::BoxStream;
use kith_api::{
    AggregateQuery, BatchKeys, ComputeAt, ComputeQuery, Proofs, QueryError, StoreService,
    convert::{
        aggregate_answer_to_wire, aggregate_from_wire, batch_answer_to_wire, batch_from_wire,
        compute_answer_to_wire, compute_from_wire, schema_from_wire,
    },
};
use kith_wire::v1;
use serde_json::{Value, json};
use tonic::{Request, Response, Status};

impl GraphServer {
    /// Answers a batch read.
    pub async fn multi_get(&self, request: v1::MultiGetRequest) -> Result<v1::MultiGetReply, Status> {
        let answer = async {
            let entered = self.enter(&request.store)?;
            let (store, keys, options) = batch_from_wire(request)?;
            let passage = self.begin_read(entered, "mget", &keys, || batch_json(&store, &keys, &options))?;
            let answered = self.session.multi_get(&store, &keys, &options).await;
            let mut answer = passage.end(answered, options.profile, &|| summary("mget", &store, &keys))?;
            if options.proofs == Proofs::Here {
                answer.records.drop_proofs();
            }
            Ok(answer)
        };
        answer.await.map(batch_answer_to_wire).map_err(|error: QueryError| error.to_status())
    }

    /// Answers a computation over records.
    pub async fn compute(&self, request: v1::ComputeRequest) -> Result<v1::ComputeReply, Status> {
        let answer = async {
            let entered = self.enter(&request.store)?;
            let (store, keys, plan, options) = compute_from_wire(request)?;
            let line = || compute_json(&store, &keys, &plan, &options);
            let passage = self.begin_read(entered, "compute", &keys, line)?;
            let query = ComputeQuery { plan, at: ComputeAt::Nodes };
            let answered = self.session.read_compute(&store, &keys, &query, &options).await;
            passage.end(answered, options.profile, &|| summary("compute", &store, &keys))
        };
        answer.await.map(compute_answer_to_wire).map_err(|error: QueryError| error.to_status())
    }

    /// Answers an aggregation over records.
    pub async fn aggregate(&self, request: v1::AggregateRequest) -> Result<v1::AggregateReply, Status> {
        let answer = async {
            let entered = self.enter(&request.store)?;
            let (store, keys, plan, options) = aggregate_from_wire(request)?;
            let line = || aggregate_json(&store, &keys, &plan, &options);
            let passage = self.begin_read(entered, "aggregate", &keys, line)?;
            let query = AggregateQuery { plan, at: ComputeAt::Nodes };
            let answered = self.session.read_aggregate(&store, &keys, &query, &options).await;
            passage.end(answered, options.profile, &|| summary("aggregate", &store, &keys))
        };
        answer.await.map(aggregate_answer_to_wire).map_err(|error: QueryError| error.to_status())
    }

    /// Begins a read of these keys, if they are within the bounds and the store's quota has room for them.
    ///
    /// # Errors
    /// [`QueryError::BatchTooLarge`], [`QueryError::QuotaExceeded`].
    pub fn begin_read(
        &self,
        entered: Entered,
        op: &'static str,
        keys: &BatchKeys,
        line: impl FnOnce() -> Value,
    ) -> Result<Passage, QueryError> {
        entered.read(op, keys, self.session.check_batch(keys), line)
    }
}

/// What the slow-query log shows of a read.
pub(super) fn summary(op: &'static str, store: &str, keys: &BatchKeys) -> Value {
    json!({"op": op, "store": store, "keys": keys.len()})
}

#[tonic::async_trait]
impl v1::store_server::Store for GraphServer {
    type ComputeStreamStream = BoxStream<'static, Result<v1::MultiGetPiece, Status>>;
    type MultiGetStreamStream = BoxStream<'static, Result<v1::MultiGetPiece, Status>>;

    async fn multi_get_stream(
        &self,
        request: Request<v1::MultiGetRequest>,
    ) -> Result<Response<Self::MultiGetStreamStream>, Status> {
        Ok(Response::new(GraphServer::multi_get_stream(self, request.into_inner())?))
    }

    async fn multi_get(
        &self,
        request: Request<v1::MultiGetRequest>,
    ) -> Result<Response<v1::MultiGetReply>, Status> {
        Ok(Response::new(GraphServer::multi_get(self, request.into_inner()).await?))
    }

    async fn compute(
        &self,
        request: Request<v1::ComputeRequest>,
    ) -> Result<Response<v1::ComputeReply>, Status> {
        Ok(Response::new(GraphServer::compute(self, request.into_inner()).await?))
    }

    async fn compute_stream(
        &self,
        request: Request<v1::ComputeRequest>,
    ) -> Result<Response<Self::ComputeStreamStream>, Status> {
        Ok(Response::new(GraphServer::compute_stream(self, request.into_inner())?))
    }

    async fn aggregate(
        &self,
        request: Request<v1::AggregateRequest>,
    ) -> Result<Response<v1::AggregateReply>, Status> {
        Ok(Response::new(GraphServer::aggregate(self, request.into_inner()).await?))
    }

    async fn schema(&self, request: Request<v1::SchemaRequest>) -> Result<Response<v1::SchemaReply>, Status> {
        let asked = schema_from_wire(request.into_inner()).map_err(|error| error.to_status())?;
        let (store, version, id) = asked;
        let schema = self.session.schema(&store, version, id).await.map_err(|error| error.to_status())?;
        Ok(Response::new(v1::SchemaReply { schema: schema.canonical().to_owned() }))
    }
}
