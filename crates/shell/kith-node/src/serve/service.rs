//! The service `Node`: its gRPC methods, and those of them that are also served in frames.

use super::{evaluator::Evaluator, peer, slices::ReplyDivision};
use crate::{
    disk,
    versions::moves::{CopyStream, Moves},
    versions::prepare::{PrepareStream, Preparer},
};
use bytes::Bytes;
use futures::{
    FutureExt,
    future::{self, BoxFuture},
    stream::BoxStream,
};
use kith_net::server::framed::{self, FrameReply, FrameService};
use kith_types::ErrorCode;
use kith_wire::{frame::Op, v1};
use std::{num::NonZeroU64, sync::Arc, time::Instant};
use tonic::{Request, Response, Status};

/// Answers `Node` requests.
pub(crate) struct NodeService {
    pub evaluator: Arc<Evaluator>,
    pub moves: Moves,
    pub preparer: Preparer,
}

impl NodeService {
    fn ping(&self, request: &v1::PingRequest) -> Result<v1::PingReply, Status> {
        let Evaluator { node, held, load, topology, file_health, reads, live, .. } = &*self.evaluator;
        if load.is_leaving() {
            let message = format!("node {node} is about to end");
            return Err(kith_wire::status(ErrorCode::Leaving, message, "ask another replica"));
        }
        if !request.waits.is_empty() {
            reads.take_report(&request.waits);
        }
        let served = held.served(&topology.borrow()).into_iter();
        let served = served.map(|(name, version)| v1::Served::of_version(name, version)).collect();
        let (files_damaged, files_repaired) = file_health.counts();
        Ok(v1::PingReply {
            node: *node,
            load: Some(load.load(Instant::now())),
            served,
            epoch: topology.borrow().cluster.epoch,
            files_damaged,
            files_repaired,
            fetch_held_back: held.origins.fetches.state().held_back.map_or(0, NonZeroU64::get),
            counters: request.counters.then(|| load.counters()),
            disk_free: request.disk.then(|| disk::free(held.folders.root())).flatten(),
            live: if request.live { live.applied_logs() } else { Vec::new() },
        })
    }
}

impl FrameService for NodeService {
    fn call(self: Arc<Self>, op: Op, body: Bytes) -> BoxFuture<'static, Result<FrameReply, Status>> {
        match op {
            Op::Evaluate => {
                async move { Ok(self.evaluator.evaluate(framed::request(body)?).await?.into_reply()) }.boxed()
            }
            Op::Ping => {
                let asked = framed::request::<v1::PingRequest>(body);
                future::ready(asked.and_then(|asked| Ok(FrameReply::Ping(self.ping(&asked)?)))).boxed()
            }
            Op::Write => {
                async move { Ok(FrameReply::Write(self.evaluator.live.write(framed::request(body)?).await?)) }
                    .boxed()
            }
            Op::Deliver => async move {
                Ok(FrameReply::Deliver(self.evaluator.live.deliver(framed::request(body)?).await?))
            }
            .boxed(),
            Op::Query
            | Op::MultiGet
            | Op::MultiGetStream
            | Op::Compute
            | Op::ComputeStream
            | Op::Aggregate
            | Op::Database
            | Op::Cancel
            | Op::Credit
            | Op::Alive
            | Op::Identify
            | Op::Share
            | Op::GiveBack => future::ready(Err(framed::unsupported(op.name()))).boxed(),
        }
    }

    fn call_alone(self: Arc<Self>, op: Op, body: Bytes) -> BoxFuture<'static, Result<FrameReply, Status>> {
        match op {
            Op::Evaluate => async move {
                let request: v1::EvaluateRequest = framed::request(body)?;
                match request.in_slices {
                    true => Ok(Arc::clone(&self.evaluator)
                        .evaluate_in_parts(request, ReplyDivision::Parts)
                        .await?
                        .into_reply()),
                    false => Ok(self.evaluator.evaluate(request).await?.into_reply()),
                }
            }
            .boxed(),
            other => self.call(other, body),
        }
    }

    fn call_credited(self: Arc<Self>, op: Op, body: Bytes) -> BoxFuture<'static, Result<FrameReply, Status>> {
        match op {
            Op::Evaluate => async move {
                let request = framed::request(body)?;
                Ok(Arc::clone(&self.evaluator)
                    .evaluate_in_parts(request, ReplyDivision::Messages)
                    .await?
                    .into_reply())
            }
            .boxed(),
            other => self.call(other, body),
        }
    }
}

