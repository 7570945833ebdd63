//! Requests over HTTP: each is under way until its answer has ended, and its body is charged as it comes.

use super::{Connected, Reason, Seen, UNCHARGED_BYTES, closed, no_memory};
use crate::accept::Peer;
use axum::{body::Body, extract::Request, middleware::Next, response::Response};
use bytes::Bytes;
use futures::{StreamExt, stream};
use http_body_util::BodyExt;
use std::sync::Arc;
use tokio::time::Instant;
use tonic::{Code, Status};

/// The methods whose requests are streams: they last as long as their callers like.
const STREAMED: &str = "/grpc.reflection.";

/// Counts and bounds a gRPC request.
pub(crate) async fn of_peer(request: Request, next: Next) -> Response {
    match request.extensions().get::<Peer>().map(|peer| Arc::clone(&peer.connected)) {
        Some(connected) => follow(connected, request, next).await,
        None => next.run(request).await,
    }
}

/// Counts and bounds a request of a connection.
pub(crate) async fn follow(connected: Arc<Connected>, request: Request, next: Next) -> Response {
    let under_way = connected.request();
    let is_streamed = request.uri().path().starts_with(STREAMED);
    let response = next.run(request.map(|body| charged(body, &connected, is_streamed))).await;
    response.map(|body| {
        Body::new(body.map_frame(move |frame| {
            let _held = &under_way;
            frame
        }))
    })
}

/// The same body, charged to its connection until it has been read. It fails if there is no memory for it, or it comes too slowly.
fn charged(body: Body, connected: &Arc<Connected>, is_streamed: bool) -> Body {
    let (watch, every) = connected.watch();
    let look = tokio::time::interval_at(Instant::now() + every, every);
    let state = (body.into_data_stream(), connected.charge(), watch, look, 0usize);
    let pieces = stream::unfold(Some(state), move |state| async move {
        let (mut body, mut charge, mut watch, mut look, mut came) = state?;
        let piece = loop {
            tokio::select! {
                biased;
                piece = body.next() => break piece?,
                _ = look.tick(), if !is_streamed => {
                    let seen = Seen { received: came as u64, has_begun: true, ..Seen::default() };
                    if watch.look(seen) == Some(Reason::SlowRequest) {
                        closed(Reason::SlowRequest.name());
                        return Some((Err(too_slow()), None));
                    }
                }
            }
        };
        let piece: Bytes = match piece {
            Ok(piece) => piece,
            Err(error) => return Some((Err(Status::from_error(error.into())), None)),
        };
        came += piece.len();
        // Its reader puts pieces together, in a buffer that doubles.
        if !is_streamed && UNCHARGED_BYTES < came && !charge.grow_to(2 * came) {
            return Some((Err(no_memory()), None));
        }
        Some((Ok(piece), Some((body, charge, watch, look, came))))
    });
    Body::from_stream(pieces)
}

fn too_slow() -> Status {
    let message = "the request did not come in time: it stood still, or came more slowly than 128 KiB/s";
    kith_wire::status(Code::DeadlineExceeded, "deadline_exceeded", message, "ask for less at once")
}
