//! What a frame asks for, and what it is besides.

use strum::IntoStaticStr;

/// What a frame asks for. Its number on the wire is an `u8` that is never used again for another meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[repr(u8)]
pub enum Op {
    /// `EvaluateRequest`, answered by `EvaluateReply`: node.
    Evaluate = 1,
    /// `PingRequest`, answered by `PingReply`: node.
    Ping = 2,
    /// `QueryRequest`, answered by one or several `QueryReply`: router.
    Query = 3,
    /// No body, no answer: the request of this id is not wanted any more.
    Cancel = 4,
    /// A `u32`: so many more bytes of the reply of this id may come. No answer.
    Credit = 5,
    /// No body, answered by the connection itself, without a body: is somebody there?
    Alive = 6,
    /// `MultiGetRequest`, answered by `MultiGetReply`: router.
    MultiGet = 7,
    /// `ComputeRequest`, answered by `ComputeReply`: router.
    Compute = 8,
    /// `AggregateRequest`, answered by `AggregateReply`: router.
    Aggregate = 9,
    /// `MultiGetRequest`, answered by several `MultiGetPiece`; always credited: router.
    MultiGetStream = 10,
    /// `ComputeRequest`, answered by several `MultiGetPiece`; always credited: router.
    ComputeStream = 11,
    /// `GraphWriteRequest`, answered by `GraphWriteReply`: router, node.
    Write = 12,
    /// `DeliverRequest`, answered by `DeliverReply`: node.
    Deliver = 13,
    /// The caller's bearer token, answered without a body: before its first request, of connections over TLS.
    Identify = 32,
    /// No body, answered by the connection itself with an [`Offer`](super::Offer) of memory: of local connections.
    Share = 33,
    /// Slots of that memory that may be used again ([`encode_slots`](super::encode_slots)). No answer.
    GiveBack = 34,
}

impl Op {
    /// The operation of that number.
    pub fn from_number(number: u8) -> Option<Self> {
        [
            Op::Evaluate,
            Op::Ping,
            Op::Query,
            Op::Cancel,
            Op::Credit,
            Op::Alive,
            Op::MultiGet,
            Op::Compute,
            Op::Aggregate,
            Op::MultiGetStream,
            Op::ComputeStream,
            Op::Write,
            Op::Deliver,
            Op::Identify,
            Op::Share,
            Op::GiveBack,
        ]
        .into_iter()
        .find(|op| *op as u8 == number)
    }

    /// As in metrics and messages.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// What a frame is besides its operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// No piece of this request or reply follows.
    pub const LAST: Flags = Flags(1);
    /// The body is a `google.rpc.Status`; always with [`Flags::LAST`].
    pub const ERROR: Flags = Flags(2);
    /// A trace id of 16 bytes stands between the header and the body.
    pub const TRACE: Flags = Flags(4);
    /// Of a request: its reply may come in several messages, as credit is given for them ([`CREDIT_BYTES`](super::CREDIT_BYTES)).
    pub const CREDITED: Flags = Flags(8);
    /// The message goes on in the next frame of this id: its body is theirs put together. Never with [`Flags::LAST`].
    pub const PART: Flags = Flags(16);
    /// Of a request: bodies of its reply may lie in the memory that was offered. Of a reply: this one does, at the [`SlotPlace`](super::SlotPlace) that follows.
    pub const SHARED: Flags = Flags(32);

    /// Whether all of `others` are set.
    pub fn has(self, others: Flags) -> bool {
        self.0 & others.0 == others.0
    }

    /// Both.
    pub const fn with(self, others: Flags) -> Flags {
        Flags(self.0 | others.0)
    }
}
