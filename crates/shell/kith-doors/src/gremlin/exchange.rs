//! A traversal in an HTTP request of its own, and its answer.

use super::{
    REQUEST_BYTES_MAX, answer,
    failure::{failure, no_memory, of_gremlin},
    inlet,
    question::GraphQuestion,
    results::{self, Form},
};
use crate::DoorCaller;
use bytes::Bytes;
use futures::stream;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use hyper::Response as HttpResponse;
use hyper::{
    Method, Request, StatusCode,
    body::Incoming,
    header::{self, HeaderValue},
};
use kith_gremlin::{
    GremlinError, Room,
    message::{self, Operation, Response, Serializer, Status, http},
    value::Value,
};
use kith_net::{
    Charge, aside, give_way, in_turns,
    server::connections::{Arrival, UNCHARGED_BYTES},
};
use kith_query::{GremlinAnswer, QueryError, QueryOptions};
use kith_types::ErrorCode;
use std::{convert::Infallible, mem, time::Instant, vec};
use uuid::Uuid;

/// The results of an answer are coded, charged and sent in pieces of about this size.
const PIECE_BYTES: usize = 64 << 10;
/// The demand for credentials.
const CHALLENGE: HeaderValue = HeaderValue::from_static("Basic realm=\"kith\", charset=\"UTF-8\"");

/// The body of a response: bytes that are known, some of which are charged until they are sent.
pub(super) type Body = StreamBody<stream::Iter<vec::IntoIter<Result<Frame<Bytes>, Infallible>>>>;

