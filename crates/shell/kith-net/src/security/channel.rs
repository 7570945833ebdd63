//! The gRPC channel that every gRPC client of Kith uses. It sends this process's token with each call. Every failure of the
//! connection becomes `Unavailable`, although the HTTP/2 library reports some of them otherwise: as "transport error",
//! `Unknown`, a cancelled call, or a reset in the middle of a reply.

use super::secured::TlsDialer;
use futures::{
    TryFutureExt,
    future::{MapErr, MapOk},
};
use http_body_util::BodyExt;
use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll},
};
use tonic::{
    Status,
    body::Body,
    codegen::{
        Service,
        http::{Request, Response, header::AUTHORIZATION},
    },
    transport::{Channel, Error, channel::ResponseFuture},
};

/// A gRPC channel that sends this process's token with each call, if it has a token. Connection errors become
/// `Unavailable`, with the message of the innermost error.
#[derive(Clone)]
pub struct GrpcChannel {
    channel: Channel,
    /// Has the current token; `None` without TLS, because a token is not sent in the clear.
    secured: Option<Arc<TlsDialer>>,
}

impl fmt::Debug for GrpcChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The token is never printed.
        f.debug_tuple("GrpcChannel").field(&self.channel).finish()
    }
}

impl GrpcChannel {
    pub(super) fn new(channel: Channel, secured: Option<Arc<TlsDialer>>) -> Self {
        Self { channel, secured }
    }
}

impl Service<Request<Body>> for GrpcChannel {
    type Response = Response<Body>;
    type Error = Status;
    type Future = MapOk<MapErr<ResponseFuture, fn(Error) -> Status>, fn(Response<Body>) -> Response<Body>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Status>> {
        self.channel.poll_ready(context).map_err(|error| lost(&error))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        if let Some(token) = self.secured.as_ref().and_then(|secured| secured.token_header()) {
            request.headers_mut().insert(AUTHORIZATION, token);
        }
        let to_status: fn(Error) -> Status = |error| lost(&error);
        let to_guarded: fn(Response<Body>) -> Response<Body> = |response| response.map(guarded);
        self.channel.call(request).map_err(to_status).map_ok(to_guarded)
    }
}

/// Wraps a response body so that a connection error in the middle of it becomes the same status as a call without a reply.
fn guarded(body: Body) -> Body {
    Body::new(body.map_err(|status| lost(&status)))
}

/// The status of a connection that failed: the message of the innermost source of the error.
pub(super) fn lost(error: &(dyn std::error::Error + 'static)) -> Status {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    Status::unavailable(innermost.to_string())
}
