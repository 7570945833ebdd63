//! A proxy in front of a server, which can lose a commit or the answer to it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU8, Ordering},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// The fate of the next packet that contains `COMMIT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The packet is passed on.
    Nothing,
    /// The packet reaches the server; then the connection ends before the answer.
    Answer,
    /// The connection ends before the packet reaches the server.
    Request,
}

pub struct Proxy {
    port: u16,
    loss: Arc<AtomicU8>,
}

impl Proxy {
    /// Starts a proxy in front of `server`, a port of this machine.
    pub async fn start(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let loss = Arc::new(AtomicU8::new(Loss::Nothing as u8));
        let of_connections = loss.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(("127.0.0.1", server)).await.expect("the server listens");
                tokio::spawn(pass(client, server, of_connections.clone()));
            }
        });
        Self { port, loss }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn lose(&self, loss: Loss) {
        self.loss.store(loss as u8, Ordering::SeqCst);
    }
}

/// Whether a packet is a commit. A packet has a header of four bytes, the number of the command for queries, and the
/// statement.
fn is_commit(packet: &[u8]) -> bool {
    packet.get(4..) == Some(b"\x03COMMIT")
}

async fn pass(client: TcpStream, server: TcpStream, loss: Arc<AtomicU8>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let cut = Arc::new(AtomicBool::new(false));
    let is_cut = cut.clone();
    let back = tokio::spawn(async move {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(length @ 1..) = from_server.read(&mut bytes).await {
            if is_cut.load(Ordering::SeqCst) || to_client.write_all(&bytes[..length]).await.is_err() {
                return;
            }
        }
    });
    let mut bytes = vec![0; 1 << 16];
    while let Ok(length @ 1..) = from_client.read(&mut bytes).await {
        let packet = &bytes[..length];
        let nothing = Loss::Nothing as u8;
        let lost = if is_commit(packet) { loss.swap(nothing, Ordering::SeqCst) } else { nothing };
        if lost == Loss::Request as u8 {
            break;
        }
        cut.store(lost == Loss::Answer as u8, Ordering::SeqCst);
        if to_server.write_all(packet).await.is_err() {
            break;
        }
        if lost == Loss::Answer as u8 {
            // When the server answers, it has executed the commit.
            back.await.expect("the task does not panic");
            return;
        }
    }
    back.abort();
}
