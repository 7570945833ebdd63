//! Both transports against one scripted node on one port.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and so do the peers that it scripts")]

mod by_hand;
mod newer;
mod places;
#[cfg(target_os = "linux")]
mod shared;
mod slices;
mod streams;

use bytes::Bytes;
use futures::{StreamExt, future::BoxFuture, stream::BoxStream};
use kith_api::{QueryOptions, Service};
use kith_client::{FramedTransport, RouterClient, Transport, TransportKind};
use kith_net::{
    endpoint,
    security::Dialer,
    server::{
        self, Bound,
        connections::{ConnectionSettings, Connections},
        framed::{End, FrameService, Piece, Pieces, Reply, request, unsupported},
        security::Security,
    },
};
use kith_ops::{GraphAnswer, GraphQuery, Operand};
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

/// What a request's graph makes the node do: answer at once, answer after the gate opens, fail, answer at length, at great length.
const ECHO: &str = "echo";
const WAIT: &str = "wait";
const FAIL: &str = "fail";
const LONG: &str = "long";
const LONG_BYTES: usize = 256 << 10;
/// More than sockets hold.
const HUGE: &str = "huge";
const HUGE_BYTES: usize = 32 << 20;

struct Scripted {
    started: AtomicU64,
    /// How many requests wait; watched by tests.
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
    fn call(self: Arc<Self>, op: Op, body: Bytes) -> BoxFuture<'static, Result<Reply, Status>> {
        Box::pin(async move {
            match op {
                Op::Evaluate => Ok(Reply::Evaluate(self.evaluate(request(body)?).await?)),
                Op::Query => {
                    let piece = |ids: Vec<u64>| v1::QueryReply {
                        complete: true,
                        answer: Some(Answer::Ids(v1::IdSet { ids })),
                        ..Default::default()
                    };
                    Ok(Reply::Query(vec![piece(vec![1, 2]), piece(vec![3]), piece(vec![9])].into_iter()))
                }
                other => Err(unsupported(other.name())),
            }
        })
    }

    fn call_alone(self: Arc<Self>, op: Op, body: Bytes) -> BoxFuture<'static, Result<Reply, Status>> {
        let asked = request::<v1::EvaluateRequest>(body.clone()).ok();
        match asked.filter(|asked| op == Op::Evaluate && asked.in_slices) {
            Some(asked) => Box::pin(async move { Ok(Reply::Pieces(self.slices(&asked))) }),
            None => self.call(op, body),
        }
    }

    fn call_credited(self: Arc<Self>, _: Op, body: Bytes) -> BoxFuture<'static, Result<Reply, Status>> {
        Box::pin(async move {
            let parts = self.parts(&request(body)?);
            let piece = |part: Result<(v1::EvaluateReply, bool), Status>| {
                part.map(|(part, is_last)| Piece::of(&part, End::of_message(is_last)))
            };
            Ok(Reply::Pieces(parts.map(piece).boxed()))
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
        let bound = Bound { addr, listener, local, connections };
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

#[tokio::test]
async fn answers_and_errors_are_the_same_over_both_on_one_port() {
    let server = Server::start();
    for (name, transport) in transports() {
        assert_eq!(count_of(transport.evaluate(&server.addr, asking(ECHO, 7)).await.unwrap()), 7, "{name}");
        let error = transport.evaluate(&server.addr, asking(FAIL, 7)).await.unwrap_err();
        let detail = kith_wire::detail_of(&error);
        assert_eq!((error.code(), error.message()), (Code::DataLoss, "a block is bad"), "{name}");
        assert_eq!((detail.code.as_str(), detail.help.as_str()), ("damaged", "load again"), "{name}");
        let long = transport.evaluate(&server.addr, asking(LONG, 7)).await.unwrap();
        assert_eq!(long.value.unwrap().value, Some(value::Value::Set(vec![7; LONG_BYTES].into())), "{name}");
        let error = transport.ping(&server.addr, v1::PingRequest::default()).await.unwrap_err();
        assert_eq!(kith_wire::code_of(&error), ErrorCode::UnsupportedOperation, "{name}");
    }
}

#[tokio::test]
async fn a_later_request_is_answered_before_an_earlier_one() {
    let server = Server::start();
    for (name, transport) in transports() {
        server.node.gate.send_replace(false);
        let (asker, addr) = (Arc::clone(&transport), server.addr.clone());
        let first = tokio::spawn(async move { asker.evaluate(&addr, asking(WAIT, 1)).await });
        server.until_waiting(1).await;
        for version in 2..20 {
            let reply = transport.evaluate(&server.addr, asking(ECHO, version)).await.unwrap();
            assert_eq!(count_of(reply), version, "{name}");
        }
        assert!(!first.is_finished(), "{name}");
        server.open_gate();
        assert_eq!(count_of(first.await.unwrap().unwrap()), 1, "{name}");
    }
}

#[tokio::test]
async fn a_dropped_request_ends_at_the_node() {
    let server = Server::start();
    for (_, transport) in transports() {
        // The first one runs on the connection's own task, the second on another.
        let mut calls: Vec<_> = (0..2).map(|_| transport.evaluate(&server.addr, asking(WAIT, 1))).collect();
        let both = futures::future::join_all(calls.iter_mut());
        tokio::select! {
            _ = both => panic!("the gate is closed"),
            () = server.until_waiting(2) => {}
        }
        drop(calls);
        server.until_waiting(0).await;
        assert_eq!(count_of(transport.evaluate(&server.addr, asking(ECHO, 3)).await.unwrap()), 3);
    }
}

#[tokio::test]
async fn a_lost_connection_and_a_refused_one_are_unavailable() {
    for (name, transport) in transports() {
        let mut server = Server::start();
        let (asker, addr) = (Arc::clone(&transport), server.addr.clone());
        let asked = tokio::spawn(async move { asker.evaluate(&addr, asking(WAIT, 1)).await });
        server.until_waiting(1).await;
        server.die();
        let lost = asked.await.unwrap().unwrap_err();
        assert!(is_connection(&lost), "{name}: {lost:?}");
        let refused = transport.evaluate(&server.addr, asking(ECHO, 1)).await.unwrap_err();
        assert!(is_connection(&refused), "{name}: {refused:?}");
    }
}

#[tokio::test]
async fn a_connection_that_is_lost_while_nobody_asks_is_told_once() {
    let mut server = Server::start();
    let transport = FramedTransport::default();
    transport.evaluate(&server.addr, asking(ECHO, 1)).await.expect("it answers");
    assert!(transport.take_cut().is_empty());
    server.die();
    let mut cut = Vec::new();
    while cut.is_empty() {
        tokio::task::yield_now().await;
        cut = transport.take_cut();
    }
    assert_eq!(cut, [server.addr.clone()]);
    assert!(transport.take_cut().is_empty());
}

/// As the executor sees it (`kith_client::executor::failure`).
fn is_connection(status: &Status) -> bool {
    ["unavailable", "cancelled"].contains(&kith_wire::detail_of(status).code.as_str())
}

#[tokio::test]
async fn a_stopping_server_answers_what_is_under_way() {
    for (name, transport) in transports() {
        let server = Server::start();
        let (asker, addr) = (Arc::clone(&transport), server.addr.clone());
        let asked = tokio::spawn(async move { asker.evaluate(&addr, asking(WAIT, 5)).await });
        server.until_waiting(1).await;
        server.stop.cancel();
        // Once nobody can connect any more, it has begun to stop.
        while TcpStream::connect(&server.addr).await.is_ok() {
            tokio::task::yield_now().await;
        }
        server.open_gate();
        assert_eq!(count_of(asked.await.unwrap().unwrap()), 5, "{name}");
    }
}

/// Returns when the only connection of a transport is cut.
async fn until_cut(transport: &dyn Transport) {
    let cut = async {
        while transport.take_cut().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(90), cut).await.expect("it is cut in time");
}

#[tokio::test]
async fn idle_connections_are_closed_and_requests_open_others_and_those_under_way_are_not_idle() {
    let idle = Some(Duration::from_millis(200));
    let server = Server::start_with(ConnectionSettings { idle, ..ConnectionSettings::default() });
    for (name, transport) in transports() {
        server.node.gate.send_replace(false);
        assert_eq!(count_of(transport.evaluate(&server.addr, asking(ECHO, 1)).await.unwrap()), 1, "{name}");
        if name != "grpc" {
            until_cut(&*transport).await;
        }
        let asked = transport.evaluate(&server.addr, asking(WAIT, 2));
        let waited = async {
            server.until_waiting(1).await;
            // One that is idle since then is closed: it would have been as well.
            let other = TransportKind::FramedTcp.build(&Dialer::default());
            let answer = other.evaluate(&server.addr, asking(ECHO, 1)).await.unwrap();
            assert_eq!(count_of(answer), 1, "{name}");
            until_cut(&*other).await;
            server.open_gate();
        };
        assert_eq!(count_of(tokio::join!(asked, waited).0.unwrap()), 2, "{name}");
    }
}

#[tokio::test]
async fn more_connections_than_allowed_are_told_so_and_the_others_go_on() {
    let open_max = Some(2);
    let server = Server::start_with(ConnectionSettings { open_max, ..ConnectionSettings::default() });
    let transports =
        [TransportKind::FramedTcp, TransportKind::Grpc].map(|kind| kind.build(&Dialer::default()));
    for transport in &transports {
        assert_eq!(count_of(transport.evaluate(&server.addr, asking(ECHO, 1)).await.unwrap()), 1);
    }
    let mut other = by_hand::Raw::connect(&server.addr).await;
    let told = other.receive().await.expect("an error").status();
    assert_eq!(kith_wire::code_of(&told), ErrorCode::TooManyConnections, "{told:?}");
    assert_eq!(other.receive().await, None);
    let grpc = TransportKind::Grpc.build(&Dialer::default());
    let refused = grpc.evaluate(&server.addr, asking(ECHO, 1)).await.unwrap_err();
    assert!(is_connection(&refused), "{refused:?}");
    for transport in &transports {
        assert_eq!(count_of(transport.evaluate(&server.addr, asking(ECHO, 1)).await.unwrap()), 1);
    }
}

#[tokio::test]
async fn a_peer_that_does_not_speak_frames_is_unavailable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    let answer = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        std::future::pending::<()>().await;
    };
    let transport = FramedTransport::default();
    let error = tokio::select! {
        error = transport.evaluate(&addr, asking(ECHO, 1)) => error.unwrap_err(),
        () = answer => unreachable!("it never ends"),
    };
    assert!(is_connection(&error), "{error:?}");
    assert!(error.message().contains("the peer does not speak frames"), "{error:?}");
}

