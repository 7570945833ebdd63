//! The framed protocol: the same message bodies as gRPC, without HTTP/2 around them. `docs/formats/framed-protocol.md`
//! draws it byte by byte.
//!
//! This module is pure: bytes in, frames out. Sockets are in `kith-net`. The protocol adds speed but no features: every
//! request that frames carry can also be made over gRPC, except calls to database processes, which only nodes and routers
//! make.

mod header;
mod op;
mod preface;
mod shared;
#[cfg(test)]
mod tests;

pub use header::{HEADER_BYTES, Header};
pub use op::{Flags, Op};
pub use preface::{PREFACE_BYTES, Preface, PrefaceError, VERSION};
pub use shared::{Offer, SlotPlace, decode_slots, encode_slots};

use crate::MESSAGE_BYTES_MAX;
use bytes::{Buf, Bytes, BytesMut};
use header::{FIXED_BYTES, FLAGS_AT, LENGTH_BYTES, TRACE_BYTES};
use thiserror::Error;
use tonic::Status;

/// The credit that the reply of a credited request starts with, in bytes. While any credit is left, the next message
/// may be sent, whatever its size. A link of 10 Gbit/s carries this many bytes in about a millisecond.
pub const CREDIT_BYTES: u32 = 1 << 20;

/// A received frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The header of the frame.
    pub header: Header,
    /// The body, as a slice of the receive buffer that is not copied.
    pub body: Bytes,
}

impl Frame {
    /// Returns the bytes that a credit frame grants; `None` if the body does not have four bytes.
    pub fn credit(&self) -> Option<u32> {
        Some(u32::from_le_bytes(self.body[..].try_into().ok()?))
    }

    /// Decodes the error in the body of an error frame.
    pub fn status(&self) -> Status {
        crate::error::status_of_envelope(&self.body)
    }
}

/// The reason why bytes are not a frame. Nothing after them can be decoded.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum FrameError {
    /// The frame is shorter than its own header.
    #[error("a frame of {bytes} bytes is shorter than its header")]
    TooShort {
        /// The length that the frame announces.
        bytes: u64,
    },
    /// The frame is longer than allowed.
    #[error("a frame of {bytes} bytes is longer than {bytes_max}")]
    TooLong {
        /// The length of the body, if the frame is being encoded; the length that the frame announces, if it is being
        /// decoded.
        bytes: u64,
        /// The largest length that is accepted.
        bytes_max: u64,
    },
}

/// A frame whose header has arrived, but not all of its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameStart {
    /// The header of the frame.
    pub header: Header,
    /// The length of its body in bytes. The bytes in the buffer after the first [`HEADER_BYTES`] belong to it.
    pub body_bytes: usize,
}

/// Returns the incomplete frame at the start of `buffer`. Returns `None` if the frame is complete, if its header is
/// not, if it has a trace id, or if [`decode`] refuses it. O(1).
pub fn begun(buffer: &[u8]) -> Option<FrameStart> {
    let (mut head, came) = buffer.split_at_checked(HEADER_BYTES)?;
    let body_bytes = (head.get_u32_le() as usize).checked_sub(FIXED_BYTES)?;
    let header = Header::take(&mut head);
    let is_incomplete = came.len() < body_bytes && body_bytes <= MESSAGE_BYTES_MAX;
    (is_incomplete && !header.flags.has(Flags::TRACE)).then_some(FrameStart { header, body_bytes })
}

/// The first item in a receive buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceivedItem {
    /// A whole frame, which was taken off the buffer.
    Frame(Frame),
    /// A frame that is not complete yet.
    Begun {
        /// The header, without its trace id.
        header: Header,
        /// The length of the whole frame in bytes.
        bytes: usize,
    },
    /// Not even a whole header.
    Nothing,
}

/// Takes the first whole frame off `buffer`. Returns `None` if more bytes are needed, and reserves room for them.
/// Therefore the peer must be trusted. O(1).
///
/// # Errors
/// [`FrameError`]; the connection cannot be used any more.
pub fn decode(buffer: &mut BytesMut) -> Result<Option<Frame>, FrameError> {
    match take(buffer, MESSAGE_BYTES_MAX)? {
        ReceivedItem::Frame(frame) => Ok(Some(frame)),
        ReceivedItem::Begun { bytes, .. } => {
            // The rest of a large body can then be received in its final place.
            buffer.reserve(bytes - buffer.len());
            Ok(None)
        }
        ReceivedItem::Nothing => Ok(None),
    }
}

/// Takes the first whole frame off `buffer` if its body has at most `body_bytes_max` bytes. Reserves no room. O(1).
///
/// # Errors
/// [`FrameError`], as soon as the length has arrived; the connection cannot be used any more.
pub fn take(buffer: &mut BytesMut, body_bytes_max: usize) -> Result<ReceivedItem, FrameError> {
    let Some(prefix) = buffer.first_chunk::<LENGTH_BYTES>() else { return Ok(ReceivedItem::Nothing) };
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
    // Only a frame with a trace id may be longer by the length of a trace id.
    if longest < length && buffer.get(FLAGS_AT).is_some_and(|flags| !Flags(*flags).has(Flags::TRACE)) {
        return Err(too_long(longest));
    }
    if buffer.len() < LENGTH_BYTES + length {
        let Some(mut head) = buffer.get(LENGTH_BYTES..HEADER_BYTES) else { return Ok(ReceivedItem::Nothing) };
        return Ok(ReceivedItem::Begun { header: Header::take(&mut head), bytes: LENGTH_BYTES + length });
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
    Ok(ReceivedItem::Frame(Frame { header, body: frame.freeze() }))
}
