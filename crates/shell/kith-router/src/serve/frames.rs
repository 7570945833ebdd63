//! A router's interface over gRPC and frames. This file only converts requests and replies.

use super::{
    pieces::{is_short, pieces},
    service::GraphServer,
};
use bytes::Bytes;
use futures::{
    FutureExt, StreamExt,
    future::{self, BoxFuture},
    stream::BoxStream,
};
use kith_net::{
    INLINE_BYTES_MAX, aside, in_turns,
    server::{
        connections::IfRefused,
        framed::{self, End, FrameReply, FrameService, Piece, Pieces},
    },
};
use kith_query::{
    Proofs, QueryAnswer, QueryError, Reply, Request as ApiRequest, Service, StreamItem,
    convert::{
        StreamWriter, aggregate_answer_to_wire, aggregate_from_wire, answered_to_wire, batch_answer_to_wire,
        batch_from_wire, compute_answer_to_wire, compute_from_wire, gremlin_answer_to_wire,
        gremlin_from_wire, query_from_wire, schema_from_wire, write_from_wire, written_to_wire,
    },
};
use kith_types::ErrorCode;
use kith_wire::{InSlices, frame::Op, v1};
use std::sync::Arc;
use tonic::{Request, Response, Status};

type Message = Result<v1::MultiGetPiece, Status>;

impl GraphServer {
    /// Answers a query. `encode` makes what is sent of the reply.
    async fn query<T: Send + 'static>(
        &self,
        request: v1::QueryRequest,
        encode: impl FnOnce(v1::QueryReply) -> T + Send + 'static,
    ) -> Result<T, Status> {
        let answer = async { self.answer(Arc::new(query_from_wire(request)?)).await };
        let (reply, _slot) = answer.await.map_err(|error| error.to_status())?;
        match reply {
            Reply::Graph(answered) => Ok(encoded(answered, encode).await),
            other => Err(odd(&other)),
        }
    }

    async fn multi_get(&self, request: v1::MultiGetRequest) -> Result<v1::MultiGetReply, Status> {
        let request = batch_from_wire(request);
        let is_proven = request.as_ref().is_ok_and(|request| request.options.proofs != Proofs::Here);
        match self.asked(request).await? {
            Reply::Values(mut answer) => {
                if !is_proven {
                    answer.records.drop_proofs();
                }
                Ok(batch_answer_to_wire(answer))
            }
            other => Err(odd(&other)),
        }
    }

    async fn compute(&self, request: v1::ComputeRequest) -> Result<v1::ComputeReply, Status> {
        match self.asked(compute_from_wire(request)).await? {
            Reply::Computed(computed) => Ok(compute_answer_to_wire(computed)),
            other => Err(odd(&other)),
        }
    }

    async fn aggregate(&self, request: v1::AggregateRequest) -> Result<v1::AggregateReply, Status> {
        match self.asked(aggregate_from_wire(request)).await? {
            Reply::Aggregated(aggregated) => Ok(aggregate_answer_to_wire(aggregated)),
            other => Err(odd(&other)),
        }
    }

    async fn write(&self, request: v1::GraphWriteRequest) -> Result<v1::GraphWriteReply, Status> {
        match self.asked(write_from_wire(request)).await? {
            Reply::Written(written) => Ok(written_to_wire(written)),
            other => Err(odd(&other)),
        }
    }

    async fn asked(&self, request: Result<ApiRequest, QueryError>) -> Result<Reply, Status> {
        let answered = async { self.call(Arc::new(request?)).await };
        answered.await.map_err(|error| error.to_status())
    }

    /// Begins a stream, and returns its messages.
    fn messages(
        &self,
        request: Result<ApiRequest, QueryError>,
    ) -> Result<BoxStream<'static, Message>, Status> {
        let begun = request.and_then(|request| {
            let mut writer = StreamWriter::new(request.question.of().to_owned());
            let is_proven = request.options.proofs != Proofs::Here;
            self.begin_stream(Arc::new(request), move |mut item| {
                if let StreamItem::Piece(piece) = &mut item
                    && !is_proven
                {
                    piece.records.drop_proofs();
                }
                writer.message(item)
            })
        });
        let items = begun.map_err(|error| error.to_status())?;
        Ok(items.map(|item| item.map_err(|error| error.to_status())).boxed())
    }

    fn frame_pieces(&self, request: Result<ApiRequest, QueryError>) -> Result<Pieces, Status> {
        let piece = |message: v1::MultiGetPiece| {
            let end = End::of_message(message.footer.is_some());
            Piece { body: message.into_slices(), end }
        };
        Ok(self.messages(request)?.map(move |message| message.map(piece)).boxed())
    }
}

