//! What a router answers, over gRPC and in frames.

use super::{
    forward::Forwarder,
    pipeline::{Entered, Pipeline},
    query_json::query_json,
};
use bytes::Bytes;
use futures::{
    FutureExt, StreamExt,
    future::{self, BoxFuture},
    stream::BoxStream,
};
use kith_api::{
    Answered, GraphService, QueryError, QueryOptions,
    convert::{answer_to_wire, query_from_wire},
};
use kith_client::Session;
use kith_net::server::framed::{self, FrameService, Reply};
use kith_ops::{GraphQuery, Operand};
use kith_wire::{
    frame::Op,
    v1::{self, query_reply::Answer},
};
use serde_json::Value;
use std::sync::Arc;
use tonic::{Request, Response, Status};

/// Ids in one message of a stream: half a mebibyte of varints at the most.
const PIECE_IDS: usize = 65_536;

/// Answers queries.
#[derive(Clone)]
pub(super) struct GraphServer {
    pub session: Session,
    pub forwarder: Arc<Forwarder>,
    pub pipeline: Arc<Pipeline>,
}

/// A query as it came in.
struct Incoming {
    graph: String,
    query: GraphQuery,
    options: QueryOptions,
    /// Passed on by another router, whose record has it.
    is_forwarded: bool,
    entered: Entered,
}

impl GraphServer {
    /// A place among the requests in flight for one that asks this store or graph.
    ///
    /// # Errors
    /// [`QueryError::Overloaded`].
    pub fn enter(&self, of: &str) -> Result<Entered, QueryError> {
        self.pipeline.enter(self.session.topology(), of)
    }

    fn admit(&self, request: v1::QueryRequest) -> Result<Incoming, QueryError> {
        let entered = self.enter(&request.graph)?;
        let is_forwarded = request.options.as_ref().is_some_and(|options| options.forwarded);
        let (graph, query, options) = query_from_wire(request)?;
        Ok(Incoming { graph, query, options, is_forwarded, entered })
    }

    async fn answer(&self, request: v1::QueryRequest) -> Result<v1::QueryReply, Status> {
        let original = request.clone();
        let incoming = self.admit(request).map_err(|error| error.to_status())?;
        let Incoming { graph, query, options, is_forwarded, entered } = incoming;
        let line = || query_json(&graph, &query, &options);
        let passage = entered.query(operation_name(&query.operand), (!is_forwarded).then_some(line));
        if !is_forwarded && let Some(reply) = self.forwarder.forward(&query, &options, original).await {
            return reply;
        }
        let answered = self.session.query(&graph, &query, &options).await;
        let answered = passage.end(answered, options.profile, &line);
        answered.map(reply_of).map_err(|error| error.to_status())
    }
}

fn operation_name(operand: &Operand) -> &'static str {
    match operand {
        Operand::Connections { .. } => "connections",
        Operand::Entities { .. } => "entities",
        Operand::Members { .. } => "members",
        Operand::Network { .. } => "network",
        Operand::Distance { .. } => "distance",
        Operand::Path { .. } => "path",
        Operand::Common { .. } => "common",
        Operand::Suggest { .. } => "suggest",
    }
}

fn reply_of(answered: Answered) -> v1::QueryReply {
    let answer = answer_to_wire(&answered.answer);
    v1::QueryReply {
        complete: answered.complete,
        missing_partitions: answered.missing_partitions,
        profile: answered.profile,
        served: answered.served.into_iter().map(|(name, version)| v1::Served { name, version }).collect(),
        answer: Some(answer),
    }
}

/// The reply in messages of at most [`PIECE_IDS`] ids; the profile goes with the last.
fn pieces(mut reply: v1::QueryReply) -> Vec<v1::QueryReply> {
    let profile = reply.profile.take();
    let answers: Vec<Answer> = match reply.answer.take() {
        Some(Answer::Ids(set)) => chunks(set.ids).map(|ids| Answer::Ids(v1::IdSet { ids })).collect(),
        Some(Answer::Common(v1::CommonReply { result: Some(v1::common_reply::Result::Ids(set)) })) => {
            chunks(set.ids)
                .map(|ids| {
                    Answer::Common(v1::CommonReply {
                        result: Some(v1::common_reply::Result::Ids(v1::IdSet { ids })),
                    })
                })
                .collect()
        }
        Some(Answer::Network(network)) => network_pieces(network).into_iter().map(Answer::Network).collect(),
        other => other.into_iter().collect(),
    };
    let mut pieces: Vec<v1::QueryReply> =
        answers.into_iter().map(|answer| v1::QueryReply { answer: Some(answer), ..reply.clone() }).collect();
    if let Some(last) = pieces.last_mut() {
        last.profile = profile;
    }
    pieces
}

/// At least one chunk, so that an empty set is still an answer.
fn chunks(mut ids: Vec<u64>) -> impl Iterator<Item = Vec<u64>> {
    let mut first = true;
    std::iter::from_fn(move || {
        if ids.is_empty() && !std::mem::take(&mut first) {
            return None;
        }
        first = false;
        let rest = ids.split_off(ids.len().min(PIECE_IDS));
        Some(std::mem::replace(&mut ids, rest))
    })
}

