//! One port for two protocols, in the clear or over TLS: a connection's first byte says which it speaks.

use crate::{
    framed::{self, FrameService},
    listen::{self, Opening},
    security::{Caller, Gate, Identity},
    serve::Bound,
};
use kith_wire::frame::Preface;
use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf},
    net::{TcpStream, UnixListener, UnixStream},
    sync::mpsc,
};
use tokio_rustls::server::TlsStream;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tonic::transport::server::Connected;

/// gRPC connections that may wait for tonic to take them over.
const HANDED_OVER_MAX: usize = 64;
/// How HTTP/2 begins: `PRI * HTTP/2.0`. tonic reads the rest.
const HTTP2_FIRST: u8 = b'P';

/// What a port serves.
#[derive(Clone)]
pub struct Served {
    /// In frames; `None`: there are none.
    pub frames: Option<Arc<dyn FrameService>>,
    /// Takes TLS only; `None`: everything in the clear.
    pub gate: Option<Arc<Gate>>,
}

/// Accepts where `bound` listens until `stop`. Framed connections are served here, as some of `tasks`; those that speak HTTP/2 come out.
pub fn spawn(
    bound: Bound,
    served: Served,
    tasks: &TaskTracker,
    stop: CancellationToken,
) -> mpsc::Receiver<Accepted> {
    let (http2, handed_over) = mpsc::channel(HANDED_OVER_MAX);
    let connections = tasks.clone();
    if let (Some(frames), Some(local)) = (&served.frames, bound.local) {
        accept_locally(local, Arc::clone(frames), tasks, stop.clone());
    }
    tasks.spawn(async move {
        let welcome = |(stream, _)| {
            let welcome = welcome(stream, served.clone(), http2.clone(), stop.clone());
            connections.spawn(async move {
                if let Err(error) = welcome.await {
                    tracing::debug!(%error, "a connection ended");
                }
            });
        };
        listen::each(bound.listener, &stop, welcome).await;
    });
    handed_over
}

/// Serves frames to processes of this machine past TCP.
fn accept_locally(
    listener: UnixListener,
    frames: Arc<dyn FrameService>,
    tasks: &TaskTracker,
    stop: CancellationToken,
) {
    let connections = tasks.clone();
    tasks.spawn(async move {
        let welcome = |stream: UnixStream| {
            note("framed-local");
            kith_client::prepare_local(&stream);
            let served = framed::serve(stream, Arc::clone(&frames), true, stop.clone());
            connections.spawn(async move {
                if let Err(error) = served.await {
                    tracing::debug!(%error, "a connection ended");
                }
            });
        };
        listen::each(listener, &stop, welcome).await;
    });
}

async fn welcome(
    stream: TcpStream,
    served: Served,
    http2: mpsc::Sender<Accepted>,
    stop: CancellationToken,
) -> io::Result<()> {
    // Small replies must not wait for an acknowledgement of the one before.
    stream.set_nodelay(true)?;
    let addr = stream.peer_addr().ok();
    let Some(gate) = &served.gate else {
        let Some(first) = listen::first_byte(&stream, &stop).await? else { return Ok(()) };
        let accepted = Accepted { stream: Stream::Plain(stream), peer: Peer { addr, caller: None } };
        return begin(accepted, first, served.frames, http2, stop).await;
    };
    let (first, stream, caller) = match listen::open(gate, stream, addr, &stop).await? {
        Opening::Closed => return Ok(()),
        // Answered in their own protocol: that they should have spoken TLS.
        Opening::Clear(stream, first) => (first, Stream::Plain(stream), Caller::new(Identity::Plain)),
        Opening::Tls(mut stream, caller) => {
            let mut first = [0];
            if listen::within(&stop, stream.read(&mut first)).await? == 0 {
                return Ok(());
            }
            (first[0], Stream::Tls(Box::new(Opened { first: Some(first[0]), stream: *stream })), caller)
        }
    };
    let frames = served.frames.map(|frames| gate.guard(frames, caller.clone()));
    let accepted = Accepted { stream, peer: Peer { addr, caller: Some(caller) } };
    begin(accepted, first, frames, http2, stop).await
}

/// Serves a connection whose first byte is known.
async fn begin(
    accepted: Accepted,
    first: u8,
    frames: Option<Arc<dyn FrameService>>,
    http2: mpsc::Sender<Accepted>,
    stop: CancellationToken,
) -> io::Result<()> {
    match frames {
        Some(frames) if Preface::may_begin(&[first]) => {
            note("framed");
            match accepted.stream {
                Stream::Plain(stream) => framed::serve(stream, frames, false, stop).await,
                Stream::Tls(stream) => framed::serve(stream, frames, false, stop).await,
            }
        }
        _ if first == HTTP2_FIRST => {
            note("grpc");
            // Nobody takes it if the server has stopped meanwhile: it is closed then.
            let _ = http2.send(accepted).await;
            Ok(())
        }
        _ => {
            note("other");
            Ok(())
        }
    }
}

fn note(protocol: &'static str) {
    metrics::counter!("kith_server_connections_total", "protocol" => protocol).increment(1);
}

/// Who is at the other end of a gRPC connection: in the extensions of each of its requests.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Where they are.
    pub addr: Option<SocketAddr>,
    /// Who they are; `None` where nobody asks.
    pub caller: Option<Caller>,
}

/// A connection that speaks HTTP/2.
pub struct Accepted {
    stream: Stream,
    peer: Peer,
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<Opened>),
}

/// A connection over TLS, of which one byte was read already.
pub struct Opened {
    first: Option<u8>,
    stream: TlsStream<TcpStream>,
}

impl Connected for Accepted {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer.clone()
    }
}

impl AsyncRead for Opened {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(first) = self.first
            && 0 < buffer.remaining()
        {
            buffer.put_slice(&[first]);
            self.first = None;
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Opened {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl AsyncRead for Accepted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Stream::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Accepted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Stream::Tls(stream) => Pin::new(&mut stream.stream).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            Stream::Plain(stream) => stream.is_write_vectored(),
            Stream::Tls(stream) => stream.stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
