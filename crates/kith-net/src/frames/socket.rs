//! What a framed connection is over: TCP, or a Unix socket to a process of the same machine.

use super::local;
use std::{
    io,
    net::SocketAddr,
    task::{Context, Poll},
};
use tokio::net::{TcpStream, UnixStream, tcp, unix};
use tokio_util::either::Either;

/// An open stream to a peer: over TCP, or past it.
pub(super) type Socket = Either<TcpStream, UnixStream>;

/// Where bytes come from.
pub(super) type Source = Either<tcp::OwnedReadHalf, unix::OwnedReadHalf>;

/// Where bytes go.
#[derive(Debug)]
pub(super) enum Sink {
    Tcp(tcp::OwnedWriteHalf),
    Local(unix::OwnedWriteHalf),
}

/// Connects to `host:port`; if `may_be_local`, past TCP where the peer is on this machine and listens there too.
///
/// # Errors
/// The socket's.
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

/// The process at the other end of a connection past TCP, as this one may call it.
pub(super) fn local_pid(socket: &Socket) -> Option<u32> {
    let Either::Right(stream) = socket else { return None };
    u32::try_from(stream.peer_cred().ok()?.pid()?).ok().filter(|pid| *pid != 0)
}

/// Both directions, each for itself.
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