fn network_pieces(mut network: v1::NetworkReply) -> Vec<v1::NetworkReply> {
    let (first, second) = (std::mem::take(&mut network.first), std::mem::take(&mut network.second));
    let near = std::mem::take(&mut network.fof_near);
    let sizes = network.clone();
    let mut pieces = vec![network];
    pieces.extend(chunks(first).map(|first| v1::NetworkReply { first, ..sizes.clone() }));
    pieces.extend(chunks(second).map(|second| v1::NetworkReply { second, ..sizes.clone() }));
    pieces.extend(chunks(near).map(|fof_near| v1::NetworkReply { fof_near, ..sizes.clone() }));
    pieces
}

/// How many ids an answer holds: whether it has to go in pieces.
fn ids_in(answer: Option<&Answer>) -> usize {
    match answer {
        Some(Answer::Ids(set)) => set.ids.len(),
        Some(Answer::Common(v1::CommonReply { result: Some(v1::common_reply::Result::Ids(set)) })) => {
            set.ids.len()
        }
        Some(Answer::Network(network)) => network.first.len() + network.second.len() + network.fof_near.len(),
        _ => 0,
    }
}

impl FrameService for GraphServer {
    fn call(self: Arc<Self>, op: Op, body: Bytes) -> BoxFuture<'static, Result<Reply, Status>> {
        match op {
            Op::Query => async move {
                let reply = self.answer(framed::request(body)?).await?;
                let is_short = ids_in(reply.answer.as_ref()) <= PIECE_IDS;
                let pieces = if is_short { vec![reply] } else { pieces(reply) };
                Ok(Reply::Query(pieces.into_iter()))
            }
            .boxed(),
            Op::MultiGet => {
                async move { Ok(Reply::MultiGet(self.multi_get(framed::request(body)?).await?)) }.boxed()
            }
            Op::Compute => {
                async move { Ok(Reply::Compute(self.compute(framed::request(body)?).await?)) }.boxed()
            }
            Op::Aggregate => {
                async move { Ok(Reply::Aggregate(self.aggregate(framed::request(body)?).await?)) }.boxed()
            }
            Op::MultiGetStream | Op::ComputeStream => {
                future::ready(Err(super::streams::uncredited())).boxed()
            }
            Op::Evaluate
            | Op::Ping
            | Op::Cancel
            | Op::Credit
            | Op::Alive
            | Op::Identify
            | Op::Share
            | Op::GiveBack => future::ready(Err(framed::unsupported(op.name()))).boxed(),
        }
    }

    fn call_credited(self: Arc<Self>, op: Op, body: Bytes) -> BoxFuture<'static, Result<Reply, Status>> {
        match op {
            Op::MultiGetStream => {
                async move { Ok(Reply::Pieces(self.multi_get_pieces(framed::request(body)?)?)) }.boxed()
            }
            Op::ComputeStream => {
                async move { Ok(Reply::Pieces(self.compute_pieces(framed::request(body)?)?)) }.boxed()
            }
            other => self.call(other, body),
        }
    }
}

#[tonic::async_trait]
impl v1::graph_server::Graph for GraphServer {
    type QueryStreamStream = BoxStream<'static, Result<v1::QueryReply, Status>>;

    async fn query(&self, request: Request<v1::QueryRequest>) -> Result<Response<v1::QueryReply>, Status> {
        Ok(Response::new(self.answer(request.into_inner()).await?))
    }

    async fn query_stream(
        &self,
        request: Request<v1::QueryRequest>,
    ) -> Result<Response<Self::QueryStreamStream>, Status> {
        let reply = self.answer(request.into_inner()).await?;
        Ok(Response::new(futures::stream::iter(pieces(reply).into_iter().map(Ok)).boxed()))
    }

    async fn explain(
        &self,
        request: Request<v1::QueryRequest>,
    ) -> Result<Response<v1::ExplainReply>, Status> {
        let incoming = self.admit(request.into_inner()).map_err(|error| error.to_status())?;
        let Incoming { graph, query, options, entered, .. } = incoming;
        let summary = || {
            let mut line = query_json(&graph, &query, &options);
            line["explain"] = Value::Bool(true);
            line
        };
        let passage = entered.query("explain", None::<fn() -> Value>);
        let plan = self.session.explain(&graph, &query, &options).await;
        passage.end(plan, true, &summary).map(Response::new).map_err(|error| error.to_status())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_sets_come_in_pieces_and_empty_ones_in_one() {
        let reply = |ids: Vec<u64>| v1::QueryReply {
            complete: true,
            profile: Some(v1::Profile::default()),
            answer: Some(Answer::Ids(v1::IdSet { ids })),
            ..Default::default()
        };
        let many = pieces(reply((0..PIECE_IDS as u64 * 2 + 1).collect()));
        let sizes: Vec<usize> = many
            .iter()
            .map(|piece| match &piece.answer {
                Some(Answer::Ids(set)) => set.ids.len(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(sizes, [PIECE_IDS, PIECE_IDS, 1]);
        assert!(many[0].profile.is_none() && many[2].profile.is_some());
        assert_eq!(pieces(reply(vec![])).len(), 1);
    }
}
