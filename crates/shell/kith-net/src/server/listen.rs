//! Accepts connections and opens them behind a gate. All ports of a process share this code.

use crate::server::{
    connections::{Connections, OpenConnection, TooMany},
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

/// A connection is closed if its peer sends nothing for this long, or does not complete the TLS handshake within this time.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The pause after a failed accept, for example because the process has no file descriptors left. Connections that end
/// meanwhile free theirs.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);
/// The system probes a connection that was silent for this long. Redis uses the same time.
#[cfg(target_os = "linux")]
const PROBED_AFTER: Duration = Duration::from_secs(300);
/// The first byte of a TLS connection: the record type of a handshake.
const TLS_FIRST: u8 = 22;

/// A source of connections.
pub trait Listener {
    /// A connection, with the peer's address if the listener reports one.
    type Accepted;

    /// The address of the peer, if the listener reports one.
    fn address(accepted: &Self::Accepted) -> Option<IpAddr>;

    /// Waits for the next connection.
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

/// Accepts connections on `listener` until `stop`. `welcome` must give each connection a task of its own, so that a peer
/// that is slow to begin delays nobody. Connections for which there is no room are passed to `refuse`.
pub async fn each<L: Listener>(
    listener: L,
    connections: &Connections,
    stop: &CancellationToken,
    welcome: impl Fn(L::Accepted, Arc<OpenConnection>),
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

/// Sets the options of an accepted socket: small replies are sent without waiting for acknowledgements, and the system
/// probes silent peers, which detects peers that are gone.
///
/// # Errors
/// Errors of the socket.
pub fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    #[cfg(target_os = "linux")]
    sockopt::set_tcp_keepidle(stream, PROBED_AFTER)?;
    Ok(())
}

/// Waits for the first byte that a peer sends, and leaves it unread. `None` if the peer closes the connection first.
///
/// # Errors
/// Errors of the socket; `TimedOut` if the peer sends nothing for too long; `Interrupted` after `stop`.
pub(crate) async fn first_byte(stream: &TcpStream, stop: &CancellationToken) -> io::Result<Option<u8>> {
    peeked(stream, stop, TIMEOUT).await
}

async fn peeked(stream: &TcpStream, stop: &CancellationToken, timeout: Duration) -> io::Result<Option<u8>> {
    let mut first = [0];
    let read = bounded(timeout, stop, stream.peek(&mut first)).await?;
    Ok((read != 0).then_some(first[0]))
}

/// How a connection behind a gate began.
pub enum ConnectionOpening {
    /// The connection uses TLS. The caller is identified by its certificate, if it sent one.
    Tls(Box<TlsStream<TcpStream>>, Caller),
    /// The peer does not use TLS. The byte is the first that it sent; it has not been read from the stream.
    Clear(TcpStream, u8),
    /// The peer closed the connection before it sent anything.
    Closed,
}

/// Waits for the start of a connection, and performs the handshake if the peer uses TLS. Failed handshakes are counted and
/// logged here.
///
/// # Errors
/// Errors of the socket and of the handshake; `TimedOut` if it takes too long; `Interrupted` after `stop`.
pub async fn open(
    gate: &Gate,
    stream: TcpStream,
    peer: Option<SocketAddr>,
    stop: &CancellationToken,
) -> io::Result<ConnectionOpening> {
    opened(gate, stream, peer, stop, TIMEOUT).await
}

async fn opened(
    gate: &Gate,
    stream: TcpStream,
    peer: Option<SocketAddr>,
    stop: &CancellationToken,
    timeout: Duration,
) -> io::Result<ConnectionOpening> {
    match peeked(&stream, stop, timeout).await? {
        None => return Ok(ConnectionOpening::Closed),
        Some(TLS_FIRST) => {}
        Some(first) => return Ok(ConnectionOpening::Clear(stream, first)),
    }
    match bounded(timeout, stop, gate.accept(stream)).await {
        Ok((stream, caller)) => Ok(ConnectionOpening::Tls(Box::new(stream), caller)),
        Err(error) => {
            count_failure();
            tracing::warn!(%error, ?peer, "the TLS handshake with a caller failed");
            Err(error)
        }
    }
}

/// Counts a failed TLS handshake.
pub fn count_failure() {
    metrics::counter!("kith_server_tls_failures_total").increment(1);
}

/// Runs one step of opening a connection, within the time that a peer has for it.
pub(crate) async fn within<T>(
    stop: &CancellationToken,
    step: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    bounded(TIMEOUT, stop, step).await
}

async fn bounded<T>(
    timeout: Duration,
    stop: &CancellationToken,
    step: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    tokio::select! {
        () = stop.cancelled() => {
            Err(io::Error::new(io::ErrorKind::Interrupted, "this process stopped before the handshake ended"))
        }
        done = tokio::time::timeout(timeout, step) => done.map_err(|_| io::ErrorKind::TimedOut)?,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::security::testing::gate;
    use tokio::io::AsyncWriteExt;

    /// Returns a connection: the peer's end, and this process's end.
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
        // The start of a TLS record, without its rest.
        for begun in [&b""[..], &[TLS_FIRST, 3, 1]] {
            let (mut peer, stream) = connected().await;
            peer.write_all(begun).await.expect("it takes bytes");
            let opened = opened(&gate, stream, None, &stop, Duration::from_millis(20)).await;
            let error = opened.err().expect("it is given up");
            assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{begun:?}");
        }
    }

    #[tokio::test]
    async fn who_speaks_in_the_clear_or_goes_away_is_distinguished() {
        let folder = tempfile::tempdir().expect("a folder");
        let gate = gate(folder.path(), None);
        let stop = CancellationToken::new();
        let (mut peer, stream) = connected().await;
        peer.write_all(b"PING\r\n").await.expect("it takes bytes");
        assert!(matches!(open(&gate, stream, None, &stop).await, Ok(ConnectionOpening::Clear(_, b'P'))));
        let (peer, stream) = connected().await;
        drop(peer);
        assert!(matches!(open(&gate, stream, None, &stop).await, Ok(ConnectionOpening::Closed)));
        let (_peer, stream) = connected().await;
        stop.cancel();
        let error = open(&gate, stream, None, &stop).await.err().expect("the process ends");
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
    }
}
