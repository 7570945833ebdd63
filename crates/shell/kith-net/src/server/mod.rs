//! The listening side of a process: gRPC with health checks and reflection, frames, HTTP, access control and graceful
//! shutdown. The caller passes in what answers requests: gRPC routes and a [`framed::FrameService`].

mod accept;
mod compressed;
pub mod connections;
mod error;
pub mod framed;
mod front_page;
pub mod hosts;
pub mod http;
pub mod listen;
mod metric_help;
mod process_metrics;
pub mod security;
mod stream;
mod undecoded;

pub use error::ListenError;
pub use front_page::FrontPage;
pub use process_metrics::{Usage, of_process};
pub use stream::CallerConnection;

use crate::server::{
    accept::PortServices,
    connections::{Connections, open_streams::STREAMS_MAX, requests, streams::CountStreams},
    framed::FrameService,
    security::{Security, behind},
};
use futures::StreamExt;
use std::{io, net::SocketAddr, sync::Arc, time::Duration};
use tokio::net::{TcpListener, TcpSocket, UnixListener};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tonic::{
    service::{Routes, RoutesBuilder},
    transport::Server,
};
use tower_layer::layer_fn;

/// The HTTP/2 window of a connection. It bounds the bytes of requests that nobody has begun to read, which are not charged
/// yet.
const CONNECTION_WINDOW_BYTES: u32 = 2 << 20;
/// The HTTP/2 window of a stream.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
/// The longest headers of one request. They hold a token and the context of tracing.
const HEADER_BYTES_MAX: u32 = 16 << 10;
/// How often a silent peer is pinged, and how long it may take to answer before its connection is closed.
const KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(20));
/// The longest HTTP/2 frame that is accepted.
const FRAME_BYTES_MAX: u32 = 1 << 20;
/// How many requests of a connection may be reset by the peer before the server has seen them; beyond that, h2 closes the
/// whole connection. Its default of 20 is reached by honest callers whose deadlines pass while the process is overloaded,
/// and each closed connection makes hundreds of other requests fail. One read contains fewer: the server sees all of them
/// before it reads again.
const RESETS_MAX: usize = 1_024;

/// How many connections the system queues until this process accepts them; the system may allow fewer. If the queue is
/// full, the system drops connections, and honest callers wait for a second or more. So it has room for thousands that come
/// at once.
const BACKLOG: u32 = 4_096;

/// How long a stopping process waits for connections with requests under way: as long as a connection waits itself, and a
/// second more.
const STOP_TIMEOUT: Duration = Duration::from_secs(11);

/// A listener and its address.
#[derive(Debug)]
pub struct BoundListener {
    /// The address, with the chosen port.
    pub addr: SocketAddr,
    /// The TCP listener.
    pub listener: TcpListener,
    /// The Unix socket for processes on this machine, if there is one.
    pub local: Option<UnixListener>,
    /// The connections of the process, among which the accepted connections are counted.
    pub connections: Connections,
}

/// Listens on `addr`; port 0 chooses a free port.
///
/// # Errors
/// [`ListenError::Listen`] if the address cannot be listened on.
pub async fn bind(addr: SocketAddr, connections: &Connections) -> Result<BoundListener, ListenError> {
    let listen = |source| ListenError::Listen { addr, source };
    let listener = listener(addr).map_err(listen)?;
    let connections = connections.clone();
    Ok(BoundListener { addr: listener.local_addr().map_err(listen)?, listener, local: None, connections })
}

fn listener(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = if addr.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // As `TcpListener::bind` does, so that a restarted process gets its port although old connections linger.
    socket.set_reuseaddr(true)?;
    socket.bind(addr)?;
    socket.listen(BACKLOG)
}

/// The bound ports of a node or router.
#[derive(Debug)]
pub struct Ports {
    /// The port for gRPC and frames.
    pub grpc: BoundListener,
    /// The port for `/metrics` and the other HTTP paths.
    pub http: BoundListener,
    /// The port for Redis clients, if there is one.
    pub resp: Option<BoundListener>,
    /// The port for Gremlin drivers, if there is one.
    pub gremlin: Option<BoundListener>,
}

/// The addresses of a node's or router's ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// The address for gRPC and frames.
    pub grpc: SocketAddr,
    /// The address for `/metrics` and the other HTTP paths.
    pub http: SocketAddr,
    /// The address for Redis clients, if there is one.
    pub resp: Option<SocketAddr>,
    /// The address for Gremlin drivers, if there is one.
    pub gremlin: Option<SocketAddr>,
}

