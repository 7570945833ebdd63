//! A replica that does not do as it should: one that stands in front of a node. It answers probes all the same.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use bytes::BytesMut;
use kith_wire::frame::{self, Frame, Op, PREFACE_BYTES};
use std::{io, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{Mutex, watch},
    task::{AbortHandle, JoinSet},
};

/// How late a slow replica is.
pub const LATE: Duration = Duration::from_millis(500);

/// The behaviour of a replica that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// As any replica does.
    Orderly,
    /// Nobody listens, and who was connected is no more.
    Dead,
    /// Closes the connection over which it is asked.
    HangsUp,
    /// Drops it.
    Mute,
    /// Begins [`LATE`].
    Slow,
    /// Says that something went wrong.
    Fails,
}

/// Stands in front of a node, and does what the test asks.
pub struct UnrulyProxy {
    /// Where it listens.
    pub addr: String,
    /// Its behaviour at the moment.
    pub manner: watch::Sender<Manner>,
    accepting: AbortHandle,
}

impl UnrulyProxy {
    /// In front of the node at this address; orderly at first.
    pub async fn before(node: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let addr = listener.local_addr().expect("an address").to_string();
        let manner = watch::Sender::new(Manner::Orderly);
        let orders = manner.subscribe();
        let accepting = tokio::spawn(async move {
            // Dropped with this task: nobody is connected then.
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(relay(client, node.clone(), orders.clone()));
            }
        });
        Self { addr, manner, accepting: accepting.abort_handle() }
    }

    /// From now on it does what the test asks.
    pub fn turn(&self, manner: Manner) {
        self.manner.send_replace(manner);
        if manner == Manner::Dead {
            self.accepting.abort();
        }
    }
}

impl Drop for UnrulyProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// One connection: all but reads pass.
async fn relay(client: TcpStream, node: String, manner: watch::Receiver<Manner>) -> io::Result<()> {
    let (mut from_client, to_client) = client.into_split();
    let (mut from_node, mut to_node) = TcpStream::connect(node).await?.into_split();
    let mut preface = [0; PREFACE_BYTES];
    from_client.read_exact(&mut preface).await?;
    to_node.write_all(&preface).await?;
    let (to_node, to_client) = (Arc::new(Mutex::new(to_node)), Arc::new(Mutex::new(to_client)));
    let replies = async {
        let mut bytes = vec![0; 64 << 10];
        loop {
            let count = from_node.read(&mut bytes).await?;
            if count == 0 {
                return io::Result::Ok(());
            }
            to_client.lock().await.write_all(&bytes[..count]).await?;
        }
    };
    tokio::select! {
        ended = replies => ended,
        ended = requests(from_client, &to_node, &to_client, manner) => ended,
    }
}

async fn requests(
    mut client: OwnedReadHalf,
    to_node: &Arc<Mutex<OwnedWriteHalf>>,
    to_client: &Mutex<OwnedWriteHalf>,
    manner: watch::Receiver<Manner>,
) -> io::Result<()> {
    let mut inbox = BytesMut::new();
    let mut late = JoinSet::new();
    loop {
        while let Some(frame) = frame::decode(&mut inbox).map_err(io::Error::other)? {
            let manner = *manner.borrow();
            match (frame.header.op == Op::Evaluate as u8, manner) {
                (true, Manner::HangsUp) => return Ok(()),
                (true, Manner::Mute) => {}
                (true, Manner::Fails) => {
                    let status = tonic::Status::internal("it is a bad day");
                    let mut bytes = BytesMut::new();
                    frame.header.encode_error(&status, &mut bytes);
                    to_client.lock().await.write_all(&bytes).await?;
                }
                (true, Manner::Slow) => {
                    let to_node = Arc::clone(to_node);
                    late.spawn(async move {
                        tokio::time::sleep(LATE).await;
                        pass_on(&frame, &to_node).await
                    });
                }
                _ => pass_on(&frame, to_node).await?,
            }
        }
        if client.read_buf(&mut inbox).await? == 0 {
            return Ok(());
        }
    }
}

async fn pass_on(frame: &Frame, to_node: &Mutex<OwnedWriteHalf>) -> io::Result<()> {
    let mut bytes = BytesMut::new();
    frame.header.encode_bytes(&frame.body, &mut bytes).map_err(io::Error::other)?;
    to_node.lock().await.write_all(&bytes).await
}
