//! Runs both transports against one scripted node on one port.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and so do the peers that it scripts")]

mod by_hand;
mod connections;
mod newer;
mod places;
mod requests;
#[cfg(target_os = "linux")]
mod shared;
mod slices;
mod streams;

use bytes::Bytes;
use futures::{StreamExt, future::BoxFuture, stream::BoxStream};
use kith_client::{RouterClient, TransportKind};
use kith_net::transport::{FramedTransport, Transport};
use kith_net::{
    endpoint,
    security::Dialer,
    server::{
        self, BoundListener,
        connections::{ConnectionSettings, Connections},
        framed::{End, FrameReply, FrameService, Piece, Pieces, request, unsupported},
        security::Security,
    },
};
use kith_query::{GraphAnswer, GraphQuery, Operation, QueryOptions, Service};
use kith_types::{ErrorCode, Workflow};
use kith_wire::{
    Message,
    frame::{Frame, Op},
    v1::{self, node_server, query_reply::Answer, value},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream},
    runtime::Runtime,
    sync::watch,
};
use tokio_util::sync::CancellationToken;
use tonic::{Code, Request, Response, Status};

/// The graph of a request tells the node what to do: answer at once, answer after the gate opens, fail, or send a long or a
/// very long answer.
const ECHO: &str = "echo";
const WAIT: &str = "wait";
const FAIL: &str = "fail";
const LONG: &str = "long";
const LONG_BYTES: usize = 256 << 10;
/// A reply that is longer than sockets hold.
const HUGE: &str = "huge";
const HUGE_BYTES: usize = 32 << 20;

struct Scripted {
    started: AtomicU64,
    /// The number of waiting requests, which tests watch.
    waiting: watch::Sender<u64>,
    gate: watch::Sender<bool>,
}

struct Waiting<'a>(&'a Scripted);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.send_modify(|waiting| *waiting -= 1);
    }
}

impl Scripted {
    async fn evaluate(&self, request: v1::EvaluateRequest) -> Result<v1::EvaluateReply, Status> {
        self.started.fetch_add(1, Ordering::Relaxed);
        let value = match request.name.as_str() {
            FAIL => return Err(kith_wire::status(ErrorCode::Damaged, "a block is bad", "load again")),
            LONG => value::Value::Set(Bytes::from(vec![7; LONG_BYTES])),
            HUGE => value::Value::Set(Bytes::from(vec![8; HUGE_BYTES])),
            WAIT => {
                self.waiting.send_modify(|waiting| *waiting += 1);
                let _waiting = Waiting(self);
                let mut gate = self.gate.subscribe();
                gate.wait_for(|is_open| *is_open).await.expect("the gate outlives its node");
                value::Value::Count(request.version)
            }
            _ => value::Value::Count(request.version),
        };
        Ok(v1::EvaluateReply { value: Some(v1::Value { value: Some(value) }), ..Default::default() })
    }
}

impl FrameService for Scripted {
    fn call(self: Arc<Self>, op: Op, body: Bytes) -> BoxFuture<'static, Result<FrameReply, Status>> {
        Box::pin(async move {
            match op {
                Op::Evaluate => Ok(FrameReply::Evaluate(self.evaluate(request(body)?).await?)),
                Op::Query => {
                    let piece = |ids: Vec<u64>| v1::QueryReply {
                        complete: true,
                        answer: Some(Answer::Ids(v1::IdSet { ids })),
                        ..Default::default()
                    };
                    Ok(FrameReply::Query(vec![piece(vec![1, 2]), piece(vec![3]), piece(vec![9])].into_iter()))
                }
                other => Err(unsupported(other.name())),
            }
        })
    }

    fn call_alone(self: Arc<Self>, op: Op, body: Bytes) -> BoxFuture<'static, Result<FrameReply, Status>> {
        let asked = request::<v1::EvaluateRequest>(body.clone()).ok();
        match asked.filter(|asked| op == Op::Evaluate && asked.in_slices) {
            Some(asked) => Box::pin(async move { Ok(FrameReply::Pieces(self.slices(&asked))) }),
            None => self.call(op, body),
        }
    }

    fn call_credited(self: Arc<Self>, _: Op, body: Bytes) -> BoxFuture<'static, Result<FrameReply, Status>> {
        Box::pin(async move {
            let parts = self.parts(&request(body)?);
            let piece = |part: Result<(v1::EvaluateReply, bool), Status>| {
                part.map(|(part, is_last)| Piece::of(&part, End::of_message(is_last)))
            };
            Ok(FrameReply::Pieces(parts.map(piece).boxed()))
        })
    }
}

/// The same node over gRPC.
struct OverGrpc(Arc<Scripted>);

#[tonic::async_trait]
impl node_server::Node for OverGrpc {
    type PrepareStream = BoxStream<'static, Result<v1::PrepareProgress, Status>>;
    type ReadObjectStream = BoxStream<'static, Result<v1::ObjectPiece, Status>>;
    type CopyStream = BoxStream<'static, Result<v1::PrepareProgress, Status>>;
    type EvaluateStreamStream = BoxStream<'static, Result<v1::EvaluateReply, Status>>;

