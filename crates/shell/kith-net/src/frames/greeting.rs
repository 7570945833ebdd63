//! The start of a framed connection: TLS, the prefaces, and a first request that sends the token or asks for shared memory.

use super::{
    ConnectionLoss,
    cipher::Cipher,
    shared::SharedReplies,
    socket::{self, Socket},
};
use crate::security::{Dialer, TlsFailure};
use bytes::BytesMut;
use kith_wire::frame::{self, Flags, Frame, Header, Offer, Op, PREFACE_BYTES, Preface};
use std::{io, sync::Arc};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tonic::Status;

/// An open connection to a peer that speaks frames.
pub(super) struct FramedConnection {
    pub stream: Socket,
    pub cipher: Option<Cipher>,
    pub shared: Option<Arc<SharedReplies>>,
}

/// Why a connection cannot be opened.
pub(super) enum ConnectError {
    Lost(ConnectionLoss),
    /// The peer rejected the token of this process.
    Refused(Box<Status>),
}

impl From<io::Error> for ConnectError {
    fn from(error: io::Error) -> Self {
        ConnectError::Lost(ConnectionLoss::new(error.to_string()))
    }
}

/// Connects, over TLS if the dialer uses it, exchanges the prefaces, and sends the token or asks for shared memory.
pub(super) async fn greet(
    addr: &str,
    dialer: &Dialer,
    locally: bool,
) -> Result<FramedConnection, ConnectError> {
    let Some(secured) = dialer.secured() else {
        let mut stream = socket::connect(addr, locally).await?;
        exchange(&mut stream).await?;
        let shared = share(&mut stream).await?;
        return Ok(FramedConnection { stream, cipher: None, shared });
    };
    let lost = |error: io::Error| match TlsFailure::of_handshake(&error) {
        Some(failure) => ConnectError::Lost(ConnectionLoss::new(failure.reason)),
        None => error.into(),
    };
    let mut stream = secured.for_frames(addr).await.map_err(lost)?;
    if let Err(error) = exchange(&mut stream).await {
        let Some(failure) = TlsFailure::of(&error) else { return Err(error.into()) };
        secured.note(addr, failure.clone());
        return Err(ConnectError::Lost(ConnectionLoss::new(failure.reason)));
    }
    if let Some(token) = secured.token() {
        identify(&mut stream, &token).await?;
    }
    secured.forget(addr);
    let (stream, tls) = stream.into_inner();
    Ok(FramedConnection { stream: Socket::Left(stream), cipher: Some(Cipher::new(tls)), shared: None })
}

/// Sends the preface and waits for the peer's. If the versions differ, both sides speak the lower one.
async fn exchange(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> io::Result<()> {
    let mut answer = [0; PREFACE_BYTES];
    stream.write_all(&Preface::OWN.encode()).await?;
    stream.flush().await?;
    stream.read_exact(&mut answer).await?;
    let foreign = |error| io::Error::other(format!("the peer does not speak frames: {error}"));
    Preface::decode(answer).map(drop).map_err(foreign)
}

/// Sends the token and waits for the peer's answer.
async fn identify(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    token: &str,
) -> Result<(), ConnectError> {
    let answer = first_answer(stream, Op::Identify, token.as_bytes()).await?;
    match answer.header.flags.has(Flags::ERROR) {
        true => Err(ConnectError::Refused(Box::new(answer.status()))),
        false => Ok(()),
    }
}

/// Asks a peer on this machine for shared memory for its long replies. `None` if the peer offers none, or if this process
/// cannot open it.
async fn share(stream: &mut Socket) -> Result<Option<Arc<SharedReplies>>, ConnectError> {
    let Some(pid) = socket::local_pid(stream) else { return Ok(None) };
    let answer = first_answer(stream, Op::Share, &[]).await?;
    // The peer has no memory left, or supports none.
    let is_refused = answer.header.flags.has(Flags::ERROR);
    let Some(offer) = Offer::decode(&answer.body).filter(|_| !is_refused) else { return Ok(None) };
    let opened = SharedReplies::open(pid, offer);
    Ok(opened.inspect_err(|error| tracing::debug!(%error, pid, "cannot open the shared memory of a peer: its long replies come over the socket")).ok())
}

/// Sends the first frame of a connection and returns the peer's answer to it.
async fn first_answer(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    op: Op,
    body: &[u8],
) -> Result<Frame, ConnectError> {
    let mut bytes = BytesMut::new();
    let unreadable = |error: frame::FrameError| ConnectError::Lost(ConnectionLoss::new(error.to_string()));
    Header::request(1, op).encode_bytes(body, &mut bytes).map_err(unreadable)?;
    stream.write_all(&bytes).await?;
    stream.flush().await?;
    bytes.clear();
    loop {
        match frame::decode(&mut bytes).map_err(unreadable)? {
            Some(frame) => return Ok(frame),
            None if stream.read_buf(&mut bytes).await? == 0 => {
                return Err(ConnectError::Lost(ConnectionLoss::new("the peer closed the connection")));
            }
            None => {}
        }
    }
}