#[tonic::async_trait]
impl v1::node_server::Node for NodeService {
    type PrepareStream = PrepareStream;
    type ReadObjectStream = BoxStream<'static, Result<v1::ObjectPiece, Status>>;
    type CopyStream = CopyStream;
    type EvaluateStreamStream = BoxStream<'static, Result<v1::EvaluateReply, Status>>;

    async fn copy(&self, request: Request<v1::CopyRequest>) -> Result<Response<Self::CopyStream>, Status> {
        Ok(Response::new(self.moves.copy(request.into_inner()).await?))
    }

    async fn release(
        &self,
        request: Request<v1::ReleaseRequest>,
    ) -> Result<Response<v1::ReleaseReply>, Status> {
        self.moves.release(request.into_inner()).await?;
        Ok(Response::new(v1::ReleaseReply {}))
    }

    async fn fetch_rate(
        &self,
        request: Request<v1::FetchRateRequest>,
    ) -> Result<Response<v1::FetchRateReply>, Status> {
        let fetches = &self.evaluator.held.origins.fetches;
        if let Some(rate) = request.into_inner().bytes_per_second {
            fetches.set(NonZeroU64::new(rate));
            tracing::info!(node = self.evaluator.node, bytes_per_second = rate, "the fetch rate was changed");
        }
        let state = fetches.state();
        Ok(Response::new(v1::FetchRateReply {
            bytes_per_second: state.bytes_per_second.map_or(0, NonZeroU64::get),
            bytes_fetched: state.bytes,
            waiting: state.waiting,
            held_back: state.held_back.map_or(0, NonZeroU64::get),
        }))
    }

    async fn read_object(
        &self,
        request: Request<v1::ReadObjectRequest>,
    ) -> Result<Response<Self::ReadObjectStream>, Status> {
        Ok(Response::new(peer::read_object(&self.evaluator.held, request.into_inner()).await?))
    }

    async fn evaluate(
        &self,
        request: Request<v1::EvaluateRequest>,
    ) -> Result<Response<v1::EvaluateReply>, Status> {
        Ok(Response::new(self.evaluator.evaluate(request.into_inner()).await?.into_message()))
    }

    async fn evaluate_stream(
        &self,
        request: Request<v1::EvaluateRequest>,
    ) -> Result<Response<Self::EvaluateStreamStream>, Status> {
        let parts = Arc::clone(&self.evaluator)
            .evaluate_in_parts(request.into_inner(), ReplyDivision::Messages)
            .await?;
        Ok(Response::new(parts.into_stream()))
    }

    async fn ping(&self, request: Request<v1::PingRequest>) -> Result<Response<v1::PingReply>, Status> {
        Ok(Response::new(self.ping(request.get_ref())?))
    }

    async fn write(
        &self,
        request: Request<v1::GraphWriteRequest>,
    ) -> Result<Response<v1::GraphWriteReply>, Status> {
        Ok(Response::new(self.evaluator.live.write(request.into_inner()).await?))
    }

    async fn deliver(
        &self,
        request: Request<v1::DeliverRequest>,
    ) -> Result<Response<v1::DeliverReply>, Status> {
        Ok(Response::new(self.evaluator.live.deliver(request.into_inner()).await?))
    }

    async fn prepare(
        &self,
        request: Request<v1::PrepareRequest>,
    ) -> Result<Response<Self::PrepareStream>, Status> {
        Ok(Response::new(self.preparer.prepare(request.into_inner())?))
    }
}
