//! A router's client as a [`Service`].

use super::{
    RouterClient,
    stream::stream_answer,
    timeouts::{ANSWER_GRACE, CALL_TIMEOUT, DEADLINE_GRACE, overdue, timeout, within},
};
use crate::{
    compute::{aggregate_here, compute_here},
    note_mismatches,
};
use futures::{FutureExt, future::BoxFuture};
use kith_net::SendFailure;
use kith_query::{
    AggregateAnswer, AggregateQuery, BatchAnswer, BatchKeys, BatchStream, ComputeAnswer, ComputeAt,
    ComputeQuery, GraphQuery, GremlinAnswer, GremlinQuery, Outlet, Proofs, QueryAnswer, QueryError,
    QueryOptions, Question, Reply, Request, Service, StoreShape, WriteOutcome,
    convert::{
        aggregate_answer_from_wire, aggregate_to_wire, answered_from_wire, batch_answer_from_wire,
        batch_to_wire, compute_answer_from_wire, compute_to_wire, gremlin_answer_from_wire, gremlin_to_wire,
        query_to_wire, write_to_wire, written_from_wire,
    },
    driven,
};
use kith_schema::{Schema, SchemaId, UnknownKind, live::Write};
use kith_wire::{LookupError, Message, documents::HoldsDocument, frame::Op, v1};
use std::{sync::Arc, time::Instant};
use tonic::{Response, Status};

impl Service for RouterClient {
    fn call(&self, request: Arc<Request>) -> BoxFuture<'_, Result<Reply, QueryError>> {
        async move {
            let Request { question, options } = &*request;
            Ok(match question {
                Question::Graph { graph, query } => {
                    Reply::Graph(self.query_graph(graph, query, options).await?)
                }
                Question::Explain { graph, query } => Reply::Plan(self.plan(graph, query, options).await?),
                Question::Gremlin { graph, query } => {
                    Reply::Gremlin(self.traversed(graph, query, options).await?)
                }
                Question::Write { graph, write } => {
                    Reply::Written(self.written(graph, write, options).await?)
                }
                Question::Values { store, keys } => {
                    Reply::Values(self.proven_values(store, keys, options).await?)
                }
                Question::Compute { store, keys, query } => {
                    Reply::Computed(self.computed(store, keys, query, options).await?)
                }
                Question::Aggregate { store, keys, query } => {
                    Reply::Aggregated(self.aggregated(store, keys, query, options).await?)
                }
                Question::Shape { store } => Reply::Shape(self.store_shape(store).await?),
                Question::Schema { store, version, id } => {
                    Reply::Schema(self.store_schema(store, *version, *id).await?)
                }
            })
        }
        .boxed()
    }

    fn stream(&self, request: Arc<Request>) -> BatchStream<'_> {
        driven(async move |outlet: Outlet| stream_answer(self, &request, &outlet).await)
    }
}

impl RouterClient {
    async fn query_graph(
        &self,
        graph: &str,
        query: &GraphQuery,
        options: &QueryOptions,
    ) -> Result<QueryAnswer, QueryError> {
        let ids_wanted = query.operation.wants_ids();
        let request = query_to_wire(graph, query, options);
        let timeout = timeout(options);
        let reply = match tokio::time::timeout(timeout, self.ask(request, ids_wanted)).await {
            Ok(reply) => reply.map_err(|status| self.error(&status))?,
            Err(_) => return Err(self.error(&overdue(timeout))),
        };
        answered_from_wire(reply, ids_wanted)
    }

    async fn plan(
        &self,
        graph: &str,
        query: &GraphQuery,
        options: &QueryOptions,
    ) -> Result<v1::ExplainReply, QueryError> {
        let mut client = self.graph.clone();
        let timeout = timeout(options);
        let reply = within(timeout, client.explain(query_to_wire(graph, query, options))).await;
        Ok(reply.map_err(|status| self.error(&status))?.into_inner())
    }

