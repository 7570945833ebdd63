//! The framed protocol: the same bodies as gRPC, without HTTP/2 around them.
//! Drawn byte by byte in `docs/formats/framed-protocol.md`.
//!
//! Pure: bytes in, frames out. Sockets are in `kith-net`. It adds speed and no feature: whatever
//! travels in frames can be asked over gRPC.

mod preface;
mod shared;
#[cfg(test)]
mod tests;

pub use preface::{PREFACE_BYTES, Preface, PrefaceError, VERSION};
pub use shared::{Offer, Place, decode_slots, encode_slots};

use crate::MESSAGE_BYTES_MAX;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use prost::Message;
use strum::IntoStaticStr;
use thiserror::Error;
use tonic::Status;

/// Bytes before a frame's optional trace id and its body: the length and what has a fixed width.
pub const HEADER_BYTES: usize = LENGTH_BYTES + FIXED_BYTES;
const LENGTH_BYTES: usize = 4;
/// Id, operation, flags, tenant, deadline.
const FIXED_BYTES: usize = 8 + 1 + 1 + 2 + 4;
const TRACE_BYTES: usize = 16;
/// Where the flags stand: behind length, id and operation.
const FLAGS_AT: usize = LENGTH_BYTES + 8 + 1;
/// What a credited request begins with: so many bytes of messages may come before more credit does. The next message is
/// sent while any of it is left, whatever its size. What a link of 10 Gbit/s carries in a millisecond.
pub const CREDIT_BYTES: u32 = 1 << 20;

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
    /// The caller's bearer token, answered without a body: before its first request, of connections over TLS.
    Identify = 32,
    /// No body, answered by the connection itself with an [`Offer`] of memory: of local connections.
    Share = 33,
    /// Slots of that memory that may be used again ([`encode_slots`]). No answer.
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
    /// Of a request: its reply may come in several messages, as credit is given for them ([`CREDIT_BYTES`]).
    pub const CREDITED: Flags = Flags(8);
    /// The message goes on in the next frame of this id: its body is theirs put together. Never with [`Flags::LAST`].
    pub const PART: Flags = Flags(16);
    /// Of a request: bodies of its reply may lie in the memory that was offered. Of a reply: this one does, at the [`Place`] that follows.
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

/// What stands before a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Chosen by the client, distinct among its requests under way; a reply has its request's. 0 is the connection's own.
    pub id: u64,
    /// The number of an [`Op`], of this release or a later one.
    pub op: u8,
    /// What it is.
    pub flags: Flags,
    /// Reserved; 0.
    pub tenant: u16,
    /// Microseconds that the request may take from now; 0 says nothing.
    pub deadline_us: u32,
    /// Of the trace that it belongs to.
    pub trace: Option<[u8; TRACE_BYTES]>,
}

impl Header {
    /// A whole request, without a deadline or trace.
    pub fn request(id: u64, op: Op) -> Self {
        Self { id, op: op as u8, flags: Flags::LAST, tenant: 0, deadline_us: 0, trace: None }
    }

    /// The same request, its reply as credit is given for it.
    pub fn credited(self) -> Self {
        Self { flags: self.flags.with(Flags::CREDITED), ..self }
    }

    /// Appends the frame that gives the reply of `id` credit for so many bytes more.
    pub fn encode_credit(id: u64, bytes: u32, out: &mut BytesMut) {
        let header = Self::request(id, Op::Credit);
        header.encode_bytes(&bytes.to_le_bytes(), out).expect("four bytes are no long message");
    }

    /// The header of a reply to this; `flags` say whether it is the last piece.
    pub fn reply(&self, flags: Flags) -> Self {
        Self { flags, deadline_us: 0, trace: None, ..*self }
    }

    /// An error that concerns the whole connection, which is closed after it.
    pub fn of_connection() -> Self {
        let flags = Flags::LAST.with(Flags::ERROR);
        Self { id: 0, op: 0, flags, tenant: 0, deadline_us: 0, trace: None }
    }

    /// Appends the frame with `body` to `out`.
    ///
    /// # Errors
    /// [`FrameError::TooLong`]; `out` is as before then.
    pub fn encode(&self, body: &impl Message, out: &mut BytesMut) -> Result<(), FrameError> {
        self.start(body.encoded_len(), out)?;
        body.encode(out).expect("a growing buffer has room");
        Ok(())
    }

