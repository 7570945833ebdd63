//! A client of routers. It needs no topology, but costs one hop more than a session that asks nodes.

mod cluster;
mod pieces;
mod service;
mod stream;
mod timeouts;
mod types;

pub use timeouts::ANSWER_GRACE;
pub use types::KnownTypes;

use crate::schemas::Schemas;
use futures::{StreamExt, stream::BoxStream};
use kith_net::transport::TransportKind;
use kith_net::{
    frames::{Frames, decoded},
    security::{Dialer, GrpcChannel, TlsFailure},
};
use kith_query::{QueryError, QueryOptions};
use kith_types::ErrorCode;
use kith_wire::{
    MESSAGE_BYTES_MAX,
    documents::{Document, TopologyDocument},
    frame::Op,
    v1::{self, cluster_client::ClusterClient, graph_client::GraphClient, store_client::StoreClient},
};
use pieces::joined;
use std::sync::Arc;
use timeouts::{CONNECT_TIMEOUT, frame_deadline, overdue, timeout, within};
use tonic::{Code, Status, transport::Channel};

/// Connections to one router: queries travel in frames if the router speaks them, everything else over HTTP/2. Cheap to
/// clone; clones share connections.
#[derive(Clone, Debug)]
pub struct RouterClient {
    addr: String,
    /// `None` if gRPC was chosen.
    frames: Option<Arc<Frames>>,
    graph: GraphClient<GrpcChannel>,
    cluster: ClusterClient<GrpcChannel>,
    store: StoreClient<GrpcChannel>,
    schemas: Schemas,
    dialer: Dialer,
}

/// A request that is answered by a stream.
enum StreamRequest {
    Values(v1::MultiGetRequest),
    Compute(v1::ComputeRequest),
}

impl RouterClient {
    /// Connects without TLS to the first router of `addrs` (`host:port`) that can be reached.
    ///
    /// # Errors
    /// Those of [`RouterClient::connect_by`].
    pub async fn connect(addrs: &[String]) -> Result<Self, QueryError> {
        Self::connect_by(addrs, &Dialer::default()).await
    }

    /// Connects to the first router of `addrs` (`host:port`) that can be reached and accepts this process.
    ///
    /// # Errors
    /// [`QueryError::Unreachable`] with the last reason if none can be reached; [`QueryError::Tls`]; the router's error if
    /// it does not accept the identity of this process.
    pub async fn connect_by(addrs: &[String], dialer: &Dialer) -> Result<Self, QueryError> {
        Ok(Self::connect_and_look(addrs, dialer).await?.0)
    }

