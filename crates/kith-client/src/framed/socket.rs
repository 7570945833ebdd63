//! What a framed connection is over: TCP, or a Unix socket to a process of the same machine.

use super::local;
use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpStream, UnixStream, tcp, unix},
};

/// An open stream to a peer.
#[derive(Debug)]
pub(super) enum Socket {
    Tcp(TcpStream),
    Local(UnixStream),
}

/// Where bytes come from.
#[derive(Debug)]
pub(super) enum Source {
    Tcp(tcp::OwnedReadHalf),
    Local(unix::OwnedReadHalf),
}

/// Where bytes go.
#[derive(Debug)]
pub(super) enum Sink {
    Tcp(tcp::OwnedWriteHalf),
    Local(unix::OwnedWriteHalf),
}

impl Socket {
    /// Connects to `host:port`; if `may_be_local`, past TCP where the peer is on this machine and listens there too.
    ///
    /// # Errors
    /// The socket's.
    pub async fn connect(addr: &str, may_be_local: bool) -> io::Result<Self> {
        if let Ok(addr) = addr.parse::<SocketAddr>()
            && may_be_local
            && let Some(stream) = local::connect(addr).await
        {
            return Ok(Socket::Local(stream));
        }
        let stream = TcpStream::connect(addr).await?;
        stream.set_nodelay(true)?;
        Ok(Socket::Tcp(stream))
    }

    /// Both directions, each for itself.
    pub fn into_split(self) -> (Source, Sink) {
        match self {
            Socket::Tcp(stream) => {
                let (source, sink) = stream.into_split();
                (Source::Tcp(source), Sink::Tcp(sink))
            }
            Socket::Local(stream) => {
                let (source, sink) = stream.into_split();
                (Source::Local(source), Sink::Local(sink))
            }
        }
    }
}

impl Sink {
    /// Writes what fits.
    ///
    /// # Errors
    /// `WouldBlock` if nothing does; the socket's.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Sink::Tcp(sink) => sink.try_write(bytes),
            Sink::Local(sink) => sink.try_write(bytes),
        }
    }

    /// Ready when something may fit again.
    pub fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Sink::Tcp(sink) => sink.as_ref().poll_write_ready(cx),
            Sink::Local(sink) => sink.as_ref().poll_write_ready(cx),
        }
    }
}

impl AsyncRead for Source {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Source::Tcp(source) => Pin::new(source).poll_read(cx, buffer),
            Source::Local(source) => Pin::new(source).poll_read(cx, buffer),
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_read(cx, buffer),
            Socket::Local(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Socket::Local(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Socket::Local(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Socket::Local(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
