//! The one gRPC channel of Kith: it shows this process's token, and a connection that breaks is `Unavailable`, whatever the HTTP/2
//! library makes of it ("transport error", `Unknown`; a cancelled call; a reset in the middle of a reply).

use super::dialer::{Dialer, cause};
use futures::{
    TryFutureExt,
    future::{MapErr, MapOk},
};
use http_body_util::BodyExt;
use std::task::{Context, Poll};
use tonic::{
    Status,
    body::Body,
    codegen::{
        Service,
        http::{Request, Response, header::AUTHORIZATION},
    },
    transport::{Channel, Error, channel::ResponseFuture},
};

/// A gRPC channel that shows this process's token, if it has one. Errors of the connection are `Unavailable` with the innermost reason.
#[derive(Clone, Debug)]
pub struct GrpcChannel {
    channel: Channel,
    dialer: Dialer,
}

impl GrpcChannel {
    pub(super) fn new(channel: Channel, dialer: Dialer) -> Self {
        Self { channel, dialer }
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
        if let Some(token) = self.dialer.token_header() {
            request.headers_mut().insert(AUTHORIZATION, token);
        }
        let to_status: fn(Error) -> Status = |error| lost(&error);
        let to_guarded: fn(Response<Body>) -> Response<Body> = |response| response.map(guarded);
        self.channel.call(request).map_err(to_status).map_ok(to_guarded)
    }
}

/// A body that ends early ends with the same status as a call without a reply.
fn guarded(body: Body) -> Body {
    Body::new(body.map_err(|status| lost(&status)))
}

fn lost(error: &(dyn std::error::Error + 'static)) -> Status {
    Status::unavailable(cause(error))
}

#[cfg(test)]
mod tests {
    use crate::{QueryError, RouterClient, security::Dialer};
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
    /// `:status: 200`, `content-type: application/grpc`.
    const HEADERS: &[u8] = b"\x00\x00\x14\x01\x04\x00\x00\x00\x01\x88\x0f\x10\x10application/grpc";
    /// The first two of a hundred bytes.
    const DATA: &[u8] = &[0, 0, 100, 0, 0, 0, 0, 0, 1, 0, 0];

    /// A router that takes a call, says this much of its reply, and dies.
    async fn dies_after(said: Vec<u8>) -> QueryError {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap().to_string();
        let server = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            socket.write_all(SETTINGS).await.unwrap();
            // The preface, the client's settings, and at least the beginning of its call.
            let (mut heard, mut buffer) = (0, [0; 4096]);
            while heard < 150 {
                heard += socket.read(&mut buffer).await.unwrap();
            }
            socket.write_all(&said).await.unwrap();
            socket.flush().await.unwrap();
        });
        let client = RouterClient::lazy(addr.clone(), &Dialer::default()).unwrap();
        let error = client.topology().await.unwrap_err();
        server.await.unwrap();
        assert!(matches!(&error, QueryError::Unreachable { addr: told, .. } if *told == addr), "{error:?}");
        error
    }

    #[tokio::test]
    async fn a_router_that_dies_under_a_call_is_unreachable_however_far_its_reply_was() {
        let said = [Vec::new(), HEADERS.to_vec(), [HEADERS, DATA].concat()];
        for said in said {
            let error = dies_after(said).await;
            assert!(!error.to_string().contains("transport error"), "the reason is told: {error}");
        }
    }
}