impl Ports {
    /// Binds all ports. If no gate authenticates callers, processes on this machine may also connect over a Unix socket. It
    /// is bound here, before the process serves, so that an early peer does not connect over TCP and stay there.
    ///
    /// # Errors
    /// [`ListenError::Listen`] if an address cannot be listened on.
    pub async fn bind(
        asked: Addresses,
        security: &Security,
        connections: &Connections,
    ) -> Result<Self, ListenError> {
        let resp = bind_some(asked.resp, connections).await?;
        let gremlin = bind_some(asked.gremlin, connections).await?;
        let mut grpc = bind(asked.grpc, connections).await?;
        if security.gate.is_none() {
            grpc.local = crate::frames::listen_locally(grpc.addr);
        }
        Ok(Self { grpc, http: bind(asked.http, &connections.of_http()).await?, resp, gremlin })
    }

    /// The addresses, with the chosen ports.
    pub fn addresses(&self) -> Addresses {
        let addr = |bound: &Option<BoundListener>| bound.as_ref().map(|bound| bound.addr);
        let (resp, gremlin) = (addr(&self.resp), addr(&self.gremlin));
        Addresses { grpc: self.grpc.addr, http: self.http.addr, resp, gremlin }
    }
}

impl Addresses {
    /// The address for Redis clients as documents contain it; empty if there is none.
    pub fn resp_text(&self) -> String {
        text(self.resp)
    }

    /// The address for Gremlin drivers as documents contain it; empty if there is none.
    pub fn gremlin_text(&self) -> String {
        text(self.gremlin)
    }
}

fn text(addr: Option<SocketAddr>) -> String {
    addr.map_or_else(String::new, |addr| addr.to_string())
}

/// Binds the port of a door, if there is one.
async fn bind_some(
    addr: Option<SocketAddr>,
    connections: &Connections,
) -> Result<Option<BoundListener>, ListenError> {
    match addr {
        Some(addr) => bind(addr, connections).await.map(Some),
        None => Ok(None),
    }
}

/// Waits for a limited time until connections that were asked to stop have ended.
pub async fn ended(tasks: &TaskTracker) {
    if tokio::time::timeout(STOP_TIMEOUT, tasks.wait()).await.is_err() {
        tracing::warn!(
            connections = tasks.len(),
            "closing connections whose requests have not ended in time"
        );
    }
}

/// Returns the services that every server has: health checks and reflection.
pub fn routes() -> RoutesBuilder {
    let mut routes = Routes::builder();
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(kith_wire::DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let whole = "the descriptors were compiled with this binary";
    // Most clients still ask for the older version.
    let (v1, v1alpha) = (reflection().build_v1().expect(whole), reflection().build_v1alpha().expect(whole));
    let (_reporter, health) = tonic_health::server::health_reporter();
    routes.add_service(v1).add_service(v1alpha).add_service(health);
    routes
}

/// Serves `routes` over gRPC, and `frames` if there is such a service, on the port of `bound` until `stop`. `security`
/// decides who may connect. Requests under way may end; the returned tracker is empty once they have.
pub fn spawn(
    bound: BoundListener,
    routes: RoutesBuilder,
    frames: Option<Arc<dyn FrameService>>,
    security: &Security,
    stop: CancellationToken,
) -> TaskTracker {
    let gate = security.gate.clone();
    let routes = match &gate {
        Some(gate) => behind(routes.routes(), Arc::clone(gate)),
        None => routes.routes(),
    };
    let routes = compressed::accepted(undecoded::corrected(routes));
    let routes = Routes::from(routes.into_axum_router().layer(axum::middleware::from_fn(requests::of_peer)));
    let (tasks, addr) = (TaskTracker::new(), bound.addr);
    let accepted = accept::spawn(bound, PortServices { frames, gate }, &tasks, stop.clone());
    let incoming = ReceiverStream::new(accepted);
    tasks.spawn(async move {
        let served = Server::builder()
            .layer(layer_fn(CountStreams))
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .max_frame_size(FRAME_BYTES_MAX)
            .max_concurrent_streams(STREAMS_MAX)
            .http2_max_header_list_size(HEADER_BYTES_MAX)
            .http2_keepalive_interval(Some(KEEP_ALIVE.0))
            .http2_keepalive_timeout(Some(KEEP_ALIVE.1))
            .http2_max_pending_accept_reset_streams(Some(RESETS_MAX))
            .add_routes(routes)
            .serve_with_incoming_shutdown(incoming.map(Ok::<_, io::Error>), stop.cancelled_owned())
            .await;
        if let Err(error) = served {
            tracing::error!(%error, %addr, "gRPC service ended");
        }
    });
    tasks.close();
    tasks
}
