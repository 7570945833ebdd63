//! Checks rights before every gRPC method. It reads the request's one message before the method does, as far as the table
//! of rights needs it.

use super::{
    Caller, CallerIdentity, CallingSubject, Gate, Need,
    rights::{self, Rule},
};
use crate::server::stream::CallerConnection;
use axum::{
    body::{Body, to_bytes},
    extract::{Request, State},
    http::header::AUTHORIZATION,
    middleware::Next,
    response::Response,
};
use bytes::Bytes;
use kith_types::ErrorCode;
use std::sync::Arc;
use tonic::{Status, service::Routes};

/// The length of the prefix of a gRPC message: a byte that says whether it is compressed, and the length.
const PREFIX_BYTES: usize = 5;
/// The scheme of the header; it is case-insensitive (RFC 7235).
const BEARER: &str = "bearer";

/// Wraps routes so that every request passes the gate.
pub(crate) fn behind(routes: Routes, gate: Arc<Gate>) -> Routes {
    let router = routes.into_axum_router();
    Routes::from(router.layer(axum::middleware::from_fn_with_state(gate, check)))
}

async fn check(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response {
    match admit(&gate, request).await {
        Ok(request) => next.run(request).await,
        Err(status) => status.into_http(),
    }
}

async fn admit(gate: &Gate, mut request: Request) -> Result<Request, Status> {
    let caller = caller(gate, &request)?;
    let method = request.uri().path().to_owned();
    let subject = match rights::rule(&method) {
        Rule::Open if caller.identity != CallerIdentity::Plain => return Ok(request),
        Rule::Open => gate.admit(&caller, &Need::Known, &method)?,
        Rule::Always(need) => gate.admit(&caller, &need, &method)?,
        Rule::OfMessage(need) => {
            // An unauthenticated caller must not make this process hold a message.
            gate.admit(&caller, &Need::Known, &method)?;
            known(&request);
            let (head, body) = request.into_parts();
            let body = whole(body).await?;
            let subject = gate.admit(&caller, &need(message(&body)?)?, &method)?;
            let named = match rights::names_subject(&method) {
                true => rights::with_subject(message(&body)?, subject.as_ref()),
                false => None,
            };
            let body = named.map_or(body, |message| one_message(&message));
            request = Request::from_parts(head, Body::from(body));
            subject
        }
    };
    known(&request);
    if let Some(subject) = subject {
        request.extensions_mut().insert::<CallingSubject>(subject);
    }
    Ok(request)
}

/// Marks the peer that sent this request as authenticated.
fn known(request: &Request) {
    if let Some(peer) = request.extensions().get::<CallerConnection>() {
        peer.connected.is_known_now();
    }
}

/// The caller, identified by the token of the request, or else by the certificate of the connection.
fn caller(gate: &Gate, request: &Request) -> Result<Caller, Status> {
    let peer = request.extensions().get::<CallerConnection>();
    let connection = peer.and_then(|peer| peer.caller.clone()).unwrap_or(Caller::new(CallerIdentity::Plain));
    let connection = connection.at(peer.and_then(|peer| peer.addr));
    let Some(header) = request.headers().get(AUTHORIZATION) else { return Ok(connection) };
    if connection.identity == CallerIdentity::Plain {
        return Ok(connection);
    }
    let token = header.to_str().ok().and_then(bearer_token).ok_or_else(|| {
        let message = "the header `authorization` holds no bearer token";
        kith_wire::status(ErrorCode::Unauthenticated, message, "write it as `Bearer TOKEN`")
    })?;
    Ok(gate.bearer(token.as_bytes(), &connection))
}

fn bearer_token(header: &str) -> Option<&str> {
    let (scheme, token) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case(BEARER).then_some(token)
}

async fn whole(body: Body) -> Result<Bytes, Status> {
    to_bytes(body, kith_wire::REQUEST_BYTES_MAX + PREFIX_BYTES).await.map_err(|error| {
        if let Some(status) = refusal(&error) {
            return status;
        }
        let message = format!("the request's message cannot be read: {error}");
        kith_wire::status(ErrorCode::BadRequest, message, "ask for less at once")
    })
}

/// The status with which the body of a request failed while it arrived, if there is one.
fn refusal(error: &axum::Error) -> Option<Status> {
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        if let Some(status) = error.downcast_ref::<Status>() {
            return Some(status.clone());
        }
        source = error.source();
    }
    None
}

/// A request with one message.
fn one_message(message: &[u8]) -> Bytes {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&[0][..], &length, message].concat().into()
}

/// The one message of a request.
fn message(body: &[u8]) -> Result<&[u8], Status> {
    let bad = |what: &str| {
        let help = "use a client of this release";
        kith_wire::status(ErrorCode::BadRequest, what, help)
    };
    let (prefix, rest) =
        body.split_first_chunk::<PREFIX_BYTES>().ok_or_else(|| bad("a request without a message"))?;
    let [compressed, length @ ..] = *prefix;
    if compressed != 0 {
        return Err(bad("a compressed message without the header `grpc-encoding`"));
    }
    // There must be exactly one message: the method would read only the first and ignore the rest.
    match usize::try_from(u32::from_be_bytes(length)) {
        Ok(length) if length == rest.len() => Ok(rest),
        _ => Err(bad("a request that is not one message")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheme_of_a_token_may_be_in_any_case() {
        for header in ["Bearer t0ken", "bearer t0ken", "BEARER t0ken"] {
            assert_eq!(bearer_token(header), Some("t0ken"), "{header}");
        }
        for header in ["Bearer", "Basic t0ken", "Bearert0ken", "t0ken", ""] {
            assert_eq!(bearer_token(header), None, "{header}");
        }
    }

    #[test]
    fn a_request_is_one_message_and_nothing_else() {
        assert_eq!(message(&[0, 0, 0, 0, 2, 7, 8]).unwrap(), [7, 8]);
        assert_eq!(one_message(&[7, 8]), [0, 0, 0, 0, 2, 7, 8][..]);
        assert!(message(&[0, 0, 0, 0, 0]).unwrap().is_empty());
        for bad in [&[][..], &[0, 0, 0], &[1, 0, 0, 0, 1, 7], &[0, 0, 0, 0, 2, 7], &[0, 0, 0, 0, 1, 7, 8]] {
            assert!(message(bad).is_err(), "{bad:?}");
        }
    }
}
