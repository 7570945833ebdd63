//! Taking connections, and their beginnings behind a gate: what all ports of a process share.

use crate::server::{
    connections::{Connected, Connections, TooMany},
    security::{Caller, Gate},
};
use rustix::net::sockopt;
use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;

/// A peer that says nothing for so long, or does not come to an end with shaking hands, is hung up on.
const PATIENCE: Duration = Duration::from_secs(10);
/// Pause after a failure to accept, as when the process has no file descriptors left: those that end give theirs back.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);
/// A silent connection is probed by the system after so long, as Redis does.
#[cfg(target_os = "linux")]
const PROBED_AFTER: Duration = Duration::from_secs(300);
/// How TLS begins: a record of its handshake.
const TLS_FIRST: u8 = 22;

/// What connections come from.
pub trait Listener {
    /// A connection, and from where.
    type Accepted;

    /// From where, if that is told.
    fn address(accepted: &Self::Accepted) -> Option<IpAddr>;

    /// Waits for the next one.
    fn next(&self) -> impl Future<Output = io::Result<Self::Accepted>> + Send;
}

impl Listener for TcpListener {
    type Accepted = (TcpStream, SocketAddr);

    fn address((_, addr): &Self::Accepted) -> Option<IpAddr> {
        Some(addr.ip().to_canonical())
    }

    fn next(&self) -> impl Future<Output = io::Result<Self::Accepted>> + Send {
        self.accept()
    }
}

impl Listener for UnixListener {
    type Accepted = UnixStream;

    fn address(_: &UnixStream) -> Option<IpAddr> {
        None
    }

    async fn next(&self) -> io::Result<UnixStream> {
        Ok(self.accept().await?.0)
    }
}

/// Accepts on `listener` until `stop`. `welcome` gives each connection a task of its own: a peer that is slow to begin holds up nobody.
/// Those for which there is no room go to `refuse`.
pub async fn each<L: Listener>(
    listener: L,
    connections: &Connections,
    stop: &CancellationToken,
    welcome: impl Fn(L::Accepted, Arc<Connected>),
    refuse: impl Fn(L::Accepted),
) {
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.next() => accepted,
        };
        match accepted {
            Ok(accepted) => match connections.admit(L::address(&accepted)).await {
                Ok(connected) => welcome(accepted, connected),
                Err(TooMany) => refuse(accepted),
            },
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be accepted");
                tokio::time::sleep(ACCEPT_RETRY).await;
            }
        }
    }
}

/// Settings of a socket: small replies do not wait for an acknowledgement of the one before, and a peer that is gone without a word is
/// found out by the system.
///
/// # Errors
/// The socket's.
pub fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    #[cfg(target_os = "linux")]
    sockopt::set_tcp_keepidle(stream, PROBED_AFTER)?;
    Ok(())
}

/// The first byte that a peer sends, left where it is; `None` if it closes before.
///
/// # Errors
/// The socket's; if it says nothing for long, or `stop`.
pub(crate) async fn first_byte(stream: &TcpStream, stop: &CancellationToken) -> io::Result<Option<u8>> {
    peeked(stream, stop, PATIENCE).await
}

async fn peeked(stream: &TcpStream, stop: &CancellationToken, patience: Duration) -> io::Result<Option<u8>> {
    let mut first = [0];
    let read = bounded(patience, stop, stream.peek(&mut first)).await?;
    Ok((read != 0).then_some(first[0]))
}

/// How a connection behind a gate begins.
pub enum Opening {
    /// Over TLS; who they are, as far as their certificate says.
    Tls(Box<TlsStream<TcpStream>>, Caller),
    /// In the clear, with this byte: nothing of it was read.
    Clear(TcpStream, u8),
    /// It was closed before it began.
    Closed,
}

/// Has a connection begin: hands are shaken, if the peer speaks TLS. Those who are not let in are counted and logged here.
///
/// # Errors
/// The socket's and those of TLS; if it takes long, or `stop`.
pub async fn open(
    gate: &Gate,
    stream: TcpStream,
    peer: Option<SocketAddr>,
    stop: &CancellationToken,
) -> io::Result<Opening> {
    opened(gate, stream, peer, stop, PATIENCE).await
}

async fn opened(
    gate: &Gate,
    stream: TcpStream,
    peer: Option<SocketAddr>,
    stop: &CancellationToken,
    patience: Duration,
) -> io::Result<Opening> {
    match peeked(&stream, stop, patience).await? {
        None => return Ok(Opening::Closed),
        Some(TLS_FIRST) => {}
        Some(first) => return Ok(Opening::Clear(stream, first)),
    }
    match bounded(patience, stop, gate.accept(stream)).await {
        Ok((stream, caller)) => Ok(Opening::Tls(Box::new(stream), caller)),
        Err(error) => {
            count_failure();
            tracing::warn!(%error, ?peer, "a caller was not let in over TLS");
            Err(error)
        }
    }
}

/// Counts a caller who was not let in.
pub fn count_failure() {
    metrics::counter!("kith_server_tls_failures_total").increment(1);
}

/// A step of a beginning, for which nobody waits for long.
pub(crate) async fn within<T>(
    stop: &CancellationToken,
    step: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    bounded(PATIENCE, stop, step).await
}

async fn bounded<T>(
    patience: Duration,
    stop: &CancellationToken,
    step: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    tokio::select! {
        () = stop.cancelled() => {
            Err(io::Error::new(io::ErrorKind::Interrupted, "this process stopped before hands were shaken"))
        }
        done = tokio::time::timeout(patience, step) => done.map_err(|_| io::ErrorKind::TimedOut)?,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::security::testing::gate;
    use tokio::io::AsyncWriteExt;

    /// A connection: the peer's end, and this process's.
    async fn connected() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let addr = listener.local_addr().expect("an address");
        let (peer, accepted) = tokio::join!(TcpStream::connect(addr), listener.accept());
        (peer.expect("it listens"), accepted.expect("it connects").0)
    }

    #[tokio::test]
    async fn peers_that_do_not_begin_or_do_not_end_their_handshake_are_given_up() {
        let folder = tempfile::tempdir().expect("a folder");
        let gate = gate(folder.path(), None);
        let stop = CancellationToken::new();
        // The beginning of a record of TLS, and no more of it.
        for begun in [&b""[..], &[TLS_FIRST, 3, 1]] {
            let (mut peer, stream) = connected().await;
            peer.write_all(begun).await.expect("it takes bytes");
            let opened = opened(&gate, stream, None, &stop, Duration::from_millis(20)).await;
            let error = opened.err().expect("it is given up");
            assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{begun:?}");
        }
    }

    #[tokio::test]
    async fn who_speaks_in_the_clear_or_goes_away_is_told_apart() {
        let folder = tempfile::tempdir().expect("a folder");
        let gate = gate(folder.path(), None);
        let stop = CancellationToken::new();
        let (mut peer, stream) = connected().await;
        peer.write_all(b"PING\r\n").await.expect("it takes bytes");
        assert!(matches!(open(&gate, stream, None, &stop).await, Ok(Opening::Clear(_, b'P'))));
        let (peer, stream) = connected().await;
        drop(peer);
        assert!(matches!(open(&gate, stream, None, &stop).await, Ok(Opening::Closed)));
        let (_peer, stream) = connected().await;
        stop.cancel();
        let error = open(&gate, stream, None, &stop).await.err().expect("the process ends");
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
    }
}
