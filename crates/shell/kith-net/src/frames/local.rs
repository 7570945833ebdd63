//! Framed connections between processes on one machine. A process that listens on a loopback address also listens on a Unix
//! socket named after that address. A round trip over the socket takes three quarters of the time that it takes over TCP
//! (`docs/design/0004-framed-path.md`).
//!
//! The name lies in Linux's abstract namespace. It needs no folder and disappears with its process. Like the address, it
//! belongs to a network namespace, so a process that can reach the address can also reach the socket.

use std::{net::SocketAddr, path::PathBuf};
use tokio::net::{UnixListener, UnixStream};

/// The name of the Unix socket that belongs to the address `addr`. `None` if the address has no such socket.
fn name_of(addr: SocketAddr) -> Option<PathBuf> {
    let is_named = cfg!(target_os = "linux") && addr.ip().is_loopback();
    // The null byte makes the name abstract.
    is_named.then(|| PathBuf::from(format!("\0kith:{addr}")))
}

/// The requested size of the send buffer of a server's socket. It holds one node's share of a large read, so that the node
/// can write its share without waiting for the client. TCP buffers grow by themselves; these do not.
const SEND_BYTES: usize = 2 << 20;

/// Prepares the server's end of a connection.
pub fn prepare(stream: &UnixStream) {
    // A smaller buffer makes the connection slower, but works.
    if let Err(error) = rustix::net::sockopt::set_socket_send_buffer_size(stream, SEND_BYTES) {
        tracing::debug!(%error, "cannot enlarge the send buffer of a local connection");
    }
}

/// Listens on the Unix socket that belongs to `addr`. `None` if there is none; peers on this machine use TCP then.
pub fn listen(addr: SocketAddr) -> Option<UnixListener> {
    let bound = UnixListener::bind(name_of(addr)?);
    bound.inspect_err(|error| tracing::warn!(%addr, %error, "cannot listen on a Unix socket: peers on this machine use TCP")).ok()
}

/// Connects to the Unix socket that belongs to `addr`. `None` if nobody listens there, or if the listener belongs to
/// another user: any process may take a free name, so only a listener that runs as this user or as root is trusted. The
/// caller uses TCP then.
pub(super) async fn connect(addr: SocketAddr) -> Option<UnixStream> {
    let stream = UnixStream::connect(name_of(addr)?).await.ok()?;
    let peer = stream.peer_cred().ok()?.uid();
    let is_ours = peer == rustix::process::geteuid().as_raw() || peer == 0;
    is_ours.then_some(stream)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_on_loopback_is_found_by_its_address_until_it_is_gone() {
        // The system gives another port to anybody who asks for one while this listener holds this one.
        let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let addr = port.local_addr().expect("an address");
        assert!(connect(addr).await.is_none(), "nobody listens yet");
        let listener = listen(addr).expect("the name is free");
        assert!(listen(addr).is_none(), "the name is taken");
        let (stream, accepted) = tokio::join!(connect(addr), listener.accept());
        assert!(stream.is_some() && accepted.is_ok());
        drop(listener);
        assert!(connect(addr).await.is_none());
        assert!(listen(addr).is_some(), "the name is free again");
    }

    #[tokio::test]
    async fn addresses_of_other_machines_have_no_name() {
        for addr in ["10.1.2.3:4000", "0.0.0.0:4000", "[2001:db8::1]:4000"] {
            assert!(name_of(addr.parse().expect("an address")).is_none(), "{addr}");
        }
        assert!(name_of("[::1]:4000".parse().expect("an address")).is_some());
    }
}
