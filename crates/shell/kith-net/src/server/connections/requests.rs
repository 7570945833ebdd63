//! HTTP requests of a connection. A request is under way until its answer has ended. Its body is charged as it arrives, and
//! its answer until it is sent.

use super::{
    Arrival, OpenConnection, UNCHARGED_BYTES, UNCHARGED_REPLY_BYTES, UnderWay, holdback::Holdback, no_memory,
};
use crate::server::{hosts, stream::CallerConnection};
use axum::{
    body::{Body, BodyDataStream, HttpBody},
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
pub(crate) async fn follow(connected: Arc<OpenConnection>, request: Request, next: Next) -> Response {
    let under_way = connected.request();
    let (is_grpc, is_streamed) =
        (request.extensions().get::<CallerConnection>().is_some(), is_streamed(&request));
    let answering = next.run(request.map(|body| charged(body, &connected, is_grpc, is_streamed)));
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
    connected: Arc<OpenConnection>,
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

/// Wraps a request's body so that it is charged to its connection until it has been read, and, if it is `grpc`, so that its
/// reader reserves nothing for messages of which little has arrived. The body fails if there is no memory for it, or if it
/// arrives too slowly.
fn charged(body: Body, connected: &Arc<OpenConnection>, is_grpc: bool, is_streamed: bool) -> Body {
    let arriving = Arriving {
        body: body.into_data_stream(),
        arrival: Arrival::new(connected),
        holdback: is_grpc.then(Holdback::default),
        came: 0,
        is_streamed,
    };
    let pieces = stream::unfold(Some(arriving), |arriving| async move {
        let mut arriving = arriving?;
        match arriving.next().await.transpose()? {
            Ok(piece) => Some((Ok(piece), Some(arriving))),
            Err(status) => Some((Err(status), None)),
        }
    });
    Body::from_stream(pieces)
}

/// The body of a request that arrives.
struct Arriving {
    body: BodyDataStream,
    arrival: Arrival,
    /// `None` if the body does not consist of gRPC messages.
    holdback: Option<Holdback>,
    /// How many bytes have arrived.
    came: usize,
    is_streamed: bool,
}

impl Arriving {
    /// The next bytes for the reader; `None` at the end.
    async fn next(&mut self) -> Result<Option<Bytes>, Status> {
        loop {
            let piece = tokio::select! {
                biased;
                piece = self.body.next() => piece,
                () = self.arrival.is_too_slow(), if !self.is_streamed => return Err(too_slow()),
            };
            let Some(piece) = piece else {
                return match self.holdback.as_ref().is_some_and(Holdback::is_within_message) {
                    true => Err(ends_early()),
                    false => Ok(None),
                };
            };
            let piece = self.receive(piece.map_err(|error| Status::from_error(error.into()))?)?;
            if !piece.is_empty() {
                return Ok(Some(piece));
            }
        }
    }

    /// Charges bytes that have arrived, and returns those that the reader may have now.
    fn receive(&mut self, piece: Bytes) -> Result<Bytes, Status> {
        self.came += piece.len();
        self.arrival.received(piece.len());
        let (piece, announced, reserved) = match &mut self.holdback {
            None => (piece, 0, 0),
            Some(holdback) => (holdback.receive(piece), holdback.announced(), holdback.reserved()),
        };
        if self.is_streamed {
            // A piece with many whole messages is kept until the last of them is answered.
            return if announced.max(piece.len()) <= UNCHARGED_BYTES { Ok(piece) } else { Err(too_large()) };
        }
        // The bytes are kept twice: by the reader, which assembles them, and where they come from or where they go to.
        let largest = self.came.max(reserved);
        if UNCHARGED_BYTES < largest && !self.arrival.pay(self.came + largest) {
            return Err(no_memory());
        }
        Ok(piece)
    }
}

fn too_slow() -> Status {
    let message =
        "the request did not arrive in time: it stopped arriving, or arrived more slowly than 128 KiB/s";
    kith_wire::status(ErrorCode::DeadlineExceeded, message, "ask for less at once")
}

fn ends_early() -> Status {
    let message = "the request's body ends before its message is complete";
    kith_wire::status(ErrorCode::BadRequest, message, "send as many bytes as the message's prefix says")
}

fn too_large() -> Status {
    let message =
        format!("a stream sends messages longer than {UNCHARGED_BYTES} bytes, or as many bytes at once");
    kith_wire::status(ErrorCode::TooLarge, message, "ask for less at once")
}

#[cfg(test)]
mod tests {
    use super::{super::testing::known, *};
    use futures::channel::mpsc;
    use tonic::Code;

    /// A body whose pieces are sent one by one, and what its reader gets.
    fn arriving(
        connected: &Arc<OpenConnection>,
        is_streamed: bool,
    ) -> (mpsc::UnboundedSender<Bytes>, BodyDataStream) {
        let (pieces, body) = mpsc::unbounded();
        let body = Body::from_stream(body.map(Ok::<_, Status>));
        (pieces, charged(body, connected, true, is_streamed).into_data_stream())
    }

    fn send(pieces: &mpsc::UnboundedSender<Bytes>, bytes: impl Into<Bytes>) {
        pieces.unbounded_send(bytes.into()).expect("it is read");
    }

    fn failure(read: Option<Result<Bytes, axum::Error>>) -> (Code, String) {
        let status = Status::from_error(read.expect("not the end").expect_err("it fails").into());
        (status.code(), status.message().to_owned())
    }

    #[tokio::test]
    async fn an_announced_message_takes_no_memory_before_it_arrives() {
        let connected = known();
        let (pieces, mut read) = arriving(&connected, false);
        // 16 MiB.
        send(&pieces, &[0, 1, 0, 0, 0][..]);
        send(&pieces, vec![7; 1 << 20]);
        assert!(read.next().now_or_never().is_none(), "the reader would reserve 16 MiB");
        assert_eq!(connected.request_bytes(), 2 * (5 + (1 << 20)));
        send(&pieces, vec![7; 3 << 20]);
        let passed = read.next().await.expect("a quarter is there").expect("it is charged");
        assert_eq!(passed.len(), 5 + (4 << 20));
        assert_eq!(connected.request_bytes(), 5 + (4 << 20) + (16 << 20));
        drop(pieces);
        let (code, message) = failure(read.next().await);
        assert_eq!(code, Code::InvalidArgument, "{message}");
        assert!(message.contains("ends before its message is complete"), "{message}");
    }

    #[tokio::test]
    async fn a_message_of_a_stream_is_short() {
        let (pieces, mut read) = arriving(&known(), true);
        send(&pieces, &[0, 0, 0, 0, 3, 1, 2, 3][..]);
        assert!(read.next().await.expect("a piece").is_ok());
        send(&pieces, &[0, 0, 0, 0x40, 1][..]);
        let (code, message) = failure(read.next().await);
        assert_eq!(code, Code::OutOfRange, "{message}");
        assert!(message.contains("longer than 16384 bytes"), "{message}");
    }

    #[tokio::test]
    async fn messages_of_a_stream_that_arrive_together_are_short_in_all() {
        let (pieces, mut read) = arriving(&known(), true);
        let message = [0, 0, 0, 0, 1, 7];
        send(&pieces, message.repeat(UNCHARGED_BYTES / message.len()));
        assert!(read.next().await.expect("a piece").is_ok());
        send(&pieces, message.repeat(UNCHARGED_BYTES / message.len() + 1));
        assert_eq!(failure(read.next().await).0, Code::OutOfRange);
    }
}