    /// Sends a write, once. If it was sent and no answer came, it is unknown whether it was carried out.
    async fn written(
        &self,
        graph: &str,
        write: &Write,
        options: &QueryOptions,
    ) -> Result<WriteOutcome, QueryError> {
        let request = write_to_wire(graph, write, options);
        // The router may wait for the leader beyond the deadline, and reports the outcome of the write then.
        let timeout = timeout(options) + ANSWER_GRACE;
        let reply = match &self.frames {
            Some(frames) => frames.ask_once(&self.addr, Op::Write, timeout, &request).await,
            None => match tokio::time::timeout(timeout, self.graph.clone().write(request)).await {
                Ok(reply) => reply.map(Response::into_inner).map_err(SendFailure::after_sending),
                Err(_) => Err(SendFailure::Lost(overdue(timeout))),
            },
        };
        written_from_wire(reply.map_err(|unwritten| self.unwritten(&unwritten))?)
    }

    async fn traversed(
        &self,
        graph: &str,
        query: &GremlinQuery,
        options: &QueryOptions,
    ) -> Result<GremlinAnswer, QueryError> {
        let mut client = self.graph.clone();
        let request = gremlin_to_wire(graph, query, options)?;
        if !query.writes {
            let reply = within(timeout(options), client.gremlin(request)).await;
            return gremlin_answer_from_wire(reply.map_err(|status| self.error(&status))?.into_inner());
        }
        // The router waits for the outcome of a write beyond the deadline. Its errors say what was written.
        let timeout = timeout(options) + ANSWER_GRACE;
        let reply = tokio::time::timeout(timeout, client.gremlin(request)).await;
        let failed = |status: Status| match kith_wire::is_answer(&status) {
            true => self.error(&status),
            false => self.lost(&status),
        };
        let reply = reply.map_err(|_| self.lost(&overdue(timeout)))?.map_err(failed)?;
        gremlin_answer_from_wire(reply.into_inner())
    }

    /// The error of a write without a reply.
    fn unwritten(&self, unwritten: &SendFailure) -> QueryError {
        match unwritten {
            SendFailure::Lost(status) => self.lost(status),
            SendFailure::Unsent(status) | SendFailure::Refused(status) => self.error(status),
        }
    }

    /// The error of a write, or of a traversal that may write, that was sent and was not answered.
    fn lost(&self, status: &Status) -> QueryError {
        QueryError::OutcomeUnknown {
            detail: format!("no answer came from router {}: {}", self.addr, status.message()),
        }
    }

    /// Asks about keys of a store with a request that has a single reply: in frames, or over gRPC with `grpc`.
    async fn batch<Request: Message, Reply: Message + Default, Called>(
        &self,
        op: Op,
        options: &QueryOptions,
        request: Request,
        grpc: impl FnOnce(Request) -> Called,
    ) -> Result<Reply, Status>
    where
        Called: Future<Output = Result<Response<Reply>, Status>>,
    {
        let timeout = timeout(options);
        let asked = async {
            if let Some(frames) = &self.frames {
                let deadline = options.deadline.map(|deadline| deadline + DEADLINE_GRACE);
                return frames.ask(&self.addr, op, deadline, &request).await;
            }
            Ok(grpc(request).await?.into_inner())
        };
        tokio::time::timeout(timeout, asked).await.unwrap_or_else(|_| Err(overdue(timeout)))
    }

    /// Reads values and checks the proof of each. If one does not match, reads once more and lets the router check the
    /// values of its nodes, so that it asks another replica.
    async fn proven_values(
        &self,
        store: &str,
        keys: &BatchKeys,
        options: &QueryOptions,
    ) -> Result<BatchAnswer, QueryError> {
        keys.check()?;
        let started = Instant::now();
        let (answer, mismatched) = self.values(store, keys, options, Proofs::There).await?;
        if mismatched == 0 {
            return Ok(answer);
        }
        tracing::warn!(router = self.addr, store, mismatched, "values do not match their checksums");
        let Some(deadline) = options.left(started.elapsed()) else {
            return Err(self.error(&overdue(started.elapsed())));
        };
        let again = QueryOptions { deadline, ..options.clone() };
        let (answer, mismatched) = self.values(store, keys, &again, Proofs::Everywhere).await?;
        if 0 < mismatched && !options.partial {
            let detail = format!("{mismatched} values from {} do not match their checksums", self.addr);
            return Err(QueryError::Damaged { store: store.to_owned(), detail });
        }
        Ok(answer)
    }

