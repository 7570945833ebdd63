//! One port for two protocols, with or without TLS. The first byte of a connection tells which protocol it uses.

use super::{
    BoundListener,
    connections::{Connections, OpenConnection, farewell},
    framed::{self, FrameService},
    hosts::Site,
    listen::{self, ConnectionOpening},
    security::{Caller, CallerIdentity, Gate, Need, guard},
    stream::{CallerConnection, Http2Connection, PeekedStream, Stream},
};
use kith_wire::frame::Preface;
use std::{io, net::SocketAddr, sync::Arc};
use tokio::{
    io::AsyncReadExt,
    net::{TcpStream, UnixListener, UnixStream},
    sync::mpsc,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How many gRPC connections may wait until tonic takes them over.
const HANDED_OVER_MAX: usize = 64;
/// The first byte of HTTP/2, from `PRI * HTTP/2.0`. tonic reads the rest.
const HTTP2_FIRST: u8 = b'P';

/// The services of a port.
#[derive(Clone)]
pub(crate) struct PortServices {
    /// The service that answers frames; `None` if the port does not serve frames.
    pub frames: Option<Arc<dyn FrameService>>,
    /// The gate that requires TLS; `None` if connections use no TLS.
    pub gate: Option<Arc<Gate>>,
}

/// Accepts connections on the listeners of `bound` until `stop`. Framed connections are served here, by tasks of `tasks`;
/// HTTP/2 connections come out of the returned channel.
pub(crate) fn spawn(
    bound: BoundListener,
    served: PortServices,
    tasks: &TaskTracker,
    stop: CancellationToken,
) -> mpsc::Receiver<Http2Connection> {
    let (http2, handed_over) = mpsc::channel(HANDED_OVER_MAX);
    let connections = tasks.clone();
    if let (Some(frames), Some(local)) = (&served.frames, bound.local) {
        accept_locally(local, bound.connections.clone(), Arc::clone(frames), tasks, stop.clone());
    }
    let room = bound.connections;
    tasks.spawn(async move {
        let welcome = |(stream, addr), connected| {
            let begun = welcome(stream, addr, connected, served.clone(), http2.clone(), stop.clone());
            connections.spawn(async move {
                if let Err(error) = begun.await {
                    tracing::debug!(%error, "a connection ended");
                }
            });
        };
        let refuse = |(stream, _)| {
            if served.gate.is_none() {
                room.refuse(farewell::on_shared_port(stream, room.open_max()));
            }
        };
        listen::each(bound.listener, &room, &stop, welcome, refuse).await;
    });
    handed_over
}

/// Serves frames to processes on this machine over a Unix socket.
fn accept_locally(
    listener: UnixListener,
    room: Connections,
    frames: Arc<dyn FrameService>,
    tasks: &TaskTracker,
    stop: CancellationToken,
) {
    let connections = tasks.clone();
    tasks.spawn(async move {
        let welcome = |stream: UnixStream, connected: Arc<OpenConnection>| {
            connected.speaks("framed-local");
            crate::frames::prepare_local(&stream);
            let served = framed::serve(stream, Arc::clone(&frames), true, connected, stop.clone());
            connections.spawn(async move {
                if let Err(error) = served.await {
                    tracing::debug!(%error, "a connection ended");
                }
            });
        };
        let refuse = |stream| room.refuse(farewell::on_shared_port(stream, room.open_max()));
        listen::each(listener, &room, &stop, welcome, refuse).await;
    });
}

async fn welcome(
    stream: TcpStream,
    addr: SocketAddr,
    connected: Arc<OpenConnection>,
    served: PortServices,
    http2: mpsc::Sender<Http2Connection>,
    stop: CancellationToken,
) -> io::Result<()> {
    listen::prepare(&stream)?;
    let own = stream.local_addr().ok().map(|addr| addr.ip());
    connected.is_at(Site { own, is_verified: served.gate.is_some() });
    let opened = open(stream, addr, &connected, &served, &stop);
    let Some(Begun { stream, first, caller }) = connected.unless_strange(opened).await? else {
        return Ok(());
    };
    let frames = match (&served.gate, &caller) {
        (Some(gate), Some(caller)) => {
            served.frames.map(|frames| guard(Arc::clone(gate), frames, caller.clone()))
        }
        _ => served.frames,
    };
    match frames {
        Some(frames) if Preface::may_begin(&[first]) => {
            connected.speaks("framed");
            // The two cases have code of their own, so that a connection without TLS need not check at every step which of
            // both it is.
            match stream {
                Stream::Left(stream) => framed::serve(stream, frames, false, connected, stop).await,
                Stream::Right(stream) => framed::serve(stream, frames, false, connected, stop).await,
            }
        }
        _ if first == HTTP2_FIRST => {
            connected.speaks("grpc");
            let peer = CallerConnection { addr: Some(addr), caller, connected: Arc::clone(&connected) };
            connected.unless_strange(hand_over(Http2Connection::new(stream, peer), http2)).await
        }
        _ => {
            connected.speaks("other");
            Ok(())
        }
    }
}

/// Passes a connection to tonic. If the server has stopped in the meantime, the connection is dropped.
async fn hand_over(accepted: Http2Connection, http2: mpsc::Sender<Http2Connection>) -> io::Result<()> {
    let _ = http2.send(accepted).await;
    Ok(())
}

/// A connection whose first byte is known.
struct Begun {
    stream: Stream,
    first: u8,
    /// Who the peer is; `None` if no gate authenticates callers.
    caller: Option<Caller>,
}

/// Opens a connection. `None` if its peer closes it before it sends anything. From here on a peer is authenticated if it
/// sent a certificate that has rights, or if no gate authenticates callers.
async fn open(
    stream: TcpStream,
    addr: SocketAddr,
    connected: &OpenConnection,
    served: &PortServices,
    stop: &CancellationToken,
) -> io::Result<Option<Begun>> {
    let Some(gate) = &served.gate else {
        let Some(first) = listen::first_byte(&stream, stop).await? else { return Ok(None) };
        connected.is_known_now();
        return Ok(Some(Begun { stream: Stream::Left(stream), first, caller: None }));
    };
    let (first, stream, caller) = match listen::open(gate, stream, Some(addr), stop).await? {
        ConnectionOpening::Closed => return Ok(None),
        // It is served in its own protocol, which tells the peer that this port requires TLS.
        ConnectionOpening::Clear(stream, first) => {
            (first, Stream::Left(stream), Caller::new(CallerIdentity::Plain).at(Some(addr)))
        }
        ConnectionOpening::Tls(mut stream, caller) => {
            if gate.check(&caller, &Need::Known).is_ok() {
                connected.is_known_now();
            }
            let mut first = [0];
            if listen::within(stop, stream.read(&mut first)).await? == 0 {
                return Ok(None);
            }
            (first[0], Stream::Right(Box::new(PeekedStream::new(first[0], *stream))), caller)
        }
    };
    Ok(Some(Begun { stream, first, caller: Some(caller) }))
}
