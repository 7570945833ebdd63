//! The transport of requests to nodes: one trait, with one implementation over frames and one over gRPC. Message bodies are
//! the same on both, so frames can only be faster; they offer no operation that gRPC lacks.

use crate::{
    SendFailure,
    frames::{Frames, decoded},
    security::{Dialer, GrpcChannel},
    unwritten::silence,
};
use futures::{
    FutureExt, StreamExt,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use kith_wire::{
    MESSAGE_BYTES_MAX,
    frame::Op,
    v1::{self, node_client::NodeClient},
};
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};
use tonic::{Response, Status};

/// The future of a node's reply, which every call of a [`Transport`] returns.
pub type TransportFuture<'a, T, E = Status> = BoxFuture<'a, Result<T, E>>;

/// Carries requests to nodes. Dropping the future cancels the request.
///
/// Contract: an error is a status. Its details carry Kith's error code if the node sent one. A lost connection is
/// `Unavailable`.
pub trait Transport: Send + Sync + 'static {
    /// Sends one evaluation to the node at `addr`.
    fn evaluate<'a>(
        &'a self,
        addr: &'a str,
        request: v1::EvaluateRequest,
    ) -> TransportFuture<'a, v1::EvaluateReply>;

    /// Like [`Transport::evaluate`], but the answer may come in parts. Each part answers the next keys of the request, in
    /// order; the last part is an error or answers the remaining keys. The node stops sending soon after the receiver stops
    /// taking parts, which bounds the memory of parts that wait here. Dropping the stream cancels the request. A transport
    /// without support for parts returns one part.
    fn evaluate_in_parts(self: Arc<Self>, addr: String, request: v1::EvaluateRequest) -> EvaluateParts {
        stream::once(async move { self.evaluate(&addr, request).await }).boxed()
    }

    /// Asks the node at `addr` whether it is healthy. The ping uses the connection that requests use, and opens one if
    /// there is none.
    fn ping<'a>(&'a self, addr: &'a str, request: v1::PingRequest) -> TransportFuture<'a, v1::PingReply>;

    /// Sends a write to the node at `addr`, at most once. Waits at most `timeout` for the reply.
    ///
    /// # Errors
    /// [`SendFailure`] says whether the write may have been carried out.
    fn write<'a>(
        &'a self,
        addr: &'a str,
        request: v1::GraphWriteRequest,
        timeout: Duration,
    ) -> TransportFuture<'a, v1::GraphWriteReply, SendFailure>;

    /// Delivers one end of a pair to the node at `addr`. Waits at most `timeout` for the reply.
    fn deliver<'a>(
        &'a self,
        addr: &'a str,
        request: v1::DeliverRequest,
        timeout: Duration,
    ) -> TransportFuture<'a, v1::DeliverReply>;

    /// Returns the addresses whose connections were lost since the last call and have not been opened again. A transport
    /// that reconnects by itself returns none.
    fn take_cut(&self) -> Vec<String> {
        Vec::new()
    }

    /// The number of addresses for which the transport keeps state.
    fn addresses(&self) -> usize {
        0
    }

    /// Drops the state of all addresses that are not in `known`. Requests under way to them continue; a later request to
    /// such an address connects again.
    fn keep_only(&self, _known: &HashSet<&str>) {}
}

/// The parts of a node's answer, in order.
pub type EvaluateParts = BoxStream<'static, Result<v1::EvaluateReply, Status>>;

/// The protocol that requests to nodes use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TransportKind {
    /// Frames, over Unix sockets to processes on this machine that listen on one, and over TCP to all others.
    #[default]
    Framed,
    /// Frames, over TCP only.
    FramedTcp,
    /// gRPC only.
    Grpc,
}

impl TransportKind {
    /// Returns a transport of this kind, which has no connections yet.
    pub fn build(self, dialer: &Dialer) -> Arc<dyn Transport> {
        match self {
            TransportKind::Grpc => Arc::new(GrpcTransport::new(dialer)),
            framed => Arc::new(FramedTransport::new(dialer, framed.is_local())),
        }
    }

    /// Whether peers on this machine are reached over Unix sockets.
    pub fn is_local(self) -> bool {
        self == TransportKind::Framed
    }
}

/// A transport that sends frames over one connection per node (`docs/formats/framed-protocol.md`).
#[derive(Debug)]
pub struct FramedTransport {
    frames: Frames,
}

impl FramedTransport {
    fn new(dialer: &Dialer, locally: bool) -> Self {
        Self { frames: Frames::new(dialer.clone(), locally) }
    }
}

impl Default for FramedTransport {
    /// A transport without TLS, which has no connections yet.
    fn default() -> Self {
        Self::new(&Dialer::default(), TransportKind::Framed.is_local())
    }
}