/// Encodes an answer. A long one, such as the network of a member with many connections, is as much work to encode as to
/// compute, so this is done in turn, by a thread that serves no connections.
async fn encoded<T: Send + 'static>(
    answered: QueryAnswer,
    encode: impl FnOnce(v1::QueryReply) -> T + Send + 'static,
) -> T {
    let bytes = answered.answer.bytes();
    let encoding = aside(bytes, move || encode(answered_to_wire(answered)));
    if bytes <= INLINE_BYTES_MAX { encoding.await } else { in_turns(encoding).await }
}

/// The error for a reply of another kind than the request asked for.
fn odd(reply: &Reply) -> Status {
    let kind: &'static str = reply.into();
    QueryError::Internal { detail: format!("a request got a reply of kind {kind:?}") }.to_status()
}

/// Replaces the refusal of an answer for a traversal that has written.
fn results_lost(refused: Status) -> Status {
    QueryError::results_lost(QueryError::from_status(&refused)).to_status()
}

/// The error for a streaming request without the flag that says that its reader grants credit.
fn uncredited() -> Status {
    let message = "a stream is sent as its reader grants credit: the request lacks the flag for it";
    let help = "use a client of this release";
    kith_wire::status(ErrorCode::BadRequest, message, help)
}

impl FrameService for GraphServer {
    fn call(self: Arc<Self>, op: Op, body: Bytes) -> BoxFuture<'static, Result<FrameReply, Status>> {
        match op {
            Op::Query => async move {
                let encode = |reply| if is_short(&reply) { vec![reply] } else { pieces(reply) };
                Ok(FrameReply::Query(self.query(framed::request(body)?, encode).await?.into_iter()))
            }
            .boxed(),
            Op::MultiGet => {
                async move { Ok(FrameReply::MultiGet(self.multi_get(framed::request(body)?).await?)) }.boxed()
            }
            Op::Compute => {
                async move { Ok(FrameReply::Compute(self.compute(framed::request(body)?).await?)) }.boxed()
            }
            Op::Aggregate => {
                async move { Ok(FrameReply::Aggregate(self.aggregate(framed::request(body)?).await?)) }
                    .boxed()
            }
            Op::Write => {
                async move { Ok(FrameReply::Write(self.write(framed::request(body)?).await?)) }.boxed()
            }
            Op::MultiGetStream | Op::ComputeStream => future::ready(Err(uncredited())).boxed(),
            Op::Evaluate
            | Op::Deliver
            | Op::Database
            | Op::Ping
            | Op::Cancel
            | Op::Credit
            | Op::Alive
            | Op::Identify
            | Op::Share
            | Op::GiveBack => future::ready(Err(framed::unsupported(op.name()))).boxed(),
        }
    }

    fn call_credited(self: Arc<Self>, op: Op, body: Bytes) -> BoxFuture<'static, Result<FrameReply, Status>> {
        match op {
            Op::MultiGetStream => async move {
                Ok(FrameReply::Pieces(self.frame_pieces(batch_from_wire(framed::request(body)?))?))
            }
            .boxed(),
            Op::ComputeStream => async move {
                Ok(FrameReply::Pieces(self.frame_pieces(compute_from_wire(framed::request(body)?))?))
            }
            .boxed(),
            other => self.call(other, body),
        }
    }
}

