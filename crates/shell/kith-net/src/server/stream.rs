//! The streams of a port's connections, with or without TLS, and the peer's identity for tonic.

use super::{
    connections::{OpenConnection, WatchedStream},
    security::Caller,
};
use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;
use tonic::transport::server::Connected as ConnectInfo;

/// A TCP connection, with or without TLS.
pub(super) type Stream = Either<TcpStream, Box<PeekedStream>>;

/// A TLS connection of which one byte was read already.
pub(super) struct PeekedStream {
    first: Option<u8>,
    stream: TlsStream<TcpStream>,
}

impl PeekedStream {
    /// Returns a stream that yields `first`, which was read already, before the rest.
    pub fn new(first: u8, stream: TlsStream<TcpStream>) -> Self {
        Self { first: Some(first), stream }
    }
}

impl AsyncRead for PeekedStream {
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

/// Implements `AsyncWrite` for a type by writing to its field `stream`.
macro_rules! write_to_stream {
    ($type:ty) => {
        impl AsyncWrite for $type {
            fn poll_write(
                mut self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bytes: &[u8],
            ) -> Poll<io::Result<usize>> {
                Pin::new(&mut self.stream).poll_write(cx, bytes)
            }

            fn poll_write_vectored(
                mut self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                slices: &[io::IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
            }

            fn is_write_vectored(&self) -> bool {
                self.stream.is_write_vectored()
            }

            fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                Pin::new(&mut self.stream).poll_flush(cx)
            }

            fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                Pin::new(&mut self.stream).poll_shutdown(cx)
            }
        }
    };
}

write_to_stream!(PeekedStream);
write_to_stream!(Http2Connection);

/// The peer of a gRPC connection. Each request of the connection carries it in its extensions.
#[derive(Clone, Debug)]
pub struct CallerConnection {
    /// The peer's address.
    pub addr: Option<SocketAddr>,
    /// The peer's identity; `None` if no gate authenticates callers.
    pub caller: Option<Caller>,
    /// The connection.
    pub connected: Arc<OpenConnection>,
}

/// A connection that uses HTTP/2.
pub(crate) struct Http2Connection {
    stream: WatchedStream<Stream>,
    peer: CallerConnection,
}

impl Http2Connection {
    /// Wraps a stream so that the bytes that its peer takes are counted.
    pub(super) fn new(stream: Stream, peer: CallerConnection) -> Self {
        Self { stream: WatchedStream::http2(stream, Arc::clone(&peer.connected)), peer }
    }
}

impl ConnectInfo for Http2Connection {
    type ConnectInfo = CallerConnection;

    fn connect_info(&self) -> CallerConnection {
        self.peer.clone()
    }
}

impl AsyncRead for Http2Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}