    /// Appends the frame with a body that is encoded already.
    ///
    /// # Errors
    /// [`FrameError::TooLong`]; `out` is as before then.
    pub fn encode_bytes(&self, body: &[u8], out: &mut BytesMut) -> Result<(), FrameError> {
        self.start(body.len(), out)?;
        out.put_slice(body);
        Ok(())
    }

    /// The same with a body that lies in slices.
    ///
    /// # Errors
    /// [`FrameError::TooLong`]; `out` is as before then.
    pub fn encode_slices(&self, body: &[Bytes], out: &mut BytesMut) -> Result<(), FrameError> {
        self.start(body.iter().map(Bytes::len).sum(), out)?;
        body.iter().for_each(|slice| out.put_slice(slice));
        Ok(())
    }

    /// Appends an error frame: `status` in the envelope that gRPC errors carry.
    pub fn encode_error(&self, status: &Status, out: &mut BytesMut) {
        let header = Self { flags: Flags::LAST.with(Flags::ERROR), ..*self };
        let body = crate::error::envelope_of(status);
        if header.encode_bytes(&body, out).is_err() {
            // Nobody can read so long a text.
            let short = Status::new(status.code(), "an error too long to be told");
            header.encode_error(&short, out);
        }
    }

    /// Appends all of the frame but its body, which goes out behind it.
    ///
    /// # Errors
    /// [`FrameError::TooLong`]; `out` is as before then.
    pub fn encode_head(&self, body_bytes: usize, out: &mut BytesMut) -> Result<(), FrameError> {
        self.put_head(body_bytes, 0, out)
    }

    /// Takes what has a fixed width, but for the length; its bytes are there.
    fn take(bytes: &mut impl Buf) -> Self {
        Self {
            id: bytes.get_u64_le(),
            op: bytes.get_u8(),
            flags: Flags(bytes.get_u8()),
            tenant: bytes.get_u16_le(),
            deadline_us: bytes.get_u32_le(),
            trace: None,
        }
    }

    /// Reserves room for the whole frame, so that a large body is written once and never moved.
    fn start(&self, body_bytes: usize, out: &mut BytesMut) -> Result<(), FrameError> {
        self.put_head(body_bytes, body_bytes, out)
    }

    fn put_head(&self, body_bytes: usize, room: usize, out: &mut BytesMut) -> Result<(), FrameError> {
        if MESSAGE_BYTES_MAX < body_bytes {
            return Err(FrameError::TooLong {
                bytes: body_bytes as u64,
                bytes_max: MESSAGE_BYTES_MAX as u64,
            });
        }
        let trace_bytes = self.trace.map_or(0, |_| TRACE_BYTES);
        let length = FIXED_BYTES + trace_bytes + body_bytes;
        out.reserve(HEADER_BYTES + trace_bytes + room);
        out.put_u32_le(u32::try_from(length).expect("the longest frame is far below 4 GiB"));
        out.put_u64_le(self.id);
        out.put_u8(self.op);
        let traced = if self.trace.is_some() { Flags::TRACE } else { Flags(0) };
        out.put_u8(self.flags.with(traced).0);
        out.put_u16_le(self.tenant);
        out.put_u32_le(self.deadline_us);
        if let Some(trace) = &self.trace {
            out.put_slice(trace);
        }
        Ok(())
    }
}

/// A frame as it came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What it is.
    pub header: Header,
    /// A slice of the receive buffer, not a copy.
    pub body: Bytes,
}

impl Frame {
    /// The bytes that a credit frame gives; `None` if its body is none.
    pub fn credit(&self) -> Option<u32> {
        Some(u32::from_le_bytes(self.body[..].try_into().ok()?))
    }

    /// The error in the body of an error frame.
    pub fn status(&self) -> Status {
        crate::error::status_of_envelope(&self.body)
    }
}