    async fn evaluate(
        &self,
        request: Request<v1::EvaluateRequest>,
    ) -> Result<Response<v1::EvaluateReply>, Status> {
        Ok(Response::new(self.0.evaluate(request.into_inner()).await?))
    }

    async fn evaluate_stream(
        &self,
        request: Request<v1::EvaluateRequest>,
    ) -> Result<Response<Self::EvaluateStreamStream>, Status> {
        let parts = Arc::clone(&self.0).parts(request.get_ref());
        Ok(Response::new(parts.map(|part| part.map(|(part, _)| part)).boxed()))
    }

    async fn ping(&self, _: Request<v1::PingRequest>) -> Result<Response<v1::PingReply>, Status> {
        Err(unsupported("ping"))
    }

    async fn prepare(&self, _: Request<v1::PrepareRequest>) -> Result<Response<Self::PrepareStream>, Status> {
        Err(unsupported("prepare"))
    }

    async fn read_object(
        &self,
        _: Request<v1::ReadObjectRequest>,
    ) -> Result<Response<Self::ReadObjectStream>, Status> {
        Err(unsupported("read object"))
    }

    async fn copy(&self, _: Request<v1::CopyRequest>) -> Result<Response<Self::CopyStream>, Status> {
        Err(unsupported("copy"))
    }

    async fn release(&self, _: Request<v1::ReleaseRequest>) -> Result<Response<v1::ReleaseReply>, Status> {
        Err(unsupported("release"))
    }

    async fn fetch_rate(
        &self,
        _: Request<v1::FetchRateRequest>,
    ) -> Result<Response<v1::FetchRateReply>, Status> {
        Err(unsupported("fetch rate"))
    }

    async fn write(
        &self,
        _: Request<v1::GraphWriteRequest>,
    ) -> Result<Response<v1::GraphWriteReply>, Status> {
        Err(unsupported("write"))
    }

    async fn deliver(&self, _: Request<v1::DeliverRequest>) -> Result<Response<v1::DeliverReply>, Status> {
        Err(unsupported("deliver"))
    }
}

/// A running node with a runtime of its own, so that it can die as a process does.
struct Server {
    addr: String,
    node: Arc<Scripted>,
    stop: CancellationToken,
    runtime: Option<Runtime>,
}

impl Server {
    fn start() -> Self {
        Self::start_with(ConnectionSettings::default())
    }

    fn start_with(settings: ConnectionSettings) -> Self {
        let node = Arc::new(Scripted {
            started: AtomicU64::new(0),
            waiting: watch::Sender::new(0),
            gate: watch::Sender::new(false),
        });
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.set_nonblocking(true).expect("a socket");
        let addr = listener.local_addr().expect("an address");
        let stop = CancellationToken::new();
        let inside = runtime.enter();
        let listener = TcpListener::from_std(listener).expect("a listener");
        let mut routes = server::routes();
        routes.add_service(node_server::NodeServer::new(OverGrpc(Arc::clone(&node))));
        let service = Some(Arc::clone(&node) as Arc<dyn FrameService>);
        let local = kith_net::frames::listen_locally(addr);
        let connections = Connections::new(settings).expect("files enough");
        let bound = BoundListener { addr, listener, local, connections };
        server::spawn(bound, routes, service, &Security::default(), stop.clone());
        drop(inside);
        Self { addr: addr.to_string(), node, stop, runtime: Some(runtime) }
    }

    async fn until_waiting(&self, count: u64) {
        let mut waiting = self.node.waiting.subscribe();
        waiting.wait_for(|waiting| *waiting == count).await.expect("the node lives");
    }

    fn open_gate(&self) {
        self.node.gate.send_replace(true);
    }

    fn die(&mut self) {
        self.runtime.take().expect("it runs").shutdown_background();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn asking(graph: &str, version: u64) -> v1::EvaluateRequest {
    v1::EvaluateRequest { name: graph.to_owned(), version, ..Default::default() }
}

fn count_of(reply: v1::EvaluateReply) -> u64 {
    match reply.value.and_then(|value| value.value) {
        Some(value::Value::Count(count)) => count,
        other => panic!("a count was expected: {other:?}"),
    }
}

fn transports() -> [(&'static str, Arc<dyn Transport>); 3] {
    let of = |kind: TransportKind| kind.build(&Dialer::default());
    [
        ("framed", of(TransportKind::Framed)),
        ("framed-tcp", of(TransportKind::FramedTcp)),
        ("grpc", of(TransportKind::Grpc)),
    ]
}

/// The failure as the executor sees it (`kith-session/src/executor/failure.rs`).
fn is_connection(status: &Status) -> bool {
    ["unavailable", "cancelled"].contains(&kith_wire::detail_of(status).code.as_str())
}
