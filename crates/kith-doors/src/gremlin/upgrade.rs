//! The HTTP request with which a WebSocket begins.

use super::{
    PATH, REQUEST_BYTES_MAX,
    inlet::{Inlet, Unfinished},
};
use crate::Stream;
use std::io;
use tokio::io::AsyncWriteExt;
use tokio_tungstenite::{
    WebSocketStream, accept_hdr_async_with_config,
    tungstenite::{
        Error,
        handshake::server::{ErrorResponse, Request, Response},
        http::{HeaderValue, StatusCode, header},
        protocol::WebSocketConfig,
    },
};

/// Most requests fit into this buffer, which each connection has.
const READ_BUFFER_BYTES: usize = 8 << 10;
/// The number of waiting bytes at which answers are written to the stream. Fewer are written if no answer follows.
const WRITE_BUFFER_BYTES: usize = 32 << 10;

/// The WebSocket of a connection.
pub(super) type Socket<'s> = WebSocketStream<Inlet<&'s mut Stream>>;

/// Why a connection does not become a WebSocket.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The peer has asked for something else, and gets this HTTP response.
    Tell(String),
    /// The peer has got its HTTP response.
    Told,
    /// The stream failed.
    Failed(io::Error),
}

/// Accepts the WebSocket that the peer asks for.
///
/// # Errors
/// [`Refusal`] if the peer asks for something else, or the stream fails.
pub(super) async fn accept(stream: &mut Stream, unfinished: Unfinished) -> Result<Socket<'_>, Refusal> {
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(WRITE_BUFFER_BYTES)
        .max_message_size(Some(REQUEST_BYTES_MAX))
        .max_frame_size(Some(REQUEST_BYTES_MAX));
    let inlet = Inlet::new(stream, unfinished);
    let accepted = accept_hdr_async_with_config(inlet, check_path, Some(config)).await;
    accepted.map_err(|error| match error {
        Error::Http(_) => Refusal::Told,
        Error::Io(error) => Refusal::Failed(error),
        error => Refusal::Tell(explanation(&error)),
    })
}

impl Refusal {
    /// Tells the peer, unless it was told.
    ///
    /// # Errors
    /// Errors of the stream.
    pub async fn tell(self, stream: &mut Stream) -> io::Result<()> {
        match self {
            Self::Tell(response) => {
                stream.write_all(response.as_bytes()).await?;
                stream.flush().await
            }
            Self::Told => Ok(()),
            Self::Failed(error) => Err(error),
        }
    }
}

/// The answer to an HTTP request that does not ask for a WebSocket.
fn explanation(error: &Error) -> String {
    let text = format!(
        "This port is for Gremlin drivers. They connect with a WebSocket to ws://HOST:PORT{PATH}, or wss:// with TLS.\n\
         The request was not accepted: {error}\n"
    );
    let length = text.len();
    format!(
        "HTTP/1.1 426 Upgrade Required\r\nconnection: close, upgrade\r\nupgrade: websocket\r\n\
         content-type: text/plain\r\ncontent-length: {length}\r\n\r\n{text}"
    )
}

#[allow(clippy::result_large_err, reason = "the trait of the library has this signature")]
fn check_path(request: &Request, response: Response) -> Result<Response, ErrorResponse> {
    let path = request.uri().path();
    if path == PATH {
        return Ok(response);
    }
    let text = format!("there is nothing at {path:.200?}; Gremlin drivers connect to ws://HOST:PORT{PATH}\n");
    let length = HeaderValue::from(text.len());
    let mut refusal = ErrorResponse::new(Some(text));
    *refusal.status_mut() = StatusCode::NOT_FOUND;
    let headers = refusal.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    headers.insert(header::CONTENT_LENGTH, length);
    Err(refusal)
}
