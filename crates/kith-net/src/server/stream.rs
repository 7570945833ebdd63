//! The connections of a port: in the clear or over TLS, and with their peer for tonic.

use super::{
    connections::{Connected, Watched},
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

/// A connection in the clear, or over TLS.
pub(super) type Stream = Either<TcpStream, Box<Opened>>;

/// A connection over TLS, of which one byte was read already.
pub(super) struct Opened {
    first: Option<u8>,
    stream: TlsStream<TcpStream>,
}

impl Opened {
    /// `first` was read already, and comes again.
    pub fn new(first: u8, stream: TlsStream<TcpStream>) -> Self {
        Self { first: Some(first), stream }
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

/// Writes to a type are writes to its `stream`.
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

write_to_stream!(Opened);
write_to_stream!(Accepted);

/// Who is at the other end of a gRPC connection: in the extensions of each of its requests.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Where they are.
    pub addr: Option<SocketAddr>,
    /// Who they are; `None` where nobody asks.
    pub caller: Option<Caller>,
    /// Their connection.
    pub connected: Arc<Connected>,
}

/// A connection that speaks HTTP/2.
pub(crate) struct Accepted {
    stream: Watched<Stream>,
    peer: Peer,
}

impl Accepted {
    /// Counts what its peer takes.
    pub(super) fn new(stream: Stream, peer: Peer) -> Self {
        Self { stream: Watched::new(stream, Arc::clone(&peer.connected)), peer }
    }
}

impl ConnectInfo for Accepted {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer.clone()
    }
}

impl AsyncRead for Accepted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}
