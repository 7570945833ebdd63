//! The HTTP side of a connection: the request with which a WebSocket begins, and traversals in requests of their own
//! (`exchange`). Requests that web pages send are refused first ([`hosts::admit`]).

use super::{
    PATH, REQUEST_BYTES_MAX,
    exchange::{self, Body, ExchangeReply},
    inlet::{Inlet, PartialMessages},
};
use crate::{DoorCaller, Stream};
use bytes::Bytes;
use futures::FutureExt;
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{self, HeaderMap},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use kith_net::server::hosts;
use std::{
    convert::Infallible,
    future::poll_fn,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::timeout,
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        handshake::server::create_response_with_body,
        protocol::{Role, WebSocketConfig},
    },
};
use tokio_util::sync::CancellationToken;

/// Most requests fit into this buffer, which each connection has.
const READ_BUFFER_BYTES: usize = 8 << 10;
/// The number of waiting bytes at which answers are written to the stream. Fewer are written if no answer follows.
const WRITE_BUFFER_BYTES: usize = 32 << 10;
/// The longest header of an HTTP request.
const HEADER_BYTES_MAX: usize = 16 << 10;
/// The header of an HTTP request must be complete this long after the connection was opened, or the last answer was sent.
const HEADER_TIMEOUT: Duration = Duration::from_secs(if cfg!(test) { 5 } else { 30 });
/// How long a request under way may take to end when the connection has to end.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// The WebSocket of a connection.
pub(super) type Socket<'s> = WebSocketStream<Inlet<&'s mut Stream>>;

/// Serves HTTP requests until the peer begins a WebSocket, which is returned, or until the connection ends.
///
/// # Errors
/// Errors of the stream, and of what the peer sends.
pub(super) async fn serve<'s>(
    stream: &'s mut Stream,
    caller: &Arc<DoorCaller>,
    unfinished: PartialMessages,
) -> io::Result<Option<Socket<'s>>> {
    let begins = Arc::new(AtomicBool::new(false));
    let service = service_fn(|request| {
        let (caller, begins) = (Arc::clone(caller), Arc::clone(&begins));
        async move { Ok::<_, Infallible>(answer(&caller, request, &begins).await) }.boxed()
    });
    let end = caller.end().clone();
    let io = TokioIo::new(Unended { stream, end: end.clone(), has_ended: false });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT).max_buf_size(HEADER_BYTES_MAX);
    let mut connection = server.serve_connection(io, service);
    let ended = tokio::select! {
        biased;
        ended = poll_fn(|cx| connection.poll_without_shutdown(cx)) => ended,
        () = end.cancelled() => {
            Pin::new(&mut connection).graceful_shutdown();
            let rest = poll_fn(|cx| connection.poll_without_shutdown(cx));
            timeout(STOP_TIMEOUT, rest).await.unwrap_or(Ok(()))
        }
    };
    ended.map_err(io::Error::other)?;
    if !begins.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let parts = connection.into_parts();
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(WRITE_BUFFER_BYTES)
        .max_message_size(Some(REQUEST_BYTES_MAX))
        .max_frame_size(Some(REQUEST_BYTES_MAX));
    if !unfinished.receive(&parts.read_buf) {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    let inlet = Inlet::new(parts.io.into_inner().stream, unfinished);
    let begun = parts.read_buf.to_vec();
    Ok(Some(WebSocketStream::from_partially_read(inlet, begun, Role::Server, Some(config)).await))
}

/// Answers one request. Notes if a WebSocket begins after it.
async fn answer(caller: &DoorCaller, request: Request<Incoming>, begins: &AtomicBool) -> Response<Body> {
    if let Err(foreign) = hosts::admit(caller.connected(), &request, Some(caller.peer())) {
        return text(StatusCode::FORBIDDEN, format!("permission_denied: {foreign}\n"));
    }
    let path = request.uri().path();
    if is_websocket(request.headers()) {
        return match path == PATH {
            true => upgrade(&request, begins),
            false => not_found(path),
        };
    }
    // Gremlin Server takes requests at every path; its documentation sends them to the root.
    if path != PATH && path != "/" {
        return not_found(path);
    }
    let is_get = request.method() == Method::GET;
    match *request.method() {
        Method::POST | Method::GET => match exchange::answer(caller, request).await {
            ExchangeReply::Answer(response) => response,
            ExchangeReply::NothingAsked if is_get => explanation(),
            ExchangeReply::NothingAsked => {
                text(StatusCode::BAD_REQUEST, "the request has no body\n".to_owned())
            }
        },
        _ => explanation(),
    }
}

fn is_websocket(headers: &HeaderMap) -> bool {
    let upgrade = headers.get(header::UPGRADE).and_then(|value| value.to_str().ok());
    upgrade.is_some_and(|value| value.eq_ignore_ascii_case("websocket"))
}

fn upgrade(request: &Request<Incoming>, begins: &AtomicBool) -> Response<Body> {
    match create_response_with_body(request, || exchange::body(Vec::new())) {
        Ok(response) => {
            begins.store(true, Ordering::Relaxed);
            response
        }
        Err(error) => {
            text(StatusCode::BAD_REQUEST, format!("this request does not begin a WebSocket: {error}\n"))
        }
    }
}

/// The answer to a request that asks nothing.
fn explanation() -> Response<Body> {
    let explanation = format!(
        "This port is for Gremlin. Drivers connect with a WebSocket to ws://HOST:PORT{PATH}, or wss:// with TLS.\n\
         Other clients send {{\"gremlin\":\"g.V().count()\",\"aliases\":{{\"g\":\"GRAPH\"}}}} with POST to http://HOST:PORT{PATH}.\n"
    );
    let mut response = text(StatusCode::UPGRADE_REQUIRED, explanation);
    response.headers_mut().insert(header::UPGRADE, header::HeaderValue::from_static("websocket"));
    response
}

fn not_found(path: &str) -> Response<Body> {
    let message =
        format!("there is nothing at {path:.200?}; Gremlin drivers connect to ws://HOST:PORT{PATH}\n");
    text(StatusCode::NOT_FOUND, message)
}

fn text(status: StatusCode, text: String) -> Response<Body> {
    exchange::response(status, "text/plain; charset=utf-8", vec![Bytes::from(text)])
}

/// A stream that does not end while the connection has to end, so that the request under way is answered. The end of the stream
/// would mean that the client has left. It also ends one turn late, so that a request that is answered at once is answered to a
/// client that only sends nothing more.
struct Unended<'s> {
    stream: &'s mut Stream,
    end: CancellationToken,
    has_ended: bool,
}

impl AsyncRead for Unended<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut *self.stream).poll_read(cx, buffer))?;
        let is_end = buffer.filled().len() == before && buffer.remaining() != 0;
        if !is_end || (self.has_ended && !self.end.is_cancelled()) {
            return Poll::Ready(Ok(()));
        }
        if !std::mem::replace(&mut self.has_ended, true) {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

impl AsyncWrite for Unended<'_> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.stream).poll_shutdown(cx)
    }
}