#[tokio::test]
async fn a_silent_peer_is_unavailable_within_the_connect_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    let transport = FramedTransport::default();
    let calls = (0..8).map(|_| transport.evaluate(&addr, asking(ECHO, 1)));
    for answer in futures::future::join_all(calls).await {
        assert_eq!(answer.unwrap_err().code(), Code::Unavailable);
    }
    // One attempt for all of them: nobody waits for the failures of others.
    let mut accepted = 0;
    while let Ok(Ok(_)) = tokio::time::timeout(Duration::ZERO, listener.accept()).await {
        accepted += 1;
    }
    assert_eq!(accepted, 1);
}

#[tokio::test]
async fn a_deadline_passes_at_the_node() {
    let server = Server::start();
    let transport = FramedTransport::default();
    let header = v1::RequestHeader { deadline_us: 10_000, ..Default::default() };
    let request = v1::EvaluateRequest { header: Some(header), ..asking(WAIT, 1) };
    let error = transport.evaluate(&server.addr, request).await.unwrap_err();
    assert_eq!(kith_wire::code_of(&error), ErrorCode::DeadlineExceeded);
    server.until_waiting(0).await;
}

#[tokio::test]
async fn a_reply_in_pieces_is_put_together() {
    let server = Server::start();
    let channel = endpoint(&server.addr).unwrap().connect_lazy();
    let client = RouterClient::over(server.addr.clone(), channel);
    let query = GraphQuery {
        operand: Operand::Connections { id: 1 },
        edge_type: None,
        direction: None,
        workflow: Workflow::Interactive,
    };
    let answered = client.query("g", &query, &QueryOptions::default()).await.unwrap();
    assert!(matches!(answered.answer, GraphAnswer::Ids(ids) if ids == [1, 2, 3, 9]));
}
