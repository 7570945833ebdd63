//! The stream under a framed connection: TCP, or a Unix socket to a process on the same machine.

use super::local;
use std::{
    io,
    net::SocketAddr,
    task::{Context, Poll},
};
use tokio::net::{TcpStream, UnixStream, tcp, unix};
use tokio_util::either::Either;

/// An open stream to a peer, over TCP or a Unix socket.
pub(super) type Socket = Either<TcpStream, UnixStream>;

/// The reading half of a stream.
pub(super) type Source = Either<tcp::OwnedReadHalf, unix::OwnedReadHalf>;

/// The writing half of a stream.
#[derive(Debug)]
pub(super) enum Sink {
    Tcp(tcp::OwnedWriteHalf),
    Local(unix::OwnedWriteHalf),
}

/// Connects to `host:port`. If `may_be_local` is set, it prefers the peer's Unix socket if the peer runs on this machine
/// and listens on one.
///
/// # Errors
/// Errors of the socket.
pub(super) async fn connect(addr: &str, may_be_local: bool) -> io::Result<Socket> {
    if let Ok(addr) = addr.parse::<SocketAddr>()
        && may_be_local
        && let Some(stream) = local::connect(addr).await
    {
        return Ok(Either::Right(stream));
    }
    let stream = TcpStream::connect(addr).await?;
    stream.set_nodelay(true)?;
    Ok(Either::Left(stream))
}

/// The process id of the peer of a Unix socket, as this process sees it. `None` for TCP, and if it is unknown.
pub(super) fn local_pid(socket: &Socket) -> Option<u32> {
    let Either::Right(stream) = socket else { return None };
    u32::try_from(stream.peer_cred().ok()?.pid()?).ok().filter(|pid| *pid != 0)
}

/// Splits a stream into its reading and writing halves.
pub(super) fn split(socket: Socket) -> (Source, Sink) {
    match socket {
        Either::Left(stream) => {
            let (source, sink) = stream.into_split();
            (Either::Left(source), Sink::Tcp(sink))
        }
        Either::Right(stream) => {
            let (source, sink) = stream.into_split();
            (Either::Right(source), Sink::Local(sink))
        }
    }
}

impl Sink {
    /// Writes as many bytes as the socket accepts. Returns how many.
    ///
    /// # Errors
    /// `WouldBlock` if the socket accepts none; other errors of the socket.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Sink::Tcp(sink) => sink.try_write(bytes),
            Sink::Local(sink) => sink.try_write(bytes),
        }
    }

    /// Ready when the socket may accept bytes again.
    pub fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Sink::Tcp(sink) => sink.as_ref().poll_write_ready(cx),
            Sink::Local(sink) => sink.as_ref().poll_write_ready(cx),
        }
    }
}
