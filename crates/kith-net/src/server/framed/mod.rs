//! The framed protocol, server side. It decides nothing: the same functions answer as over gRPC.
//! How it behaves: `docs/design/0004-framed-path.md`.

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

/// What answers requests that come in frames.
///
/// Contract: the future is polled first on the connection's own task, where it holds up the requests behind it: work
/// that takes longer than handing it over belongs on another thread. Dropping it abandons the request.
pub trait FrameService: Send + Sync + 'static {
    /// Answers one request.
    fn call(self: Arc<Self>, op: Op, body: Bytes) -> BoxFuture<'static, Result<Reply, Status>>;

    /// Answers one that is the only one of its connection: what is worked on piece by piece may be worked on where the pieces are polled.
    fn call_alone(self: Arc<Self>, op: Op, body: Bytes) -> BoxFuture<'static, Result<Reply, Status>> {
        self.call(op, body)
    }

    /// Answers one whose reply may come in several messages; it need not.
    fn call_credited(self: Arc<Self>, op: Op, body: Bytes) -> BoxFuture<'static, Result<Reply, Status>> {
        self.call(op, body)
    }

    /// Takes the caller's token; what they are answered by from now on, if that is another. Tokens are of no interest unless a service
    /// says so.
    ///
    /// # Errors
    /// `unauthenticated`: nobody knows the token.
    fn identify(self: Arc<Self>, _token: &[u8]) -> Result<Option<Arc<dyn FrameService>>, Status> {
        Ok(None)
    }

    /// What answers whoever has shown a token that nobody knows; `None`: who they are does not matter.
    fn of_nobody(self: Arc<Self>) -> Option<Arc<dyn FrameService>> {
        None
    }
}

/// An encoded message, in slices that follow each other: what stands before values, these where they were gathered, and what stands behind.
pub type Encoded = [Bytes; 3];

/// What a request is answered with.
pub enum Reply {
    /// To [`Op::Evaluate`].
    Evaluate(v1::EvaluateReply),
    /// The same, encoded already.
    Encoded(Encoded),
    /// To [`Op::Ping`].
    Ping(v1::PingReply),
    /// To [`Op::Query`]: at least one piece. Each is encoded when the one before is nearly sent.
    Query(vec::IntoIter<v1::QueryReply>),
    /// To [`Op::MultiGet`].
    MultiGet(v1::MultiGetReply),
    /// To [`Op::Compute`].
    Compute(v1::ComputeReply),
    /// To [`Op::Aggregate`].
    Aggregate(v1::AggregateReply),
    /// To [`Op::Write`].
    Write(v1::GraphWriteReply),
    /// To [`Op::Deliver`].
    Deliver(v1::DeliverReply),
    /// To any request that is credited; to others the parts of one message.
    Pieces(Pieces),
}

impl Reply {
    /// How long it is once it is encoded, as far as it is there.
    fn bytes(&self) -> usize {
        match self {
            Reply::Evaluate(reply) => reply.encoded_len(),
            Reply::Encoded(body) => body.iter().map(Bytes::len).sum(),
            Reply::Ping(reply) => reply.encoded_len(),
            Reply::Query(pieces) => pieces.as_slice().iter().map(Message::encoded_len).sum(),
            Reply::MultiGet(reply) => reply.encoded_len(),
            Reply::Compute(reply) => reply.encoded_len(),
            Reply::Aggregate(reply) => reply.encoded_len(),
            Reply::Write(reply) => reply.encoded_len(),
            Reply::Deliver(reply) => reply.encoded_len(),
            Reply::Pieces(_) => 0,
        }
    }
}

/// A body as the message that it should be.
///
/// # Errors
/// `bad_request` if it is none: the connection goes on.
pub fn request<M: Message + Default>(body: Bytes) -> Result<M, Status> {
    M::decode(body).map_err(|error| {
        let message = format!("the request's body cannot be read: {error}");
        kith_wire::status(ErrorCode::BadRequest, message, "use a client of this release")
    })
}

/// The answer to an operation that is not served here.
pub fn unsupported(op: &str) -> Status {
    let message = format!("this process does not serve the framed operation {op}");
    let help = "routers serve `query`, `multi_get`, `multi_get_stream`, `compute`, `compute_stream`, `aggregate` and `write`, nodes `evaluate`, `ping`, `write` and `deliver`; a newer operation needs a newer release";
    kith_wire::status(ErrorCode::UnsupportedOperation, message, help)
}

fn unsupported_frame(frame: &Frame) -> Status {
    match Op::from_number(frame.header.op) {
        Some(op) => unsupported(op.name()),
        None => unsupported(&frame.header.op.to_string()),
    }
}