    /// Connects like [`RouterClient::connect_by`], and returns the router's topology too. A second request for it might
    /// find the router gone.
    pub async fn connect_and_look(
        addrs: &[String],
        dialer: &Dialer,
    ) -> Result<(Self, v1::Topology), QueryError> {
        let mut last =
            QueryError::Unreachable { addr: "(none)".to_owned(), reason: "no address given".to_owned() };
        for addr in addrs {
            let answered = match dialer.connect(addr).await {
                Ok(channel) => Self::through(addr.clone(), channel, dialer).answering().await,
                Err(status) => Err(unreachable(dialer, addr, status.message())),
            };
            match answered {
                Ok(answered) => return Ok(answered),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Returns itself after the router has answered a request: a frozen process still accepts connections.
    async fn answering(self) -> Result<(Self, v1::Topology), QueryError> {
        let asked = self.cluster.clone();
        let call = async move { { asked }.get_topology(v1::TopologyRequest {}).await };
        let status = match within(CONNECT_TIMEOUT, call).await {
            Ok(topology) => return Ok((self, topology.into_inner())),
            Err(status) => status,
        };
        match kith_wire::code_of(&status).is_denial() {
            true => Err(QueryError::from_status(&status)),
            false => Err(unreachable(&self.dialer, &self.addr, status.message())),
        }
    }

    /// Creates a client over an existing gRPC channel. Queries in frames go to `addr`, without TLS; messages name it too.
    pub fn over(addr: String, channel: Channel) -> Self {
        let dialer = Dialer::default();
        Self::through(addr, dialer.bearing(channel), &dialer)
    }

    /// Creates a client that connects on first use.
    ///
    /// # Errors
    /// If `addr` is not an address.
    pub fn lazy(addr: String, dialer: &Dialer) -> Result<Self, Status> {
        let channel = dialer.channel(&addr)?;
        Ok(Self::through(addr, channel, dialer))
    }

    fn through(addr: String, channel: GrpcChannel, dialer: &Dialer) -> Self {
        let graph = GraphClient::new(channel.clone())
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX);
        Self {
            addr,
            frames: Some(Arc::new(Frames::new(dialer.clone(), TransportKind::default().is_local()))),
            dialer: dialer.clone(),
            graph,
            store: StoreClient::new(channel.clone())
                .max_decoding_message_size(MESSAGE_BYTES_MAX)
                .max_encoding_message_size(MESSAGE_BYTES_MAX),
            schemas: Schemas::default(),
            cluster: ClusterClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX),
        }
    }

    /// Sets the transport of queries.
    pub fn with_transport(mut self, transport: TransportKind) -> Self {
        self.frames = match transport {
            TransportKind::Grpc => None,
            framed => Some(Arc::new(Frames::new(self.dialer.clone(), framed.is_local()))),
        };
        self
    }

    /// The settings of its connections, for connecting to nodes in the same way.
    pub fn dialer(&self) -> &Dialer {
        &self.dialer
    }

    /// The router's address.
    pub fn addr(&self) -> &str {
        &self.addr
    }

    /// Opens the connection for queries, unless it is open. Returns whether it is open afterwards; always `false` with
    /// gRPC.
    pub async fn warm(&self) -> bool {
        match &self.frames {
            Some(frames) => frames.open(&self.addr).await.is_ok(),
            None => false,
        }
    }

    /// Forwards a query unchanged but marked as forwarded, from a router to the owner of a member's network.
    ///
    /// # Errors
    /// The errors that the other router reports.
    pub async fn forward(&self, mut request: v1::QueryRequest) -> Result<v1::QueryReply, Status> {
        request.options.get_or_insert_default().forwarded = true;
        self.ask(request, false).await
    }

    /// Asks a query. `pieces` says whether the reply may be too long for one message.
    async fn ask(&self, request: v1::QueryRequest, pieces: bool) -> Result<v1::QueryReply, Status> {
        if let Some(frames) = &self.frames {
            let deadline = frame_deadline(request.options.as_ref());
            let pieces = frames.call(&self.addr, Op::Query, deadline, &request).await?;
            return joined(pieces.into_iter().map(decoded));
        }
        let mut client = self.graph.clone();
        if !pieces {
            return Ok(client.query(request).await?.into_inner());
        }
        let mut stream = client.query_stream(request).await?.into_inner();
        let mut pieces = Vec::new();
        while let Some(piece) = stream.message().await? {
            pieces.push(Ok(piece));
        }
        joined(pieces)
    }

    /// The messages of a stream: in frames, or over gRPC. The deadline is the router's own and half a second.
    async fn messages(
        &self,
        request: StreamRequest,
        options: &QueryOptions,
    ) -> Result<BoxStream<'static, Result<v1::MultiGetPiece, Status>>, Status> {
        if let Some(frames) = &self.frames {
            let deadline = Some(timeout(options));
            let parts = match &request {
                StreamRequest::Values(request) => {
                    frames.call_in_parts(&self.addr, Op::MultiGetStream, deadline, request).await
                }
                StreamRequest::Compute(request) => {
                    frames.call_in_parts(&self.addr, Op::ComputeStream, deadline, request).await
                }
            };
            return Ok(parts?.map(|part| part.and_then(decoded)).boxed());
        }
        let mut store = self.store.clone();
        let messages = match request {
            StreamRequest::Values(request) => store.multi_get_stream(request).await?,
            StreamRequest::Compute(request) => store.compute_stream(request).await?,
        };
        Ok(messages.into_inner().boxed())
    }

    pub(crate) fn error(&self, status: &Status) -> QueryError {
        let lost = kith_wire::code_of(status) == ErrorCode::Unavailable && status.code() == Code::Unavailable;
        if lost {
            unreachable(&self.dialer, &self.addr, status.message())
        } else {
            QueryError::from_status(status)
        }
    }
}

/// Decodes the document inside a topology message.
///
/// # Errors
/// If the document cannot be read.
pub fn topology_of(message: &v1::Topology) -> Result<TopologyDocument, QueryError> {
    TopologyDocument::decode(&message.document)
        .map_err(|error| QueryError::Internal { detail: error.to_string() })
}

/// The error for a router that cannot be connected to, over TLS or at all.
fn unreachable(dialer: &Dialer, addr: &str, reason: &str) -> QueryError {
    let addr = addr.to_owned();
    match dialer.failure_at(&addr) {
        Some(TlsFailure { reason, help }) => QueryError::Tls { addr, reason, help },
        None => QueryError::Unreachable { addr, reason: reason.to_owned() },
    }
}
