//! The operation and the flags of a frame.

use strum::IntoStaticStr;

/// The operation of a frame. The number of an operation that is removed is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[repr(u8)]
pub enum Op {
    /// `EvaluateRequest`, answered by one or several `EvaluateReply`. Served by nodes.
    Evaluate = 1,
    /// `PingRequest`, answered by `PingReply`. Served by nodes.
    Ping = 2,
    /// `QueryRequest`, answered by one or several `QueryReply`. Served by routers.
    Query = 3,
    /// Cancels the request with this id. The frame has no body and no reply.
    Cancel = 4,
    /// Grants credit to the reply with this id. The body is a `u32`, the number of bytes; there is no reply.
    Credit = 5,
    /// Asks whether the peer is alive. Neither the request nor the reply, which the connection itself sends, has a
    /// body.
    Alive = 6,
    /// `MultiGetRequest`, answered by `MultiGetReply`. Served by routers.
    MultiGet = 7,
    /// `ComputeRequest`, answered by `ComputeReply`. Served by routers.
    Compute = 8,
    /// `AggregateRequest`, answered by `AggregateReply`. Served by routers.
    Aggregate = 9,
    /// `MultiGetRequest`, answered by several `MultiGetPiece`. Always credited; served by routers.
    MultiGetStream = 10,
    /// `ComputeRequest`, answered by several `MultiGetPiece`. Always credited; served by routers.
    ComputeStream = 11,
    /// `GraphWriteRequest`, answered by `GraphWriteReply`. Served by routers and nodes.
    Write = 12,
    /// `DeliverRequest`, answered by `DeliverReply`. Served by nodes.
    Deliver = 13,
    /// `DatabaseRequest`, answered by `DatabaseReply`. Database processes serve it.
    Database = 14,
    /// The caller's bearer token. The answer has no body. A client sends it before the first request of a connection
    /// over TLS.
    Identify = 32,
    /// Asks for shared memory. The connection itself answers with an [`Offer`](super::Offer), on local connections
    /// only.
    Share = 33,
    /// Returns slots of shared memory ([`encode_slots`](super::encode_slots)) that may be used again. There is no
    /// reply.
    GiveBack = 34,
}

impl Op {
    /// Returns the operation with this number, if this release knows it.
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
            Op::Database,
            Op::Identify,
            Op::Share,
            Op::GiveBack,
        ]
        .into_iter()
        .find(|op| *op as u8 == number)
    }

    /// Returns the name as in metrics and messages, such as `multi_get`.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The flags of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// This is the last piece of the request or reply.
    pub const LAST: Flags = Flags(1);
    /// The body is a `google.rpc.Status`; always with [`Flags::LAST`].
    pub const ERROR: Flags = Flags(2);
    /// A trace id of 16 bytes precedes the body.
    pub const TRACE: Flags = Flags(4);
    /// In a request: the reply may consist of several messages, under flow control by credit
    /// ([`CREDIT_BYTES`](super::CREDIT_BYTES)).
    pub const CREDITED: Flags = Flags(8);
    /// The message continues in the next frame with this id. Its body is the concatenation of the bodies of these
    /// frames. This flag is never set with [`Flags::LAST`].
    pub const PART: Flags = Flags(16);
    /// In a request: bodies of the reply may lie in the offered shared memory. In a reply: the body lies there, and the
    /// frame has its [`SlotPlace`](super::SlotPlace) instead.
    pub const SHARED: Flags = Flags(32);

    /// Whether all of `others` are set.
    pub fn has(self, others: Flags) -> bool {
        self.0 & others.0 == others.0
    }

    /// Returns the union of both sets of flags.
    pub const fn with(self, others: Flags) -> Flags {
        Flags(self.0 | others.0)
    }
}
