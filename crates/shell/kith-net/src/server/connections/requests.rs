//! HTTP requests of a connection. A request is under way until its answer has ended. Its body is charged as it arrives, and
//! its answer until it is sent.

use super::{Arrival, Connected, UNCHARGED_BYTES, UNCHARGED_REPLY_BYTES, UnderWay, no_memory};
use crate::server::{hosts, stream::CallerConnection};
use axum::{
    body::{Body, HttpBody},
    extract::Request,
    http::HeaderMap,
    middleware::Next,
    response::Response,
};
use bytes::Bytes;
use futures::{FutureExt, StreamExt, stream};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use kith_types::ErrorCode;
use std::sync::Arc;
use tonic::Status;

/// The prefix of methods whose requests are streams, which last as long as their callers like.
const STREAMED: &str = "/grpc.reflection.";

/// Long answers are passed to h2 in pieces of this size.
const PIECE_BYTES: usize = 64 << 10;

/// An extension of a response: what replaces the refusal of an answer that there is no memory for. It is for requests that have
/// changed something, which must not be repeated as after an ordinary refusal.
#[derive(Clone, Copy)]
pub struct IfRefused(pub fn(Status) -> Status);

/// Counts and bounds a gRPC request.
pub(crate) async fn of_peer(request: Request, next: Next) -> Response {
    let Some(peer) = request.extensions().get::<CallerConnection>() else { return next.run(request).await };
    let connected = Arc::clone(&peer.connected);
    match hosts::admit(&connected, &request, peer.addr) {
        Ok(()) => follow(connected, request, next).await,
        Err(foreign) => {
            let help = "`accepted-hosts` lists the hosts whose pages may send requests";
            kith_wire::status(ErrorCode::PermissionDenied, foreign.to_string(), help).into_http()
        }
    }
}

/// Whether a request is a stream. Its bytes are not charged where they arrive.
pub(crate) fn is_streamed(request: &Request) -> bool {
    request.uri().path().starts_with(STREAMED)
}

/// Counts and bounds a request of a connection.
pub(crate) async fn follow(connected: Arc<Connected>, request: Request, next: Next) -> Response {
    let under_way = connected.request();
    let is_streamed = is_streamed(&request);
    let answering = next.run(request.map(|body| charged(body, &connected, is_streamed)));
    let response = connected.share().scope(answering).await;
    if response.body().is_end_stream() {
        return response;
    }
    let (head, mut body) = response.into_parts();
    // tonic encodes an answer when its body is first polled. h2 polls it only when the peer has room for it, and until then
    // the answer would lie here uncharged. So it is polled once now.
    let first = body.frame().now_or_never();
    let is_over = matches!(first, Some(None));
    let if_refused = head.extensions.get().copied();
    let mut answer =
        Answer { body, connected, piece: Bytes::new(), if_refused, is_over, _under_way: under_way };
    let first = match first.flatten() {
        Some(Ok(frame)) => match answer.take(frame) {
            Ok(frame) => Some(Ok(frame)),
            Err(refused) => return refused.into_http(),
        },
        other => other,
    };
    let rest = stream::unfold(answer, |mut answer| async move { Some((answer.next().await?, answer)) });
    Response::from_parts(head, Body::new(StreamBody::new(stream::iter(first).chain(rest))))
}

/// An answer, which is charged to its connection from its encoding until it is sent.
struct Answer {
    body: Body,
    connected: Arc<Connected>,
    /// The unsent rest of a long frame.
    piece: Bytes,
    if_refused: Option<IfRefused>,
    is_over: bool,
    _under_way: UnderWay,
}

impl Answer {
    async fn next(&mut self) -> Option<Result<Frame<Bytes>, axum::Error>> {
        if !self.piece.is_empty() {
            return Some(Ok(self.next_piece()));
        }
        if self.is_over {
            return None;
        }
        Some(
            self.body
                .frame()
                .await?
                .map(|frame| self.take(frame).unwrap_or_else(|refused| self.end(&refused))),
        )
    }

    /// Charges a frame and returns it, or returns the first piece of it if it is long.
    ///
    /// # Errors
    /// `overloaded`, or what replaces it, if there is no memory for it.
    fn take(&mut self, frame: Frame<Bytes>) -> Result<Frame<Bytes>, Status> {
        match frame.into_data() {
            Ok(data) if data.len() <= UNCHARGED_REPLY_BYTES => Ok(Frame::data(data)),
            Ok(data) => {
                let charge =
                    self.connected.charge_reply(data.len()).map_err(|refused| match self.if_refused {
                        Some(IfRefused(replaced)) => replaced(refused),
                        None => refused,
                    })?;
                self.piece = charge.pay_for(data);
                Ok(self.next_piece())
            }
            Err(trailers) => Ok(trailers),
        }
    }

    fn next_piece(&mut self) -> Frame<Bytes> {
        let bytes = self.piece.len().min(PIECE_BYTES);
        Frame::data(self.piece.split_to(bytes))
    }

    /// Ends the answer early with an error status, in its trailers.
    fn end(&mut self, status: &Status) -> Frame<Bytes> {
        self.is_over = true;
        let mut trailers = HeaderMap::new();
        // Our own texts always fit into headers.
        let _ = status.add_header(&mut trailers);
        Frame::trailers(trailers)
    }
}

/// Wraps a request's body so that it is charged to its connection until it has been read. The body fails if there is no
/// memory for it, or if it arrives too slowly.
fn charged(body: Body, connected: &Arc<Connected>, is_streamed: bool) -> Body {
    let arrival = Arrival::new(connected);
    let state = (body.into_data_stream(), arrival, 0usize);
    let pieces = stream::unfold(Some(state), move |state| async move {
        let (mut body, mut arrival, mut came) = state?;
        let piece = tokio::select! {
            biased;
            piece = body.next() => piece?,
            () = arrival.is_too_slow(), if !is_streamed => return Some((Err(too_slow()), None)),
        };
        let piece: Bytes = match piece {
            Ok(piece) => piece,
            Err(error) => return Some((Err(Status::from_error(error.into())), None)),
        };
        came += piece.len();
        arrival.received(piece.len());
        // The reader assembles the pieces in a buffer that grows by doubling.
        if !is_streamed && UNCHARGED_BYTES < came && !arrival.pay(2 * came) {
            return Some((Err(no_memory()), None));
        }
        Some((Ok(piece), Some((body, arrival, came))))
    });
    Body::from_stream(pieces)
}

fn too_slow() -> Status {
    let message =
        "the request did not arrive in time: it stopped arriving, or arrived more slowly than 128 KiB/s";
    kith_wire::status(ErrorCode::DeadlineExceeded, message, "ask for less at once")
}