/// Bytes are no frame; nothing after them can be understood.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum FrameError {
    /// Shorter than its own header.
    #[error("a frame of {bytes} bytes is shorter than its header")]
    TooShort {
        /// What it says of itself.
        bytes: u64,
    },
    /// Longer than its message may be.
    #[error("a frame of {bytes} bytes is longer than {bytes_max}")]
    TooLong {
        /// Its body, of one that is made; of one that came, what it says of itself.
        bytes: u64,
        /// The most that is taken.
        bytes_max: u64,
    },
}

/// A frame that has begun: its header is there, its body not all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    /// What it is.
    pub header: Header,
    /// Bytes of its body, of which those behind the first [`HEADER_BYTES`] have come.
    pub body_bytes: usize,
}

/// The frame that `buffer` begins with, where it is not whole yet; `None` also if it has a trace id or [`decode`] refuses it. O(1).
pub fn begun(buffer: &[u8]) -> Option<Begun> {
    let (mut head, came) = buffer.split_at_checked(HEADER_BYTES)?;
    let body_bytes = (head.get_u32_le() as usize).checked_sub(FIXED_BYTES)?;
    let header = Header::take(&mut head);
    let is_told = came.len() < body_bytes && body_bytes <= MESSAGE_BYTES_MAX;
    (is_told && !header.flags.has(Flags::TRACE)).then_some(Begun { header, body_bytes })
}

/// What a receive buffer begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Incoming {
    /// A whole frame, which was taken off.
    Frame(Frame),
    /// One that is not whole yet.
    Begun {
        /// Without its trace id.
        header: Header,
        /// Of the whole frame.
        bytes: usize,
    },
    /// Not even a header.
    Nothing,
}

/// Takes the first whole frame off `buffer`; `None` if more bytes are needed, for which room is made: of those who are trusted. O(1).
///
/// # Errors
/// [`FrameError`]: the connection cannot go on.
pub fn decode(buffer: &mut BytesMut) -> Result<Option<Frame>, FrameError> {
    match take(buffer, MESSAGE_BYTES_MAX)? {
        Incoming::Frame(frame) => Ok(Some(frame)),
        Incoming::Begun { bytes, .. } => {
            // The rest of a large body then goes to its place at once.
            buffer.reserve(bytes - buffer.len());
            Ok(None)
        }
        Incoming::Nothing => Ok(None),
    }
}

/// Takes the first whole frame off `buffer`, whose body may have so many bytes. Makes no room. O(1).
///
/// # Errors
/// [`FrameError`], as soon as the length is there: the connection cannot go on.
pub fn take(buffer: &mut BytesMut, body_bytes_max: usize) -> Result<Incoming, FrameError> {
    let Some(prefix) = buffer.first_chunk::<LENGTH_BYTES>() else { return Ok(Incoming::Nothing) };
    let length = u32::from_le_bytes(*prefix) as usize;
    if length < FIXED_BYTES {
        return Err(FrameError::TooShort { bytes: length as u64 });
    }
    let longest = FIXED_BYTES + body_bytes_max;
    let too_long =
        |bytes_max: usize| FrameError::TooLong { bytes: length as u64, bytes_max: bytes_max as u64 };
    if longest + TRACE_BYTES < length {
        return Err(too_long(longest + TRACE_BYTES));
    }
    // Only a trace id may take the room of a trace id.
    if longest < length && buffer.get(FLAGS_AT).is_some_and(|flags| !Flags(*flags).has(Flags::TRACE)) {
        return Err(too_long(longest));
    }
    if buffer.len() < LENGTH_BYTES + length {
        let Some(mut head) = buffer.get(LENGTH_BYTES..HEADER_BYTES) else { return Ok(Incoming::Nothing) };
        return Ok(Incoming::Begun { header: Header::take(&mut head), bytes: LENGTH_BYTES + length });
    }
    buffer.advance(LENGTH_BYTES);
    let mut frame = buffer.split_to(length);
    let mut header = Header::take(&mut frame);
    if header.flags.has(Flags::TRACE) {
        let Some(trace) = frame.first_chunk::<TRACE_BYTES>().copied() else {
            return Err(FrameError::TooShort { bytes: length as u64 });
        };
        frame.advance(TRACE_BYTES);
        header.trace = Some(trace);
    }
    Ok(Incoming::Frame(Frame { header, body: frame.freeze() }))
}
