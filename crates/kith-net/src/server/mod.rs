//! The server's end: listening, gRPC with health and reflection, frames, HTTP, who may come in, a graceful end. What is answered is
//! handed in: gRPC routes and a [`framed::FrameService`].

mod accept;
pub mod connections;
mod error;
pub mod framed;
mod front_page;
pub mod http;
pub mod listen;
pub mod security;
mod stream;
mod undecoded;

pub use error::ListenError;
pub use front_page::FrontPage;
pub use stream::Peer;

use crate::server::{
    accept::Served,
    connections::{Connections, requests},
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

/// Connection window of a server: what a peer may send of requests that nobody has begun to read, which are not charged yet.
const CONNECTION_WINDOW_BYTES: u32 = 2 << 20;
/// Stream window of a server.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
/// Requests of one connection under way at once; what its peer has more waits there. As many as a node takes in all.
const STREAMS_MAX: u32 = 4_096;
/// Headers of one request: a token and what tracing adds.
const HEADER_BYTES_MAX: u32 = 16 << 10;
/// A peer that is silent is asked so often whether it is there, and given up after so long.
const KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(20));
/// Largest HTTP/2 frame taken.
const FRAME_BYTES_MAX: u32 = 1 << 20;
/// Requests that a peer took back before the server came to see them, above which h2 closes the whole connection. Its own
/// limit of 20 is reached by honest callers whose deadlines pass while the process is overloaded, and each closing makes
/// hundreds of others fail. As many as a router has queries under way; each held here costs a few hundred bytes.
const RESETS_MAX: usize = 8_192;

/// Connections that the system keeps until this process accepts them; it may allow fewer. Where the queue is full, the system
/// drops connections and honest callers wait for a second or more, so it has room for thousands that come at once.
const BACKLOG: u32 = 4_096;

/// How long a stopping process waits for connections whose requests are under way: as long as a connection does, and a moment.
const STOP_PATIENCE: Duration = Duration::from_secs(11);

/// A listener and where it listens.
#[derive(Debug)]
pub struct Bound {
    /// The address, its port chosen.
    pub addr: SocketAddr,
    /// The listener.
    pub listener: TcpListener,
    /// Where processes of this machine come past TCP.
    pub local: Option<UnixListener>,
    /// The connections of the process, which those that come here are counted among.
    pub connections: Connections,
}

/// Binds `addr`; port 0 takes a free one.
///
/// # Errors
/// [`ListenError::Listen`].
pub async fn bind(addr: SocketAddr, connections: &Connections) -> Result<Bound, ListenError> {
    let listen = |source| ListenError::Listen { addr, source };
    let listener = listener(addr).map_err(listen)?;
    let connections = connections.clone();
    Ok(Bound { addr: listener.local_addr().map_err(listen)?, listener, local: None, connections })
}

fn listener(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = if addr.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // As `TcpListener::bind` does: a process that starts again takes its port while connections of the one before linger.
    socket.set_reuseaddr(true)?;
    socket.bind(addr)?;
    socket.listen(BACKLOG)
}

/// The ports of a node or router.
#[derive(Debug)]
pub struct Ports {
    /// For gRPC and frames.
    pub grpc: Bound,
    /// For `/metrics` and friends.
    pub http: Bound,
    /// For Redis clients.
    pub resp: Option<Bound>,
}

/// Where they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// For gRPC and frames.
    pub grpc: SocketAddr,
    /// For `/metrics` and friends.
    pub http: SocketAddr,
    /// For Redis clients.
    pub resp: Option<SocketAddr>,
}

impl Ports {
    /// Binds all of them. Where nobody is asked who they are, processes of this machine may come past TCP: from now on, so
    /// that none that is quick comes over TCP and stays there.
    ///
    /// # Errors
    /// [`ListenError::Listen`].
    pub async fn bind(
        asked: Addresses,
        security: &Security,
        connections: &Connections,
    ) -> Result<Self, ListenError> {
        let resp = match asked.resp {
            Some(addr) => Some(bind(addr, connections).await?),
            None => None,
        };
        let mut grpc = bind(asked.grpc, connections).await?;
        if security.gate.is_none() {
            grpc.local = crate::frames::listen_locally(grpc.addr);
        }
        Ok(Self { grpc, http: bind(asked.http, &connections.of_http()).await?, resp })
    }

    /// Where they are, the ports chosen.
    pub fn addresses(&self) -> Addresses {
        let resp = self.resp.as_ref().map(|bound| bound.addr);
        Addresses { grpc: self.grpc.addr, http: self.http.addr, resp }
    }
}

impl Addresses {
    /// The one for Redis clients, as documents have it: empty if there is none.
    pub fn resp_text(&self) -> String {
        self.resp.map_or_else(String::new, |addr| addr.to_string())
    }
}

/// Waits until connections that were told to stop have ended; not for long.
pub async fn ended(tasks: &TaskTracker) {
    if tokio::time::timeout(STOP_PATIENCE, tasks.wait()).await.is_err() {
        tracing::warn!(connections = tasks.len(), "connections that do not end are cut off");
    }
}

/// The services that every server has: health and reflection.
pub fn routes() -> RoutesBuilder {
    let mut routes = Routes::builder();
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(kith_wire::DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()
        .expect("the descriptors were compiled with this binary");
    let (_reporter, health) = tonic_health::server::health_reporter();
    routes.add_service(reflection).add_service(health);
    routes
}

/// Serves `routes` over gRPC and `frames`, if there are any, on the one port of `bound` until `stop`, to whom `security` lets in;
/// requests in flight are let end: what is returned is empty once they have.
pub fn spawn(
    bound: Bound,
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
    let routes = undecoded::told(routes);
    let routes = Routes::from(routes.into_axum_router().layer(axum::middleware::from_fn(requests::of_peer)));
    let (tasks, addr) = (TaskTracker::new(), bound.addr);
    let accepted = accept::spawn(bound, Served { frames, gate }, &tasks, stop.clone());
    let incoming = ReceiverStream::new(accepted);
    tasks.spawn(async move {
        let served = Server::builder()
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
