//! The server side of the framed protocol. It makes no decisions about requests: the same functions answer them as over
//! gRPC. `docs/design/0004-framed-path.md` describes its behaviour.

mod connection;
mod expands;
mod inbox;
mod outbox;
mod refusals;
mod running;
mod streams;

pub(crate) use connection::serve;
pub use streams::{End, Piece, Pieces};

use bytes::Bytes;
use futures::future::BoxFuture;
use kith_types::ErrorCode;
use kith_wire::{
    Message,
    frame::{Frame, Op},
    v1,
};
use std::{sync::Arc, vec};
use tonic::Status;

/// Answers requests that arrive in frames.
///
/// Contract: the future is first polled on the connection's own task, where it delays the requests behind it. Work that
/// takes longer than passing it on belongs on another thread. Dropping the future abandons the request.
pub trait FrameService: Send + Sync + 'static {
    /// Answers a request.
    fn call(self: Arc<Self>, op: Op, body: Bytes) -> BoxFuture<'static, Result<FrameReply, Status>>;

    /// Answers a request that is alone on its connection. If its reply is computed piece by piece, the pieces may be
    /// computed where they are polled.
    fn call_alone(self: Arc<Self>, op: Op, body: Bytes) -> BoxFuture<'static, Result<FrameReply, Status>> {
        self.call(op, body)
    }

    /// Answers a request whose reply may, but need not, come in several messages.
    fn call_credited(self: Arc<Self>, op: Op, body: Bytes) -> BoxFuture<'static, Result<FrameReply, Status>> {
        self.call(op, body)
    }

    /// Checks the caller's token. Returns the service that answers the caller from now on, if it is another one. The
    /// default ignores tokens.
    ///
    /// # Errors
    /// `unauthenticated` if the token is unknown.
    fn identify(self: Arc<Self>, _token: &[u8]) -> Result<Option<Arc<dyn FrameService>>, Status> {
        Ok(None)
    }

    /// Returns the service that answers a caller who has sent an unknown token. `None` if callers are not authenticated.
    fn of_nobody(self: Arc<Self>) -> Option<Arc<dyn FrameService>> {
        None
    }
}

/// An encoded message as consecutive slices: the bytes before the values, the values where they were collected, and the
/// bytes after them.
pub type EncodedMessage = [Bytes; 3];

/// The reply to a request.
pub enum FrameReply {
    /// The reply to [`Op::Evaluate`].
    Evaluate(v1::EvaluateReply),
    /// The reply to [`Op::Evaluate`], already encoded.
    Encoded(EncodedMessage),
    /// The reply to [`Op::Ping`].
    Ping(v1::PingReply),
    /// The reply to [`Op::Query`], with at least one piece. A piece is encoded when the one before it is nearly sent.
    Query(vec::IntoIter<v1::QueryReply>),
    /// The reply to [`Op::MultiGet`].
    MultiGet(v1::MultiGetReply),
    /// The reply to [`Op::Compute`].
    Compute(v1::ComputeReply),
    /// The reply to [`Op::Aggregate`].
    Aggregate(v1::AggregateReply),
    /// The reply to [`Op::Write`].
    Write(v1::GraphWriteReply),
    /// The reply to [`Op::Deliver`].
    Deliver(v1::DeliverReply),
    /// The reply to [`Op::Database`].
    Database(v1::DatabaseReply),
    /// The reply to any request with credit, in several messages; or a reply to another request, whose pieces are parts of
    /// one message.
    Pieces(Pieces),
}

impl FrameReply {
    /// The encoded length of the reply; zero for pieces, which do not exist yet.
    fn bytes(&self) -> usize {
        match self {
            FrameReply::Evaluate(reply) => reply.encoded_len(),
            FrameReply::Encoded(body) => body.iter().map(Bytes::len).sum(),
            FrameReply::Ping(reply) => reply.encoded_len(),
            FrameReply::Query(pieces) => pieces.as_slice().iter().map(Message::encoded_len).sum(),
            FrameReply::MultiGet(reply) => reply.encoded_len(),
            FrameReply::Compute(reply) => reply.encoded_len(),
            FrameReply::Aggregate(reply) => reply.encoded_len(),
            FrameReply::Write(reply) => reply.encoded_len(),
            FrameReply::Deliver(reply) => reply.encoded_len(),
            FrameReply::Database(reply) => reply.encoded_len(),
            FrameReply::Pieces(_) => 0,
        }
    }
}

/// Decodes the body of a request.
///
/// # Errors
/// `bad_request` if the body is not such a message; the connection remains usable.
pub fn request<M: Message + Default>(body: Bytes) -> Result<M, Status> {
    M::decode(body).map_err(|error| {
        let message = format!("the request's body cannot be read: {error}");
        kith_wire::status(ErrorCode::BadRequest, message, "use a client of this release")
    })
}

/// Returns the error for an operation that this process does not serve.
pub fn unsupported(op: &str) -> Status {
    let message = format!("this process does not serve the framed operation {op}");
    let help = "routers serve `query`, `multi_get`, `multi_get_stream`, `compute`, `compute_stream`, `aggregate` and `write`, nodes `evaluate`, `ping`, `write` and `deliver`, database processes `database`; a newer operation needs a newer release";
    kith_wire::status(ErrorCode::UnsupportedOperation, message, help)
}

fn unsupported_frame(frame: &Frame) -> Status {
    match Op::from_number(frame.header.op) {
        Some(op) => unsupported(op.name()),
        None => unsupported(&frame.header.op.to_string()),
    }
}
