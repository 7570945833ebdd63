//! Frames between processes of one machine: a process that listens on a loopback address listens on a Unix socket of that name as well.
//! A round trip over it takes three quarters of the time that it takes over TCP (`docs/design/0004-framed-path.md`).
//!
//! The name is in Linux's abstract namespace: it needs no folder, is gone with its process, and belongs to a network namespace as
//! the address does, so that whoever finds the one has found the other.

use std::{net::SocketAddr, path::PathBuf};
use tokio::net::{UnixListener, UnixStream};

/// The name under which whoever listens at `addr` is found past TCP; `None`: nobody is.
fn name_of(addr: SocketAddr) -> Option<PathBuf> {
    let is_named = cfg!(target_os = "linux") && addr.ip().is_loopback();
    // The null byte makes it an abstract name.
    is_named.then(|| PathBuf::from(format!("\0kith:{addr}")))
}

/// What a server's socket may hold of replies, where the system lets it: a share of a large read, so that a node that has written it
/// is done. TCP's buffers grow by themselves, these do not.
const SEND_BYTES: usize = 2 << 20;

/// Prepares the server's end of a connection.
pub fn prepare(stream: &UnixStream) {
    // A smaller one is slower and nothing else.
    if let Err(error) = rustix::net::sockopt::set_socket_send_buffer_size(stream, SEND_BYTES) {
        tracing::debug!(%error, "a local connection keeps its small buffer");
    }
}

/// Listens for processes of this machine that know a server by the address `addr`; `None`: they come over TCP.
pub fn listen(addr: SocketAddr) -> Option<UnixListener> {
    let bound = UnixListener::bind(name_of(addr)?);
    bound.inspect_err(|error| tracing::warn!(%addr, %error, "no Unix socket beside the port: local peers come over TCP")).ok()
}

/// Connects to whoever listens at `addr`; `None`: nobody does, or not as this user. Anybody may take a name that is free, so
/// a peer counts only if it could as well have been this process: TCP then finds out who it is.
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
        // Whoever asks for another port while this listener holds this one gets another.
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