impl Transport for FramedTransport {
    fn evaluate<'a>(
        &'a self,
        addr: &'a str,
        request: v1::EvaluateRequest,
    ) -> TransportFuture<'a, v1::EvaluateReply> {
        async move {
            let micros = request.header.as_ref().map_or(0, |header| header.deadline_us);
            let deadline = (0 < micros).then(|| Duration::from_micros(micros));
            self.frames.ask(addr, Op::Evaluate, deadline, &request).await
        }
        .boxed()
    }

    fn evaluate_in_parts(self: Arc<Self>, addr: String, request: v1::EvaluateRequest) -> EvaluateParts {
        let asked = async move {
            let micros = request.header.as_ref().map_or(0, |header| header.deadline_us);
            let deadline = (0 < micros).then(|| Duration::from_micros(micros));
            match self.frames.call_in_parts(&addr, Op::Evaluate, deadline, &request).await {
                Ok(parts) => parts.map(|part| part.and_then(decoded)).boxed(),
                Err(status) => failed(status),
            }
        };
        asked.flatten_stream().boxed()
    }

    fn ping<'a>(&'a self, addr: &'a str, request: v1::PingRequest) -> TransportFuture<'a, v1::PingReply> {
        async move { self.frames.ask(addr, Op::Ping, None, &request).await }.boxed()
    }

    fn write<'a>(
        &'a self,
        addr: &'a str,
        request: v1::GraphWriteRequest,
        timeout: Duration,
    ) -> TransportFuture<'a, v1::GraphWriteReply, SendFailure> {
        async move { self.frames.ask_once(addr, Op::Write, timeout, &request).await }.boxed()
    }

    fn deliver<'a>(
        &'a self,
        addr: &'a str,
        request: v1::DeliverRequest,
        timeout: Duration,
    ) -> TransportFuture<'a, v1::DeliverReply> {
        async move {
            let asked = self.frames.ask(addr, Op::Deliver, Some(timeout), &request);
            tokio::time::timeout(timeout, asked).await.unwrap_or_else(|_| Err(silence(timeout)))
        }
        .boxed()
    }

    fn take_cut(&self) -> Vec<String> {
        self.frames.take_cut()
    }

    fn addresses(&self) -> usize {
        self.frames.addresses()
    }

    fn keep_only(&self, known: &HashSet<&str>) {
        self.frames.keep_only(known);
    }
}

/// A transport that uses gRPC over one HTTP/2 connection per node.
#[derive(Debug, Default)]
pub struct GrpcTransport {
    dialer: Dialer,
    /// The channels by address. An entry is added with the first request to a node, and removed when the node is gone.
    channels: Mutex<HashMap<String, GrpcChannel>>,
}

impl GrpcTransport {
    /// Returns a transport that has no connections yet.
    pub fn new(dialer: &Dialer) -> Self {
        Self { dialer: dialer.clone(), channels: Mutex::default() }
    }

    fn channels(&self) -> MutexGuard<'_, HashMap<String, GrpcChannel>> {
        self.channels.lock()
    }

    fn client(&self, addr: &str) -> Result<NodeClient<GrpcChannel>, Status> {
        let mut channels = self.channels();
        let channel = match channels.get(addr) {
            Some(channel) => channel.clone(),
            None => {
                let channel = self.dialer.channel(addr)?;
                channels.insert(addr.to_owned(), channel.clone());
                channel
            }
        };
        Ok(NodeClient::new(channel)
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX))
    }
}

impl GrpcTransport {
    fn in_parts(&self, addr: String, request: v1::EvaluateRequest) -> EvaluateParts {
        let client = self.client(&addr);
        let asked = async move {
            let mut client = match client {
                Ok(client) => client,
                Err(status) => return failed(status),
            };
            match client.evaluate_stream(request).await {
                Ok(parts) => parts.into_inner().boxed(),
                Err(status) => failed(status),
            }
        };
        asked.flatten_stream().boxed()
    }
}

fn failed(status: Status) -> EvaluateParts {
    stream::once(async { Err(status) }).boxed()
}

impl Transport for GrpcTransport {
    fn evaluate<'a>(
        &'a self,
        addr: &'a str,
        request: v1::EvaluateRequest,
    ) -> TransportFuture<'a, v1::EvaluateReply> {
        async move { Ok(self.client(addr)?.evaluate(request).await?.into_inner()) }.boxed()
    }

    fn evaluate_in_parts(self: Arc<Self>, addr: String, request: v1::EvaluateRequest) -> EvaluateParts {
        self.in_parts(addr, request)
    }

    fn ping<'a>(&'a self, addr: &'a str, request: v1::PingRequest) -> TransportFuture<'a, v1::PingReply> {
        async move { Ok(self.client(addr)?.ping(request).await?.into_inner()) }.boxed()
    }

    fn write<'a>(
        &'a self,
        addr: &'a str,
        request: v1::GraphWriteRequest,
        timeout: Duration,
    ) -> TransportFuture<'a, v1::GraphWriteReply, SendFailure> {
        async move {
            let mut client = self.client(addr).map_err(SendFailure::Unsent)?;
            match tokio::time::timeout(timeout, client.write(request)).await {
                Ok(reply) => reply.map(Response::into_inner).map_err(SendFailure::after_sending),
                Err(_) => Err(SendFailure::Lost(silence(timeout))),
            }
        }
        .boxed()
    }

    fn deliver<'a>(
        &'a self,
        addr: &'a str,
        request: v1::DeliverRequest,
        timeout: Duration,
    ) -> TransportFuture<'a, v1::DeliverReply> {
        async move {
            let mut client = self.client(addr)?;
            let asked = client.deliver(request);
            let reply = tokio::time::timeout(timeout, asked).await.unwrap_or_else(|_| Err(silence(timeout)));
            Ok(reply?.into_inner())
        }
        .boxed()
    }

    fn addresses(&self) -> usize {
        self.channels().len()
    }

    fn keep_only(&self, known: &HashSet<&str>) {
        self.channels().retain(|addr, _| known.contains(addr.as_str()));
    }
}
