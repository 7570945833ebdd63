//! Tells a peer whose connection is refused why, in the protocol that it uses. Over TLS nothing is sent, because a
//! handshake costs more than serving the connection.

use bytes::{BufMut, BytesMut};
use kith_types::ErrorCode;
use kith_wire::frame::{Header, Preface};
use std::time::Duration;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time::timeout,
};
use tonic::Status;

/// How long the peer may take to send its first byte, to read the message, and to close.
const TIMEOUT: Duration = Duration::from_secs(1);
/// The kind of a GOAWAY frame of HTTP/2, and the error code `ENHANCE_YOUR_CALM`.
const GO_AWAY: (u8, u32) = (7, 0xb);

/// Sends the reason over a connection to the port of frames and gRPC, and closes it.
pub(crate) async fn on_shared_port(mut stream: impl AsyncRead + AsyncWrite + Unpin, open_max: usize) {
    let output = async {
        let mut first = [0];
        stream.read_exact(&mut first).await?;
        let text = text(open_max);
        let bytes = if Preface::may_begin(&first) { in_frames(&text) } else { in_http2(&text) };
        stream.write_all(&bytes).await
    };
    if let Ok(Ok(())) = timeout(TIMEOUT, output).await {
        leave(&mut stream).await;
    }
}

/// Sends the reason over a connection without waiting for a request, and closes it.
pub async fn at_once(mut stream: impl AsyncRead + AsyncWrite + Unpin, bytes: &[u8]) {
    if let Ok(Ok(())) = timeout(TIMEOUT, stream.write_all(bytes)).await {
        leave(&mut stream).await;
    }
}

/// Closes a connection after its peer has read what was sent. Closing a socket with unread bytes would reset the connection
/// and discard the bytes that were sent.
pub(crate) async fn leave(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) {
    let rest = async {
        stream.shutdown().await?;
        tokio::io::copy(&mut stream.take(1 << 20), &mut tokio::io::sink()).await
    };
    let _ = timeout(TIMEOUT, rest).await;
}

/// The reason as an HTTP/1.1 response.
pub(crate) fn in_http1(open_max: usize) -> Vec<u8> {
    let text = text(open_max);
    let head =
        "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-type: text/plain\r\ncontent-length";
    format!("{head}: {}\r\n\r\n{text}\n", text.len() + 1).into_bytes()
}

fn text(open_max: usize) -> String {
    format!(
        "too_many_connections: this process has {open_max}, as many as `connections-max` or its open files allow"
    )
}

fn status(text: &str) -> Status {
    let help = "use fewer connections, or ask another process";
    kith_wire::status(ErrorCode::TooManyConnections, text, help)
}

fn in_frames(text: &str) -> BytesMut {
    let mut bytes = BytesMut::from(&Preface::OWN.encode()[..]);
    Header::of_connection().encode_error(&status(text), &mut bytes);
    bytes
}

/// The reason in HTTP/2: an empty SETTINGS frame, with which every server begins, and GOAWAY.
fn in_http2(text: &str) -> BytesMut {
    let mut bytes = BytesMut::from(&[0, 0, 0, 4, 0, 0, 0, 0, 0][..]);
    let (kind, error) = GO_AWAY;
    bytes.put_uint(8 + text.len() as u64, 3);
    bytes.put_slice(&[kind, 0]);
    // Stream 0, which is the connection; and 0 as the last stream, because none was processed.
    bytes.put_u32(0);
    bytes.put_u32(0);
    bytes.put_u32(error);
    bytes.put_slice(text.as_bytes());
    bytes
}
