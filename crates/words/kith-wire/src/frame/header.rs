//! The header of a frame.

use super::{Flags, FrameError, Op};
use crate::MESSAGE_BYTES_MAX;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use prost::Message;
use tonic::Status;

/// The number of bytes before a frame's optional trace id and body: the length and the fields of fixed width.
pub const HEADER_BYTES: usize = LENGTH_BYTES + FIXED_BYTES;
pub(super) const LENGTH_BYTES: usize = 4;
/// The fields of fixed width are id, operation, flags, tenant and deadline.
pub(super) const FIXED_BYTES: usize = 8 + 1 + 1 + 2 + 4;
pub(super) const TRACE_BYTES: usize = 16;
/// The offset of the flags, which follow length, id and operation.
pub(super) const FLAGS_AT: usize = LENGTH_BYTES + 8 + 1;

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The request's id, which the client chooses. It is distinct among the client's requests in progress, and a reply
    /// has the id of its request. 0 stands for the connection itself.
    pub id: u64,
    /// The number of an [`Op`] of this release or of a later one.
    pub op: u8,
    /// The flags of the frame.
    pub flags: Flags,
    /// Reserved. Always 0.
    pub tenant: u16,
    /// The time that the request may take, in microseconds from its arrival; 0 means that no deadline is given.
    pub deadline_us: u32,
    /// The id of the trace that the request belongs to.
    pub trace: Option<[u8; TRACE_BYTES]>,
}

impl Header {
    /// Returns the header of a whole request without a deadline or trace.
    pub fn request(id: u64, op: Op) -> Self {
        Self { id, op: op as u8, flags: Flags::LAST, tenant: 0, deadline_us: 0, trace: None }
    }

    /// Returns the same header for a credited request, whose reply is sent under flow control.
    pub fn credited(self) -> Self {
        Self { flags: self.flags.with(Flags::CREDITED), ..self }
    }

    /// Appends a credit frame, which lets the reply of request `id` send `bytes` more bytes.
    pub fn encode_credit(id: u64, bytes: u32, out: &mut BytesMut) {
        let header = Self::request(id, Op::Credit);
        header.encode_bytes(&bytes.to_le_bytes(), out).expect("four bytes are below the maximum");
    }

    /// Returns the header of a reply to this request. `flags` says whether it is the last piece.
    pub fn reply(&self, flags: Flags) -> Self {
        Self { flags, deadline_us: 0, trace: None, ..*self }
    }

    /// Returns the header of an error that concerns the whole connection, which is closed after it.
    pub fn of_connection() -> Self {
        let flags = Flags::LAST.with(Flags::ERROR);
        Self { id: 0, op: 0, flags, tenant: 0, deadline_us: 0, trace: None }
    }

    /// Appends a frame with the message `body` to `out`.
    ///
    /// # Errors
    /// [`FrameError::TooLong`]; `out` is then unchanged.
    pub fn encode(&self, body: &impl Message, out: &mut BytesMut) -> Result<(), FrameError> {
        self.start(body.encoded_len(), out)?;
        body.encode(out).expect("a growing buffer has room");
        Ok(())
    }

    /// Appends a frame with an encoded body to `out`.
    ///
    /// # Errors
    /// [`FrameError::TooLong`]; `out` is then unchanged.
    pub fn encode_bytes(&self, body: &[u8], out: &mut BytesMut) -> Result<(), FrameError> {
        self.start(body.len(), out)?;
        out.put_slice(body);
        Ok(())
    }

    /// Appends a frame whose encoded body lies in several slices to `out`.
    ///
    /// # Errors
    /// [`FrameError::TooLong`]; `out` is then unchanged.
    pub fn encode_slices(&self, body: &[Bytes], out: &mut BytesMut) -> Result<(), FrameError> {
        self.start(body.iter().map(Bytes::len).sum(), out)?;
        body.iter().for_each(|slice| out.put_slice(slice));
        Ok(())
    }

    /// Appends an error frame, whose body is `status` in the envelope that gRPC errors also use.
    pub fn encode_error(&self, status: &Status, out: &mut BytesMut) {
        let header = Self { flags: Flags::LAST.with(Flags::ERROR), ..*self };
        let body = crate::error::envelope_of(status);
        if header.encode_bytes(&body, out).is_err() {
            // The peer would refuse such a long error, so send a short one in its place.
            let short = Status::new(status.code(), "the error is too long to be sent");
            header.encode_error(&short, out);
        }
    }

    /// Appends everything of the frame except its body, which the caller sends after it.
    ///
    /// # Errors
    /// [`FrameError::TooLong`]; `out` is then unchanged.
    pub fn encode_head(&self, body_bytes: usize, out: &mut BytesMut) -> Result<(), FrameError> {
        self.put_head(body_bytes, 0, out)
    }

    /// Takes the fields of fixed width that follow the length. The caller has checked that their bytes are there.
    pub(super) fn take(bytes: &mut impl Buf) -> Self {
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