    /// Reads values once. Returns the number that do not match their checksums too; they are marked as damaged.
    async fn values(
        &self,
        store: &str,
        keys: &BatchKeys,
        options: &QueryOptions,
        proofs: Proofs,
    ) -> Result<(BatchAnswer, u64), QueryError> {
        let asked = QueryOptions { proofs, ..options.clone() };
        let request = batch_to_wire(store, keys, &asked);
        let grpc = |request: v1::MultiGetRequest| async move { self.store.clone().multi_get(request).await };
        let reply = self.batch(Op::MultiGet, options, request, grpc).await;
        let reply = reply.map_err(|status| self.error(&status))?;
        let mut answer = batch_answer_from_wire(reply, keys.len())?;
        let lookup = keys.lookup();
        let mismatched = answer.records.prove(|index| lookup.key(index)).len() as u64;
        if 0 < mismatched {
            note_mismatches(mismatched);
        }
        Ok((answer, mismatched))
    }

    async fn computed(
        &self,
        store: &str,
        keys: &BatchKeys,
        query: &ComputeQuery,
        options: &QueryOptions,
    ) -> Result<ComputeAnswer, QueryError> {
        keys.check()?;
        if query.at == ComputeAt::Client {
            return compute_here(self, store, keys, &query.plan, options).await;
        }
        let request = compute_to_wire(store, keys, &query.plan, options);
        let grpc = |request: v1::ComputeRequest| async move { self.store.clone().compute(request).await };
        let reply = self.batch(Op::Compute, options, request, grpc).await;
        compute_answer_from_wire(reply.map_err(|status| self.error(&status))?, keys.len(), &query.plan)
    }

    async fn aggregated(
        &self,
        store: &str,
        keys: &BatchKeys,
        query: &AggregateQuery,
        options: &QueryOptions,
    ) -> Result<AggregateAnswer, QueryError> {
        keys.check()?;
        if query.at == ComputeAt::Client {
            return aggregate_here(self, store, keys, &query.plan, options).await;
        }
        let request = aggregate_to_wire(store, keys, &query.plan, options);
        let grpc = |request: v1::AggregateRequest| async move { self.store.clone().aggregate(request).await };
        let reply = self.batch(Op::Aggregate, options, request, grpc).await;
        aggregate_answer_from_wire(reply.map_err(|status| self.error(&status))?, keys.len(), &query.plan)
    }

    async fn store_shape(&self, store: &str) -> Result<StoreShape, QueryError> {
        let topology = self.topology().await?;
        let served = topology.stores.iter().find(|served| served.name == store && served.version != 0);
        let Some(HoldsDocument::Values { key, value, .. }) = served.map(|served| &served.definition.holds)
        else {
            return Err(LookupError::of_values(&topology, store).into());
        };
        let unknown = |source: UnknownKind| QueryError::Internal {
            detail: format!("store {store:?} has a kind that this release does not know: {source}"),
        };
        Ok(StoreShape { key: key.parse().map_err(unknown)?, value: value.parse().map_err(unknown)? })
    }

    async fn store_schema(&self, store: &str, version: u64, id: SchemaId) -> Result<Schema, QueryError> {
        let request = v1::SchemaRequest { store: store.to_owned(), version, schema: id.to_string() };
        let fetch = async move {
            let mut client = self.store.clone();
            let reply = within(CALL_TIMEOUT, client.schema(request)).await;
            Ok(reply.map_err(|status| self.error(&status))?.into_inner().schema)
        };
        self.schemas.get(store, version, id, fetch).await
    }
}