/// The media type of an answer, and how it is coded.
type Coding = (&'static str, Serializer);

/// The consequence of a request.
pub(super) enum ExchangeReply {
    Answer(HttpResponse<Body>),
    /// The request contains no traversal.
    NothingAsked,
}

/// Why a request is not answered with results.
enum Failed {
    Query(QueryError),
    /// The whole request was not read, so the connection cannot go on.
    Unread(StatusCode, QueryError),
}

impl From<QueryError> for Failed {
    fn from(error: QueryError) -> Self {
        Self::Query(error)
    }
}

impl From<GremlinError> for Failed {
    fn from(error: GremlinError) -> Self {
        Self::Query(of_gremlin(error))
    }
}

/// A body of these pieces.
pub(super) fn body(pieces: Vec<Bytes>) -> Body {
    let frames: Vec<_> = pieces.into_iter().map(|piece| Ok(Frame::data(piece))).collect();
    StreamBody::new(stream::iter(frames))
}

/// A response whose body has these pieces.
pub(super) fn response(
    status: StatusCode,
    media_type: &'static str,
    pieces: Vec<Bytes>,
) -> HttpResponse<Body> {
    let length: usize = pieces.iter().map(Bytes::len).sum();
    let mut response = HttpResponse::new(body(pieces));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    response
}

/// Answers a request of `caller`, which may have credentials of its own.
pub(super) async fn answer(caller: &DoorCaller, request: Request<Incoming>) -> ExchangeReply {
    let id = uuid::Builder::from_random_bytes(rand::random()).into_uuid();
    let mut caller = caller.clone();
    let text = |name| request.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let accepted = http::accepted(text(header::ACCEPT), text(header::CONTENT_TYPE));
    let coding = accepted.unwrap_or(http::DEFAULT);
    let share = caller.connected().share().clone();
    match share.scope(answered(&mut caller, id, request, accepted)).await {
        Ok(Some(response)) => ExchangeReply::Answer(response),
        Ok(None) => ExchangeReply::NothingAsked,
        Err(Failed::Query(error)) => ExchangeReply::Answer(failed(id, &error, None, coding)),
        Err(Failed::Unread(status, error)) => {
            let mut response = failed(id, &error, Some(status), coding);
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            ExchangeReply::Answer(response)
        }
    }
}

async fn answered(
    caller: &mut DoorCaller,
    id: Uuid,
    request: Request<Incoming>,
    accepted: Option<Coding>,
) -> Result<Option<HttpResponse<Body>>, Failed> {
    let text = |name| request.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let Some(coding) = accepted else {
        let accept = text(header::ACCEPT).unwrap_or_default();
        let detail =
            format!("answers are application/json, which the header accept ({accept:.100?}) excludes");
        return Err(QueryError::BadRequest { detail }.into());
    };
    if request.method() == Method::GET && request.uri().query().is_none() {
        return Ok(None);
    }
    introduce(caller, text(header::AUTHORIZATION))?;
    let (is_get, body, room) = match *request.method() {
        Method::GET => {
            let query = request.uri().query().unwrap_or_default().to_owned().into_bytes();
            let room = inlet::room(caller.connected().charge(), query.len());
            (true, query, room)
        }
        _ => {
            let (body, charge) = whole(caller, request.into_body()).await?;
            let room = inlet::room(charge, body.len());
            (false, body, room)
        }
    };
    if body.is_empty() {
        return Ok(None);
    }
    let received = Instant::now();
    let decoding = aside(body.len(), move || decoded(&body, is_get, id, room));
    let Some((asking, _room)) = in_turns(decoding).await? else {
        return Ok(None);
    };
    results(caller, asking, received, coding).await.map(Some).map_err(Failed::Query)
}

/// A request that was decoded.
struct Asking {
    id: Uuid,
    asked: GraphQuestion,
    is_get: bool,
}

/// The question of a body, or of the query of an address, and the room that it takes. `None` if it asks nothing.
fn decoded(
    body: &[u8],
    is_get: bool,
    id: Uuid,
    mut room: Room,
) -> Result<Option<(Asking, Room)>, QueryError> {
    let request = match is_get {
        true => http::decode_query(&String::from_utf8_lossy(body), id),
        false => http::decode_http(body, id, &mut room).map(Some),
    };
    let Some(message::Request { id, operation, options }) = request.map_err(of_gremlin)? else {
        return Ok(None);
    };
    if let Operation::Authentication(_) = operation {
        return Err(QueryError::BadRequest { detail: "credentials belong in a header".to_owned() });
    }
    let asked = GraphQuestion::new(operation, &options, &mut room)?;
    Ok(Some((Asking { id, asked, is_get }, room)))
}

/// Gives the peer the identity that the request shows, or else that of its connection.
fn introduce(caller: &mut DoorCaller, header: Option<&str>) -> Result<(), QueryError> {
    caller.forget_token();
    let shown = header.map(|header| http::credentials_of_header(header).ok_or(()));
    match shown {
        None => {}
        Some(Err(())) => {
            let help = "send the token as a password (Basic) or as it is (Bearer)".to_owned();
            let message = "the header authorization cannot be read".to_owned();
            return Err(QueryError::Remote { code: ErrorCode::Unauthenticated, message, help });
        }
        Some(Ok(credentials)) => match caller.authenticate(credentials.password.as_bytes()) {
            // Clients that were given credentials send them also where nobody asks for them.
            Err(error) if error.code() == ErrorCode::BadRequest && caller.rights().is_known() => {}
            other => other?,
        },
    }
    if caller.rights().is_known() {
        return Ok(());
    }
    Err(QueryError::Remote {
        code: ErrorCode::Unauthenticated,
        message: "the request shows no token".to_owned(),
        help: "send the token as a password (Basic) or as it is (Bearer)".to_owned(),
    })
}

/// Reads a body, which is charged as it arrives.
async fn whole(caller: &DoorCaller, mut body: Incoming) -> Result<(Vec<u8>, Charge), Failed> {
    let mut arrival = Arrival::new(caller.connected());
    let mut bytes = Vec::new();
    loop {
        let frame = tokio::select! {
            biased;
            frame = body.frame() => frame,
            () = arrival.is_too_slow() => {
                let (message, help) = ("the request did not arrive in time".to_owned(), String::new());
                let error = QueryError::Remote { code: ErrorCode::SlowRequest, message, help };
                return Err(Failed::Unread(StatusCode::REQUEST_TIMEOUT, error));
            }
        };
        let Some(frame) = frame else { break };
        let frame = frame.map_err(|error| {
            let detail = format!("the body of the request is not complete: {error}");
            Failed::Unread(StatusCode::BAD_REQUEST, QueryError::BadRequest { detail })
        })?;
        // Trailers are no data.
        let data = frame.into_data().unwrap_or_default();
        arrival.received(data.len());
        let length = bytes.len() + data.len();
        if REQUEST_BYTES_MAX < length {
            let error = QueryError::Remote {
                code: ErrorCode::TooLarge,
                message: format!("the request has more than {REQUEST_BYTES_MAX} bytes"),
                help: "send less at once".to_owned(),
            };
            return Err(Failed::Unread(StatusCode::PAYLOAD_TOO_LARGE, error));
        }
        // The buffer grows by doubling.
        if UNCHARGED_BYTES < length && !arrival.pay(2 * length) {
            return Err(Failed::Unread(StatusCode::SERVICE_UNAVAILABLE, no_memory()));
        }
        bytes.extend_from_slice(&data);
    }
    Ok((bytes, arrival.take_charge()))
}

/// Evaluates the traversal.
async fn results(
    caller: &DoorCaller,
    asking: Asking,
    received: Instant,
    (media_type, serializer): Coding,
) -> Result<HttpResponse<Body>, QueryError> {
    let _under_way = caller.connected().request();
    let Asking { id, asked, is_get } = asking;
    if is_get && asked.query.writes {
        let detail = "a traversal in the address of a GET may not change a graph; send it with POST";
        return Err(QueryError::BadRequest { detail: detail.to_owned() });
    }
    let deadline = asked.options.deadline.map(|deadline| deadline.saturating_sub(received.elapsed()));
    let reply = caller.call(asked.question(), QueryOptions { deadline, ..asked.options.clone() }).await?;
    let answer = answer::of_traversal(&reply)?;
    let pieces = in_turns(encoded(caller, id, answer, (asked.form, serializer)))
        .await
        .map_err(|error| if answer.wrote { QueryError::results_lost(error) } else { error })?;
    Ok(response(StatusCode::OK, media_type, pieces))
}

/// The body of an answer. Its pieces are charged until they are sent. Others have their turn after each of them.
async fn encoded(
    caller: &DoorCaller,
    id: Uuid,
    answer: &GremlinAnswer,
    (form, serializer): (Form, Serializer),
) -> Result<Vec<Bytes>, QueryError> {
    let success = Response { status: Status::Success, ..answer::last(id, answer, Vec::new()) };
    let (head, tail) = http::encode_around(&success, serializer).map_err(of_gremlin)?;
    let mut pieces = Vec::new();
    let mut piece = head;
    let mut plain = 0;
    for (at, value) in results::values(&answer.results, form, &mut plain)?.enumerate() {
        let (value, _): (Value, usize) = value?;
        if 0 < at {
            piece.push(b',');
        }
        piece.extend(http::encode_result(&value, serializer).map_err(of_gremlin)?);
        if PIECE_BYTES <= piece.len() {
            pieces.push(charged(caller, mem::take(&mut piece))?);
            give_way().await;
        }
    }
    piece.extend(tail);
    pieces.push(charged(caller, piece)?);
    Ok(pieces)
}

/// Bytes of an answer, which are charged until they are sent.
fn charged(caller: &DoorCaller, bytes: Vec<u8>) -> Result<Bytes, QueryError> {
    let charge = caller.connected().charge_reply(bytes.len());
    let charge = charge.map_err(|status| QueryError::from_status(&status))?;
    Ok(charge.pay_for(bytes.into()))
}

/// The answer to a request that failed.
fn failed(
    id: Uuid,
    error: &QueryError,
    status: Option<StatusCode>,
    (media_type, serializer): Coding,
) -> HttpResponse<Body> {
    let failure = failure(Some(id), error);
    let status = status.unwrap_or(match failure.status {
        Status::Unauthorized => StatusCode::UNAUTHORIZED,
        Status::Forbidden => StatusCode::FORBIDDEN,
        Status::MalformedRequest | Status::InvalidArguments => StatusCode::BAD_REQUEST,
        Status::Temporary => StatusCode::SERVICE_UNAVAILABLE,
        Status::Timeout => StatusCode::GATEWAY_TIMEOUT,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    });
    let text = http::encode_failure(&failure, serializer).unwrap_or_default();
    let mut response = response(status, media_type, vec![text.into()]);
    if status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, CHALLENGE);
    }
    response
}
