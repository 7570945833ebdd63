//! The framed protocol: the same bodies as gRPC, without HTTP/2 around them.
//! Drawn byte by byte in `docs/formats/framed-protocol.md`.
//!
//! Pure: bytes in, frames out. Sockets are in `kith-net`. It adds speed and no feature: whatever
//! travels in frames can be asked over gRPC.

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

/// What a credited request begins with: so many bytes of messages may come before more credit does. The next message is
/// sent while any of it is left, whatever its size. What a link of 10 Gbit/s carries in a millisecond.
pub const CREDIT_BYTES: u32 = 1 << 20;

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
