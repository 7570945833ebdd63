//! Batch reads of stores of values, over gRPC and in frames.

use super::{
    admission::{Admitted, refused},
    service::GraphServer,
};
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use futures::stream::BoxStream;
use kith_client::{
    AggregateQuery, BatchAnswer, BatchKeys, ComputeAt, ComputeQuery, Proofs, QueryError, QueryOptions,
    StoreService,
    convert::{
        aggregate_answer_to_wire, aggregate_from_wire, batch_answer_to_wire, batch_from_wire,
        compute_answer_to_wire, compute_from_wire, schema_from_wire,
    },
};
use kith_types::ByteKeys;
use kith_wire::v1;
use serde_json::{Value, json};
use std::time::Instant;
use tonic::{Request, Response, Status};

impl GraphServer {
    /// Answers a batch read.
    pub async fn multi_get(&self, request: v1::MultiGetRequest) -> Result<v1::MultiGetReply, Status> {
        let admitted = self.enter(&request.store).map_err(|error| error.to_status())?;
        let (store, keys, options) = batch_from_wire(request).map_err(|error| error.to_status())?;
        let answered = self.read_values("mget", admitted, &store, &keys, &options).await;
        let mut answer = answered.map_err(|error| error.to_status())?;
        if options.proofs == Proofs::Here {
            answer.records.drop_proofs();
        }
        self.counters.answer("mget", answer.is_complete());
        answer.profile = self.shown(answer.profile, options.profile);
        Ok(batch_answer_to_wire(answer))
    }

    /// Reads values for whoever asks, in whatever protocol: bounds and the store's quota, the record, metrics and the slow log. `op`
    /// says who that is.
    ///
    /// # Errors
    /// [`QueryError::BatchTooLarge`], [`QueryError::QuotaExceeded`], those of the session.
    pub async fn read_values(
        &self,
        op: &'static str,
        mut admitted: Admitted,
        store: &str,
        keys: &BatchKeys,
        options: &QueryOptions,
    ) -> Result<BatchAnswer, QueryError> {
        let started = Instant::now();
        self.let_in(&mut admitted, store, keys)?;
        if let Some(recorder) = &self.recorder {
            recorder.note(&batch_json(store, keys, options));
        }
        let answered = self.session.multi_get(store, keys, options).await;
        let ended = answered.as_ref().map(|answer| answer.profile.as_ref()).map_err(QueryError::code);
        self.note(op, &|| json!({"op": "mget", "store": store, "keys": keys.len()}), started, ended);
        let answer = answered.map_err(|error| self.refused(store, error))?;
        self.counters.store(store, started.elapsed());
        admitted.answered(store, answer.records.value_bytes());
        Ok(answer)
    }

    /// Answers a computation over records.
    pub async fn compute(&self, request: v1::ComputeRequest) -> Result<v1::ComputeReply, Status> {
        let started = Instant::now();
        let mut admitted = self.enter(&request.store).map_err(|error| error.to_status())?;
        let (store, keys, plan, options) = compute_from_wire(request).map_err(|error| error.to_status())?;
        self.let_in(&mut admitted, &store, &keys).map_err(|error| error.to_status())?;
        let query = ComputeQuery { plan, at: ComputeAt::Nodes };
        let answered = self.session.read_compute(&store, &keys, &query, &options).await;
        let ended = answered.as_ref().map(|answer| answer.answer.profile.as_ref()).map_err(QueryError::code);
        let line = || json!({"op": "compute", "store": store, "keys": keys.len()});
        self.note("compute", &line, started, ended);
        let mut answer = answered.map_err(|error| self.refused(&store, error).to_status())?;
        admitted.answered(&store, answer.answer.records.value_bytes());
        self.counters.answer("compute", answer.answer.is_complete());
        answer.answer.profile = self.shown(answer.answer.profile, options.profile);
        Ok(compute_answer_to_wire(answer))
    }

    /// Answers an aggregation over records.
    pub async fn aggregate(&self, request: v1::AggregateRequest) -> Result<v1::AggregateReply, Status> {
        let started = Instant::now();
        let mut admitted = self.enter(&request.store).map_err(|error| error.to_status())?;
        let (store, keys, plan, options) = aggregate_from_wire(request).map_err(|error| error.to_status())?;
        self.let_in(&mut admitted, &store, &keys).map_err(|error| error.to_status())?;
        let query = AggregateQuery { plan, at: ComputeAt::Nodes };
        let answered = self.session.read_aggregate(&store, &keys, &query, &options).await;
        let ended = answered.as_ref().map(|answer| answer.answer.profile.as_ref()).map_err(QueryError::code);
        let line = || json!({"op": "aggregate", "store": store, "keys": keys.len()});
        self.note("aggregate", &line, started, ended);
        let mut answer = answered.map_err(|error| self.refused(&store, error).to_status())?;
        self.counters.answer("aggregate", answer.answer.is_complete());
        answer.answer.profile = self.shown(answer.answer.profile, options.profile);
        Ok(aggregate_answer_to_wire(answer))
    }

    /// A place among the queries in flight.
    pub fn enter(&self, store: &str) -> Result<Admitted, QueryError> {
        self.admission.enter(&self.session.topology(), store)
    }

    /// Lets a read in: keys within the bounds, and a share of the store's quota for them.
    pub fn let_in(&self, admitted: &mut Admitted, store: &str, keys: &BatchKeys) -> Result<(), QueryError> {
        self.session.check_batch(keys).map_err(|error| self.refused(store, error))?;
        admitted.read(&self.session.topology(), store, keys.len())
    }

    /// What a query that failed is answered; counted, if it was too much.
    pub fn refused(&self, store: &str, error: QueryError) -> QueryError {
        refused(&self.session.topology(), store, error)
    }
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

/// The line's object that `kith run` reads. Options that are the default are left out.
pub(super) fn batch_json(store: &str, keys: &BatchKeys, options: &QueryOptions) -> Value {
    let mut line = super::query_json::options_json(options);
    line.insert("op".into(), json!("mget"));
    line.insert("store".into(), json!(store));
    let (keys, encoding) = match keys {
        BatchKeys::Ids(ids) => (json!(ids), None),
        BatchKeys::Bytes(keys) => keys_json(keys),
    };
    line.insert("keys".into(), keys);
    if let Some(encoding) = encoding {
        line.insert("key_encoding".into(), json!(encoding));
    }
    Value::Object(line)
}

/// Text where all keys are, else base64.
fn keys_json(keys: &ByteKeys) -> (Value, Option<&'static str>) {
    let text: Result<Vec<&str>, _> = keys.iter().map(std::str::from_utf8).collect();
    match text {
        Ok(text) => (json!(text), Some("text")),
        Err(_) => (keys.iter().map(|key| BASE64.encode(key)).collect(), Some("base64")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_recorded_as_lines_that_can_be_replayed() {
        let options = QueryOptions { partial: true, ..QueryOptions::default() };
        let line = |keys| batch_json("people", &keys, &options);
        let ids = json!({"op": "mget", "store": "people", "keys": [u64::MAX, 1], "partial": true});
        assert_eq!(line(BatchKeys::Ids(vec![u64::MAX, 1])), ids);
        let text = line(BatchKeys::Bytes(["a", ""].iter().collect()));
        assert_eq!((&text["keys"], &text["key_encoding"]), (&json!(["a", ""]), &json!("text")));
        let bytes = line(BatchKeys::Bytes([[0xff_u8, 0]].iter().collect()));
        assert_eq!((&bytes["keys"], &bytes["key_encoding"]), (&json!(["/wA="]), &json!("base64")));
    }
}