#[tonic::async_trait]
impl v1::graph_server::Graph for GraphServer {
    type QueryStreamStream = BoxStream<'static, Result<v1::QueryReply, Status>>;

    async fn query(&self, request: Request<v1::QueryRequest>) -> Result<Response<v1::QueryReply>, Status> {
        Ok(Response::new(GraphServer::query(self, request.into_inner(), |reply| reply).await?))
    }

    async fn query_stream(
        &self,
        request: Request<v1::QueryRequest>,
    ) -> Result<Response<Self::QueryStreamStream>, Status> {
        let pieces = GraphServer::query(self, request.into_inner(), pieces).await?;
        Ok(Response::new(futures::stream::iter(pieces.into_iter().map(Ok)).boxed()))
    }

    async fn write(
        &self,
        request: Request<v1::GraphWriteRequest>,
    ) -> Result<Response<v1::GraphWriteReply>, Status> {
        Ok(Response::new(GraphServer::write(self, request.into_inner()).await?))
    }

    async fn gremlin(
        &self,
        request: Request<v1::GremlinRequest>,
    ) -> Result<Response<v1::GremlinReply>, Status> {
        match self.asked(gremlin_from_wire(request.into_inner())).await? {
            Reply::Gremlin(answer) => {
                let wrote = answer.wrote;
                let mut response = Response::new(gremlin_answer_to_wire(answer));
                if wrote {
                    response.extensions_mut().insert(IfRefused(results_lost));
                }
                Ok(response)
            }
            other => Err(odd(&other)),
        }
    }

    async fn explain(
        &self,
        request: Request<v1::QueryRequest>,
    ) -> Result<Response<v1::ExplainReply>, Status> {
        let request = query_from_wire(request.into_inner()).map(ApiRequest::explained);
        match self.asked(request).await? {
            Reply::Plan(plan) => Ok(Response::new(plan)),
            other => Err(odd(&other)),
        }
    }
}

#[tonic::async_trait]
impl v1::store_server::Store for GraphServer {
    type ComputeStreamStream = BoxStream<'static, Message>;
    type MultiGetStreamStream = BoxStream<'static, Message>;

    async fn multi_get_stream(
        &self,
        request: Request<v1::MultiGetRequest>,
    ) -> Result<Response<Self::MultiGetStreamStream>, Status> {
        Ok(Response::new(self.messages(batch_from_wire(request.into_inner()))?))
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
        Ok(Response::new(self.messages(compute_from_wire(request.into_inner()))?))
    }

    async fn aggregate(
        &self,
        request: Request<v1::AggregateRequest>,
    ) -> Result<Response<v1::AggregateReply>, Status> {
        Ok(Response::new(GraphServer::aggregate(self, request.into_inner()).await?))
    }

    async fn schema(&self, request: Request<v1::SchemaRequest>) -> Result<Response<v1::SchemaReply>, Status> {
        match self.asked(schema_from_wire(request.into_inner())).await? {
            Reply::Schema(schema) => {
                Ok(Response::new(v1::SchemaReply { schema: schema.canonical().to_owned() }))
            }
            other => Err(odd(&other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_query::GraphAnswer;
    use std::thread;

    #[tokio::test]
    async fn long_answers_are_encoded_by_threads_that_serve_no_connections() {
        let encoder = async |ids: usize| {
            let answer = GraphAnswer::Ids(vec![7; ids]);
            let (missing_partitions, served, profile) = (Vec::new(), Vec::new(), None);
            let answered = QueryAnswer { answer, complete: true, missing_partitions, served, profile };
            encoded(answered, |_| thread::current().id()).await
        };
        let here = thread::current().id();
        assert_eq!(encoder(10).await, here);
        assert_ne!(encoder(INLINE_BYTES_MAX).await, here);
    }
}
